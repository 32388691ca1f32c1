"""Uploads in parts: they are resumable, each stored part is durable, and memory is bounded."""

import hashlib
import threading
import time

import pytest

import sample_profiles as samples
from people import Tenant
from test_shares import new_tenant, problem, query_one, share, wait_for

PART = 4 << 20


def large_pprof(size):
    """Returns a valid pprof of exactly size bytes: a small profile and unused strings."""
    data = bytearray(samples.pprof(20))
    filler = 1 << 20
    number = 0
    while size - len(data) > filler + 16:
        text = (b"%020d" % number) + b"x" * (filler - 20)
        data += samples.profiles.block(6, text)
        number += 1
    rest = size - len(data)
    for prefix in range(2, 7):
        block = samples.profiles.block(6, b"y" * (rest - prefix))
        if len(block) == rest:
            return bytes(data + block)
    raise AssertionError("no block has that size")


def begin(client, size, **more):
    response = client.post("/api/v1/uploads", json={"size": size, **more})
    assert response.status == 201, response
    return response.json()


def put(client, upload, number, data, **options):
    return client.put(
        f"/api/v1/uploads/{upload['id']}/parts/{number}",
        data[number * PART : (number + 1) * PART],
        **options,
    )


def part_objects(server):
    return sorted(server.objects.keys("part/"))


def stored_bytes(server, tenant_id):
    row = query_one(
        server,
        "SELECT coalesce(sum(bytes_stored), 0)::bigint FROM tenant_usage" " WHERE tenant_id = %s",
        tenant_id,
    )
    return row[0]


# The bytes of the texts in a row of the table share and in the comments on it.
TEXTS = (
    "octet_length(title) + octet_length(description) + octet_length(filename)"
    " + octet_length(labels::text) + octet_length(summary::text)"
    " + octet_length(list_summary::text)"
    " + (SELECT coalesce(sum(octet_length(author) + octet_length(text)"
    " + coalesce(octet_length(pin_function), 0) + coalesce(octet_length(view), 0)), 0)"
    " FROM share_comment WHERE share_id = share.id)"
    " + (SELECT coalesce(sum(octet_length(path)), 0) FROM short_link WHERE share_id = share.id)"
)


def expected_bytes(server, tenant_id):
    """The bytes that a tenant's live shares add to its stored bytes: objects, texts and links."""
    return query_one(
        server,
        f"SELECT coalesce(sum(raw_bytes + {TEXTS}), 0)::bigint FROM share"
        " WHERE tenant_id = %s AND state = 'live'",
        tenant_id,
    )[0]


def test_a_part_that_arrives_during_completion_is_not_stored(server, admin):
    """Otherwise a client could store bytes that are not charged while an upload is completed."""
    data = large_pprof(PART)
    upload = begin(admin, len(data))
    with server.database("perfolio_jobs") as connection:
        connection.cursor().execute(
            "UPDATE upload SET completing_until = now() + interval '1 hour'" " WHERE id = %s",
            (upload["id"],),
        )
    before = part_objects(server)
    assert put(admin, upload, 0, data).status == 409
    assert part_objects(server) == before


def test_conflicts_of_a_completion_have_different_details(server, admin):
    upload = begin(admin, 2 * PART)
    path = f"/api/v1/uploads/{upload['id']}/complete"
    assert put(admin, upload, 0, bytes(2 * PART)).status == 204
    claim = "UPDATE upload SET completing_until = now() + interval '1 minute' WHERE id = %s"
    query_one(server, claim + " RETURNING 1", upload["id"])
    response = admin.post(path)
    assert "1 of 2 parts are missing: 1" in problem(response, 409)["detail"]
    assert "retry-after" not in response.headers
    query_one(
        server, "UPDATE upload SET completing_until = NULL WHERE id = %s RETURNING 1", upload["id"]
    )
    assert put(admin, upload, 1, bytes(2 * PART)).status == 204
    query_one(server, claim + " RETURNING 1", upload["id"])
    response = admin.post(path)
    assert "another request is completing" in problem(response, 409)["detail"]
    assert int(response.headers["retry-after"]) > 0


