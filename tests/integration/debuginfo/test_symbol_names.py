"""Symbolization after the upload: a profile of raw addresses gets functions once their symbol table
exists."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

import stored
from conftest import BUILD, ROOT
from people import Tenant
from test_database_outage import terminate
from test_shares import problem, query_one, share, wait_for
from test_store import BEGIN, CPU, CPU_NAMES, HOUR, until

sys.path.insert(0, str(ROOT / "tests" / "oracle"))
import pprof_maker  # noqa: E402
import pprof_reader  # noqa: E402

pytestmark = pytest.mark.long

DATA = (
    pathlib.Path(os.environ.get("PERFOLIO_SHARED", ROOT.parent / "shared")) / "data" / "symbolize"
)
PROFILES = sorted(path.name for path in DATA.glob("*p*of*"))


def build_table(elf, folder):
    table = folder / "table"
    subprocess.run([BUILD / "perfolio-symbolize", "-q", "-o", table, elf], check=True)
    return table.read_bytes()


def send_table(client, build_id, data):
    response = client.post(f"/api/v1/debuginfo/{build_id}/table", data)
    assert response.status < 300, response


def id_of(elf):
    """Returns the build ID of Go's note in hexadecimal."""
    notes = subprocess.run(
        ["readelf", "-nW", elf], check=True, text=True, stdout=subprocess.PIPE
    ).stdout
    return re.search("GO BUILDID.*description data: ([0-9a-f ]+)", notes)[1].replace(" ", "")


def put_table(server, client, elf, data, build_id):
    """Stores the table of elf under build_id, which may differ from the ID in the file if the
    profile has an artificial one."""
    send_table(client, id_of(elf), data)
    if id_of(elf) == build_id:
        return
    columns = (
        "object_key, bytes, sha256, quality, quality_rank, builder_version, broken_units,"
        " functions, source"
    )
    query_one(
        server,
        f"INSERT INTO symbol_table (tenant_id, build_id, {columns}) SELECT tenant_id, %s, {columns}"
        " FROM symbol_table WHERE build_id = %s",
        build_id,
        id_of(elf),
    )


def unnamed_build_ids(response):
    """Returns the build IDs without names, including those whose tables are still pending."""
    state = response.json()["symbolization"]
    return [entry["build_id"] for entry in state["missing"] + state["pending"]]


def frames_of(profile, location):
    """Returns [(function, file, line)] of a location, leaf first."""
    return [
        (
            profile.functions[line["function_id"]]["name"],
            profile.functions[line["function_id"]]["filename"],
            line["line"],
        )
        for line in location["line"]
    ]


def llvm_frames(elf, addresses):
    """Returns {address: [(function, file, line)]} by llvm-symbolizer."""
    done = subprocess.run(
        ["llvm-symbolizer", f"--obj={elf}", "--no-demangle", "--output-style=JSON"],
        input="".join(f"{address:#x}\n" for address in addresses),
        text=True,
        check=True,
        stdout=subprocess.PIPE,
    )
    responses = [json.loads(line) for line in done.stdout.splitlines()]
    return {
        address: [
            (frame["FunctionName"], frame["FileName"], frame["Line"])
            for frame in response["Symbol"]
        ]
        for address, response in zip(addresses, responses)
    }


def go_frames(elf, addresses):
    """Returns {address: (outermost function, file, line of the leaf)} by go tool addr2line."""
    done = subprocess.run(
        ["go", "tool", "addr2line", elf],
        text=True,
        check=True,
        input="".join(f"{address:#x}\n" for address in addresses),
        stdout=subprocess.PIPE,
    )
    lines = done.stdout.splitlines()
    return {
        address: (lines[2 * i], *lines[2 * i + 1].rsplit(":", 1))
        for i, address in enumerate(addresses)
    }


def binary_of(profile):
    """Returns the mapping number and the debug file of the binary that DATA contains."""
    for number, mapping in profile.mappings.items():
        if mapping["build_id"] and (DATA / mapping["build_id"]).exists():
            return number, DATA / mapping["build_id"] / "debuginfo"
    raise AssertionError("no debug information for any mapping")


def locations_in(profile, number):
    return [location for location in profile.locations.values() if location["mapping_id"] == number]


