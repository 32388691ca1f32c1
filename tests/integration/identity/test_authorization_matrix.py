"""Authorization matrix: every route of the server is requested by every kind of caller.

The tenant home owns all requested objects. Foreign callers belong to another tenant, the operator
to tenant default. A route without a row here fails test_every_route_has_a_row, so every new route
must declare its permitted callers.
"""

import gzip
import json
import pathlib
import re
import shutil
import subprocess
import tempfile
import time
import urllib.parse

import pytest

from conftest import PERFOLIOD, Api
from people import Browser, Tenant, come_from, unique

PROFILE = b"main;work 10\nmain;idle 5\n"
MARK = "only-for-home"  # in every name of home; no other tenant may receive it
SHARE_PASSWORD = "sesame open please"

HOME_USERS = ["viewer", "member", "owner"]
HOME_TOKENS = [
    "token:ingest",
    "token:read",
    "token:share",
    "token:debuginfo",
    "token:admin",
    "token:all",
]
HOME = HOME_USERS + HOME_TOKENS
FOREIGN = ["foreign owner", "foreign token", "operator"]
EVERYBODY = ["anonymous"] + HOME + FOREIGN

READERS = ["viewer", "member", "owner", "token:read", "token:all"]
EDITORS = ["member", "owner", "token:all"]  # a token with only the scope share edits its own shares
SHARERS = ["member", "owner", "token:share", "token:all"]
DEBUGGERS = ["member", "owner", "token:debuginfo", "token:all"]
ADMINS = ["owner", "token:admin", "token:all"]
INGESTERS = ["member", "owner", "token:ingest", "token:all"] + FOREIGN
SCOPES = {"token:all": ["ingest", "read", "share", "debuginfo", "admin"]}


