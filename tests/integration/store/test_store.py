"""The store: profiles are sent and queries return merged profiles.

Results equal a plain recomputation (tests/oracle/store_oracle.py) of all sent profiles, before and
after a restart. Batches that are sent twice count once, teams read only their own profiles, and
errors in queries are reported with their position.
"""

import concurrent.futures
import gzip
import random
import sys
import time

import pytest

import stored
from conftest import ROOT, rest_long
from people import Tenant

sys.path.insert(0, str(ROOT / "tests" / "oracle"))
import otlp_maker  # noqa: E402
import pprof_maker  # noqa: E402
import store_oracle  # noqa: E402

HOUR = 3600 * 10**9
BEGIN = 1_790_000_000 * 10**9
CPU = [("samples", "count"), ("cpu", "nanoseconds")]
HEAP = [("alloc_space", "bytes"), ("inuse_space", "bytes")]
CPU_NAMES = [
    "process_cpu:samples:count:cpu:nanoseconds:delta",
    "process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta",
]
HEAP_NAMES = ["memory:alloc_space:bytes:space:bytes", "memory:inuse_space:bytes:space:bytes"]
NAMES = CPU_NAMES + HEAP_NAMES


def make_profile(types, time_ns, stacks, period_type, duration=0):
    """stacks: {tuple of names, root first: values}. The tables list locations and functions in the
    order in which the stacks name them."""
    maker = pprof_maker.Maker(types)
    locations = {}
    for stack, values in stacks.items():
        for name in stack:
            if name not in locations:
                locations[name] = maker.location([(maker.function(name, name + ".c"), 7)])
        maker.sample([locations[name] for name in reversed(stack)], values)
    maker.scalars(time=time_ns, duration=duration, period=1, period_type=period_type)
    return gzip.compress(maker.bytes(), 1)


class Source:
    """A process with its labels, and with counters that grow until it restarts."""

    def __init__(self, rng, labels):
        self.rng, self.labels, self.allocated = rng, labels, {}
        self.functions = [f"f{rng.randrange(40)}" for _ in range(12)]

    def stack(self):
        return tuple(
            ["main"] + [self.rng.choice(self.functions) for _ in range(self.rng.randrange(6))]
        )

    def cpu(self):
        if self.rng.random() < 0.1:
            return {}  # idle
        samples = [self.rng.randint(1, 9) for _ in range(self.rng.randrange(1, 15))]
        return {self.stack(): [count, count * 10_000_000] for count in samples}

    def heap(self):
        if self.rng.random() < 0.2:
            self.allocated = {}
        for _ in range(self.rng.randrange(1, 9)):
            stack = self.stack()
            self.allocated[stack] = self.allocated.get(stack, 0) + self.rng.randint(1, 10**7)
        return {
            stack: [value, self.rng.randrange(value + 1)] for stack, value in self.allocated.items()
        }


def parameters(labels):
    return [("label", f"{name}={value}") for name, value in labels.items()]


def in_parts(rng, samples):
    """Divides the samples of one time, each a tuple (…, values), at random: into one list, or into
    two lists, which are then sent as two profiles with equal times."""
    if rng.random() < 0.6:
        return [samples]
    parts = [], []
    for *key, values in samples:
        first = rng.choice(
            [values, [0] * len(values), [rng.randrange(value + 1) for value in values]]
        )
        for part, numbers in zip(
            parts, (first, [total - one for total, one in zip(values, first)])
        ):
            if any(numbers):
                part.append((*key, numbers))
    return [part for part in parts if part]


def send(client, oracle, source, time_ns):
    is_heap = source.rng.random() < 0.5
    stacks = source.heap() if is_heap else source.cpu()
    for part in in_parts(source.rng, list(stacks.items())):
        send_part(client, oracle, source, time_ns, dict(part), is_heap)


def send_part(client, oracle, source, time_ns, stacks, is_heap):
    types, names = (HEAP, HEAP_NAMES) if is_heap else (CPU, CPU_NAMES)
    body = make_profile(
        types,
        time_ns,
        stacks,
        ("space", "bytes") if is_heap else ("cpu", "nanoseconds"),
        0 if is_heap else 10**10,
    )
    response = client.post("/api/v1/profiles", body=body, query=parameters(source.labels))
    assert response.status == 200, response
    if response.json()["duplicate"]:  # both parts are equal
        return
    for i, name in enumerate(names):
        values = {stack: numbers[i] for stack, numbers in stacks.items() if numbers[i]}
        # A profile without samples of the type is data, too.
        oracle.add(source.labels, name, time_ns, values)


def make_sources(rng):
    sources = []
    for i in range(8):
        labels = {"service_name": f"s{i % 3}", "pod": f"p{i}"}
        if i % 2:
            labels["zone"] = rng.choice(["a", "b"])
        sources.append(Source(rng, labels))
    return sources


def folded(client, selector, start_ns, end_ns):
    response = client.get(
        "/api/v1/query",
        query={"query": selector, "start": start_ns, "end": end_ns, "report": "folded"},
    )
    assert response.status == 200, response
    rows = {}
    for line in response.text.splitlines():
        stack, _, value = line.rpartition(" ")
        rows[tuple(stack.split(";"))] = int(value)
    return response, rows


def is_unknown(response, oracle, name, window):
    """Whether the window has no profile of the type; checks that the response then is an error that
    names the types that exist. False if snapshots just outside the window contribute a result."""
    types = oracle.lacks(name, *window)
    if not types or (response.status == 200 and store_oracle.rule_of(name) != "sum"):
        return False
    assert response.status == 404, response
    assert response.json()["detail"].endswith("there are: " + ", ".join(sorted(types))), response
    return True