def check_names(profile, number, elf):
    """Compares the frames of every address with those of other tools for the same file."""
    locations = locations_in(profile, number)
    addresses = [location["address"] for location in locations]
    has_dwarf = (
        b"debug_info"
        in subprocess.run(["readelf", "-SW", elf], check=True, stdout=subprocess.PIPE).stdout
    )
    assert locations and all(location["line"] for location in locations)
    if has_dwarf:
        wanted = llvm_frames(elf, addresses)
        for location in locations:
            assert frames_of(profile, location) == wanted[location["address"]], hex(
                location["address"]
            )
    elif shutil.which("go"):
        wanted = go_frames(elf, addresses)
        for location in locations:
            frames = frames_of(profile, location)
            assert (frames[-1][0], frames[0][1], str(frames[0][2])) == wanted[location["address"]]


@pytest.mark.skipif(
    not PROFILES or not shutil.which("llvm-symbolizer"), reason="no profiles, or no llvm-symbolizer"
)
@pytest.mark.parametrize("name", PROFILES)
def test_an_existing_permalink_gets_names(server, admin, tmp_path, name):
    raw = (DATA / name).read_bytes()
    before = pprof_reader.Profile(raw)
    number, elf = binary_of(before)
    made = share(admin, raw)
    link, status = f"/p/{made['id']}.json", f"/api/v1/shares/{made['id']}/symbolization"
    first = admin.get(link)
    assert unnamed_build_ids(first) == [elf.parent.name]
    wait_for(lambda: admin.get(status).json()["missing"])
    (missing,) = admin.get(status).json()["missing"]
    assert missing["build_id"] == elf.parent.name and missing["reason"]
    first = admin.get(link)
    assert not first.json()["symbolization"]["complete"]
    generation = admin.get(status).json()["generation"]
    etag = {"if-none-match": first.headers["etag"]}
    assert admin.get(link, headers=etag).status == 304
    put_table(server, admin, elf, build_table(elf, tmp_path), elf.parent.name)
    wait_for(lambda: admin.get(status).json()["generation"] > generation)
    second = admin.get(link, headers=etag)
    assert second.status == 200 and second.json()["symbolization"] == {
        "complete": True,
        "pending": [],
        "missing": [],
    }
    assert second.json()["total"] == first.json()["total"]
    after = pprof_reader.Profile(admin.get(f"/p/{made['id']}.pb.gz").body)
    check_names(after, number, elf)
    assert after.mappings[number]["has_functions"] and after.mappings[number]["has_line_numbers"]
    # Values, other frames and the raw bytes of the profile are unchanged.
    assert [sample.values for sample in after.samples] == [
        sample.values for sample in before.samples
    ]
    assert [
        frames_of(after, at) for at in after.locations.values() if at["mapping_id"] != number
    ] == [frames_of(before, at) for at in before.locations.values() if at["mapping_id"] != number]
    assert admin.get(f"/api/v1/shares/{made['id']}/raw").body == raw


# ---- programs compiled by the tests ----

C_SOURCE = """volatile int sink;
static inline __attribute__((always_inline)) int inner(int x) { sink += x; return sink; }
static inline __attribute__((always_inline)) int middle(int x)
{
    for (int i = 0; i < 4; i++)
        sink += inner(x + i);
    return sink;
}
__attribute__((noinline)) int outer(int x) { return middle(x) * inner(3); }
int main(int argc, char **argv) { (void)argv; return outer(argc) & 1; }
"""
CXX_SOURCE = """volatile int sink;
namespace app {
template <class T> __attribute__((noinline)) T twice(T x) { sink += (int)x; return x * 2; }
}
int main(int argc, char **) { return app::twice<long>(argc) & 1; }
"""
BASE, OFFSET = 0x555555554000, 0x1000