class World:
    """One server with the tenant home, a foreign tenant and one client per caller."""

    def __init__(self, server):
        self.server = server
        quotas = {"uploads_per_minute": 100000}
        self.home, self.other = Tenant(server, **quotas), Tenant(server, **quotas)
        self.operator = server.api()
        self.operator.patch(f"/api/v1/admin/tenants/{self.home.id}", json={"name": unique(MARK)})
        self.maker = self.home.api(*SCOPES["token:all"])
        self.clients = {caller: self.make_client(caller) for caller in EVERYBODY}
        self.cached = {}
        self.connections = {}  # by caller; a new one costs more than a request
        for client in (self.other.api("ingest"), self.operator):
            # These callers have profiles of the type that home stores; without, their queries would
            # get another error.
            response = client.post("/api/v1/profiles?label=at=elsewhere", body=PROFILE)
            assert response.status == 200, response
        self.store_profile()

    def make_client(self, caller):
        if caller == "anonymous":
            return Api(self.server)
        if caller == "operator":
            return self.server.api()
        if caller == "foreign owner":
            return self.other.user("owner")
        if caller == "foreign token":
            return self.other.api(*SCOPES["token:all"])
        if caller in HOME_USERS:
            return self.home.user(caller)
        return self.home.api(*SCOPES.get(caller, [caller.partition(":")[2]]))

    def client(self, caller, is_fresh):
        """A copy of the caller's client, so that cookies set by a response do not affect later
        requests.

        Each caller has its own address, because rate limits apply per address."""
        original = self.make_client(caller) if is_fresh else self.clients[caller]
        copy = type(original)(self.server, original.token, original.cookies)
        if isinstance(copy, Browser):
            copy.csrf_token = original.csrf_token
        come_from(copy, f"127.0.2.{EVERYBODY.index(caller) + 1}")
        copy.connection = self.connections.pop(caller, copy.connection)
        return copy

    def keep_connection(self, caller, client):
        """For the next client of this caller, instead of client.close()."""
        if client.connection is not None:
            self.connections[caller] = client.connection

    # The requested objects; all of them belong to home.

    def new_share(self, visibility):
        headers = {"X-Perfolio-Password": SHARE_PASSWORD} if visibility == "password" else {}
        response = self.maker.post(
            "/api/v1/shares",
            body=PROFILE,
            headers=headers,
            query={"visibility": visibility, "title": MARK},
        )
        assert response.status == 201, response
        return response.json()["id"]

    def share(self, visibility, n=0):
        key = (visibility, n)
        if key not in self.cached:
            self.cached[key] = self.new_share(visibility)
        return self.cached[key]

    def link(self, visibility):
        response = self.maker.post(
            "/api/v1/links", json={"path": f"/p/{self.share(visibility)}?q=x"}
        )
        assert response.status == 201, response
        return response.json()["id"]

    def new_comment(self):
        """Returns the path of a comment that home's member wrote on a public share."""
        share = self.share("public")
        with self.server.cursor() as cursor:
            cursor.execute(
                "UPDATE share SET last_comment = last_comment + 1 WHERE id = %s "
                "RETURNING last_comment",
                [share],
            )
            n = cursor.fetchone()[0]
            cursor.execute(
                "INSERT INTO share_comment (share_id, n, tenant_id, user_id, author, text) "
                "VALUES (%s, %s, %s, %s, 'member', 'matrix')",
                [share, n, self.home.id, self.clients["member"].user["id"]],
            )
        return f"/api/v1/shares/{share}/comments/{n}"

    def new_rule(self):
        response = self.home.api("admin").post("/api/v1/retention", json=RULE)
        assert response.status == 200, response
        return response.json()["id"]

    def new_source_link(self):
        response = self.home.api("admin").post("/api/v1/source-links", json=SOURCE_LINK)
        assert response.status == 200, response
        self.home.api("admin").delete(
            f"/api/v1/source-links/{response.json()['id'] - 20}"
        )  # a team may have at most 100
        return response.json()["id"]

    def store_profile(self):
        """Stores a profile that only home's queries find."""
        response = self.maker.post("/api/v1/profiles?label=at=home", body=PROFILE)
        assert response.status == 200, response

    def new_upload(self, with_part=False):
        response = self.maker.post("/api/v1/uploads", json={"size": len(PROFILE), "filename": MARK})
        assert response.status == 201, response
        upload = response.json()["id"]
        if with_part:
            assert self.maker.put(f"/api/v1/uploads/{upload}/parts/0", body=PROFILE).status == 204
        return upload

    def new_debug_upload(self, with_part=False):
        response = self.maker.post(
            "/api/v1/debuginfo/uploads", json={"size": len(PROFILE), "filename": MARK}
        )
        assert response.status == 201, response
        upload = response.json()["id"]
        if with_part:
            assert (
                self.maker.put(f"/api/v1/debuginfo/uploads/{upload}/parts/0", body=PROFILE).status
                == 204
            )
        return upload

    def symbol_table(self, build_id="aa5a"):
        """Uploads a symbol table of the build id for home and returns its bytes."""
        if ("table", build_id) not in self.cached:
            folder = pathlib.Path(tempfile.mkdtemp())
            program, table = folder / "program", folder / "table"
            subprocess.run(
                ["gcc", "-g", "-x", "c", f"-Wl,--build-id=0x{build_id}", "-o", program, "-"],
                input="int main(void) { return 0; }",
                text=True,
                check=True,
            )
            subprocess.run(
                [PERFOLIOD.parent / "perfolio-symbolize", "-q", "-o", table, program], check=True
            )
            self.cached["table", build_id] = table.read_bytes()
            self.cached["program", build_id] = program.read_bytes()
            shutil.rmtree(folder, ignore_errors=True)
        response = self.maker.post(
            f"/api/v1/debuginfo/{build_id}/table",
            body=self.cached["table", build_id],
            query={"file": MARK},
        )
        assert response.status in (200, 201), response
        return self.cached["table", build_id]

    def debug_files(self, build_id):
        """Uploads home's debug files of the build id and waits until they are processed."""
        self.symbol_table(build_id)
        for kind in ("debuginfo", "executable"):
            response = self.maker.post(
                f"/api/v1/debuginfo/{build_id}/{kind}",
                body=self.cached["program", build_id],
                query={"file": MARK},
            )
            assert response.status in (200, 202), response
        deadline = time.monotonic() + 60
        while "waiting" in self.maker.get(f"/api/v1/debuginfo/{build_id}").text:
            assert time.monotonic() < deadline
            time.sleep(0.05)

    def new_user(self):
        return self.home.add_user("viewer", name=MARK, password=None)["id"]

    def new_token(self):
        return self.home.make_token("read")["id"]

    def new_invitation(self, key="id"):
        response = self.maker.post(
            "/api/v1/invitations", json={"email": unique(MARK) + "@example.com", "role": "viewer"}
        )
        assert response.status == 201, response
        return response.json()[key]

    def new_tenant(self):
        return Tenant(self.server).id

    def new_login_code(self):
        user = self.home.add_user("viewer", password=None)
        return user["login_url"].partition("#code=")[2]

    def new_report(self):
        with self.server.cursor() as cursor:
            cursor.execute(
                "INSERT INTO abuse_report (tenant_id, share_id, reason, address) "
                "VALUES (%s, %s, 'matrix', '::1') RETURNING id",
                [self.home.id, self.share("public")],
            )
            return cursor.fetchone()[0]

    def stored_profile(self):
        """Returns the id of a stored profile with a label that only home uses."""
        if "stored" not in self.cached:
            response = self.maker.post(
                "/api/v1/profiles", body=PROFILE, query={"label": "pod=stored"}
            )
            assert response.status == 200, response
            listed = self.maker.get("/api/v1/profiles", query={"query": '{pod="stored"}'})
            self.cached["stored"] = listed.json()["data"][0]["id"]
        return self.cached["stored"]

    def asset(self):
        page = Api(self.server).get("/").text
        return re.search(r"/assets/([A-Za-z0-9._-]+)", page).group(1)


class Row:
    """One request: make_request(world) returns its path and options; `may` lists the callers that
    get a 2xx or 3xx.

    Other callers get: anonymous 401, home 403, foreign callers the statuses in `foreign` (404 if
    the object belongs to home, 403 if only the permission is missing)."""

    def __init__(
        self,
        method,
        pattern,
        may,
        make_request=None,
        variant="",
        home=(403,),
        foreign=(403,),
        anonymous=(401,),
        is_fresh=False,
        is_theirs=False,
    ):
        self.method, self.pattern, self.variant = method, pattern, variant
        self.may = set(may)
        self.make_request = make_request or (lambda world: (pattern, {}))
        self.denied = {"home": home, "foreign": foreign, "anonymous": anonymous}
        self.is_fresh = is_fresh  # sent by an account created for this request
        self.is_theirs = is_theirs  # callers get data of their own tenant, which must not hold MARK

    def __repr__(self):
        return f"{self.method} {self.pattern}" + (f" ({self.variant})" if self.variant else "")

    def expected(self, caller):
        if caller in self.may:
            return range(200, 400)
        if caller == "anonymous":
            return self.denied["anonymous"]
        return self.denied["home" if caller in HOME else "foreign"]