MATCHERS = [
    ("", lambda labels: True),
    ('{service_name="s1"}', lambda labels: labels["service_name"] == "s1"),
    (
        '{service_name!="s1", pod=~"p[0-4]"}',
        lambda labels: labels["service_name"] != "s1"
        and labels["pod"] in ("p0", "p1", "p2", "p3", "p4"),
    ),
    ('{zone=""}', lambda labels: "zone" not in labels),
    ("{zone!~'a|b',pod!='p0',}", lambda labels: "zone" not in labels and labels["pod"] != "p0"),
    ('{pod=~`p\\d`, zone=~"(?i)A"}', lambda labels: labels.get("zone") == "a"),
]


TYPE_VALUES = {
    "=": [
        *NAMES,
        CPU_NAMES[0].removesuffix(":delta"),
        "memory",
        "cpu:nanoseconds",
        "memory:inuse_space",
        "none",
    ],
    "=~": [
        ".*",
        ".+",
        "memory",
        "memory:.*",
        ".*:delta",
        "process_cpu:cpu:.*|memory:a.*",
        "[^c]*",
        *NAMES,
    ],
}


def random_selector(rng, comparisons=("=", "!=", "=~", "!~")):
    """A random selector with conditions on types and possibly on labels, and the equivalent
    matches(type, labels)."""
    types = [
        (comparison, rng.choice(TYPE_VALUES["=~" if "~" in comparison else "="]))
        for comparison in sorted(rng.sample(comparisons, rng.choice([1, 1, 2])))
    ]
    selector, matches = rng.choice(MATCHERS)
    texts = [f'__profile_type__{comparison}"{value}"' for comparison, value in types] + [
        selector[1:-1].rstrip(",")
    ]
    return "{" + ",".join(filter(None, texts)) + "}", lambda name, labels: matches(labels) and all(
        store_oracle.matches_type(name, *one) for one in types
    )


def check_selection(client, oracle, rng):
    """Checks which series a random selector with conditions on types selects and, if all of them
    have one type, the merged profile of the selector."""
    front = rng.choice(["", "", *NAMES])
    selector, by_braces = random_selector(rng)
    query, window = front + selector, {"start": BEGIN - HOUR, "end": BEGIN + 9 * HOUR}

    def matches(name, labels):
        return front in ("", name) and by_braces(name, labels)

    expected = oracle.series(matches, *window.values())
    listed = client.get("/api/v1/series", query={"match[]": query, "limit": 1000, **window})
    assert listed.status == 200, (query, listed)
    assert {
        (one.pop("__profile_type__"), tuple(sorted(one.items()))) for one in listed.json()["data"]
    } == expected, query
    types = {name for name, _ in expected}
    if len(types) == 1:
        (name,) = types
        _, rows = folded(client, query, *window.values())
        assert rows == oracle.merge(
            name, lambda labels: matches(name, labels), *window.values()
        ), query


def check_queries(client, oracle, rng, rounds):
    """Compares random queries for merged profiles with the oracle."""
    for number in range(rounds):
        if number % 4 == 0:
            check_selection(client, oracle, rng)
        name = rng.choice(NAMES)
        selector, matches = rng.choice(MATCHERS)
        start = BEGIN - HOUR + rng.randrange(4 * HOUR)
        end = start + rng.choice([1, 60 * 10**9, HOUR, 3 * HOUR, 9 * HOUR])
        if oracle.lacks(name, start, end):
            response = client.get(
                "/api/v1/query", query={"query": name + selector, "start": start, "end": end}
            )
            if is_unknown(response, oracle, name, (start, end)):
                assert not oracle.merge(name, matches, start, end)
                continue
        response, rows = folded(client, name + selector, start, end)
        expected = oracle.merge(name, matches, start, end)
        assert rows == expected, (name, selector, start, end)
        if expected:
            assert response.headers["perfolio-rule"] == store_oracle.rule_of(name)


@pytest.mark.parametrize("seed", rest_long([2, 1]))
def test_results_equal_a_plain_recomputation(shared_server, seed):
    """Seed 1: profiles are sent in the order of their times. Seed 2: they are sent in random order,
    and the store is compacted, also a second time after late profiles."""
    server = shared_server("--jobs-interval", "1s")
    rng = random.Random(seed)
    client, oracle = Tenant(server).api("ingest", "read"), store_oracle.Oracle()
    sources = make_sources(rng)
    times = [BEGIN + rng.randrange(6 * HOUR) for _ in range(120)]
    if seed == 1:
        times.sort()
    for time_ns in times:
        send(client, oracle, rng.choice(sources), time_ns)
    check_queries(client, oracle, rng, 150)
    server.stop()
    server.start()
    check_queries(client, oracle, rng, 50)
    if seed == 1:
        return
    compact(server)
    check_queries(client, oracle, rng, 100)
    for time_ns in times[:10]:  # late profiles in addition to a block of the whole day
        send(client, oracle, rng.choice(sources), time_ns + 1)
    check_queries(client, oracle, rng, 50)
    compact(server)
    check_queries(client, oracle, rng, 50)
    assert objects_of(server) == rows_of(
        server, "SELECT object_key FROM block UNION SELECT object_key FROM segment"
    )