class Program:
    """A compiled binary with debug information, and a profile of every address of its functions."""

    def __init__(self, folder, build_id, source, suffix="c", functions=("outer", "main")):
        self.elf, self.build_id = folder / "program", build_id
        (folder / f"main.{suffix}").write_text(source)
        compiler = "gcc" if suffix == "c" else "g++"
        subprocess.run(
            [
                compiler,
                "-O2",
                "-g",
                "-pie",
                f"-Wl,--build-id=0x{build_id}",
                f"main.{suffix}",
                "-o",
                self.elf,
            ],
            cwd=folder,
            check=True,
        )
        symbols = subprocess.run(
            ["nm", "-S", self.elf], check=True, text=True, stdout=subprocess.PIPE
        ).stdout
        places = {
            line.split()[3]: line.split() for line in symbols.splitlines() if len(line.split()) == 4
        }
        self.addresses = [
            int(places[name][0], 16) + at
            for name in functions
            for at in range(int(places[name][1], 16))
        ]
        self.table = build_table(self.elf, folder)

    def profile(self, time_ns=BEGIN):
        """Returns a profile with one sample per address, each with a distinct value."""
        maker = pprof_maker.Maker(CPU)
        mapping = maker.mapping(
            str(self.elf), BASE + OFFSET, BASE + OFFSET + 0x1000, self.build_id, flags=0
        )
        for i, address in enumerate(self.addresses):
            maker.sample([maker.location((), mapping, BASE + address)], [1, 10 + i])
        maker.scalars(time=time_ns, duration=10**10, period=1, period_type=("cpu", "nanoseconds"))
        return maker.bytes()

    def wanted(self):
        """Returns {address: [(function, file, line)]} by eu-addr2line of elfutils."""
        done = subprocess.run(
            ["eu-addr2line", "-e", self.elf, "-a", "-i", "-f"],
            text=True,
            check=True,
            input="".join(f"{address:#x}\n" for address in self.addresses),
            stdout=subprocess.PIPE,
        )
        responses, frames = {}, []
        lines = iter(done.stdout.splitlines())
        for line in lines:
            if line.startswith("0x"):
                frames = responses[int(line, 16)] = []
                continue
            file, number = next(lines).split(":")[:2]
            frames.append((line.split()[0], file, int(number)))
        return responses

    def check(self, body, base):
        """Compares the frames of every address in a pprof response with those of elfutils, and the
        values with those of profile()."""
        profile = pprof_reader.Profile(body)
        wanted, values = self.wanted(), {}
        for sample in profile.samples:
            (location,) = (profile.locations[number] for number in sample.stack)
            address = location["address"] - base
            assert frames_of(profile, location) == wanted[address], hex(address)
            values[address] = sample.values[-1]
        assert values == {address: 10 + i for i, address in enumerate(self.addresses)}


@pytest.fixture
def tenant(server):
    return Tenant(server)


needs_compiler = pytest.mark.skipif(
    not shutil.which("gcc") or not shutil.which("eu-addr2line"), reason="no gcc, or no elfutils"
)


@needs_compiler
def test_shares_and_stored_profiles_get_the_frames_of_elfutils(tenant, tmp_path):
    program = Program(tmp_path, "ab" * 20, C_SOURCE)
    client = tenant.api("ingest", "read", "share", "debuginfo")
    link = share(client, program.profile())["id"]
    assert (
        client.post("/api/v1/profiles", program.profile(), query={"label": "pod=a"}).status == 200
    )
    parameters = {"query": CPU_NAMES[1] + "{}", "start": BEGIN, "end": BEGIN + HOUR}

    def fetch(**options):
        return client.get("/api/v1/query", query={**parameters, "report": "top", **options})

    def top(**options):
        return fetch(**options).json()

    before = top()
    assert unnamed_build_ids(fetch()) == [program.build_id]
    assert top(focus="^inner$")["kept"] == 0
    # An address without a name is shown as binary+offset. A focus on that name still matches after
    # symbolization.
    address, old = program.addresses[7], f"^program[+]{program.addresses[7]:#x}$"
    assert {(row["name"], row["flat"]) for row in before["functions"]} == {
        (f"program+{address:#x}", 10 + i) for i, address in enumerate(program.addresses)
    }
    assert all(row["flags"] == ["not_symbolised"] for row in before["functions"])
    assert top(focus=old)["kept"] == 17
    send_table(client, program.build_id, program.table)
    wait_for(lambda: top()["symbolization"]["complete"])
    after = top()
    assert after["total"] == before["total"] == sum(10 + i for i in range(len(program.addresses)))
    inner = sum(
        10 + i
        for i, address in enumerate(program.addresses)
        if "inner" in [frame[0] for frame in program.wanted()[address]]
    )
    assert inner and top(focus="^inner$")["kept"] == inner
    (leaf, *callers), named = program.wanted()[address], top(focus=old)
    assert named["kept"] == 17 and {row["name"] for row in named["functions"]} == {
        frame[0] for frame in (leaf, *callers)
    }
    assert {row["name"]: row["cum"] for row in after["functions"]}["inner"] == inner
    # Results cached before symbolization must not be returned.
    program.check(client.get(f"/p/{link}.pb.gz").body, BASE)
    program.check(client.get("/api/v1/query", query={**parameters, "report": "pprof"}).body, 0)


