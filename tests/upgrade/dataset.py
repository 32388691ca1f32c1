"""Creates data of every kind that a server stores and collects its responses, for upgrade tests.

make() creates the data with the old version. observe() returns {name: result} and changes nothing
that a later observe() sees. finish() completes what make() has left unfinished."""

import json
import pathlib
import subprocess
import sys

INTEGRATION = pathlib.Path(__file__).resolve().parents[1] / "integration"
sys.path.insert(0, str(INTEGRATION))

import sample_profiles as samples  # noqa: E402
from conftest import Api  # noqa: E402
from people import PASSWORD, Browser, Tenant  # noqa: E402
from test_debuginfo import compile_with_id, wait_built  # noqa: E402
from test_store import BEGIN, CPU, CPU_NAMES, HEAP, HEAP_NAMES, HOUR  # noqa: E402
from test_store import compact, make_profile, pprof_maker  # noqa: E402

BUILD_ID = "ab12cd34ef56"
SHARE_PASSWORD = "open sesame please"
FORMATS = {
    "folded": samples.FOLDED,
    "perf script": samples.PERF_SCRIPT,
    "cpuprofile": samples.CPUPROFILE,
}
# Members of JSON results that every request or the time itself changes.
VOLATILE = {
    "done_at",  # of a deletion, which may end while the server is stopped and started
    "last_seen_at",
    "last_sign_in_at",
    "last_used_at",
    "last_view_at",
    "request_id",
    "us",  # how long a query took
    "views",
}


class Data:
    """The data that make() created; .server is the server of either version."""

    def __init__(self, server):
        self.server = server
        self.shares = {}  # name: the response of the upload
        self.links = {}


def expect(response, *statuses):
    assert response.status in (statuses or (200, 201, 202, 204)), response
    return response


# ---- creating ----


def make(server, folder):
    data = Data(server)
    make_people(data)
    make_shares(data)
    make_uploads(data)
    make_debug_files(data, folder)
    make_profiles(data)
    return data


def make_people(data):
    data.team = Tenant(data.server)
    data.owner = data.team.user("owner")
    data.member = data.team.add_user("member", name="Ada")
    data.browser = Browser(data.server)
    signed_in = data.browser.sign_in(email=data.member["email"], password=PASSWORD)
    expect(signed_in)
    data.token = data.team.make_token("ingest", "read", "share", "debuginfo", "admin")["token"]
    expect(data.owner.patch("/api/v1/tenant", json={"sample_labels": "region,zone"}))
    expect(
        data.owner.post("/api/v1/invitations", json={"email": "x@example.com", "role": "viewer"})
    )
    expect(
        data.server.api().patch(
            f"/api/v1/admin/tenants/{data.team.id}", json={"max_bytes_stored": 1 << 30}
        )
    )
    expect(
        client(data).post(
            "/api/v1/source-links",
            json={"path_prefix": "/src", "url": "https://example.com/{path}"},
        )
    )


def client(data):
    return Api(data.server, data.token)


def make_shares(data):
    api = client(data)
    for name, body in FORMATS.items():
        query = {"title": f"A share of {name}", "visibility": "unlisted", "label": "env=prod"}
        data.shares[name] = expect(api.post("/api/v1/shares", body, query=query)).json()
    for name, query, headers in (
        ("of the team", {"visibility": "team"}, {}),
        ("public", {"visibility": "public", "expires": "30d"}, {}),
        ("with a password", {"visibility": "password"}, {"X-Perfolio-Password": SHARE_PASSWORD}),
        ("deleted", {}, {}),
    ):
        response = api.post("/api/v1/shares", samples.FOLDED_SLOWER, query=query, headers=headers)
        data.shares[name] = expect(response).json()
    data.anonymous = expect(
        data.server.anonymous().post("/api/v1/shares", samples.FOLDED), 201
    ).json()
    expect(api.delete(f"/api/v1/shares/{data.shares['deleted']['id']}"))
    first = data.shares["folded"]["id"]
    expect(data.browser.post(f"/api/v1/shares/{first}/comments", json={"text": "Look at *read*"}))
    for path in (f"/p/{first}?q=read", f"/d/{first}..{data.shares['public']['id']}?v=both"):
        data.links[path] = expect(api.post("/api/v1/links", json={"path": path})).json()["id"]


