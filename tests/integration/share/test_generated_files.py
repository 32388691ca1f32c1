"""Files that the server generates from a share, and the limits on their size.

A small profile can expand to a large file, which anonymous clients must not be able to request.
"""

import gzip
import pathlib
import sys

import pytest

from conftest import ROOT
from people import Tenant, come_from
from test_http_raw import Wire, get

sys.path.insert(0, str(pathlib.Path(ROOT, "tests", "oracle")))
import pprof_maker  # noqa: E402

MIB = 1 << 20


def amplifying_profile(roots, name_bytes, depth=50):
    """A profile of a recursive function with a long name. The profile contains the name once, a
    generated file once per frame."""
    maker = pprof_maker.Maker([("samples", "count")])
    location = maker.location([(maker.function("a" * name_bytes), 0)])
    for n in range(roots):
        maker.sample([location] * depth + [maker.location([(maker.function(f"f{n}"), 0)])], [1])
    return gzip.compress(maker.bytes(), 9)


def wide_profile(roots):
    maker = pprof_maker.Maker([("samples", "count")])
    leaf = maker.location([(maker.function("a" * 2000), 0)])
    for n in range(roots):
        maker.sample([leaf, maker.location([(maker.function(f"f{n}"), 0)])], [1])
    return gzip.compress(maker.bytes())


def share(client, profile):
    response = client.post("/api/v1/shares", profile)
    assert response.status == 201, response
    return response.json()["id"]


def test_generated_files_are_limited_for_anonymous_clients(server, anonymous):
    profile = amplifying_profile(260, 16_000)
    assert len(profile) < 4500
    made = share(anonymous, profile)
    for path in (f"/p/{made}.svg", f"/p/{made}.folded"):
        response = anonymous.get(path)
        assert response.status == 413 and len(response.body) < 2000, path
        detail = response.json()["detail"]
        assert f"{64 * MIB} bytes" in detail and "anonymous-max-generated-bytes" in detail
    assert anonymous.get(f"/p/{made}.png").status == 200


@pytest.fixture(scope="module")
def narrow(cluster_template):
    """A server with small limits, and shares whose files exceed the limit for anonymous clients."""
    import conftest

    folder = conftest.make_folder()
    conftest.copy_template(cluster_template, folder / "data")
    server = conftest.Server(
        folder / "data",
        ["--anonymous-max-generated-bytes", "1MiB", "--max-generated-bytes", "4MiB"],
    ).start()
    server.made = [
        share(server.api(), amplifying_profile(6, size)) for size in (6000, 6001, 16_000)
    ]
    yield server
    assert server.stop() == 0
    conftest.shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.parametrize(
    "pattern", ["/p/{0}.svg", "/p/{0}.folded", "/p/{0}.json", "/d/{0}..{1}.svg", "/d/{0}..{1}.json"]
)
def test_cached_files_are_limited_by_the_role_of_the_client(narrow, pattern):
    path = pattern.format(*narrow.made)
    anonymous = narrow.anonymous()
    before = anonymous.get(path)
    assert before.status == 413 and "anonymous-max-generated-bytes" in before.json()["detail"]
    response = narrow.api().get(path)
    assert response.status == 200 and len(response.body) > MIB
    assert anonymous.get(path).status == 413, "the cache bypassed the limit"
    assert Tenant(narrow).api("read").get(path).status == 200
    large = pattern.format(narrow.made[2], narrow.made[2])
    response = narrow.api().get(large)
    assert response.status == 413 and "(max-generated-bytes)" in response.json()["detail"]
    assert f"{4 * MIB} bytes" in response.json()["detail"]


def test_a_file_generated_for_an_anonymous_client_is_cached_for_all(narrow):
    small = share(narrow.api(), amplifying_profile(1, 1000))
    first = narrow.anonymous().get(f"/p/{small}.svg")
    assert first.status == 200 and narrow.api().get(f"/p/{small}.svg").body == first.body


def test_generated_pprof_files_are_limited(narrow):
    maker = pprof_maker.Maker([("samples", "count")])
    maker.sample(
        [maker.location([(maker.function(f"{n:06}" + "a" * 15_000), 0)]) for n in range(100)], [1]
    )
    made = share(narrow.api(), gzip.compress(maker.bytes()))
    assert narrow.anonymous().get(f"/p/{made}.pb.gz").status == 413
    assert narrow.api().get(f"/p/{made}.pb.gz").status == 200
    assert (
        narrow.anonymous().get(f"/p/{made}/raw").status == 200
    ), "the limit applies to generated files, not to the uploaded bytes"


@pytest.mark.long
def test_an_anonymous_address_generates_one_file_at_a_time(server, anonymous):
    made = share(anonymous, wide_profile(20_000))
    wires = [Wire(server, source="127.0.8.1") for _ in range(40)]
    for number, wire in enumerate(wires):
        wire.send(get(f"/p/{made}.svg?limit={19_000 + number}"))
    other = server.anonymous()
    come_from(other, "127.0.8.2")
    assert other.get(f"/p/{made}.svg?limit=100").status == 200
    responses = [wire.response() for wire in wires]
    refused = [(headers, body) for status, headers, body in responses if status != 200]
    assert refused and {status for status, _, _ in responses} == {200, 503}
    for headers, body in refused:
        assert int(headers["retry-after"]) > 0 and b"an address can generate one" in body
    for wire in wires:
        wire.socket.close()