@needs_compiler
@pytest.mark.skipif(
    stored.is_in_bucket(), reason="objects of a bucket are not changed from outside"
)
def test_an_unpacked_table_object_is_read(start_server, tmp_path):
    """Earlier versions packed no tables, and a table that does not get smaller is not packed."""
    server = start_server()
    program = Program(tmp_path, "ba" * 20, C_SOURCE)
    client = Tenant(server).api("read", "share", "debuginfo")
    link = share(client, program.profile())["id"]
    send_table(client, program.build_id, program.table)
    stored_table = (
        server.data_dir / "objects" / query_one(server, "SELECT object_key FROM symbol_table")[0]
    )
    assert stored_table.read_bytes()[:8] == b"PFSYMPK1" and program.table[:8] == b"PFSYMTB1"
    stored_table.write_bytes(program.table)
    with server.cursor() as cursor:
        cursor.execute(
            "UPDATE symbol_table SET bytes = %s, sha256 = sha256(%s)",
            [len(program.table), program.table],
        )
    server.restart()
    client.close()
    program.check(client.get(f"/p/{link}.pb.gz").body, BASE)


@needs_compiler
def test_comparisons_report_each_unnamed_binary_once(tenant, tmp_path):
    program = Program(tmp_path, "cd" * 20, C_SOURCE)
    client = tenant.api("ingest", "read", "share", "debuginfo")
    link = share(client, program.profile())["id"]
    assert (
        client.post("/api/v1/profiles", program.profile(), query={"label": "pod=a"}).status == 200
    )
    query = CPU_NAMES[1] + "{}"
    window = {"a_start": BEGIN, "a_end": BEGIN + HOUR}
    sides = [
        {"a": link, "b": link},
        {"a_query": query, **window, "b": link},
        {"a_query": query, **window, "b_query": query, "b_start": BEGIN, "b_end": BEGIN + HOUR},
    ]

    def responses():
        for path in ("/api/v1/diff", "/api/v1/diff/top"):
            for parameters in sides:
                response = client.get(
                    path, query=parameters, headers={"Accept": "application/json"}
                )
                assert response.status == 200, response
                yield response

    def symbolization():
        response = client.get("/api/v1/symbolization", query={"build_id": program.build_id})
        assert response.status == 200, response
        return response.json()

    for response in responses():
        assert unnamed_build_ids(response) == [program.build_id]
    before = symbolization()
    assert [one["build_id"] for one in before["missing"] + before["pending"]] == [program.build_id]
    send_table(client, program.build_id, program.table)
    wait_for(lambda: all(response.json()["symbolization"]["complete"] for response in responses()))
    assert symbolization()["complete"] and symbolization()["generation"] > before["generation"]
    for wrong in ("", "?build_id=", "?build_id=ab&file=x", "?" + "&".join(["build_id=ab"] * 257)):
        assert client.get("/api/v1/symbolization" + wrong).status == 400, wrong
    other = (
        Tenant(tenant.server)
        .api("read")
        .get("/api/v1/symbolization", query={"build_id": program.build_id})
    )
    assert not other.json()["complete"]


@needs_compiler
def test_binaries_of_an_upload_are_searched_for_at_once(server, tmp_path):
    program = Program(tmp_path, "1234" * 10, C_SOURCE)
    for path in ("/api/v1/profiles", "/api/v1/shares"):
        team = Tenant(server)
        assert team.api("ingest", "share").post(path, program.profile()).status in (200, 201)
        wait_for(
            lambda: query_one(
                server,
                "SELECT file FROM symbol_need WHERE tenant_id = %s AND build_id = %s",
                team.id,
                program.build_id,
            )
            == (str(program.elf),)
        )