def make_uploads(data):
    api, body = client(data), samples.FOLDED * 3
    for name in ("complete", "unfinished"):
        upload = expect(api.post("/api/v1/uploads", json={"size": len(body), "filename": name}))
        upload = upload.json()
        expect(api.put(f"/api/v1/uploads/{upload['id']}/parts/0", body))
        if name == "complete":
            made = expect(api.post(f"/api/v1/uploads/{upload['id']}/complete"))
            data.shares["uploaded in parts"] = made.json()
        else:
            data.unfinished = upload["id"]


def make_debug_files(data, folder):
    """Uploads an executable with debug information, and a share and a series with addresses in
    it."""
    api = client(data)
    binary = compile_with_id(folder, BUILD_ID, "program", "-no-pie")
    body = binary.read_bytes()
    data.executable = body
    expect(api.post(f"/api/v1/debuginfo/{BUILD_ID}/executable", body))
    wait_built(api, BUILD_ID)
    lines = subprocess.run(["nm", binary], check=True, capture_output=True, text=True).stdout
    start = next(int(line.split()[0], 16) for line in lines.splitlines() if line.endswith(" outer"))
    maker = pprof_maker.Maker(CPU)
    mapping = maker.mapping("/usr/bin/program", start=0x401000, limit=0x402000, build_id=BUILD_ID)
    locations = [maker.location(mapping=mapping, address=start + offset) for offset in (0, 4)]
    for location in locations:
        maker.sample([location], [3, 30_000_000])
    maker.scalars(time=BEGIN, duration=10**10, period=1, period_type=("cpu", "nanoseconds"))
    data.shares["of addresses"] = expect(api.post("/api/v1/shares", maker.bytes())).json()
    query = {"label": "service_name=native"}
    expect(api.post("/api/v1/profiles", maker.bytes(), query=query))


def push(data, service, time_ns, types, values):
    is_heap = types is HEAP
    body = make_profile(
        types,
        time_ns,
        {("main", "work", service): values, ("main", "rest"): values},
        ("space", "bytes") if is_heap else ("cpu", "nanoseconds"),
        0 if is_heap else 10**10,
    )
    query = [("label", f"service_name={service}"), ("label", "region=north")]
    expect(client(data).post("/api/v1/profiles", body, query=query))


def make_profiles(data):
    """Sends profiles: the first hours are compacted to blocks, the last ones stay in segments."""
    api = client(data)
    expect(api.post("/api/v1/retention", json={"query": '{service_name="b"}', "keep": "3650d"}))
    for hour in range(3):
        for minute in range(6):
            time_ns = BEGIN + hour * HOUR + minute * 60 * 10**9
            push(data, "a", time_ns, CPU, [minute + 1, 10**7 * (hour + 1)])
            push(data, "b", time_ns, HEAP, [1000 * (6 * hour + minute + 1), 500 * (minute + 1)])
    push(data, "unwanted", BEGIN, CPU, [1, 10**7])
    expect(
        api.request("DELETE", "/api/v1/profiles", query={"query": '{service_name="unwanted"}'}), 202
    )
    compact(data.server)
    for minute in range(5):
        push(data, "a", BEGIN + 4 * HOUR + minute * 60 * 10**9, CPU, [7, 10**7])


# ---- observing ----


def observe(data):
    found = {}
    observe_people(data, found)
    observe_shares(data, found)
    observe_debug_files(data, found)
    observe_profiles(data, found)
    return found


def keep(found, name, response):
    """Records the status and the body, decoded if it is JSON."""
    kind = response.headers.get("content-type", "")
    body = json.loads(response.body) if "json" in kind and response.body else response.body
    found[name] = {"status": response.status, "body": body}


def observe_people(data, found):
    api = client(data)
    for path in ("users", "tokens", "invitations", "tenant", "audit", "source-links"):
        keep(found, path, data.owner.get(f"/api/v1/{path}"))
    keep(found, "a session goes on", data.browser.get("/api/v1/session"))
    keep(found, "a token", api.get("/api/v1/session"))
    keep(found, "the operator's token", data.server.api().get("/api/v1/session"))
    keep(found, "teams", data.server.api().get("/api/v1/admin/tenants"))


