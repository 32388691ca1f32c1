"""Source links: the rules of a team, the rules that match a share, and their visibility."""

import sys

import pytest

from conftest import ROOT
from people import Tenant
from test_shares import problem, query_one, share

sys.path.insert(0, str(ROOT / "tests" / "oracle"))
import pprof_maker  # noqa: E402

RULES = "/api/v1/source-links"
URL = "https://git.example.com/shop/blob/{revision}/{path}#L{line}"
CPU = [("cpu", "nanoseconds")]


@pytest.fixture
def tenant(server):
    return Tenant(server)


def add(client, url=URL, **fields):
    response = client.post(RULES, json={"url": url, "revision": "v1", **fields})
    assert response.status == 200, response
    return response.json()


def make_profile(service="shop"):
    maker = pprof_maker.Maker(CPU)
    app = maker.mapping("/usr/bin/app", build_id="abcd1234")
    library = maker.mapping("/usr/lib/lib.so", 0x600000, 0x700000, build_id="ef56")
    stack = [
        maker.location([(maker.function("work", "/build/shop/work.c"), 7)], app, 0x400100),
        maker.location([(maker.function("lib", "/build/lib/lib.c"), 9)], library, 0x600100),
    ]
    maker.sample(stack, [5], [("service", service)])
    return maker.bytes()


def links_of(client, link):
    response = client.get(f"/api/v1/shares/{link}/source-links")
    assert response.status == 200, response
    return [(row["path_prefix"], row["binaries"], row["url"]) for row in response.json()["links"]]


def test_rules_match_by_build_id_label_and_prefix(tenant):
    admin, client = tenant.api("admin", "read"), tenant.api("share", "read")
    link = share(client, make_profile())["id"]
    assert links_of(client, link) == []
    plain = "https://git.example.com/{path}"
    add(admin, plain, path_prefix="/build/")
    add(admin, URL, path_prefix="/build/shop/", revision="release/1.2 %?#")
    add(admin, URL, label="service=shop", revision="main")
    add(admin, URL, label="service=other", revision="main")
    add(admin, URL, build_id="ab*34", revision="0123abcd")
    add(admin, URL, build_id="*99", revision="never")
    filled = "https://git.example.com/shop/blob/{0}/{{path}}#L{{line}}"
    assert links_of(client, link) == [
        ("", ["/usr/bin/app"], filled.format("0123abcd")),
        ("", None, filled.format("main")),
        ("/build/shop/", None, filled.format("release/1.2%20%25%3F%23")),
        ("/build/", None, plain),
    ]
    assert [rule["build_id"] for rule in client.get(RULES).json()["links"]] == [
        "*99",
        "ab*34",
        "",
        "",
        "",
        "",
    ]


def test_other_users_see_only_rules_for_everyone(server, tenant):
    admin, client = tenant.api("admin"), tenant.api("share", "read")
    link = share(client, make_profile())["id"]
    add(admin, path_prefix="/secret/")
    add(admin, path_prefix="/open/", audience="everyone")
    assert [row[0] for row in links_of(client, link)] == ["/secret/", "/open/"]
    stranger = Tenant(server).api("read")
    for other in (stranger, server.api(token=None), tenant.api("share")):
        assert [row[0] for row in links_of(other, link)] == ["/open/"]
    hidden = share(client, make_profile(), visibility="team")["id"]
    assert stranger.get(f"/api/v1/shares/{hidden}/source-links").status == 404
    assert stranger.get(RULES).json() == {"links": []}


@pytest.mark.parametrize(
    "url, word",
    [
        ("http://example.com/{path}", "https"),
        ("javascript:alert(1)//{path}", "https"),
        ("https:///{path}", "host"),
        ("https://{path}", "host"),
        ("https://example.com{path}", "host"),
        ("https://user@example.com/{path}", "host"),
        ("https://example.com\\{path}", "host"),
        ("https://example.com/a", "{path}"),
        ("https://example.com/{path}?q={x}", "{revision}"),
        ("https://example.com/{path}}", "%"),
        ('https://example.com/"{path}', "%"),
        ("https://example.com/ {path}", "%"),
        ("https://example.com/<b>{path}", "%"),
        ("https://example.com/\n{path}", "%"),
        ("HTTPS://example.com/{path}", "https"),
    ],
)
def test_an_unsafe_url_is_refused(tenant, url, word):
    problem(tenant.api("admin").post(RULES, json={"url": url, "revision": "x"}), 400, word)