@pytest.mark.parametrize("types", [("goroutine", "count"), ("contentions", "count")])
def test_many_small_values_add_up_to_the_whole(shared_server, types):
    """There are 1,000 stacks, and ten snapshots, one per minute. Gauge: each snapshot has 100
    stacks that no other has, each with the value 1, so the total of every window is 100, also if
    the window has several snapshots and the mean of a stack is 0.2. Counter: each stack increases
    by 1 per minute, so in a window of 6 s by 0.1, which must not be rounded to 0 for all stacks."""
    client = Tenant(shared_server()).api("ingest", "read")
    is_counter = types[0] == "contentions"
    for snapshot in range(10):
        maker = pprof_maker.Maker([types])
        work = maker.location([(maker.function("work"), 1)])
        for leaf in range(1000):
            value = snapshot + 1 if is_counter else leaf // 100 == snapshot
            if value:
                top = maker.location([(maker.function(f"leaf{leaf:04d}"), 1)])
                maker.sample([top, work], [value])
        maker.scalars(time=BEGIN + snapshot * 60 * 10**9)
        response = client.post(
            "/api/v1/profiles", body=maker.bytes(), query={"label": "service_name=shop"}
        )
        assert response.status == 200, response
    begin = BEGIN + 60 * 10**9
    for length_s in (6, 30, 60, 300):
        window = {"start": begin, "end": begin + length_s * 10**9}
        query = {
            **window,
            "query": f'{types[0]}{{service_name="shop"}}',
            "report": "top",
            "limit": 0,
        }
        table = client.get("/api/v1/query", query=query).json()
        whole = 1000 * length_s // 60 if is_counter else 100
        assert abs(table["total"] - whole) <= 1, table["total"]
        cum = {row["name"]: row["cum"] for row in table["functions"]}
        assert abs(cum["work"] - whole) <= 1


@pytest.mark.parametrize(
    "types",
    [("inuse-space", "bytes"), ("inuse-objects", "count"), ("goroutine_count", "count")],
    ids=lambda types: types[0],
)
def test_gauges_of_other_profilers_are_averaged(shared_server, types):
    """Ingest decides by the names of the types that these profiles are gauges, and queries of the
    stored series average them."""
    client = Tenant(shared_server()).api("ingest", "read")
    for snapshot, value in enumerate((1000, 1100, 1000, 1100)):
        maker = pprof_maker.Maker([types])
        maker.sample([maker.location([(maker.function("main"), 1)])], [value])
        maker.scalars(time=BEGIN + snapshot * 15 * 10**9)
        assert client.post("/api/v1/profiles", body=maker.bytes()).status == 200
    query = {"query": ":".join(types), "start": BEGIN, "end": BEGIN + 60 * 10**9, "report": "top"}
    response = client.get("/api/v1/query", query=query)
    assert response.headers["perfolio-rule"] == "mean" and response.json()["total"] == 1050


def test_a_total_over_2_63_of_profiles_with_equal_times_is_refused(shared_server):
    client = Tenant(shared_server()).api("ingest", "read")
    for label in ("a", "b"):
        body = make_profile(CPU, BEGIN, {("main", label): [1, 2**62]}, CPU[1])
        assert client.post("/api/v1/profiles", body=body).status == 200
    window = {"query": "cpu", "start": BEGIN, "end": BEGIN + 60 * 10**9}
    response = client.get("/api/v1/profiles", query=window)
    assert response.status == 413 and "more than 2^63" in response.json()["detail"], response


def test_profiles_with_equal_times_are_one_snapshot(shared_server):
    """They count as one snapshot in increases of counters and in means of gauges, before and after
    compaction."""
    server = shared_server("--jobs-interval", "1s")
    client = Tenant(server).api("ingest", "read")
    later = BEGIN + 10 * 10**9
    sent = [
        (BEGIN, {("main", "x"): [5, 100]}),
        (BEGIN, {("main", "y"): [50, 200]}),
        (later, {("main", "x"): [9, 100]}),
        (later, {("main", "y"): [90, 0]}),
    ]
    for time_ns, stacks in sent:
        body = make_profile(HEAP, time_ns, stacks, ("space", "bytes"))
        assert client.post("/api/v1/profiles", body=body).status == 200

    def points(name, step):
        response = client.get(
            "/api/v1/query_range",
            query={"query": name, "start": BEGIN, "step": step, "end": BEGIN + 60 * 10**9},
        ).json()
        return [value for _, value in response["series"][0]["points"]]

    def check_results():
        window = BEGIN, BEGIN + 60 * 10**9
        assert folded(client, HEAP_NAMES[0], *window)[1] == {("main", "x"): 4, ("main", "y"): 40}
        # The increase of 44 in the ten seconds is spread over these seconds.
        assert points(HEAP_NAMES[0], "1s") == [4, 5, 4, 5, 4, 4, 5, 4, 5, 4] and points(
            HEAP_NAMES[0], "60s"
        ) == [44]
        assert folded(client, HEAP_NAMES[1], *window)[1] == {("main", "x"): 100, ("main", "y"): 100}
        assert points(HEAP_NAMES[1], "1s") == [300] * 10 + [100] * 10 and points(
            HEAP_NAMES[1], "60s"
        ) == [200]

    check_results()
    compact(server)
    check_results()
    server.stop()
    server.start()
    check_results()


