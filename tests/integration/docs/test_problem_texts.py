"""The detail of every problem suggests what to do, in addition to what is wrong."""

import re

import pytest

import sample_profiles as samples

ABSENT = "A" * 22
ADVICE = re.compile(
    r"(^|[:;,.] (or |and )?(please )?)(add|ask|begin|choose|delete|give|join|leave|"
    r"look|make|merge|open|put|record|reload|repeat|send|sign in|start|take|tell|"
    r"try|type|use|withdraw|write|ids (are|have)|an id has|/api/openapi.yaml lists|"
    r"the (field|list) [\w ]+ (says|shows?))\b",
    re.I,
)

PROBLEMS = [
    ("GET", "/nothing/here", {}, 404),
    ("GET", "/api/v1/nothing", {}, 404),
    ("PATCH", "/api/v1/shares", {}, 405),
    ("GET", "/a%2Fb", {}, 400),
    ("GET", "/a%zz", {}, 400),
    ("GET", "/healthz", {"body": b"x"}, 413),
    ("GET", "/api/v1/shares?colour=red", {}, 400),
    ("GET", "/api/v1/shares?cursor=x", {}, 400),
    ("GET", "/api/v1/shares?limit=1&limit=1", {}, 400),
    ("GET", "/api/v1/shares?q=%zz", {}, 400),
    ("GET", "/oembed?url=a&url=b", {}, 400),
    ("GET", f"/api/v1/shares/{ABSENT}", {}, 404),
    ("GET", "/api/v1/shares/short", {}, 404),
    ("GET", f"/api/v1/uploads/{ABSENT}", {}, 404),
    ("GET", "/api/v1/uploads/short", {}, 404),
    ("POST", "/api/v1/uploads", {"json": {"size": 1, "colour": "red"}}, 400),
    ("POST", "/api/v1/shares?label=a%3D1&label=a%3D2", {"body": samples.FOLDED}, 400),
    (
        "POST",
        "/api/v1/shares",
        {"body": samples.FOLDED, "headers": {"X-Perfolio-Password": "secret-enough"}},
        400,
    ),
    ("GET", "/api/v1/admin/tenants/999999999", {}, 404),
    ("GET", "/api/v1/admin/tenants/x", {}, 404),
    ("POST", "/api/v1/admin/tenants", {"json": {"name": "default"}}, 409),
    ("DELETE", "/api/v1/admin/tenants/1", {}, 409),
    ("DELETE", "/api/v1/invitations/999999999", {}, 404),
    ("DELETE", "/api/v1/users/999999999", {}, 404),
    ("POST", "/api/v1/admin/login-codes", {"json": {"email": "nobody@nowhere.example"}}, 404),
    ("DELETE", "/api/v1/admin/reports/999999999", {}, 404),
]


def assert_advises(response, status):
    assert response.status == status, response
    detail = response.json()["detail"]
    assert ADVICE.search(detail), detail


@pytest.mark.parametrize(
    "method,path,options,status", PROBLEMS, ids=[f"{row[0]} {row[1]}" for row in PROBLEMS]
)
def test_a_problem_suggests_what_to_do(admin, method, path, options, status):
    assert_advises(admin.request(method, path, **options), status)


def test_a_team_share_without_a_session_suggests_signing_in(anonymous):
    response = anonymous.post("/api/v1/shares", samples.FOLDED, query={"visibility": "team"})
    assert_advises(response, 401)
    assert "sign in" in response.json()["detail"] and "visibility" in response.json()["detail"]


def test_refused_credentials_suggest_what_to_do(server, anonymous):
    assert_advises(anonymous.with_token("pf_" + "x" * 43).get("/api/v1/shares"), 401)
    share = (
        server.api()
        .post(
            "/api/v1/shares",
            samples.FOLDED,
            query={"visibility": "password"},
            headers={"X-Perfolio-Password": "secret-enough"},
        )
        .json()["id"]
    )
    path = f"/api/v1/shares/{share}"
    assert_advises(anonymous.get(path, headers={"X-Perfolio-Password": "wrong-enough"}), 401)
    assert_advises(anonymous.delete(path, headers={"X-Perfolio-Delete-Token": "x" * 43}), 403)
    assert server.api().delete(path).status == 204
    assert_advises(anonymous.get(path), 410)


def test_every_problem_type_has_a_page_with_advice(anonymous):
    kinds = (
        "invalid unsupported too-large not-found gone conflict stale unauthenticated forbidden"
        " rate-limited quota limit busy timeout cancelled corrupt io database network internal"
    )
    for kind in kinds.split():
        page = anonymous.get(f"/problems/{kind}").text
        assert re.search(
            r"\b(ask|choose|delete|detail|look|make|reload|send|sign in|try|uploaded in "
            r"parts|case-sensitive)\b",
            page,
            re.I,
        ), (kind, page)