@needs_compiler
def test_each_team_sees_its_own_names(server, tmp_path):
    """Two teams have different programs with one build ID and see only the names of their own."""
    tables, clients, links = [], [], []
    for i, word in enumerate(("inner", "outer")):
        folder = tmp_path / str(i)
        folder.mkdir()
        program = Program(
            folder,
            "cd" * 20,
            C_SOURCE.replace(word, f"{word}{i}"),
            functions=(f"{word}{i}" if word == "outer" else "outer", "main"),
        )
        tables.append(program)
        clients.append(Tenant(server).api("share", "read", "debuginfo"))
        links.append(share(clients[i], program.profile())["id"])
        send_table(clients[i], program.build_id, program.table)
    stranger = Tenant(server).api("share", "read")
    raw = share(stranger, tables[0].profile())["id"]
    for i, names in enumerate(({"inner0", "outer"}, {"inner", "outer1"})):
        wait_for(
            lambda: names
            <= {
                row["name"]
                for row in clients[i].get(f"/api/v1/shares/{links[i]}/top").json()["functions"]
            }
        )
    response = stranger.get(f"/api/v1/shares/{raw}/top")
    assert {row["name"] for row in response.json()["functions"]} == {
        f"program+{address:#x}" for address in tables[0].addresses
    }
    assert unnamed_build_ids(response) == [tables[0].build_id]


@pytest.mark.skipif(not shutil.which("g++"), reason="no g++")
def test_the_names_parameter_selects_the_form_of_function_names(tenant, tmp_path):
    mangled = "_ZN3app5twiceIlEET_S1_"
    program = Program(tmp_path, "ef" * 20, CXX_SOURCE, "cc", (mangled, "main"))
    client = tenant.api("ingest", "read", "share", "debuginfo")
    send_table(client, program.build_id, program.table)
    link = share(client, program.profile())["id"]
    assert (
        client.post("/api/v1/profiles", program.profile(), query={"label": "pod=a"}).status == 200
    )
    parameters = {
        "query": CPU_NAMES[1] + "{}",
        "start": BEGIN,
        "end": BEGIN + HOUR,
        "report": "top",
    }
    for names, name in (
        ("", "app::twice"),
        ("simple", "app::twice"),
        ("none", mangled),
        ("full", "long app::twice<long>(long)"),
    ):
        for path, query in ((f"/api/v1/shares/{link}/top", {}), ("/api/v1/query", parameters)):
            rows = client.get(path, query={**query, "names": names}).json()["functions"]
            assert {row["name"] for row in rows} == {name, "main"}
    problem(
        client.get(f"/api/v1/shares/{link}/top", query={"names": "short"}),
        400,
        "full, simple or none",
    )


def path_hash(names):
    """Returns the hash that lib/profile/report/path_hash.h describes, for frames identified by
    name."""
    halves = []
    for base in (0x811C9DC5, 0x9747B28C):
        path = 0
        for name in names:
            frame = base
            for byte in name.encode():
                frame = (frame ^ byte) * 0x01000193 & 0xFFFFFFFF
            path ^= ((frame << 5 | frame >> 27) + 0x9E3779B9) & 0xFFFFFFFF
            path = (path ^ path >> 16) * 0x85EBCA6B & 0xFFFFFFFF
            path = (path ^ path >> 13) * 0xC2B2AE35 & 0xFFFFFFFF
            path ^= path >> 16
        halves.append(f"{path:08x}")
    return "".join(halves)


def metadata_of(response):
    """Returns the JSON section of a flame graph in binary form."""
    assert response.status == 200, response.body
    start = response.body.index(b'{"sample_type"')
    return json.JSONDecoder().raw_decode(response.body[start:].decode("utf-8", "replace"))[0]