@pytest.mark.parametrize(
    "fields, word",
    [
        ({"label": "service"}, "key=value"),
        ({"label": "=x"}, "key=value"),
        ({"audience": "world"}, "everyone"),
        ({"revision": ""}, "revision"),
        ({"url": ""}, "url"),
        ({"url": "https://x/{path}" + "a" * 2048}, "url"),
        ({"colour": "red"}, "colour"),
        ({"path_prefix": 7}, "path_prefix"),
    ],
)
def test_invalid_rules_are_refused(tenant, fields, word):
    problem(
        tenant.api("admin").post(RULES, json={"url": URL, "revision": "x", **fields}), 400, word
    )


def test_a_team_has_at_most_100_rules_and_each_change_is_in_its_audit_log(server, tenant):
    admin = tenant.api("admin", "read")
    made = [add(admin, path_prefix=f"/{i}/") for i in range(100)]
    problem(admin.post(RULES, json={"url": URL, "revision": "x"}), 400, "100")
    assert admin.delete(f"{RULES}/{made[0]['id']}").status == 204
    problem(admin.delete(f"{RULES}/{made[0]['id']}"), 404, "source link")
    problem(Tenant(server).api("admin").delete(f"{RULES}/{made[1]['id']}"), 404, "source link")
    assert len(admin.get(RULES).json()["links"]) == 99
    assert query_one(
        server,
        "SELECT count(*) FROM audit_log WHERE tenant_id = %s AND action IN "
        "('source_link.add', 'source_link.remove')",
        tenant.id,
    ) == (101,)


def test_the_command_line_adds_lists_and_removes_rules(server, tenant, tmp_path):
    def call(*arguments, status=0):
        done = server.cli(
            "admin",
            "source-link",
            *arguments,
            environment={"PERFOLIO_TOKEN": token, "HOME": str(tmp_path)},
        )
        assert done.returncode == status, done.stderr.decode()
        return (done.stdout if status == 0 else done.stderr).decode()

    token = tenant.make_token("admin", "read")["token"]
    made = call("add", URL, "path_prefix=/build/", "revision=17", "label=service=shop").strip()
    (rule,) = tenant.api("read").get(RULES).json()["links"]
    assert str(rule["id"]) == made and (rule["revision"], rule["label"]) == ("17", "service=shop")
    assert URL in call("list")
    assert "https://" in call("add", "ftp://x/{path}", status=7)
    call("remove", made)
    assert tenant.api("read").get(RULES).json() == {"links": []}


def add_hostile_rules(admin):
    for _ in range(100):
        add(admin, build_id="*" + 254 * "a" + "b", audience="everyone")


def make_mappings(count, id_of):
    maker = pprof_maker.Maker(CPU)
    for i in range(count):
        maker.mapping("/usr/bin/app", 0x400000 + 4096 * i, build_id=id_of(i))
    stack = [maker.location([(maker.function("work", "/build/work.c"), 7)], 1, 0x400100)]
    maker.sample(stack, [5])
    return maker.bytes()


def test_wildcards_that_match_badly_cost_little(tenant):
    """Compared with each mapping, these rules took ten minutes of CPU time."""
    admin, client = tenant.api("admin"), tenant.api("share")
    add_hostile_rules(admin)
    link = share(client, make_mappings(800, lambda i: 16000 * "a"))["id"]
    assert links_of(client, link) == []


def test_comparing_too_many_build_ids_is_refused(tenant):
    admin, client = tenant.api("admin"), tenant.api("share")
    add_hostile_rules(admin)
    link = share(client, make_mappings(2000, lambda i: 248 * "a" + f"{i:08x}"))["id"]
    problem(client.get(f"/api/v1/shares/{link}/source-links"), 413, "source links", "wildcards")