def of_share(method, pattern, path, may_public=EVERYBODY, options=None):
    """Rows of a route that reads a share, one per visibility; {0} and {1} are shares of home."""

    def builder_for(visibility):
        def build_request(world):
            shares = [world.share(visibility, n) for n in range(2)]
            body = options(shares) if options else {}
            return path.format(*shares), body

        return build_request

    return [
        Row(method, pattern, may_public, builder_for("public"), "public"),
        Row(method, pattern, may_public, builder_for("unlisted"), "unlisted"),
        Row(
            method,
            pattern,
            [caller for caller in READERS if caller in may_public],
            builder_for("team"),
            "team",
            home=(403, 404),
            foreign=(404,),
        ),
        Row(
            method,
            pattern,
            [caller for caller in READERS if caller in may_public],
            builder_for("password"),
            "password",
            home=(401, 403),
            foreign=(401,),
        ),
    ]


AT_HOME = 'samples{at="home"}'.replace('"', "%22")


def stored_request(path):
    """A request for data that home has stored; other tenants find none of it."""

    def build_request(world):
        world.store_profile()
        return path, {}

    return build_request


def debuginfo_row(method, suffix, make, **options):
    """A row for a request about build id aa5a, for which home has files.

    Foreign callers upload files of aa5a too, so rows that they must not find use other ids."""

    def build_request(world):
        made = make(world)
        return f"/api/v1/debuginfo/aa5a{suffix}", {
            key: value(made) for key, value in options.items()
        }

    return Row(
        method,
        "/api/v1/debuginfo/{id}" + suffix,
        DEBUGGERS + FOREIGN,
        build_request,
        is_theirs=True,
    )


def buildid_row(kind):
    def build_request(world):
        world.debug_files("bb5b")
        return f"/buildid/bb5b/{kind}", {}

    return Row("GET", f"/buildid/{{id}}/{kind}", DEBUGGERS, build_request, foreign=(404,))


def page(pattern, path=None, may=EVERYBODY):
    return Row("GET", pattern, may, lambda world: (path(world) if path else pattern, {}))


def admin_route(method, pattern, make_request=None, **options):
    return Row(method, pattern, ["operator"], make_request, **options)


def new_tenant_options():
    return {"json": {"name": unique("matrix")}}


def new_user_options():
    return {"json": {"email": unique("matrix") + "@example.com", "role": "viewer"}}


RULE = {"query": '{nobody="has this"}', "keep": "3d"}
SOURCE_LINK = {"url": "https://example.com/{path}#L{line}", "path_prefix": "/src/"}
NEW_TOKEN_OPTIONS = {"json": {"name": "matrix", "scopes": ["read"]}}
USERS = HOME_USERS + ["foreign owner"]