def test_failed_completions_are_rate_limited(start_server):
    """Each attempt writes and reads all bytes of the upload."""
    server = start_server("--anonymous-uploads-per-minute", "4")
    client = server.api().with_token(None)
    upload = begin(client, 1000)
    token = {"X-Perfolio-Upload-Token": upload["upload_token"]}
    assert put(client, upload, 0, b"no profile" * 100, headers=token).status == 204
    complete = f"/api/v1/uploads/{upload['id']}/complete"
    responses = [client.post(complete, headers=token) for _ in range(4)]
    assert [response.status for response in responses[:3]] == [415] * 3, responses
    assert responses[3].status == 429 and "retry-after" in responses[3].headers


def test_parts_in_any_order_become_one_share(server, admin):
    data = large_pprof(2 * PART + 12345)
    upload = begin(admin, len(data), filename="large.pb", sha256=hashlib.sha256(data).hexdigest())
    assert upload["part_bytes"] == PART and upload["part_count"] == 3
    path = f"/api/v1/uploads/{upload['id']}"
    complete = path + "/complete?title=large"
    for number in (2, 0):
        assert put(admin, upload, number, data).status == 204
    assert admin.get(path).json()["parts_received"] == [0, 2]
    problem(admin.post(complete), 409, "1 of 3 parts are missing: 1")
    assert put(admin, upload, 1, data).status == 204
    response = admin.post(complete)
    assert response.status == 201, response
    made = response.json()
    shown = admin.get(f"/api/v1/shares/{made['id']}").json()
    assert shown["title"] == "large" and shown["filename"] == "large.pb"
    assert shown["raw_bytes"] == len(data)
    assert admin.get(f"/p/{made['id']}/raw").body == data
    repeated = admin.post(complete)
    assert repeated.status == 201 and repeated.json()["id"] == made["id"]
    assert repeated.json()["delete_token"] == made["delete_token"]
    problem(put(admin, upload, 0, data), 409)
    problem(admin.delete(path), 409)
    wait_for(lambda: not [p for p in part_objects(server) if upload["id"] in p])
    token = {"X-Perfolio-Delete-Token": made["delete_token"]}
    assert server.anonymous().delete(f"/api/v1/shares/{made['id']}", headers=token).status == 204


def test_a_repeated_part_replaces_the_earlier_one(admin):
    data = large_pprof(PART + 5000)
    upload = begin(admin, len(data))
    wrong = bytes(len(data))
    assert put(admin, upload, 0, wrong).status == 204
    assert put(admin, upload, 1, data).status == 204
    response = admin.post(f"/api/v1/uploads/{upload['id']}/complete")
    assert response.status in (400, 415, 422), "zeros are not a profile"
    assert put(admin, upload, 0, data).status == 204
    made = admin.post(f"/api/v1/uploads/{upload['id']}/complete")
    assert made.status == 201, made
    assert admin.get(f"/p/{made.json()['id']}/raw").body == data


def test_invalid_parts_and_uploads_are_reported(admin):
    for body, word in (
        ({}, "size"),
        ({"size": 0}, "size"),
        ({"size": -5}, "size"),
        ({"size": "10"}, "size"),
        ({"size": 10, "sha256": "zz"}, "sha256"),
        ({"size": 10, "filename": "a\nb"}, "filename"),
        ({"size": 10, "color": 1}, "color"),
    ):
        problem(admin.post("/api/v1/uploads", json=body), 400, word)
    problem(admin.post("/api/v1/uploads", json={"size": 1 << 39}), 413)
    upload = begin(admin, 5000)
    base = f"/api/v1/uploads/{upload['id']}"
    problem(admin.put(base + "/parts/1", b"x"), 400, "part 1")
    problem(admin.put(base + "/parts/x", b"x"), 400, "part x")
    problem(admin.put(base + "/parts/0", b"x" * 4999), 400, "5000")
    problem(admin.post(base + "/complete?visibility=none"), 400, "visibility")
    assert admin.delete(base).status == 204
    problem(admin.get(base), 404)


