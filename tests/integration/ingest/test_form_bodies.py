"""Profiles that a client sent as a form by mistake: curl -d and curl -F."""

import json

import sample_profiles
from people import Tenant

FORM = "application/x-www-form-urlencoded"


def as_curl_sends_d(data):
    """The bytes that `curl -d @FILE` sends."""
    return data.translate(None, b"\r\n\0")


def test_a_profile_that_lost_its_line_breaks_is_refused(server):
    """`curl -d` sent one stack with the last value instead of all stacks, without an error."""
    client = Tenant(server).api("ingest", "share")
    folded = b"".join(b"main;f%d %d\n" % (i, i + 1) for i in range(3))
    perf = sample_profiles.PERF_SCRIPT * 3
    pprof = sample_profiles.pprof_gzip()
    json_profile = json.dumps(json.loads(sample_profiles.SPEEDSCOPE)).encode()
    for path, query in (
        ("/api/v1/shares", {}),
        ("/api/v1/profiles", {"label": "service_name=a"}),
        ("/ingest", {"name": "a"}),
    ):
        for body, is_refused in (
            (as_curl_sends_d(folded), True),
            (as_curl_sends_d(folded * 100), True),
            (as_curl_sends_d(perf), True),
            (folded, False),
            (b"main;f 1", False),
            (pprof, False),
            (json_profile, False),
        ):
            response = client.post(path, body, query=query, headers={"Content-Type": FORM})
            assert (response.status in (400, 422)) == is_refused, (path, body[:40], response)
            assert ("--data-binary" in response.text) == is_refused, response
    damaged = as_curl_sends_d(sample_profiles.pprof_gzip(2000))
    response = client.post("/api/v1/shares", damaged, headers={"Content-Type": FORM})
    assert response.status >= 400 and "--data-binary" in response.text, response


def test_a_profile_within_a_form_is_refused(server):
    """`curl -F`: the form would have become the profile."""
    client = Tenant(server).api("ingest", "share")
    body = (
        b'--x\r\nContent-Disposition: form-data; name="file"; filename="f.txt"\r\n'
        b"Content-Type: text/plain\r\n\r\nmain;f 1\n\r\n--x--\r\n"
    )
    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    for path in ("/api/v1/shares", "/api/v1/profiles"):
        response = client.post(path, body, headers=headers)
        assert response.status == 415 and "send the file itself" in response.text, response
