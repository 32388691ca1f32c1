"""Names that come after the profile: what was uploaded raw shows functions once a table is there."""

import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

import stored
from conftest import BUILD, ROOT
from test_shares import query_one, share, wait_for

sys.path.insert(0, str(ROOT / "tests" / "oracle"))
import pprof_reader  # noqa: E402

DATA = pathlib.Path(os.environ.get("PERFOLIO_SHARED", ROOT.parent / "shared")) / "data" / "symbolize"
PROFILES = sorted(path.name for path in DATA.glob("*p*of*"))


def build_table(elf, folder):
    table = folder / "table"
    subprocess.run([BUILD / "perfolio-symbolize", "-q", "-o", table, elf], check=True)
    return table.read_bytes()


def put_table(server, build_id, data, share_id):
    """As uploads do, of the team whose share it is."""
    if not isinstance(server.objects, stored.Folder):
        pytest.skip("writes into the folder of objects")
    digest = hashlib.sha256(data)
    key = "symbols/" + digest.hexdigest()[:24]
    path = server.objects.path / key
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_bytes(data)
    query_one(server, "INSERT INTO symbol_table (tenant_id, build_id, object_key, bytes, sha256, quality,"
              " quality_rank, builder_version, broken_units, functions, source)"
              " VALUES ((SELECT tenant_id FROM share WHERE id = %s), %s, %s, %s, %s, 0, 100, 1, 0, 1, 'table')"
              " ON CONFLICT (tenant_id, build_id) DO UPDATE SET object_key = excluded.object_key",
              share_id, build_id, key, len(data), digest.digest())


def frames_of(profile, location):
    """[(function, file, line)] of a location, leaf first."""
    return [(profile.functions[line["function_id"]]["name"],
             profile.functions[line["function_id"]]["filename"], line["line"])
            for line in location["line"]]


def ask_llvm(elf, addresses):
    """{address: [(function, file, line)]}"""
    done = subprocess.run(["llvm-symbolizer", f"--obj={elf}", "--no-demangle", "--output-style=JSON"],
                          input="".join(f"{address:#x}\n" for address in addresses), text=True,
                          check=True, stdout=subprocess.PIPE)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    return {address: [(frame["FunctionName"], frame["FileName"], frame["Line"])
                      for frame in answer["Symbol"]]
            for address, answer in zip(addresses, answers)}


def ask_go(elf, addresses):
    """{address: (outermost function, file, line of the leaf)}"""
    done = subprocess.run(["go", "tool", "addr2line", elf], text=True, check=True,
                          input="".join(f"{address:#x}\n" for address in addresses),
                          stdout=subprocess.PIPE)
    lines = done.stdout.splitlines()
    return {address: (lines[2 * i], *lines[2 * i + 1].rsplit(":", 1))
            for i, address in enumerate(addresses)}


def binary_of(profile):
    """The number of the mapping whose debug information is here, and that."""
    for number, mapping in profile.mappings.items():
        if mapping["build_id"] and (DATA / mapping["build_id"]).exists():
            return number, DATA / mapping["build_id"] / "debuginfo"
    raise AssertionError("no debug information of it")


def locations_in(profile, number):
    return [location for location in profile.locations.values() if location["mapping_id"] == number]


def check_names(profile, number, elf):
    """Every address says what other readers of the same file say."""
    locations = locations_in(profile, number)
    addresses = [location["address"] for location in locations]
    has_dwarf = b"debug_info" in subprocess.run(["readelf", "-SW", elf], check=True,
                                                stdout=subprocess.PIPE).stdout
    assert locations and all(location["line"] for location in locations)
    if has_dwarf:
        wanted = ask_llvm(elf, addresses)
        for location in locations:
            assert frames_of(profile, location) == wanted[location["address"]], hex(location["address"])
    elif shutil.which("go"):
        wanted = ask_go(elf, addresses)
        for location in locations:
            frames = frames_of(profile, location)
            assert (frames[-1][0], frames[0][1], str(frames[0][2])) == wanted[location["address"]]


@pytest.mark.skipif(not PROFILES or not shutil.which("llvm-symbolizer"),
                    reason="no profiles, or no llvm-symbolizer")
@pytest.mark.parametrize("name", PROFILES)
def test_an_old_permalink_gets_names(server, admin, tmp_path, name):
    raw = (DATA / name).read_bytes()
    before = pprof_reader.Profile(raw)
    number, elf = binary_of(before)
    made = share(admin, raw)
    link, status = f"/p/{made['id']}.json", f"/api/v1/shares/{made['id']}/symbolization"
    first = admin.get(link)
    missing = first.json()["symbolization"]["missing"]
    assert [entry["build_id"] for entry in missing] == [elf.parent.name] and missing[0]["reason"]
    assert not first.json()["symbolization"]["complete"]
    generation = admin.get(status).json()["generation"]
    etag = {"if-none-match": first.headers["etag"]}
    assert admin.get(link, headers=etag).status == 304
    put_table(server, elf.parent.name, build_table(elf, tmp_path), made["id"])
    wait_for(lambda: admin.get(status).json()["generation"] > generation)
    second = admin.get(link, headers=etag)
    assert second.status == 200 and second.json()["symbolization"] == {
        "complete": True, "pending": [], "missing": []}
    assert second.json()["total"] == first.json()["total"]
    after = pprof_reader.Profile(admin.get(f"/p/{made['id']}.pb.gz").body)
    check_names(after, number, elf)
    assert after.mappings[number]["has_functions"] and after.mappings[number]["has_line_numbers"]
    # What came with the profile is still there, and so are its numbers and its very bytes.
    assert [sample.values for sample in after.samples] == [sample.values for sample in before.samples]
    assert ([frames_of(after, at) for at in after.locations.values() if at["mapping_id"] != number] ==
            [frames_of(before, at) for at in before.locations.values() if at["mapping_id"] != number])
    assert admin.get(f"/api/v1/shares/{made['id']}/raw").body == raw