def observe_shares(data, found):
    api, anonymous = client(data), data.server.anonymous()
    keep(found, "shares", api.get("/api/v1/shares"))
    for name, made in {**data.shares, "anonymous": data.anonymous}.items():
        path = f"/api/v1/shares/{made['id']}"
        for tail in ("", "/raw", "/top", "/labels", "/symbolization", "/comments"):
            keep(found, f"share {name}: {tail}", api.get(path + tail))
        keep(found, f"share {name}, without credentials", anonymous.get(path))
        for suffix in (".folded", ".json", ".pb.gz"):
            keep(found, f"share {name}: {suffix}", api.get(f"/p/{made['id']}{suffix}"))
        found[f"page of {name}"] = anonymous.get(
            f"/p/{made['id']}", headers={"Accept": "text/html"}
        ).status
    closed = f"/api/v1/shares/{data.shares['with a password']['id']}/raw"
    headers = {"X-Perfolio-Password": SHARE_PASSWORD}
    keep(found, "the password of a share", anonymous.get(closed, headers=headers))
    for path, short in data.links.items():
        response = anonymous.get(f"/s/{short}")
        found[f"short link to {path}"] = (response.status, response.headers.get("location"))
    sides = [data.shares[name]["id"] for name in ("folded", "public")]
    keep(found, "diff", api.get("/api/v1/diff/top", query={"a": sides[0], "b": sides[1]}))
    keep(found, "an unfinished upload", api.get(f"/api/v1/uploads/{data.unfinished}"))


def observe_debug_files(data, found):
    api = client(data)
    keep(found, "debug files", api.get("/api/v1/debuginfo"))
    keep(found, "a binary", api.get(f"/api/v1/debuginfo/{BUILD_ID}"))
    served = api.get(f"/buildid/{BUILD_ID}/executable")
    found["the executable"] = (served.status, served.body == data.executable)


def observe_profiles(data, found):
    api = client(data)
    window = {"start": BEGIN - HOUR, "end": BEGIN + 9 * HOUR}
    for name in CPU_NAMES + HEAP_NAMES:
        for report in ("folded", "top", "json", "pprof"):
            response = api.get("/api/v1/query", query={"query": name, "report": report, **window})
            keep(found, f"query {name}: {report}", response)
        query = {"query": name, "step": "10m", "group_by": "service_name", **window}
        keep(found, f"values of {name}", api.get("/api/v1/query_range", query=query))
    for path in ("labels", "profile_types", "label/service_name/values", "series"):
        keep(found, path, api.get(f"/api/v1/{path}", query=window))
    for path in ("deletions", "retention", "usage", "senders"):
        keep(found, path, api.get(f"/api/v1/{path}"))


def differences(old, new, path=""):
    """Returns the differences between old and new results. The new ones may have more members."""
    if isinstance(old, dict) and isinstance(new, dict):
        return [
            line
            for name, value in old.items()
            if name not in VOLATILE
            for line in (
                differences(value, new[name], f"{path}/{name}")
                if name in new
                else [f"{path}/{name} is missing"]
            )
        ]
    if isinstance(old, (list, tuple)) and isinstance(new, (list, tuple)) and len(old) == len(new):
        return [
            line
            for i, (one, other) in enumerate(zip(old, new))
            for line in differences(one, other, f"{path}/{i}")
        ]
    return [] if old == new else [f"{path}: {old!r:.300} became {new!r:.300}"]


# ---- continuing with the new version ----


def finish(data):
    """Completes the upload, signs in again, and adds to the stored data with the new version."""
    api = client(data)
    made = expect(api.post(f"/api/v1/uploads/{data.unfinished}/complete")).json()
    raw = expect(api.get(f"/api/v1/shares/{made['id']}/raw")).body
    assert raw == samples.FOLDED * 3
    fresh = Browser(data.server)
    expect(fresh.sign_in(email=data.member["email"], password=PASSWORD))
    assert (
        Browser(data.server).sign_in(email=data.member["email"], password="wrong one").status == 401
    )
    window = {"start": BEGIN - HOUR, "end": BEGIN + 9 * HOUR}
    query = {"query": CPU_NAMES[0], "report": "folded", **window}
    before = expect(api.get("/api/v1/query", query=query)).text
    push(data, "a", BEGIN + 5 * HOUR, CPU, [100, 10**9])
    compact(data.server)  # blocks and segments of both versions become blocks of the new one
    after = expect(api.get("/api/v1/query", query=query)).text
    assert total(after) == total(before) + 200, (before, after)


def total(folded):
    return sum(int(line.rpartition(" ")[2]) for line in folded.splitlines())