ROWS = [
    # ---- identity ----
    Row("GET", "/api/v1/session", EVERYBODY),
    Row(
        "POST",
        "/api/v1/session",
        EVERYBODY,
        is_fresh=True,  # it ends the session whose cookie is sent
        make_request=lambda world: ("/api/v1/session", {"json": {"code": world.new_login_code()}}),
    ),
    Row("DELETE", "/api/v1/session", EVERYBODY, is_fresh=True),
    Row(
        "POST",
        "/api/v1/password",
        USERS,
        is_fresh=True,
        make_request=lambda world: ("/api/v1/password", {"json": {"new": "a new password"}}),
    ),
    Row("GET", "/api/v1/failed-sign-ins", USERS),
    Row(
        "GET",
        "/api/v1/tokens",
        USERS + ["token:admin", "token:all", "foreign token", "operator"],
        is_theirs=True,
    ),
    Row(
        "POST",
        "/api/v1/tokens",
        USERS + ["token:all", "foreign token", "operator"],
        lambda world: ("/api/v1/tokens", NEW_TOKEN_OPTIONS),
    ),
    Row(
        "DELETE",
        "/api/v1/tokens/{id}",
        ADMINS,
        home=(404,),
        foreign=(404,),
        make_request=lambda world: (f"/api/v1/tokens/{world.new_token()}", {}),
    ),
    Row("GET", "/api/v1/users", ADMINS + FOREIGN, is_theirs=True),
    Row(
        "PATCH",
        "/api/v1/users/{id}",
        ["owner", "token:all"],
        foreign=(404,),
        make_request=lambda world: (
            f"/api/v1/users/{world.new_user()}",
            {"json": {"role": "viewer"}},
        ),
    ),
    Row(
        "DELETE",
        "/api/v1/users/{id}",
        ADMINS,
        foreign=(404,),
        make_request=lambda world: (f"/api/v1/users/{world.new_user()}", {}),
    ),
    Row("GET", "/api/v1/invitations", ADMINS + FOREIGN, is_theirs=True),
    Row(
        "POST",
        "/api/v1/invitations",
        ["owner", "token:all"] + FOREIGN,
        lambda world: ("/api/v1/invitations", new_user_options()),
    ),
    Row(
        "POST",
        "/api/v1/invitations/look",
        EVERYBODY,
        lambda world: (
            "/api/v1/invitations/look",
            {"json": {"token": world.new_invitation("url").partition("#")[2]}},
        ),
    ),
    Row(
        "POST",
        "/api/v1/invitations/accept",
        EVERYBODY,
        is_fresh=True,
        make_request=lambda world: (
            "/api/v1/invitations/accept",
            {
                "json": {
                    "token": world.new_invitation("url").partition("#")[2],
                    "password": "a fine password",
                }
            },
        ),
    ),
    Row(
        "DELETE",
        "/api/v1/invitations/{id}",
        ADMINS,
        foreign=(404,),
        make_request=lambda world: (f"/api/v1/invitations/{world.new_invitation()}", {}),
    ),
    Row("GET", "/api/v1/tenant", HOME + FOREIGN, is_theirs=True),
    Row(
        "PATCH",
        "/api/v1/tenant",
        ADMINS + ["foreign owner", "foreign token"],
        is_theirs=True,
        make_request=lambda world: ("/api/v1/tenant", new_tenant_options()),
        variant="not the operator's",
    ),
    Row(
        "GET",
        "/api/v1/audit",
        ADMINS + ["foreign owner", "foreign token"],
        is_theirs=True,
        variant="not the operator's, whose own log names its changes to home",
    ),
    # ---- operator ----
    admin_route("GET", "/api/v1/admin/tenants"),
    admin_route(
        "POST", "/api/v1/admin/tenants", lambda w: ("/api/v1/admin/tenants", new_tenant_options())
    ),
    admin_route(
        "GET", "/api/v1/admin/tenants/{id}", lambda w: (f"/api/v1/admin/tenants/{w.home.id}", {})
    ),
    admin_route(
        "PATCH",
        "/api/v1/admin/tenants/{id}",
        lambda w: (f"/api/v1/admin/tenants/{w.home.id}", {"json": {}}),
    ),
    admin_route(
        "DELETE",
        "/api/v1/admin/tenants/{id}",
        lambda w: (f"/api/v1/admin/tenants/{w.new_tenant()}", {}),
    ),
    admin_route(
        "POST",
        "/api/v1/admin/tenants/{id}/users",
        lambda w: (f"/api/v1/admin/tenants/{w.home.id}/users", new_user_options()),
    ),
    admin_route(
        "POST",
        "/api/v1/admin/tenants/{id}/tokens",
        lambda w: (f"/api/v1/admin/tenants/{w.home.id}/tokens", NEW_TOKEN_OPTIONS),
    ),
    admin_route(
        "GET",
        "/api/v1/admin/tenants/{id}/users",
        lambda w: (f"/api/v1/admin/tenants/{w.home.id}/users", {}),
    ),
    admin_route(
        "DELETE",
        "/api/v1/admin/tenants/{id}/users/{user}",
        lambda w: (f"/api/v1/admin/tenants/{w.home.id}/users/{w.new_user()}", {}),
    ),
    admin_route(
        "GET",
        "/api/v1/admin/tenants/{id}/tokens",
        lambda w: (f"/api/v1/admin/tenants/{w.home.id}/tokens", {}),
    ),
    admin_route(
        "GET",
        "/api/v1/admin/tenants/{id}/retention",
        lambda w: (f"/api/v1/admin/tenants/{w.home.id}/retention", {}),
    ),
    admin_route(
        "POST",
        "/api/v1/admin/tenants/{id}/retention",
        lambda w: (f"/api/v1/admin/tenants/{w.home.id}/retention", {"json": RULE}),
    ),
    admin_route(
        "DELETE",
        "/api/v1/admin/tenants/{id}/retention/{rule}",
        lambda w: (f"/api/v1/admin/tenants/{w.home.id}/retention/{w.new_rule()}", {}),
    ),
    admin_route(
        "DELETE",
        "/api/v1/admin/tenants/{id}/tokens/{token}",
        lambda w: (f"/api/v1/admin/tenants/{w.home.id}/tokens/{w.new_token()}", {}),
    ),
    admin_route("POST", "/api/v1/admin/login-codes", lambda w: ("/api/v1/admin/login-codes", {})),
    admin_route("GET", "/api/v1/admin/reports"),
    admin_route(
        "POST",
        "/api/v1/admin/reports/{id}/close",
        lambda w: (f"/api/v1/admin/reports/{w.new_report()}/close", {}),
    ),
    admin_route(
        "POST",
        "/api/v1/admin/shares/{id}/takedown",
        lambda w: (
            f"/api/v1/admin/shares/{w.new_share('public')}/takedown",
            {"json": {"reason": "matrix"}},
        ),
    ),
    admin_route("GET", "/api/v1/admin/scrub"),
    admin_route(
        "POST", "/api/v1/admin/scrub/{action}", lambda w: ("/api/v1/admin/scrub/resume", {})
    ),
    # ---- continuous profiles ----
    Row(
        "POST",
        "/api/v1/profiles",
        INGESTERS,
        lambda world: ("/api/v1/profiles?label=pod=" + MARK, {"body": PROFILE}),
    ),
    Row(
        "POST",
        "/v1development/profiles",
        INGESTERS,
        lambda world: ("/v1development/profiles", {"json": {}}),
    ),
    Row(
        "POST",
        "/push.v1.PusherService/Push",
        INGESTERS,
        lambda world: ("/push.v1.PusherService/Push", {"json": {}}),
    ),
    Row(
        "POST",
        "/pyroscope/push.v1.PusherService/Push",
        INGESTERS,
        lambda world: ("/pyroscope/push.v1.PusherService/Push", {"json": {}}),
    ),
    Row("POST", "/ingest", INGESTERS, lambda world: ("/ingest?name=" + MARK, {"body": PROFILE})),
    Row(
        "POST",
        "/pyroscope/ingest",
        INGESTERS,
        lambda world: ("/pyroscope/ingest?name=" + MARK, {"body": PROFILE}),
    ),
    Row(
        "GET",
        "/api/v1/export",
        ["viewer", "member", "owner", "token:read", "token:all"] + FOREIGN,
        lambda world: ("/api/v1/export?query=samples", {}),
    ),
    Row(
        "GET",
        "/api/v1/query",
        ["viewer", "member", "owner", "token:read", "token:all"] + FOREIGN,
        lambda world: ("/api/v1/query?query=samples&report=folded", {}),
    ),
    # All callers sent the same label above; test_store_metadata.py checks that teams are separate.
    *[
        Row(
            "GET",
            path,
            ["viewer", "member", "owner", "token:read", "token:all"] + FOREIGN,
            lambda world, path=path: (path.replace("{name}", "pod"), {}),
        )
        for path in (
            "/api/v1/labels",
            "/api/v1/label/{name}/values",
            "/api/v1/series",
            "/api/v1/profile_types",
        )
    ],
    Row(
        "GET",
        "/api/v1/profiles",
        ["viewer", "member", "owner", "token:read", "token:all"] + FOREIGN,
        lambda world: ("/api/v1/profiles?query=samples", {}),
    ),
    Row(
        "GET",
        "/api/v1/profiles/{id}",
        ["viewer", "member", "owner", "token:read", "token:all"],
        lambda world: (f"/api/v1/profiles/{world.stored_profile()}", {}),
        foreign=(404,),
    ),
    Row(
        "GET",
        "/api/v1/symbolization",
        ["viewer", "member", "owner", "token:read", "token:all"] + FOREIGN,
        lambda world: ("/api/v1/symbolization?build_id=0123456789abcdef", {}),
    ),
    # No profile has this label: this row only checks permissions (test_store_deletion.py checks the
    # rest).
    Row(
        "DELETE",
        "/api/v1/profiles",
        ADMINS + FOREIGN,
        is_theirs=True,
        make_request=lambda world: (
            "/api/v1/profiles?query=" + urllib.parse.quote('{nobody="has this"}'),
            {},
        ),
    ),
    Row(
        "GET",
        "/api/v1/deletions",
        ADMINS + FOREIGN,
        is_theirs=True,
        make_request=lambda world: ("/api/v1/deletions", {}),
    ),
    Row(
        "GET",
        "/api/v1/retention",
        ADMINS + FOREIGN,
        is_theirs=True,
        make_request=lambda world: ("/api/v1/retention", {}),
    ),
    Row(
        "POST",
        "/api/v1/retention",
        ADMINS + FOREIGN,
        is_theirs=True,
        make_request=lambda world: ("/api/v1/retention", {"json": RULE}),
    ),
    Row(
        "DELETE",
        "/api/v1/retention/{id}",
        ADMINS,
        foreign=(404,),
        make_request=lambda world: (f"/api/v1/retention/{world.new_rule()}", {}),
    ),
    Row(
        "GET",
        "/api/v1/source-links",
        ["viewer", "member", "owner", "token:read", "token:all"] + FOREIGN,
        is_theirs=True,
        make_request=lambda world: ("/api/v1/source-links", {}),
    ),
    Row(
        "POST",
        "/api/v1/source-links",
        ADMINS + FOREIGN,
        is_theirs=True,
        make_request=lambda world: ("/api/v1/source-links", {"json": SOURCE_LINK}),
    ),
    Row(
        "DELETE",
        "/api/v1/source-links/{id}",
        ADMINS,
        foreign=(404,),
        make_request=lambda world: (f"/api/v1/source-links/{world.new_source_link()}", {}),
    ),
    Row(
        "GET",
        "/api/v1/debuginfo/upstreams",
        ADMINS + FOREIGN,
        is_theirs=True,
        make_request=lambda world: ("/api/v1/debuginfo/upstreams", {}),
    ),
    Row(
        "PUT",
        "/api/v1/debuginfo/upstreams",
        ADMINS + FOREIGN,
        is_theirs=True,
        make_request=lambda world: ("/api/v1/debuginfo/upstreams", {"json": {"mode": "public"}}),
    ),
    Row(
        "POST",
        "/api/v1/debuginfo/retry",
        ["member", "owner", "token:debuginfo", "token:all"] + FOREIGN,
        is_theirs=True,
        make_request=lambda world: ("/api/v1/debuginfo/retry", {"json": {}}),
    ),
    Row(
        "GET",
        "/api/v1/usage",
        ["viewer", "member", "owner", "token:read", "token:all"] + FOREIGN,
        lambda world: ("/api/v1/usage", {}),
    ),
    Row(
        "GET",
        "/api/v1/sources",
        ["viewer", "member", "owner", "token:read", "token:all"] + FOREIGN,
        lambda world: ("/api/v1/sources", {}),
    ),
    Row(
        "GET",
        "/api/v1/senders",
        ["viewer", "member", "owner", "token:read", "token:all"] + FOREIGN,
        lambda world: ("/api/v1/senders", {}),
    ),
    Row(
        "GET",
        "/api/v1/query_range",
        ["viewer", "member", "owner", "token:read", "token:all"] + FOREIGN,
        lambda world: ("/api/v1/query_range?query=samples", {}),
    ),
    # ---- shares ----
    Row(
        "POST",
        "/api/v1/shares",
        ["anonymous"] + SHARERS + FOREIGN,
        lambda world: ("/api/v1/shares", {"body": PROFILE}),
    ),
    Row(
        "POST",
        "/api/v1/shares",
        ["member", "owner", "token:all"],
        stored_request("/api/v1/shares?query=" + AT_HOME),
        "of a query",
        foreign=(400, 403),
    ),
    Row(
        "GET",
        "/api/v1/shares",
        ["viewer", "member", "owner", "token:read", "token:all"] + FOREIGN,
        is_theirs=True,
    ),
    *of_share("GET", "/api/v1/shares/{id}", "/api/v1/shares/{0}"),
    *of_share("GET", "/api/v1/shares/{id}/raw", "/api/v1/shares/{0}/raw"),
    *of_share("GET", "/p/{id}/raw", "/p/{0}/raw"),
    *of_share("GET", "/api/v1/shares/{id}/flame", "/api/v1/shares/{0}/flame"),
    *of_share("GET", "/api/v1/shares/{id}/top", "/api/v1/shares/{0}/top"),
    *of_share("GET", "/api/v1/shares/{id}/callers", "/api/v1/shares/{0}/callers?fn=work"),
    *of_share("GET", "/api/v1/shares/{id}/labels", "/api/v1/shares/{0}/labels"),
    *of_share("GET", "/api/v1/shares/{id}/symbolization", "/api/v1/shares/{0}/symbolization"),
    *of_share("GET", "/api/v1/shares/{id}/source-links", "/api/v1/shares/{0}/source-links"),
    *of_share("GET", "/api/v1/diff", "/api/v1/diff?a={0}&b={1}"),
    *of_share("GET", "/api/v1/diff/top", "/api/v1/diff/top?a={0}&b={1}"),
    *of_share("GET", "/api/v1/diff/labels", "/api/v1/diff/labels?a={0}&b={1}"),
    *[
        Row(
            "GET",
            pattern,
            ["viewer", "member", "owner", "token:read", "token:all"],
            stored_request(f"{pattern}?a_query={AT_HOME}&b_query={AT_HOME}"),
            "of queries",
            foreign=(400, 403),
        )
        for pattern in ("/api/v1/diff", "/api/v1/diff/top", "/api/v1/diff/labels")
    ],
    *of_share("GET", "/p/{id}.pb.gz", "/p/{0}.pb.gz"),
    *of_share("GET", "/p/{id}.folded", "/p/{0}.folded"),
    *of_share("GET", "/p/{id}.dot", "/p/{0}.dot"),
    *of_share("GET", "/p/{id}.json", "/p/{0}.json"),
    *of_share("GET", "/p/{id}.svg", "/p/{0}.svg"),
    *of_share("GET", "/p/{id}.png", "/p/{0}.png"),
    *of_share("GET", "/p/{id}/og.png", "/p/{0}/og.png"),
    *of_share("GET", "/p/{id}/badge.svg", "/p/{0}/badge.svg"),
    *of_share("GET", "/d/{a}..{b}.json", "/d/{0}..{1}.json"),
    *of_share("GET", "/d/{a}..{b}.svg", "/d/{0}..{1}.svg"),
    *of_share("GET", "/d/{a}..{b}.png", "/d/{0}..{1}.png"),
    *of_share("GET", "/d/{a}..{b}/og.png", "/d/{0}..{1}/og.png"),
    *[
        Row(
            "GET",
            "/embed/{id}",
            may,
            lambda world, visibility=visibility: (f"/embed/{world.share(visibility)}", {}),
            visibility,
            anonymous=(403,),
        )
        for visibility, may in (
            ("public", EVERYBODY),
            ("unlisted", EVERYBODY),
            ("team", []),
            ("password", []),
        )
    ],
    *[
        Row(
            "GET",
            "/embed/{a}..{b}",
            may,
            lambda world, visibility=visibility: (
                f"/embed/{world.share(visibility, 0)}..{world.share(visibility, 1)}",
                {},
            ),
            visibility,
            anonymous=(403,),
        )
        for visibility, may in (
            ("public", EVERYBODY),
            ("unlisted", EVERYBODY),
            ("team", []),
            ("password", []),
        )
    ],
    *[
        Row(
            "GET",
            "/oembed",
            may,
            lambda world, visibility=visibility: (
                f"/oembed?url={world.server.url}/p/{world.share(visibility)}",
                {},
            ),
            visibility,
            home=(401,),
            foreign=(401,),
            anonymous=(401,),
        )
        for visibility, may in (
            ("public", EVERYBODY),
            ("unlisted", EVERYBODY),
            ("team", []),
            ("password", []),
        )
    ],
    *of_share(
        "POST",
        "/api/v1/merge",
        "/api/v1/merge",
        ["anonymous"] + SHARERS + FOREIGN,
        lambda shares: {"json": {"shares": shares}},
    ),
    Row(
        "PATCH",
        "/api/v1/shares/{id}",
        EDITORS,
        home=(403,),
        foreign=(404,),
        make_request=lambda world: (
            f"/api/v1/shares/{world.share('public')}",
            {"json": {"title": MARK}},
        ),
    ),
    Row(
        "DELETE",
        "/api/v1/shares/{id}",
        EDITORS,
        home=(403,),
        foreign=(404,),
        make_request=lambda world: (f"/api/v1/shares/{world.new_share('public')}", {}),
    ),
    Row(
        "POST",
        "/api/v1/shares/{id}/unlock",
        EVERYBODY,
        variant="with the password",
        make_request=lambda world: (
            f"/api/v1/shares/{world.share('password')}/unlock",
            {"json": {"password": SHARE_PASSWORD}},
        ),
    ),
    Row(
        "POST",
        "/api/v1/shares/{id}/reports",
        EVERYBODY,
        variant="public",
        make_request=lambda world: (
            f"/api/v1/shares/{world.new_share('public')}/reports",
            {"json": {"reason": "matrix"}},
        ),
    ),
    *of_share(
        "POST",
        "/api/v1/links",
        "/api/v1/links",
        options=lambda shares: {"json": {"path": f"/d/{shares[1]}..{shares[0]}?q=x"}},
    ),
    *of_share("GET", "/api/v1/shares/{id}/comments", "/api/v1/shares/{0}/comments"),
    *of_share(
        "POST",
        "/api/v1/shares/{id}/comments",
        "/api/v1/shares/{0}/comments",
        ["member", "owner", "foreign owner"],
        lambda shares: {"json": {"text": "matrix"}},
    ),
    Row(
        "PATCH",
        "/api/v1/shares/{id}/comments/{n}",
        ["member"],
        variant="the member's own",
        make_request=lambda world: (world.new_comment(), {"json": {"text": "matrix"}}),
    ),
    Row(
        "DELETE",
        "/api/v1/shares/{id}/comments/{n}",
        ["member", "owner"],
        variant="the member's own",
        make_request=lambda world: (world.new_comment(), {}),
    ),
    Row(
        "GET",
        "/s/{id}",
        EVERYBODY,
        lambda world: (f"/s/{world.link('team')}", {}),
        "of a team's share: it redirects to the page, which checks access",
    ),
    # ---- debug information ----
    Row("GET", "/api/v1/debuginfo", DEBUGGERS + FOREIGN, is_theirs=True),
    debuginfo_row("GET", "", World.symbol_table),
    Row(
        "DELETE",
        "/api/v1/debuginfo/{id}",
        DEBUGGERS,
        foreign=(404,),
        make_request=lambda world: (
            world.symbol_table("cc5c"),
            ("/api/v1/debuginfo/cc5c", {}),
        )[1],
    ),
    debuginfo_row("POST", "/table", World.symbol_table, body=lambda table: table),
    debuginfo_row("POST", "/debuginfo", lambda _: None, body=lambda _: unique("x").encode()),
    debuginfo_row("POST", "/executable", lambda _: None, body=lambda _: unique("x").encode()),
    buildid_row("debuginfo"),
    buildid_row("executable"),
    Row(
        "POST",
        "/api/v1/debuginfo/uploads",
        DEBUGGERS + FOREIGN,
        lambda world: ("/api/v1/debuginfo/uploads", {"json": {"size": 1000, "filename": "x"}}),
    ),
    Row(
        "GET",
        "/api/v1/debuginfo/uploads/{id}",
        DEBUGGERS,
        foreign=(404,),
        make_request=lambda world: (f"/api/v1/debuginfo/uploads/{world.new_debug_upload()}", {}),
    ),
    Row(
        "DELETE",
        "/api/v1/debuginfo/uploads/{id}",
        DEBUGGERS,
        foreign=(404,),
        make_request=lambda world: (f"/api/v1/debuginfo/uploads/{world.new_debug_upload()}", {}),
    ),
    Row(
        "PUT",
        "/api/v1/debuginfo/uploads/{id}/parts/{n}",
        DEBUGGERS,
        foreign=(404,),
        make_request=lambda world: (
            f"/api/v1/debuginfo/uploads/{world.new_debug_upload()}/parts/0",
            {"body": PROFILE},
        ),
    ),
    Row(
        "POST",
        "/api/v1/uploads",
        ["anonymous"] + SHARERS + FOREIGN,
        lambda world: ("/api/v1/uploads", {"json": {"size": 1000, "filename": "x"}}),
    ),
    Row(
        "GET",
        "/api/v1/uploads/{id}",
        SHARERS,
        foreign=(404,),
        anonymous=(404,),
        make_request=lambda world: (f"/api/v1/uploads/{world.new_upload()}", {}),
    ),
    Row(
        "DELETE",
        "/api/v1/uploads/{id}",
        SHARERS,
        foreign=(404,),
        anonymous=(404,),
        make_request=lambda world: (f"/api/v1/uploads/{world.new_upload()}", {}),
    ),
    Row(
        "PUT",
        "/api/v1/uploads/{id}/parts/{n}",
        SHARERS,
        foreign=(404,),
        anonymous=(404,),
        make_request=lambda world: (
            f"/api/v1/uploads/{world.new_upload()}/parts/0",
            {"body": PROFILE},
        ),
    ),
    Row(
        "POST",
        "/api/v1/uploads/{id}/complete",
        SHARERS,
        foreign=(404,),
        anonymous=(404,),
        make_request=lambda world: (f"/api/v1/uploads/{world.new_upload(True)}/complete", {}),
    ),
    # ---- pages and health ----
    page("/"),
    page("/login"),
    page("/invite"),
    page("/shares"),
    page("/explore"),
    page("/sources"),
    page("/senders"),
    page("/settings"),
    page("/favicon.svg"),
    page("/licenses.txt"),
    page("/robots.txt"),
    page("/ca.crt"),
    page("/healthz"),
    page("/readyz"),
    page("/metrics", may=["operator"]),
    page("/api/openapi.yaml"),
    page("/problems/{name}", lambda world: "/problems/not-found"),
    page("/assets/{name}", lambda world: f"/assets/{world.asset()}"),
    page("/p/{id}", lambda world: f"/p/{world.share('team')}"),
    page("/p/{id}/", lambda world: f"/p/{world.share('team')}/"),
    page("/p/{id}/delete", lambda world: f"/p/{world.share('team')}/delete"),
    page("/d/{a}..{b}", lambda world: f"/d/{world.share('team')}..{world.share('team', 1)}"),
    page("/d/{a}..{b}/", lambda world: f"/d/{world.share('team')}..{world.share('team', 1)}/"),
]
OPERATOR_TOO = {("PATCH", "/api/v1/tenant"), ("GET", "/api/v1/audit")}