@needs_compiler
@pytest.mark.skipif(not shutil.which("g++"), reason="no g++")
def test_a_function_name_replaced_by_symbolization_is_still_found(tenant, tmp_path):
    mangled = "_ZN3app5twiceIlEET_S1_"
    program = Program(tmp_path, "fe" * 20, CXX_SOURCE, "cc", (mangled,))
    maker = pprof_maker.Maker(CPU)
    mapping = maker.mapping(
        str(program.elf), BASE + OFFSET, BASE + OFFSET + 0x1000, program.build_id, flags=0
    )
    sent = maker.function(mangled)
    maker.sample([maker.location([(sent, 0)], mapping, BASE + program.addresses[0])], [1, 10])
    maker.sample([maker.location((), mapping, BASE + program.addresses[1])], [1, 3])
    client = tenant.api("ingest", "read", "share", "debuginfo")
    link = share(client, maker.bytes())["id"]

    def fetch(**query):
        return metadata_of(
            client.get(
                f"/api/v1/shares/{link}/flame",
                query=query,
                headers={"Accept": "application/vnd.perfolio.flame"},
            )
        )

    path = path_hash([mangled])
    before = fetch(root=path)
    assert before["root"] == path and "named_later" not in before
    send_table(client, program.build_id, program.table)
    wait_for(lambda: fetch().get("sent_names_replaced"))
    after = fetch(root=path, focus=f"^{mangled}$|app::")
    assert after["root"] == path_hash(["app::twice"]) != path
    assert after["sent_names_replaced"] and after["renamed"] == ["app::twice"]
    assert "renamed_is_cut" not in after and "below" not in after
    # A view of the callees of a function, addressed by the path before symbolization.
    below = fetch(below=path, above="0" * 15 + "1", focus="^app::twice$")
    assert below["below"] == after["root"] and "above" not in below
    assert client.get(f"/api/v1/shares/{link}/flame", query={"below": "half"}).status == 400


@needs_compiler
def test_symbolization_over_the_limit_of_binaries_is_not_complete(tenant, tmp_path):
    """A share lists at most 256 binaries without names and does not track the others."""
    program = Program(tmp_path, "be" * 20, C_SOURCE)
    client = tenant.api("read", "share", "debuginfo")
    ids = [program.build_id] + [f"{i:08x}" * 5 for i in range(1, 300)]
    maker = pprof_maker.Maker(CPU)
    for i, build_id in enumerate(ids):
        mapping = maker.mapping(
            f"/opt/binary{i}", BASE + (i << 20), BASE + (i << 20) + 0x1000, build_id, flags=0
        )
        maker.sample(
            [maker.location((), mapping, BASE + (i << 20) + program.addresses[0] - OFFSET)], [1, 10]
        )
    link = share(client, maker.bytes())["id"]
    row, status = (f"/api/v1/shares/{link}{path}" for path in ("", "/symbolization"))
    assert client.get(row).json()["unnamed_count"] == 300

    def symbolization_reports():
        return [
            client.get(path).json()[part] if part else client.get(path).json()
            for path, part in (
                (status, ""),
                (row, "symbolization"),
                (f"/p/{link}.json", "symbolization"),
            )
        ]

    for response in symbolization_reports():
        assert len(response["missing"]) + len(response["pending"]) == 256
        assert response["unlisted"] == 44 and not response["complete"]
    send_table(client, program.build_id, program.table)
    columns = (
        "object_key, bytes, sha256, quality, quality_rank, builder_version, broken_units,"
        " functions, source"
    )
    for build_id in ids[1:256]:
        query_one(
            tenant.server,
            f"INSERT INTO symbol_table (tenant_id, build_id, {columns}) SELECT tenant_id, %s,"
            f" {columns} FROM symbol_table WHERE tenant_id = %s AND build_id = %s",
            build_id,
            tenant.id,
            program.build_id,
        )
    wait_for(
        lambda: not any(
            response["missing"] or response["pending"] for response in symbolization_reports()
        )
    )
    for response in symbolization_reports():
        assert response["unlisted"] == 44 and not response["complete"]
    # A profile with exactly 256 binaries is reported completely.
    few = pprof_maker.Maker(CPU)
    for i in range(256):
        mapping = few.mapping(
            f"/opt/binary{i}", BASE + (i << 20), BASE + (i << 20) + 0x1000, ids[i], flags=0
        )
        few.sample(
            [few.location((), mapping, BASE + (i << 20) + program.addresses[0] - OFFSET)], [1, 10]
        )
    whole = share(client, few.bytes())["id"]
    assert client.get(f"/api/v1/shares/{whole}/symbolization").json().get("unlisted") is None
    assert client.get(f"/api/v1/shares/{whole}/symbolization").json()["complete"]


def open_tables(server):
    """The symbol tables that the server has mapped; it unpacks them into files without a name."""
    maps = pathlib.Path("/proc", str(server.child_pid()), "maps").read_text()
    return sum("(deleted)" in line for line in maps.splitlines())