def test_a_merge_that_is_rolled_back_deletes_its_object(start_server):
    """A deadlock in the database, for example, rolls a merge of blocks back. The server discards
    the object that the merge wrote at once; it does not leave the object to the search for orphans,
    which runs only after the writer has ended."""
    server = start_server("--jobs-interval", "1s")
    client = Tenant(server).api("ingest", "read")
    for second in range(3):
        body = make_profile(
            HEAP, BEGIN + second * 10**9, {("main", "x"): [5, 100]}, ("space", "bytes")
        )
        assert client.post("/api/v1/profiles", body=body).status == 200
    # The first search for orphans runs 2 s after the start (FIRST_S in store/maintain/orphans.c);
    # the next one is later than the deletion that this test expects.
    time.sleep(4)
    with server.cursor() as cursor:
        cursor.execute(
            "CREATE SEQUENCE refusals; GRANT ALL ON SEQUENCE refusals TO PUBLIC;"
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
            "  IF nextval('refusals') <= 3 THEN RAISE 'deadlock' USING ERRCODE = '40P01'; END IF;"
            "  RETURN NEW; END $$;"
            "CREATE TRIGGER refuse BEFORE INSERT ON block FOR EACH ROW EXECUTE FUNCTION refuse()"
        )
    compact(server)
    assert rows_of(server, "SELECT last_value > 3 FROM refusals") == {True}
    assert objects_of(server) == rows_of(server, "SELECT object_key FROM block")
    assert folded(client, HEAP_NAMES[1], BEGIN, BEGIN + 3 * 10**9)[1] == {("main", "x"): 100}


def rows_of(server, sql):
    return {row[0] for row in server.rows(sql)}


def objects_of(server):
    return server.objects.keys("segment/") | server.objects.keys("block/")