def test_a_wrong_sha256_is_reported(admin):
    upload = begin(admin, len(samples.FOLDED), sha256="0" * 64)
    assert put(admin, upload, 0, samples.FOLDED).status == 204
    problem(admin.post(f"/api/v1/uploads/{upload['id']}/complete"), 400, "SHA-256")


def test_an_upload_is_accessible_to_its_creator_only(admin, anonymous, server):
    _, stranger = new_tenant(admin, "uploading strangers")
    upload = begin(admin, len(samples.FOLDED))
    base = f"/api/v1/uploads/{upload['id']}"
    by_token = {"X-Perfolio-Upload-Token": upload["upload_token"]}
    for client, headers in (
        (anonymous, {}),
        (anonymous.with_token(stranger), {}),
        (anonymous, by_token),
    ):
        assert client.get(base, headers=headers).status == 404
        assert client.put(base + "/parts/0", samples.FOLDED, headers=headers).status == 404
        assert client.post(base + "/complete", headers=headers).status == 404
        assert client.delete(base, headers=headers).status == 404
    own = begin(anonymous, len(samples.FOLDED))
    base = f"/api/v1/uploads/{own['id']}"
    by_token = {"X-Perfolio-Upload-Token": own["upload_token"]}
    assert anonymous.put(base + "/parts/0", samples.FOLDED).status == 404
    assert anonymous.put(base + "/parts/0", samples.FOLDED, headers=by_token).status == 204
    made = anonymous.post(base + "/complete", headers=by_token)
    assert made.status == 201, made
    assert server.anonymous().get(f"/p/{made.json()['id']}/raw").body == samples.FOLDED


def test_an_expired_upload_is_deleted_and_its_bytes_are_released(shared_server):
    server = shared_server("--jobs-interval", "1s")
    admin = server.api()
    before = stored_bytes(server, 2)
    upload = begin(admin, PART + 1)
    assert admin.put(f"/api/v1/uploads/{upload['id']}/parts/1", b"x").status == 204
    assert stored_bytes(server, 2) == before + PART + 1
    assert len(part_objects(server)) == 1
    query_one(
        server,
        "UPDATE upload SET expires_at = now() - interval '1 second'" " WHERE id = %s",
        upload["id"],
    )
    problem(admin.get(f"/api/v1/uploads/{upload['id']}"), 404)
    wait_for(lambda: part_objects(server) == [] and stored_bytes(server, 2) == before)


def seconds_left(server, upload):
    return query_one(
        server,
        "SELECT extract(epoch FROM expires_at - now())::float FROM upload" " WHERE id = %s",
        upload["id"],
    )[0]


def test_a_repeated_part_renews_an_upload_at_most_once_a_minute(server):
    client = server.anonymous()
    upload = begin(client, PART + 1)
    token = {"X-Perfolio-Upload-Token": upload["upload_token"]}

    def repeat():
        response = client.put(f"/api/v1/uploads/{upload['id']}/parts/1", b"x", headers=token)
        assert response.status == 204, response
        # Each version of a row has another place and another expiry.
        row = "SELECT ctid::text, expires_at FROM upload WHERE id = %s"
        return query_one(server, row, upload["id"])

    repeat()
    move = "UPDATE upload SET expires_at = now() + %s::interval WHERE id = %s RETURNING ctid::text"
    # Ahead of the next expiry, so that a slow system does not renew it.
    written = query_one(server, move, "61 minutes", upload["id"])
    assert [repeat()[0] for _ in range(5)] == [written[0]] * 5
    query_one(server, move, "58 minutes", upload["id"])
    repeat()
    assert seconds_left(server, upload) > 3500
    query_one(server, move, "-1 second", upload["id"])
    problem(client.put(f"/api/v1/uploads/{upload['id']}/parts/1", b"x", headers=token), 404)