@needs_compiler
def test_an_upload_opens_no_symbol_table(start_server, tmp_path):
    """A profile may refer to many tables: they are opened when names are shown."""
    server = start_server()
    client = Tenant(server).api("read", "share", "debuginfo")
    program = Program(tmp_path, "ad" * 20, C_SOURCE)
    send_table(client, program.build_id, program.table)
    maker = pprof_maker.Maker(CPU)
    mapping = maker.mapping("/opt/program", BASE, BASE + 0x1000, program.build_id, flags=0)
    address = BASE + program.addresses[0] - OFFSET
    maker.sample([maker.location((), mapping, address)], [1, 10])
    profile = maker.bytes()
    server.restart()
    client.close()
    before = open_tables(server)
    link = share(client, profile)["id"]
    assert open_tables(server) == before
    functions = client.get(f"/api/v1/shares/{link}/top").json()["functions"]
    assert not functions[0]["name"].startswith("program+"), functions
    assert open_tables(server) == before + 1


def responds(client, path):
    try:
        return client.get(path).status == 200
    except OSError:
        client.close()
        return False


@needs_compiler
@pytest.mark.skipif(stored.is_in_bucket(), reason="the space of the data folder is of interest")
def test_readers_leave_the_reserve_of_the_disk(start_server, tmp_path):
    """Tables are unpacked on the disk of the data folder. Below the reserve, profiles are shown
    without these names, and deletions still succeed."""
    server = start_server()
    client = Tenant(server).api("read", "share", "debuginfo")
    program = Program(tmp_path, "ae" * 20, C_SOURCE)
    send_table(client, program.build_id, program.table)
    link, other = (share(client, program.profile())["id"] for _ in range(2))
    status = os.statvfs(server.data_dir)
    reserve = 2 * status.f_bavail * status.f_frsize
    if reserve > 1 << 40:
        pytest.skip("--min-free-bytes is at most 1 TiB")
    server.arguments += ["--min-free-bytes", str(reserve)]
    server.stop()
    server.launch()  # it is not ready, since nothing can be stored
    client.close()
    until(lambda: responds(client, "/healthz"), "the server does not respond")
    response = client.get(f"/api/v1/shares/{link}/top")
    assert response.status == 200 and open_tables(server) == 0, response
    assert all(one["name"].startswith("program+") for one in response.json()["functions"])
    assert client.post("/api/v1/shares", b"main 1\n").status == 503
    assert client.patch(f"/api/v1/shares/{link}", json={"title": "more rows"}).status == 503
    assert client.delete(f"/api/v1/shares/{other}").status == 204
    del server.arguments[-2:]
    server.restart()
    client.close()
    program.check(client.get(f"/p/{link}.pb.gz").body, BASE)
    assert open_tables(server) == 1


def transactions(server):
    """Returns the number of transactions that the server has committed."""
    with server.database("perfolio_cluster") as connection, connection.cursor() as cursor:
        terminate(cursor)  # a session reports its counters when it ends
        cursor.execute(
            "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()"
        )
        return cursor.fetchone()[0]


@pytest.mark.long
def test_tables_of_many_binaries_are_looked_up_in_batches(start_server):
    server, count = start_server(), 9000
    client = Tenant(server).api("ingest", "read", "share")
    maker = pprof_maker.Maker(CPU)
    for i in range(count):
        start = BASE + (i << 20)
        mapping = maker.mapping(f"/opt/binary{i}", start, start + 0x1000, f"{i:08x}" * 5, flags=0)
        maker.sample([maker.location((), mapping, start + 16)], [1, 10])
    maker.scalars(time=BEGIN, duration=10**10, period=1, period_type=("cpu", "nanoseconds"))
    profile = maker.bytes()
    parameters = {
        "query": CPU_NAMES[1] + "{}",
        "start": BEGIN,
        "end": BEGIN + HOUR,
        "report": "top",
    }
    link, responses = share(client, profile)["id"], []
    server.restart()
    client.close()
    for fetch in (
        lambda: client.post("/api/v1/profiles", profile, query={"label": "pod=a"}),
        lambda: client.get("/api/v1/query", query=parameters),
        lambda: client.get(f"/p/{link}.json"),
        lambda: client.post("/api/v1/shares", profile),
    ):
        before = transactions(server)
        response = fetch()
        assert response.status < 300, response
        assert transactions(server) - before < count / 2
        responses.append(response)
        server.restart()  # clears the caches of the server
        client.close()
    assert all(len(responses[i].json()["symbolization"]["missing"]) for i in (1, 2))