def until(condition, what, seconds=120):
    """Waits until condition() is true. what: the message of a failure, or a function that returns
    it."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, what() if callable(what) else what
        time.sleep(0.1)


def compact(server):
    """Makes all objects an hour older, again and again, until they are merged into one block per
    day and the replaced objects are deleted."""

    def age_and_check():
        for table in ("segment", "block"):
            server.rows(
                f"UPDATE {table} SET"
                " created_at = created_at - CASE WHEN swapped_at IS NULL THEN interval '1 hour'"
                " ELSE '0' END, swapped_at = swapped_at - interval '1 hour'"
            )
        # Level 4: a block of a day, the highest level (CATALOGUE_LEVELS).
        ((has_only_days,),) = server.rows(
            "SELECT NOT EXISTS (SELECT FROM segment) AND EXISTS (SELECT FROM block)"
            " AND NOT EXISTS (SELECT FROM block WHERE level IS DISTINCT FROM 4)"
            " AND NOT EXISTS (SELECT FROM object_trash)"
        )
        return has_only_days

    def failure_message():
        return (
            "the store is not compacted: "
            + "; ".join(
                f"{what} {sorted(rows_of(server, sql))}"
                for what, sql in (
                    ("segments", "SELECT row_to_json(one)::text FROM segment one"),
                    ("blocks", "SELECT row_to_json(one)::text FROM block one"),
                    ("trash", "SELECT object_key FROM object_trash"),
                )
            )
            + "\n"
            + server.log()[-4000:]
        )

    until(age_and_check, failure_message)


def test_concurrent_requests_are_all_stored(server):
    tenant = Tenant(server)
    token = tenant.make_token("ingest", "read")["token"]
    body = make_profile(CPU, BEGIN, {("main", "work"): [1, 10]}, ("cpu", "nanoseconds"), 10**10)

    def post(i):
        response = server.api(token).post(
            "/api/v1/profiles", body=body, query={"label": f"pod=p{i}"}
        )
        return response.status

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert set(pool.map(post, range(64))) == {200}
    response, rows = folded(server.api(token), CPU_NAMES[0], BEGIN, BEGIN + 1)
    assert rows == {("main", "work"): 64}
    assert "profiles=64," in response.headers["perfolio-statistics"]


def test_a_batch_that_is_sent_twice_counts_once(server):
    client = Tenant(server).api("ingest", "read")
    other = Tenant(server).api("ingest", "read")
    body = make_profile(CPU, BEGIN, {("main", "work"): [1, 10]}, ("cpu", "nanoseconds"), 10**10)
    for team in (client, other):
        duplicates = [
            team.post("/api/v1/profiles", body=body, query={"label": "pod=a"}).json()["duplicate"]
            for _ in range(3)
        ]
        assert duplicates == [False, True, True]
    # A request with other labels or another id is another batch.
    assert not client.post("/api/v1/profiles", body=body, query={"label": "pod=b"}).json()[
        "duplicate"
    ]
    for expected in (False, True):
        response = client.post(
            "/api/v1/profiles",
            body=body,
            query={"label": "pod=a"},
            headers={"Perfolio-Batch-Id": "mine 1"},
        )
        assert response.json()["duplicate"] == expected
    assert folded(client, CPU_NAMES[0], BEGIN, BEGIN + 1)[1] == {("main", "work"): 3}
    assert folded(other, CPU_NAMES[0], BEGIN, BEGIN + 1)[1] == {("main", "work"): 1}


def test_a_query_has_the_reports_of_a_share(server):
    """The table of functions equals that of a share with the same profile; of the other reports
    only the beginning is checked."""
    client = Tenant(server).api("ingest", "read", "share")
    body = make_profile(
        CPU,
        BEGIN,
        {("main", "work"): [3, 30], ("main",): [1, 10]},
        ("cpu", "nanoseconds"),
        10**10,
    )
    assert client.post("/api/v1/profiles", body=body).status == 200
    window = {"query": "cpu:nanoseconds", "start": BEGIN, "end": BEGIN + 1}
    share = client.post("/api/v1/shares", body=body).json()["id"]
    top = client.get("/api/v1/query", query={**window, "report": "top"}).json()
    expected = client.get(f"/api/v1/shares/{share}/top", query={"sample_type": "cpu"}).json()
    assert top["functions"] == expected["functions"] and top["total"] == 40
    callers = client.get(
        "/api/v1/query", query={**window, "report": "callers", "fn": "work"}
    ).json()
    assert callers["callers"][0]["name"] == "main"
    for report, begin in (
        ("flame", b"PFFLAME"),
        ("json", b"{"),
        ("svg", b"<svg"),
        ("pprof", b"\x1f\x8b"),
    ):
        response = client.get(
            "/api/v1/query",
            query={**window, "report": report, "focus": "work"}
            if report != "pprof"
            else {**window, "report": report},
        )
        assert response.status == 200 and response.body.startswith(begin), (report, response)


@pytest.mark.parametrize(
    "query, expected",
    [
        ("", "query is missing"),
        ("cpu{", "this { is not closed at character 4"),
        ("cpu{a}", "expected =, !=, =~ or !~ at character 6, here: }"),
        ('cpu{a="x" b="y"}', "expected , or } at character 11"),
        ('cpu{a="x}', "this quote is not closed at character 7"),
        ("cpu{a=~`(`}", "the expression at character 8"),
        ("cpu{a=x}", "expected a value in quotes at character 7, here: x}"),
        ("a:b:c:d:e:f:g", "expected a profile type"),
        ('cpu{a="x"} extra', "expected nothing more at character 12"),
        ("}", "at character 1, here: }"),
        ("[", "at character 1, here: ["),
        ("(", "at character 1, here: ("),
        ("cpu:samples@now-1h", "at character 12, here: @now-1h"),
        ('{__name__="cpu"}', "only __profile_type__) at character 2, here: __name__="),
        ("{}", "write a profile type, labels, or both"),
    ],
)
def test_a_syntax_error_in_a_query_is_reported_with_its_position(server, query, expected):
    client = Tenant(server).api("read")
    response = client.get("/api/v1/query", query={"query": query})
    assert response.status == 400 and expected in response.json()["detail"], response


@pytest.mark.parametrize("path", ["labels", "label/pod/values", "series", "profile_types"])
def test_an_error_names_the_selector_in_which_it_is(server, path):
    response = (
        Tenant(server)
        .api("read")
        .get(f"/api/v1/{path}", query=[("match[]", "cpu"), ("match[]", 'cpu{a="x" }b')])
    )
    assert response.status == 400, response
    assert (
        response.json()["detail"] == "match[] 2: expected nothing more at character 12, here: b"
    ), response


def test_a_quoted_type_name_may_contain_characters_of_the_syntax(server):
    client = Tenant(server).api("ingest", "read")
    body = make_profile(
        [("ev(1)", "B/op"), ("a b{", "c")],
        BEGIN,
        {("main",): [1, 2]},
        ("cpu", "nanoseconds"),
        10**10,
    )
    assert client.post("/api/v1/profiles", body=body, query={"label": "pod=a"}).status == 200
    window = {"start": BEGIN, "end": BEGIN + 1}
    for one in client.get("/api/v1/profile_types", query=window).json()["data"]:
        query = '{__profile_type__="%s"}' % one["type"]
        _, rows = folded(client, query, *window.values())
        assert rows == {("main",): 1 if one["sample_type"] == "ev(1)" else 2}


@pytest.mark.parametrize(
    "options, expected",
    [
        ({"start": "someday"}, "start"),
        ({"start": "now", "end": "now-1h"}, "start must be before end"),
        ({"report": "poem"}, "report must be one of"),
        ({"limits": "1"}, "limits"),
    ],
)
def test_invalid_parameters_are_named(server, options, expected):
    response = Tenant(server).api("read").get("/api/v1/query", query={"query": "cpu", **options})
    assert response.status == 400 and expected in response.json()["detail"], response


def test_an_empty_group_by_is_refused(server):
    response = (
        Tenant(server)
        .api("read")
        .get("/api/v1/query_range", query={"query": "cpu", "group_by": ""})
    )
    assert response.status == 400 and "group_by must be" in response.json()["detail"], response


def test_the_encoding_of_a_profile_is_detected_from_its_bytes(server):
    client = Tenant(server).api("ingest")
    body = make_profile(CPU, BEGIN, {("main",): [1, 10]}, ("cpu", "nanoseconds"), 10**10)
    for encoding in ("identity", "gzip", "GZIP"):
        assert (
            client.post(
                "/api/v1/profiles", body=body, headers={"Content-Encoding": encoding}
            ).status
            == 200
        ), encoding
    response = client.post("/api/v1/profiles", body=body, headers={"Content-Encoding": "br"})
    assert (
        response.status == 415 and "identity, gzip and zstd" in response.json()["detail"]
    ), response


@pytest.mark.parametrize(
    "query, body, expected",
    [
        ([("label", "x")], b"main 1\n", "must have the form name=value"),
        ([("label", "=y")], b"main 1\n", "a label has no name"),
        ([("label", "a=1"), ("label", "a=2")], b"main 1\n", "a"),
        ([("time", "soon")], b"main 1\n", "time"),
        ([], b"", "the body is empty"),
    ],
)
def test_an_invalid_profile_request_is_refused(server, query, body, expected):
    response = Tenant(server).api("ingest").post("/api/v1/profiles", body=body, query=query)
    assert response.status == 400 and expected in response.json()["detail"], response


def test_a_result_of_two_types_is_refused_with_their_names(server):
    client = Tenant(server).api("ingest", "read")
    body = make_profile(CPU, BEGIN, {("main",): [1, 10]}, ("cpu", "nanoseconds"), 10**10)
    assert client.post("/api/v1/profiles", body=body).status == 200
    response = client.get(
        "/api/v1/query", query={"query": "process_cpu", "start": BEGIN, "end": BEGIN + 1}
    )
    assert response.status == 400
    for name in CPU_NAMES:
        assert name in response.json()["detail"]


def test_addresses_without_a_name_are_kept_and_counted(server):
    client = Tenant(server).api("ingest", "read")
    maker = pprof_maker.Maker(CPU)
    binary = maker.mapping("/usr/bin/app", build_id="abc1", flags=0)
    named = maker.location([(maker.function("main", "main.c"), 1)])
    for i in range(3):
        maker.sample([maker.location((), binary, 0x400010 + i % 2), named], [1, 10])
    maker.scalars(time=BEGIN, duration=10**9, period=1, period_type=("cpu", "nanoseconds"))
    assert client.post("/api/v1/profiles", body=maker.bytes()).status == 200
    window = {"query": CPU_NAMES[0], "start": BEGIN, "end": BEGIN + 1}
    response = client.get(
        "/api/v1/query", query={**window, "report": "folded", "group_by": "address"}
    )
    assert "unnamed=2," in response.headers["perfolio-statistics"]
    assert sorted(line.rpartition(" ")[2] for line in response.text.splitlines()) == ["1", "2"]
    # Addresses are shown as offsets in the file.
    assert all(f"0x10{10 + i}" in response.text for i in range(2)), response.text
    for more, expected in (
        ({"focus": "app$"}, 3),
        ({"ignore": "^work$"}, 3),
        ({"focus": "^work$"}, 0),
    ):
        response = client.get(
            "/api/v1/query_range", query={**window, "end": BEGIN + 10**9, "step": "1s", **more}
        ).json()
        assert (
            response["series"][0]["points"][0][1] == expected
            and response["statistics"]["unnamed"] == 2
        )


def test_the_error_for_an_unknown_type_names_the_known_types(server):
    client = Tenant(server).api("ingest", "read")
    window = {"start": BEGIN, "end": BEGIN + 1}
    paths = ("/api/v1/query", "/api/v1/query_range")
    for path in paths:  # an empty store is no error
        assert client.get(path, query={"query": CPU_NAMES[0], **window}).status == 200
    body = make_profile(CPU, BEGIN, {("main",): [1, 10]}, ("cpu", "nanoseconds"), 10**10)
    assert client.post("/api/v1/profiles", body=body, query={"label": "pod=a"}).status == 200
    heap = make_profile(HEAP, BEGIN + 1, {("main",): [1, 10]}, ("space", "bytes"))
    assert client.post("/api/v1/profiles", body=heap, query={"label": "pod=a"}).status == 200
    for path in paths:
        for query in (
            "cpu:samples",
            "memory",
            '{__profile_type__="x",pod="a"}',
            CPU_NAMES[0] + "x",
        ):
            response = client.get(path, query={"query": query, **window})
            assert response.status == 404, response
            assert response.json()["detail"].endswith(
                "there are: " + ", ".join(sorted(CPU_NAMES))
            ), response
        for query in ('samples:count{pod="b"}', '{pod="b"}', "process_cpu:cpu", "cpu:nanoseconds"):
            assert client.get(path, query={"query": query, **window}).status == 200, query
        wide = {"start": BEGIN, "end": BEGIN + 2}
        response = client.get(path, query={"query": '{pod="a"}', **wide})
        assert response.status == 400
        assert response.json()["detail"].endswith(": " + ", ".join(sorted(NAMES))), response
    # Lists for an unknown type are empty.
    assert client.get("/api/v1/series", query={"match[]": "memory", **window}).json()["data"] == []
    sides = {
        "a_query": "cpu:nanoseconds",
        "b_query": "memory",
        "a_start": BEGIN,
        "a_end": BEGIN + 1,
    }
    response = client.get("/api/v1/diff", query=sides)
    assert response.status == 404 and response.json()["detail"].startswith(
        "b: query: the window has no profile of that type"
    ), response


def test_a_query_names_a_damaged_object_and_returns_the_rest(start_server):
    server = start_server("--jobs-interval", "1s")
    client = Tenant(server).api("ingest", "read")
    for i in range(2):
        body = make_profile(CPU, BEGIN + i, {("main",): [1, 10]}, ("cpu", "nanoseconds"), 10**10)
        assert (
            client.post("/api/v1/profiles", body=body, query={"label": f"pod=p{i}"}).status == 200
        )
    server.stop()
    first = server.objects.oldest("segment/")
    data = bytearray(server.objects.read(first))
    data[len(data) // 2] ^= 1
    server.objects.write(first, bytes(data))
    server.start()
    response, rows = folded(client, CPU_NAMES[0], BEGIN, BEGIN + 2)
    assert rows == {("main",): 1} and "profiles=1," in response.headers["perfolio-statistics"]
    warning = response.headers["perfolio-warning"]
    assert warning.startswith("1 ") and first in warning
    response, rows = folded(client, CPU_NAMES[0], BEGIN + 1, BEGIN + 2)
    assert rows == {("main",): 1} and "perfolio-warning" not in response.headers


@pytest.mark.skipif(stored.is_in_bucket(), reason="a file is removed")
def test_a_query_names_a_missing_object_and_the_rest_is_merged(start_server):
    server = start_server("--jobs-interval", "1s")
    client = Tenant(server).api("ingest", "read")
    for i in range(2):
        body = make_profile(CPU, BEGIN + i, {("main",): [1, 10]}, ("cpu", "nanoseconds"), 10**10)
        assert (
            client.post("/api/v1/profiles", body=body, query={"label": f"pod=p{i}"}).status == 200
        )
    server.stop()
    first = server.objects.oldest("segment/")
    (server.objects.path / first).unlink()
    server.start()
    response, rows = folded(client, CPU_NAMES[0], BEGIN, BEGIN + 2)
    assert rows == {("main",): 1} and "profiles=1," in response.headers["perfolio-statistics"]
    warning = response.headers["perfolio-warning"]
    assert warning.startswith("1 ") and first in warning
    window = {"start": BEGIN, "end": BEGIN + 2}
    for path, name in (("series", "match[]"), ("query_range", "query"), ("profiles", "query")):
        response = client.get(f"/api/v1/{path}", query={name: CPU_NAMES[0], **window})
        assert response.status == 200 and '"p0"' not in response.text, response
        assert first in response.headers["perfolio-warning"]

    def age_and_check():
        with server.cursor() as cursor:
            cursor.execute("UPDATE segment SET created_at = created_at - interval '1 hour'")
            cursor.execute(
                "UPDATE segment_tenant SET leased_until = NULL WHERE is_broken OR EXISTS"
                " (SELECT FROM segment_tenant b WHERE b.is_broken)"
            )
        return rows_of(server, "SELECT DISTINCT 1 FROM block WHERE swapped_at IS NULL")

    until(age_and_check, "the objects that are left are not merged")
    assert folded(client, CPU_NAMES[0], BEGIN, BEGIN + 2)[1] == {("main",): 1}


def test_values_and_days_beyond_the_limits_of_a_merge_do_not_block_it(start_server):
    """The sum of the values of one series and hour overflows, and one request has more days than a
    merge accepts."""
    server = start_server("--jobs-interval", "1s", "--max-request-days", "5000")
    client, other = (Tenant(server).api("ingest", "read") for _ in range(2))
    for i, (pod, value) in enumerate([("huge", 6 * 10**18)] * 3 + [("ok", 5)] * 3):
        body = make_profile(
            CPU, BEGIN + i, {("main",): [1, value]}, ("cpu", "nanoseconds"), 10**10
        )
        assert (
            client.post("/api/v1/profiles", body=body, query={"label": f"pod={pod}"}).status == 200
        )
    days = [
        otlp_maker.Profile(
            ("samples", "count"), BEGIN - i * 24 * HOUR, {("main",): 3}, 10, ("cpu", "nanoseconds")
        )
        for i in range(4100)
    ]
    request = otlp_maker.Request([({"service.name": "days"}, days)]).json()
    for body in (request, otlp_maker.Request([({"service.name": "shop"}, days[:1])]).json()):
        response = other.post(
            "/v1development/profiles", body=body, headers={"Content-Type": "application/json"}
        )
        assert response.status == 200, response

    def age_and_check():
        with server.cursor() as cursor:
            for table in ("segment", "block"):
                cursor.execute(f"UPDATE {table} SET created_at = created_at - interval '1 hour'")
        left = rows_of(server, "SELECT is_broken FROM segment_tenant WHERE NOT is_swapped")
        blocks = rows_of(server, "SELECT level FROM block WHERE swapped_at IS NULL")
        return left == {True} and blocks == {4}  # 4: blocks of a day, the highest level

    until(age_and_check, "objects that cannot be merged block the others")
    for i in range(3):
        at = BEGIN + i
        assert folded(client, CPU_NAMES[1] + '{pod="huge"}', at, at + 1)[1] == {
            ("main",): 6 * 10**18
        }
    response, rows = folded(client, CPU_NAMES[1] + '{pod="ok"}', BEGIN, BEGIN + 9)
    assert rows == {("main",): 15} and "perfolio-warning" not in response.headers
    for service, count in (("days", 4100), ("shop", 1)):
        selector = '{service_name="%s"}' % service
        response, rows = folded(other, selector, BEGIN - 4100 * 24 * HOUR, BEGIN + 1)
        assert rows == {("main",): 30 * count} and "perfolio-warning" not in response.headers


def test_replaced_objects_are_kept_as_long_as_queries_of_any_team_may_run(start_server):
    """One background job deletes replaced blocks and then batch ids of more than a day. The test
    inserts an old batch id and waits until the id is deleted, twice: so the job has run as a whole
    since the blocks were replaced 30 minutes ago, and must have kept them for the team whose
    queries may run for an hour."""
    server = start_server("--jobs-interval", "1s")
    slow, client = Tenant(server, query_time_s=3600), Tenant(server).api("ingest", "read")
    for minute in range(2):
        body = make_profile(
            CPU,
            BEGIN + minute * 60 * 10**9,
            {("main",): [1, 10]},
            ("cpu", "nanoseconds"),
            10**10,
        )
        assert client.post("/api/v1/profiles", body=body).status == 200
    compact(server)

    def run(statement):
        with server.cursor() as cursor:
            cursor.execute(statement)

    for table in ("segment", "block"):
        run(f"UPDATE {table} SET swapped_at = now() - interval '30 minutes'")
    for _ in range(2):
        run(
            "INSERT INTO ingest_batch (tenant_id, batch_id, received_at) "
            f"VALUES ({slow.id}, decode(repeat('ab', 32), 'hex'), now() - interval '2 days')"
        )
        until(
            lambda: not rows_of(
                server, "SELECT 1 FROM ingest_batch WHERE received_at < now() - interval '1 day'"
            ),
            "old batch ids are not deleted",
        )
    assert rows_of(server, "SELECT 1 FROM block WHERE swapped_at IS NOT NULL")
    server.api().patch(f"/api/v1/admin/tenants/{slow.id}", json={"query_time_s": None})
    until(
        lambda: not rows_of(server, "SELECT 1 FROM block WHERE swapped_at IS NOT NULL"),
        "a replaced block is not deleted",
    )


def test_profiles_past_the_retention_of_the_team_are_deleted(start_server):
    server = start_server("--jobs-interval", "1s")
    tenant = Tenant(server, profile_retention_s=86400)
    client, other = tenant.api("ingest", "read"), Tenant(server).api("ingest", "read")
    now = time.time_ns()
    for team, time_ns, expected in (
        (client, now - 2 * 86400 * 10**9, 400),
        (client, now - HOUR, 200),
        (other, now - 2 * 86400 * 10**9, 200),
    ):
        body = make_profile(CPU, time_ns, {("main",): [1, 10]}, ("cpu", "nanoseconds"), 10**10)
        response = team.post("/api/v1/profiles", body=body)
        assert response.status == expected, response
        assert expected == 200 or "profile_retention_s" in response.json()["detail"]
    assert folded(client, CPU_NAMES[0], 0, now)[1] == {("main",): 1}
    server.api().patch(f"/api/v1/admin/tenants/{tenant.id}", json={"profile_retention_s": 60})
    until(lambda: folded(client, CPU_NAMES[0], 0, now)[1] == {}, "an expired profile is still read")

    def age_and_check():
        with server.cursor() as cursor:
            for table in ("segment", "block"):  # a merge may have replaced the segment by a block
                cursor.execute(f"UPDATE {table} SET swapped_at = swapped_at - interval '1 hour'")
        return len(objects_of(server)) == 1

    until(age_and_check, "the bytes of an expired profile are not deleted")
    assert folded(other, CPU_NAMES[0], 0, now)[1] == {("main",): 1}


@pytest.mark.long
@pytest.mark.skipif(
    stored.is_in_bucket(), reason="changes bytes of a block's file while the server has it open"
)
@pytest.mark.parametrize("hour_count, step", rest_long([(2, 7), (5, 29)]))
def test_a_query_omits_a_damaged_granule_and_returns_the_others(start_server, hour_count, step):
    """The store has one block with some hours of two pods. Every step-th byte is damaged, one at a
    time. A response is complete, or it lacks one hour of one pod and has a warning. Means are those
    of the remaining snapshots."""
    # Without the query cache, which would hide the damage.
    server = start_server("--jobs-interval", "1s", "--query-cache-bytes", "0")
    client = Tenant(server).api("ingest", "read")
    hours = [BEGIN // HOUR * HOUR + hour * HOUR for hour in range(hour_count)]
    sent = [(f"p{pod}", hour, i) for pod in range(2) for hour in hours for i in range(3)]
    oracles = {None: store_oracle.Oracle(), **{one[:2]: store_oracle.Oracle() for one in sent}}
    for pod, hour, i in sent:
        value = 100 + 3 ** hours.index(hour) * 10 + i + (50 if pod == "p1" else 0)
        stacks = {("main",): [value * 1000 + i, value], ("main", pod): [7, 5 + i]}
        body = make_profile(HEAP, hour + i, stacks, ("space", "bytes"))
        assert (
            client.post("/api/v1/profiles", body=body, query={"label": f"pod={pod}"}).status == 200
        )
        for left_out, oracle in oracles.items():
            for n, name in enumerate(HEAP_NAMES):
                if left_out != (pod, hour):
                    oracle.add(
                        {"pod": pod},
                        name,
                        hour + i,
                        {stack: values[n] for stack, values in stacks.items()},
                    )
    compact(server)
    (block,) = (server.data_dir / "objects" / key for key in objects_of(server))
    block.chmod(0o600)
    windows = [(hours[0], hours[-1] + HOUR), (hours[0] + 1, hours[-1] + 2)]
    response, _ = folded(client, HEAP_NAMES[1], *windows[0])  # opens the block
    assert f"granules={2 * hour_count}," in response.headers["perfolio-statistics"]
    broken = set()
    for at in range(0, block.stat().st_size, step):
        flip(block, at)
        for name in HEAP_NAMES:
            for window in windows:
                response, rows = folded(client, name, *window)
                fits = {
                    left_out
                    for left_out, oracle in oracles.items()
                    if rows == oracle.merge(name, lambda labels: True, *window)
                }
                # With more than two hours, a result without a middle hour may equal the complete
                # one: the increase of a counter over the gap contains those of the missing hour.
                is_whole = fits == {None} or hour_count > 2 and None in fits
                assert is_whole or fits and "perfolio-warning" in response.headers, (at, rows)
                if "perfolio-warning" in response.headers:
                    assert "1 of the parts" in response.headers["perfolio-warning"]
                    broken |= {(name, left_out) for left_out in fits - {None}}
        flip(block, at)
    assert len(broken) == 2 * 2 * hour_count, broken


def flip(file, at):
    with open(file, "r+b") as opened:
        opened.seek(at)
        byte = opened.read(1)[0]
        opened.seek(at)
        opened.write(bytes([byte ^ 1]))