def test_an_anonymous_upload_reserves_bytes_for_an_hour_only(shared_server):
    """All anonymous clients share one quota. Each received part extends the reservation to an
    hour."""
    server = shared_server("--jobs-interval", "1s")
    anonymous = server.anonymous()
    of_admin, idle = begin(server.api(), 10 * PART), begin(anonymous, 10 * PART)
    assert stored_bytes(server, 1) == 10 * PART
    assert 3500 < seconds_left(server, idle) <= 3600 < 86000 < seconds_left(server, of_admin)
    query_one(
        server,
        "UPDATE upload SET expires_at = now() + interval '1 minute'" " WHERE id = %s RETURNING 1",
        idle["id"],
    )
    token = {"X-Perfolio-Upload-Token": idle["upload_token"]}
    assert put(anonymous, idle, 0, bytes(PART), headers=token).status == 204
    assert 3500 < seconds_left(server, idle) <= 3600
    query_one(server, "UPDATE upload SET expires_at = now() WHERE id = %s RETURNING 1", idle["id"])
    wait_for(lambda: stored_bytes(server, 1) == 0 and part_objects(server) == [])


def test_a_shorter_upload_lifetime_also_applies_to_anonymous_uploads(start_server):
    server = start_server("--upload-lifetime", "10m")
    assert seconds_left(server, begin(server.anonymous(), PART)) <= 600