@pytest.fixture(scope="module")
def world(cluster_template, session_folder):
    from conftest import Server, copy_template

    folder = session_folder / "matrix"
    copy_template(cluster_template, folder)
    server = Server(folder, ["--public-metrics", "no", "--anonymous-uploads-per-minute", "100000"])
    server.start()
    yield World(server)
    assert server.stop() == 0, server.log()[-4000:]


def all_routes():
    lines = subprocess.run([PERFOLIOD, "routes", "--json"], check=True, capture_output=True).stdout
    return [json.loads(line) for line in lines.splitlines()]


def test_every_route_has_a_row():
    routes = {(route["method"], route["pattern"]) for route in all_routes()}
    rows = {(row.method, row.pattern) for row in ROWS}
    assert routes - rows == set(), "add these routes with their permitted callers to ROWS"
    assert rows - routes == set(), "ROWS has routes that the server does not have"


def text_of(response):
    body = response.body
    if response.headers.get("content-encoding") == "gzip" or body[:2] == b"\x1f\x8b":
        body = gzip.decompress(body)
    return body.decode("utf-8", "replace")


@pytest.mark.parametrize("row", ROWS, ids=repr)
def test_only_permitted_callers_may_use_a_route(world, row):
    wrong = []
    for caller in EVERYBODY:
        if caller == "operator" and (row.method, row.pattern) in OPERATOR_TOO:
            continue
        client = world.client(caller, row.is_fresh)
        path, options = row.make_request(world)
        response = client.request(row.method, path, **options)
        world.keep_connection(caller, client)
        if response.status not in row.expected(caller):
            wrong.append(
                f"{caller}: {response.status}, not {row.expected(caller)}: {response.body[:200]!r}"
            )
        if row.is_theirs and caller not in HOME and MARK in text_of(response):
            wrong.append(f"{caller} sees data of home: {text_of(response)[:500]}")
        if response.status >= 400 and MARK in text_of(response):
            wrong.append(
                f"{caller} got a refusal that contains a name of home: {text_of(response)[:500]}"
            )
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("method,pattern", sorted(OPERATOR_TOO))
def test_the_operator_may_use_these_routes_for_its_own_tenant(world, method, pattern):
    body = {"json": {"name": "default"}} if method == "PATCH" else {}
    assert world.operator.request(method, pattern, **body).status == 200


