"""api/openapi.yaml matches the server: it lists the same routes, and responses fit its schemas."""

import copy
import json
import re
import urllib.parse

import jsonschema
import pytest
import yaml

from conftest import ROOT
from people import Tenant
from test_authorization_matrix import PROFILE, ROWS, World, all_routes
from test_authorization_matrix import world as world  # the fixture

METHODS = ("get", "post", "put", "patch", "delete")
# The preferred caller of a route that several may call: one of the home team, which has data.
CALLERS = ["token:all", "operator", "owner"]


def load():
    with open(ROOT / "api" / "openapi.yaml", encoding="utf-8") as file:
        return yaml.load(file, Loader=yaml.CSafeLoader)


def close_objects(node):
    """Forbids undocumented fields in every described object, so that none is forgotten."""
    if isinstance(node, dict):
        if "properties" in node and "additionalProperties" not in node:
            node["additionalProperties"] = False
        for name, value in node.items():
            if name != "allOf":
                close_objects(value)
    elif isinstance(node, list):
        for value in node:
            close_objects(value)


DOCUMENT = load()
STRICT = copy.deepcopy(DOCUMENT)
close_objects(STRICT["paths"])
close_objects(
    {
        name: schema
        for name, schema in STRICT["components"]["schemas"].items()
        if name not in ("TenantChange", "Frame")
    }
)  # the two excluded schemas are parts of others through allOf
close_objects(STRICT["components"]["responses"])
CHECKER = jsonschema.FormatChecker(formats=())


@CHECKER.checks("date-time")
def is_date_time(value):
    return not isinstance(value, str) or bool(
        re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", value)
    )


@CHECKER.checks("uri")
def is_uri(value):
    return not isinstance(value, str) or urllib.parse.urlsplit(value).scheme == "https"


def resolve(node, document=STRICT):
    while "$ref" in node:
        target = document
        for key in node["$ref"].removeprefix("#/").split("/"):
            target = target[key]
        node = target
    return node


def validate(value, schema):
    resolver = jsonschema.RefResolver("", STRICT)
    validator = jsonschema.Draft202012Validator(schema, resolver=resolver, format_checker=CHECKER)
    errors = [
        f"{list(error.absolute_path)}: {error.message[:300]}"
        for error in validator.iter_errors(value)
    ]
    assert not errors, errors


def operations():
    for path, item in STRICT["paths"].items():
        for method in METHODS:
            if method in item:
                yield method.upper(), path, item[method], item.get("parameters", [])


def test_the_document_lists_the_routes_of_the_server():
    documented = {(method, path) for method, path, _, _ in operations()}
    routes = {(route["method"], route["pattern"]) for route in all_routes()}
    assert documented - routes == set(), "documented paths without a route"
    assert routes - documented == set(), "routes missing in api/openapi.yaml"


def references(node):
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for value in node.values():
            yield from references(value)
    elif isinstance(node, list):
        for value in node:
            yield from references(value)


