"""Regular expressions match the same names on the server and in the page.

web/test/model/search/regex.test.ts reads the same file of cases. Its expected results come from
PCRE2 alone, called with the options that lib/regex/regex.c uses.
"""

import json
import pathlib

import pytest

CASES = json.loads(pathlib.Path(__file__).with_name("regex_cases.json").read_text())


@pytest.fixture(scope="module")
def made(server):
    body = "".join(f"{name} {1 << i}\n" for i, name in enumerate(CASES["names"]))
    response = server.anonymous().post("/api/v1/shares", body, query={"title": "regex"})
    assert response.status == 201, response
    return response.json()["id"]


def matched(client, made, pattern):
    response = client.get(f"/api/v1/shares/{made}/top", query={"focus": pattern, "limit": 0})
    assert response.status == 200, (pattern, response.text)
    return {row["name"] for row in response.json()["functions"]}


def test_every_accepted_expression_matches_the_expected_names(server, made):
    client = server.anonymous()
    for pattern, names in CASES["accepted"]:
        assert matched(client, made, pattern) == set(names), pattern


def test_every_refused_expression_is_refused(server, made):
    client = server.anonymous()
    for pattern in CASES["refused"]:
        response = client.get(f"/api/v1/shares/{made}/top", query={"focus": pattern})
        assert response.status == 400 and "regular expression" in response.json()["detail"], (
            pattern,
            response.text,
        )