def test_concurrent_completions_create_one_share(server, admin):
    data = large_pprof(PART + 100)
    upload = begin(admin, len(data))
    for number in (0, 1):
        assert put(admin, upload, number, data).status == 204
    responses = []

    def complete():
        client = server.api()
        responses.append(client.post(f"/api/v1/uploads/{upload['id']}/complete"))
        client.close()

    threads = [threading.Thread(target=complete) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    made = {response.json()["id"] for response in responses if response.status == 201}
    assert len(made) == 1, responses
    assert {response.status for response in responses} <= {201, 409}


def test_a_repeated_request_with_one_key_begins_one_upload(server, admin):
    tenant_id, token = new_tenant(admin, "announced")
    team = admin.with_token(token)
    headers = {"Idempotency-Key": "announced"}
    first, repeated = (
        team.post("/api/v1/uploads", json={"size": len(samples.FOLDED)}, headers=headers)
        for _ in range(2)
    )
    assert first.status == repeated.status == 201 and first.json() == repeated.json()
    assert stored_bytes(server, tenant_id) == len(samples.FOLDED)
    problem(team.post("/api/v1/uploads", json={"size": 5}, headers=headers), 409, "Idempotency-Key")
    anonymous = server.anonymous()
    own = anonymous.post("/api/v1/uploads", json={"size": len(samples.FOLDED)}, headers=headers)
    assert own.status == 201 and own.json()["id"] != first.json()["id"]
    token = {"X-Perfolio-Upload-Token": own.json()["upload_token"]}
    assert put(anonymous, own.json(), 0, samples.FOLDED, headers=token).status == 204
    assert (
        anonymous.post(f"/api/v1/uploads/{own.json()['id']}/complete", headers=token).status == 201
    )


def test_the_bytes_of_an_upload_in_parts_are_charged_once(server, admin, anonymous):
    tenant_id, token = new_tenant(admin, "charged")
    team = anonymous.with_token(token)
    upload = begin(team, len(samples.FOLDED))
    assert put(team, upload, 0, samples.FOLDED).status == 204
    made = team.post(f"/api/v1/uploads/{upload['id']}/complete").json()
    one = stored_bytes(server, tenant_id)
    assert one == expected_bytes(server, tenant_id)
    assert share(team)
    assert stored_bytes(server, tenant_id) == expected_bytes(server, tenant_id) == 2 * one
    assert team.delete(f"/api/v1/shares/{made['id']}").status == 204
    wait_for(lambda: stored_bytes(server, tenant_id) == one)


@pytest.mark.long
def test_an_upload_of_200_mib_uses_bounded_memory(start_server):
    server = start_server()
    admin = server.api()
    data = large_pprof(200 << 20)
    upload = begin(admin, len(data))
    peak = 0
    for number in range(upload["part_count"]):
        assert put(admin, upload, number, data).status == 204
    during_parts = resident_kib(server)
    made = admin.post(f"/api/v1/uploads/{upload['id']}/complete")
    assert made.status == 201, made
    peak = peak_kib(server)
    shown = admin.get(f"/api/v1/shares/{made.json()['id']}/top").json()
    assert shown["functions"]
    raw = admin.get(f"/p/{made.json()['id']}/raw")
    assert hashlib.sha256(raw.body).digest() == hashlib.sha256(data).digest()
    assert during_parts < 150 * 1024, f"{during_parts} KiB resident while parts are received"
    assert peak < 700 * 1024, f"{peak} KiB resident at most"


def resident_kib(server):
    return status_kib(server, "VmRSS")


def peak_kib(server):
    return status_kib(server, "VmHWM")


def status_kib(server, name):
    with open(f"/proc/{server.child_pid()}/status") as file:
        return int(next(line for line in file if line.startswith(name)).split()[1])


SWEEP_LOCK = 0x50465357


@pytest.fixture
def backup_lock(server):
    """Holds the lock that a backup holds while it copies the objects; calling it releases it."""
    connection = server.database("perfolio_jobs")
    connection.cursor().execute("SELECT pg_advisory_lock(%s)", (SWEEP_LOCK,))
    yield connection.close
    connection.close()


def announce(client, size):
    return client.post("/api/v1/uploads", json={"size": size})


def parts_of(server, upload):
    return [key for key in part_objects(server) if upload["id"] in key]


def test_a_part_that_is_put_again_with_equal_bytes_is_stored_once(server, backup_lock):
    client = Tenant(server).api("share")
    upload = begin(client, 2 * PART)
    assert put(client, upload, 0, bytes(2 * PART)).status == 204
    stored = parts_of(server, upload)
    for _ in range(3):
        assert put(client, upload, 0, bytes(2 * PART)).status == 204
    assert parts_of(server, upload) == stored and len(stored) == 1


def test_parts_that_are_put_again_count_for_the_quota_until_they_are_deleted(server, backup_lock):
    client = Tenant(server, max_bytes_stored=25 << 20).api("share")
    upload = begin(client, 2 * PART)

    def put_number(number):
        return put(client, upload, 0, bytes([number]) * PART)

    responses = [put_number(number) for number in range(8)]
    assert [response.status for response in responses] == 5 * [204] + 3 * [429], responses
    problem(responses[-1], 429, "quota")
    assert len(parts_of(server, upload)) == 5
    backup_lock()
    wait_for(lambda: len(parts_of(server, upload)) == 1)
    assert put_number(9).status == 204


def test_deleted_uploads_count_for_the_quota_until_their_parts_are_deleted(server, backup_lock):
    client = Tenant(server, max_bytes_stored=10 << 20).api("share")
    upload = begin(client, 2 * PART)
    assert put(client, upload, 0, bytes(2 * PART)).status == 204
    assert client.delete(f"/api/v1/uploads/{upload['id']}").status == 204
    problem(announce(client, 2 * PART), 429, "quota", str(PART))
    assert announce(client, PART).status == 201
    backup_lock()
    wait_for(lambda: not parts_of(server, upload))
    assert announce(client, PART).status == 201


def test_the_parts_of_a_complete_upload_are_not_counted_twice(server, backup_lock):
    tenant = Tenant(server, max_bytes_stored=2 * PART)
    client = tenant.api("share")
    data = large_pprof(PART + 5000)
    upload = begin(client, len(data))
    for number in range(2):
        assert put(client, upload, number, data).status == 204
    made = client.post(f"/api/v1/uploads/{upload['id']}/complete")
    assert made.status == 201, made
    assert len(parts_of(server, upload)) == 2
    used = stored_bytes(server, tenant.id)
    assert used == expected_bytes(server, tenant.id)
    assert announce(client, 2 * PART - used).status == 201


def test_anonymous_parts_that_are_put_again_count_for_the_day(start_server):
    server = start_server("--anonymous-max-daily-bytes", str(3 * PART))
    client = server.anonymous()
    upload = begin(client, PART)
    token = {"X-Perfolio-Upload-Token": upload["upload_token"]}
    responses = [
        put(client, upload, 0, bytes([number]) * PART, headers=token) for number in range(8)
    ]
    assert [response.status for response in responses[:3]] == [204] * 3, responses
    assert responses[-1].status == 429 and "retry-after" in responses[-1].headers