def test_all_references_resolve_and_all_components_are_used():
    assert DOCUMENT["openapi"].startswith("3.1.")
    used = set(references(DOCUMENT))
    for reference in used:
        resolve({"$ref": reference}, DOCUMENT)
    for kind, parts in DOCUMENT["components"].items():
        for name in parts:
            if kind != "securitySchemes":
                assert f"#/components/{kind}/{name}" in used, f"{kind}/{name} is used nowhere"
    for schema in STRICT["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)


def test_operations_are_well_formed():
    tags = {tag["name"] for tag in DOCUMENT["tags"]}
    seen = set()
    for method, path, operation, shared in operations():
        operation_name = f"{method} {path}"
        assert operation["operationId"] not in seen, operation_name
        seen.add(operation["operationId"])
        assert set(operation["tags"]) <= tags and operation["summary"], operation_name
        assert "default" in operation["responses"], operation_name
        parameters = [resolve(one) for one in shared + operation.get("parameters", [])]
        in_path = {one["name"] for one in parameters if one["in"] == "path"}
        assert in_path == set(re.findall(r"{(\w+)}", path)), operation_name
        names = [(one["in"], one["name"]) for one in parameters]
        assert len(names) == len(set(names)), operation_name


def test_body_limits_and_documented_bodies_agree():
    limits = {
        (route["method"], route["pattern"]): route["max_body_bytes"] for route in all_routes()
    }
    for method, path, operation, _ in operations():
        if "requestBody" in operation:
            assert limits[method, path] > 0, f"{method} {path} takes no body"


@pytest.mark.parametrize("row", [row for row in ROWS if row.may], ids=repr)
def test_responses_fit_their_schemas(world, row):
    path, options = row.make_request(world)
    operation = STRICT["paths"][row.pattern][row.method.lower()]
    caller = next(caller for caller in CALLERS + sorted(row.may) if caller in row.may)
    client = world.client(caller, row.is_fresh)
    if "json" in options:
        body = resolve(operation["requestBody"])
        validate(options["json"], body["content"]["application/json"]["schema"])
    response = client.request(row.method, path, **options)
    client.close()
    check_response(operation, response)
    assert response.status < 400, response


def check_response(operation, response):
    documented = operation["responses"].get(str(response.status))
    if documented is None and response.status >= 400:
        documented = operation["responses"]["default"]
    assert documented is not None, f"{response.status} is not documented"
    content = resolve(documented).get("content", {})
    content_type = response.headers.get("content-type", "").partition(";")[0]
    if not content:
        assert response.body == b"", response
        return
    media = content.get(content_type, content.get("*/*"))
    assert media is not None, f"{content_type} is not documented"
    if content_type in ("application/json", "application/problem+json"):
        validate(response.json(), media["schema"])


PROBLEMS = [
    ("anonymous", "GET", "/api/v1/tokens", {}, 401),
    ("token:read", "GET", "/api/v1/users", {}, 403),
    ("owner", "DELETE", "/api/v1/tokens/1", {}, 404),
    ("token:all", "POST", "/api/v1/tokens", {"body": b"{"}, 400),
    ("owner", "PATCH", "/api/v1/tenant", {"json": {"name": "default"}}, 409),
    ("token:all", "POST", "/api/v1/shares", {"body": b"\x00\x01nothing known"}, 415),
    ("token:all", "POST", "/api/v1/uploads", {"json": {"size": 1 << 39}}, 413),
    ("anonymous", "GET", "/api/v1/shares/" + "0" * 22, {}, 404),
]


@pytest.mark.parametrize("caller,method,path,options,status", PROBLEMS)
def test_problems_fit_their_schema_and_have_a_page(world, caller, method, path, options, status):
    client = world.client(caller, False)
    response = client.request(method, path, **options)
    client.close()
    assert response.status == status, response
    assert response.json()["status"] == status
    validate(response.json(), STRICT["components"]["schemas"]["Problem"])
    assert response.headers["content-type"] == "application/problem+json"
    assert response.headers["x-request-id"] == response.json()["request_id"]
    page = world.client("anonymous", False).get(response.json()["type"])
    assert page.status == 200 and page.headers["content-type"].startswith("text/html")


def test_the_server_serves_the_document_unchanged(world):
    response = world.client("anonymous", False).get("/api/openapi.yaml")
    assert response.body == (ROOT / "api" / "openapi.yaml").read_bytes()


# ---- documented errors ----

STACKS = b"main;a 1\n"
DOCUMENTED_ERRORS = [
    # Path, parameters in addition to the window, status, words of the detail. Every documented
    # error status of these paths occurs here.
    ("/api/v1/query", {}, 400, "query is missing"),
    ("/api/v1/query", {"query": "{"}, 400, "character 1"),
    ("/api/v1/query", {"query": '{pod="a"}'}, 400, "2 profile types match"),
    (
        "/api/v1/query",
        {"query": "one", "group_by": "label:thred"},
        400,
        "no label of what the query finds",
    ),
    (
        "/api/v1/query",
        {"query": "one", "report": "labels", "key": "thred"},
        400,
        "no label of what the query finds",
    ),
    ("/api/v1/query", {"query": "none"}, 404, "there are: "),
    ("/api/v1/query", {"query": "cpu:samples"}, 404, "there are: "),
    ("/api/v1/query", {"query": "one"}, 422, "query_read_bytes"),
    ("/api/v1/query_range", {"query": "one", "step": "x"}, 400, "step"),
    ("/api/v1/query_range", {"query": '{pod="a"}'}, 400, "2 profile types match"),
    ("/api/v1/query_range", {"query": "one", "step": "0.001"}, 413, "11000"),
    ("/api/v1/query_range", {"query": "none"}, 404, "there are: "),
    ("/api/v1/query_range", {"query": "one", "focus": "main"}, 422, "query_read_bytes"),
    ("/api/v1/export", {"query": "one", "format": "csv"}, 400, "format must be parquet"),
    ("/api/v1/export", {"query": "none"}, 404, "there are: "),
    ("/api/v1/export", {"query": "one"}, 422, "query_read_bytes"),
]


def test_each_documented_error_occurs(server):
    paths, begin = DOCUMENT["paths"], 1790000000000000000
    tenant = Tenant(server)
    client = tenant.api("ingest", "read")
    for name in ("one", "two"):
        response = client.post(
            "/api/v1/profiles", STACKS, query={"name": name, "time": begin, "label": "pod=a"}
        )
        assert response.status == 200, response
    provoked = {path: set() for path, *_ in DOCUMENTED_ERRORS}
    window = {"start": begin, "end": begin + 10**11}
    for path, more, status, words in sorted(DOCUMENTED_ERRORS, key=lambda one: one[2]):
        if status == 422:
            server.api().patch(f"/api/v1/admin/tenants/{tenant.id}", json={"query_read_bytes": 1})
        response = client.get(path, query={**window, **more})
        assert response.status == status and words in response.json()["detail"], (
            path,
            more,
            response,
        )
        assert str(status) in paths[path]["get"]["responses"], (path, status)
        provoked[path].add(str(status))
    for path, statuses in provoked.items():
        documented = {status for status in paths[path]["get"]["responses"] if status[0] in "45"}
        assert documented == statuses, path