def test_a_session_without_its_csrf_token_changes_nothing(world):
    """Checks every unsafe route that accepts a cookie, except those marked no_csrf."""
    exempt = {
        ("POST", "/api/v1/session"),
        ("POST", "/api/v1/invitations/look"),
        ("POST", "/api/v1/invitations/accept"),
        ("POST", "/api/v1/shares/{id}/unlock"),
        ("POST", "/api/v1/shares/{id}/reports"),
    }
    assert {
        (route["method"], route["pattern"]) for route in all_routes() if "no_csrf" in route["flags"]
    } == exempt
    for row in ROWS:
        if row.method == "GET" or (row.method, row.pattern) in exempt:
            continue
        client = world.client("owner", False)
        client.csrf_token = None
        path, options = row.make_request(world)
        response = client.request(row.method, path, **options)
        world.keep_connection("owner", client)
        assert response.status == 403, (row, response)


def test_sharing_requires_sign_in_if_anonymous_sharing_is_off(start_server):
    server = start_server("--anonymous-sharing", "no")
    anonymous = server.anonymous()
    assert anonymous.get("/api/v1/session").json()["anonymous_sharing"] is False
    for row in ROWS:
        if row.pattern in ("/api/v1/shares", "/api/v1/uploads") and row.method == "POST":
            assert anonymous.post(row.pattern, body=PROFILE).status == 401
    assert Tenant(server).api("share").post("/api/v1/shares", body=PROFILE).status == 201
