"""Storage quotas hold for concurrent requests, and refusals advise the client."""

import os
import random
import threading

import sample_profiles as samples
from conftest import ROOT
from people import Tenant
from test_shares import problem, query_one, share, wait_for
from test_uploads import TEXTS, begin, expected_bytes, put, stored_bytes

MIB = 1 << 20


def waiting_sessions(server):
    return query_one(server, "SELECT count(DISTINCT pid) FROM pg_locks WHERE NOT granted")[0]


def all_at_once(server, tenant_id, count, send):
    """Runs send() in count threads; returns the responses. A lock holds all requests in their
    transactions, so that each has passed all earlier checks when the first one commits."""
    responses = []

    def run():
        responses.append(send())

    threads = [threading.Thread(target=run) for _ in range(count)]
    gate = server.database()
    try:
        gate.autocommit = False
        gate.cursor().execute("SELECT 1 FROM tenant WHERE id = %s FOR UPDATE", (tenant_id,))
        for thread in threads:
            thread.start()
        wait_for(lambda: waiting_sessions(server) == count)
    finally:
        gate.rollback()
        gate.close()
        for thread in threads:
            thread.join()
    return responses


def share_objects(server):
    return set(server.objects.keys("share/"))


def test_parallel_posts_do_not_exceed_the_storage_quota(server):
    tenant = Tenant(server)
    client = tenant.api("share")
    share(client)
    one = stored_bytes(server, tenant.id)
    assert one == expected_bytes(server, tenant.id)
    tenant.limit(max_bytes_stored=5 * one // 2)
    objects = share_objects(server)
    # A tenant has a quarter of the eight workers for uploads (api/upload/upload_slot.h).
    responses = all_at_once(server, tenant.id, 2, lambda: tenant_post(server, client))
    assert sorted(response.status for response in responses) == [201, 429], responses
    for response in responses:
        if response.status == 429:
            document = problem(
                response,
                429,
                "The storage quota is used up: ",
                f"{2 * one} of {5 * one // 2} bytes",
                "; delete shares or ask the operator for more",
            )
            assert document["type"].endswith("quota") and "SQLSTATE" not in document["detail"]
            assert response.headers["retry-after"] == "3600"
    assert stored_bytes(server, tenant.id) == 2 * one
    new = share_objects(server) - objects  # objects of other tests may disappear meanwhile
    assert len(new) == 1, "a refused request left an object behind"
    rows = query_one(server, "SELECT count(*) FROM share WHERE tenant_id = %s", tenant.id)
    assert rows == (2,)


def tenant_post(server, client):
    own = client.with_token(client.token)
    response = own.post("/api/v1/shares", samples.FOLDED)
    own.close()
    return response


def test_parallel_announcements_do_not_exceed_the_storage_quota(server):
    tenant = Tenant(server, max_bytes_stored=25 * MIB)
    client = tenant.api("share")

    def announce():
        own = client.with_token(client.token)
        response = own.post("/api/v1/uploads", json={"size": 10 * MIB})
        own.close()
        return response

    responses = all_at_once(server, tenant.id, 4, announce)
    assert sorted(response.status for response in responses) == [201, 201, 429, 429], responses
    assert stored_bytes(server, tenant.id) == 20 * MIB
    rows = query_one(server, "SELECT count(*) FROM upload WHERE tenant_id = %s", tenant.id)
    assert rows == (2,)


def test_charges_of_all_sizes_do_not_exceed_the_quota(server):
    """Small charges far from the limit use another code path than large charges and those near
    it."""
    quota = 2048 * MIB
    tenant = Tenant(server, max_bytes_stored=quota)
    refused = []

    def charge(seed):
        import psycopg2

        sizes = random.Random(seed)
        connection = server.database("perfolio_server")
        cursor = connection.cursor()
        cursor.execute("SELECT set_config('app.tenant', %s, false)", (str(tenant.id),))
        while True:
            size = sizes.choice((1, MIB, 5 * MIB, 8 * MIB, 8 * MIB + 1, 30 * MIB))
            try:
                cursor.execute("SELECT tenant_usage_charge(%s, %s, 1)", (tenant.id, size))
            except psycopg2.Error as error:
                refused.append((error.pgcode, size))
                break
        connection.close()

    threads = [threading.Thread(target=charge, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {code for code, _ in refused} == {"53400"} and len(refused) == 6
    assert quota - 30 * MIB * 6 < stored_bytes(server, tenant.id) <= quota


def test_uploads_far_from_the_limit_do_not_wait_for_each_other(server):
    tenant = Tenant(server)
    first, second = (server.database("perfolio_server") for _ in range(2))
    try:
        for connection, size in ((first, 1000), (second, 2000)):
            connection.autocommit = False
            cursor = connection.cursor()
            cursor.execute("SET LOCAL lock_timeout = '20s'")
            cursor.execute("SELECT set_config('app.tenant', %s, true)", (str(tenant.id),))
            cursor.execute("SELECT tenant_usage_charge(%s, %s, %s)", (tenant.id, size, 1 << 40))
        first.commit()
        second.commit()
    finally:
        first.close()
        second.close()
    assert stored_bytes(server, tenant.id) == 3000


def reply_behind_the_quota_lock(server, tenant, send):
    """Returns the response to send(), whose charge waited for another charge of the tenant. It
    must not hold a row of tenant_usage while it waits: the other charge may need the same row."""
    responses = []
    holder = server.database()
    try:
        cursor = holder.cursor()
        cursor.execute(
            "INSERT INTO tenant_usage SELECT %s, slot, 0 FROM generate_series(0, 31) AS slot"
            " ON CONFLICT DO NOTHING",
            (tenant.id,),
        )
        holder.autocommit = False
        cursor.execute(
            "SELECT pg_advisory_xact_lock(hashtextextended('tenant_usage', %s))", (tenant.id,)
        )
        thread = threading.Thread(target=lambda: responses.append(send()))
        thread.start()
        try:
            wait_for(lambda: waiting_sessions(server) == 1)
            cursor.execute(
                "SELECT slot FROM tenant_usage WHERE tenant_id = %s FOR UPDATE NOWAIT", (tenant.id,)
            )
            assert len(cursor.fetchall()) == 32
        finally:
            holder.rollback()
            thread.join()
    finally:
        holder.close()
    return responses[0]


def test_a_part_that_is_put_again_waits_for_the_quota_without_locking_a_row(server):
    tenant = Tenant(server, max_bytes_stored=10 * MIB)
    client = tenant.api("share")
    upload = begin(client, 1000)
    assert put(client, upload, 0, b"a" * 1000).status == 204
    again = reply_behind_the_quota_lock(server, tenant, lambda: put(client, upload, 0, b"b" * 1000))
    assert again.status == 204, again
    assert stored_bytes(server, tenant.id) == 1000


# ---- texts in rows ----


def test_the_texts_of_a_share_count_towards_the_quota(server):
    tenant = Tenant(server, max_bytes_stored=30000)
    client = tenant.api("share")
    made = share(client, title="é", description="d" * 20000, label="k=v", filename="x.folded")
    used = stored_bytes(server, tenant.id)
    assert 20000 < used == expected_bytes(server, tenant.id) < 22000
    objects = share_objects(server)
    refused = client.post("/api/v1/shares", samples.FOLDED, query={"description": "d" * 10000})
    problem(refused, 429, f"{used} of 30000 bytes", "delete shares")
    assert stored_bytes(server, tenant.id) == used
    assert not share_objects(server) - objects, "a refused request left an object behind"
    upload = begin(client, len(samples.FOLDED))
    assert put(client, upload, 0, samples.FOLDED).status == 204
    complete = f"/api/v1/uploads/{upload['id']}/complete"
    problem(client.post(complete, query={"description": "d" * 10000}), 429, "30000 bytes")
    assert client.post(complete, query={"description": "d" * 5000}).status == 201
    assert 25000 < stored_bytes(server, tenant.id) == expected_bytes(server, tenant.id) < 30000
    assert client.delete(f"/api/v1/shares/{made['id']}").status == 204
    wait_for(lambda: stored_bytes(server, tenant.id) < used)
    assert stored_bytes(server, tenant.id) == expected_bytes(server, tenant.id)


def test_an_edit_charges_the_growth_of_the_texts_and_gives_back_the_rest(server):
    tenant = Tenant(server, max_bytes_stored=40000)
    client = tenant.api("share")
    made = share(client, title="before", description="d" * 1000)
    path = f"/api/v1/shares/{made['id']}"
    first = stored_bytes(server, tenant.id)
    assert client.patch(path, json={"description": "é" * 15000}).status == 200
    assert stored_bytes(server, tenant.id) == expected_bytes(server, tenant.id) == first + 29000
    refused = client.patch(path, json={"title": "after", "description": "é" * 20000})
    problem(refused, 429, f"{first + 29000} of 40000 bytes")
    assert client.get(path).json()["title"] == "before"
    refused = server.anonymous().patch(
        path,
        json={"description": "é" * 20000},
        headers={"X-Perfolio-Delete-Token": made["delete_token"]},
    )
    detail = problem(refused, 429, "quota of the share's team")["detail"]
    assert "40000" not in detail, "the team's size is shown to others"
    assert stored_bytes(server, tenant.id) == expected_bytes(server, tenant.id) == first + 29000
    assert client.patch(path, json={"title": "", "description": ""}).status == 200
    assert stored_bytes(server, tenant.id) == expected_bytes(server, tenant.id) == first - 1006
    assert client.patch(path, json={"visibility": "public"}).status == 200
    assert stored_bytes(server, tenant.id) == first - 1006
    assert client.delete(path).status == 204
    wait_for(lambda: stored_bytes(server, tenant.id) == 0)
    row = "SELECT state, raw_bytes, row_bytes FROM share WHERE id = %s"
    assert query_one(server, row, made["id"]) == ("gone", 0, 0)


def test_parallel_edits_of_a_share_are_charged_exactly(server):
    tenant = Tenant(server)
    client = tenant.api("share")
    path = f"/api/v1/shares/{share(client)['id']}"
    sizes = iter((5000, 300, 7000))

    def edit():
        own = client.with_token(client.token)
        response = own.patch(path, json={"description": "d" * next(sizes)})
        own.close()
        return response

    responses = all_at_once(server, tenant.id, 3, edit)
    assert [response.status for response in responses] == [200] * 3, responses
    assert stored_bytes(server, tenant.id) == expected_bytes(server, tenant.id)


def test_the_texts_of_anonymous_shares_count_in_the_bytes_of_a_day(start_server):
    server = start_server("--anonymous-max-daily-bytes", "20KiB", "--trust-forwarded-for", "yes")
    anonymous = server.anonymous()

    def upload(address, **query):
        headers = {"X-Forwarded-For": address}
        return anonymous.post("/api/v1/shares", samples.FOLDED, query=query, headers=headers)

    described = [upload("192.0.2.1", description="d" * 15000) for _ in range(3)]
    assert [response.status for response in described] == [201, 201, 429]
    problem(described[2], 429, "anonymous-max-daily-bytes", "sign in")
    made = upload("192.0.2.2").json()

    def edit(description, client=anonymous):
        return client.patch(
            f"/api/v1/shares/{made['id']}",
            json={"description": description},
            headers={
                "X-Forwarded-For": "192.0.2.2",
                "X-Perfolio-Delete-Token": made["delete_token"],
            },
        )

    assert [edit(text).status for text in ("d" * 15000, "", "d")] == [200, 200, 200]
    problem(edit("d" * 15000), 429, "anonymous-max-daily-bytes")
    problem(edit("d" * 15000, server.api()), 429, "anonymous-max-daily-bytes")
    large = samples.FOLDED * (30000 // len(samples.FOLDED))
    alone = anonymous.post("/api/v1/shares", large, headers={"X-Forwarded-For": "192.0.2.3"})
    assert alone.status == 201, "a single upload is never too large"
    assert stored_bytes(server, 1) == expected_bytes(server, 1)


def test_texts_that_are_not_stored_do_not_count_in_the_bytes_of_a_day(start_server):
    server = start_server("--anonymous-max-bytes", "8KiB", "--trust-forwarded-for", "yes")
    anonymous = server.anonymous()
    made = share(anonymous)
    path = f"/api/v1/shares/{made['id']}"
    other = {"X-Forwarded-For": "192.0.2.2"}
    headers = {"X-Perfolio-Delete-Token": made["delete_token"], **other}
    member = Tenant(server).user("member")
    text = "d" * 8192
    for _ in range(5):
        for refused in (
            anonymous.patch(path, json={"description": text}, headers=headers),
            member.post(path + "/comments", json={"text": text}, headers=other),
        ):
            assert refused.status == 429 and "quota" in refused.json()["type"], refused
            assert "anonymous-max-daily-bytes" not in refused.json()["detail"], refused
    for description in ("d" * 300, "", "d" * 60):
        edit = {"description": description}
        assert anonymous.patch(path, json=edit, headers=headers).status == 200


def test_an_upload_larger_than_the_quota_is_refused_as_too_large(start_server):
    server = start_server("--tenant-max-bytes", "200KiB", "--anonymous-max-bytes", "100KiB")
    body = samples.FOLDED + b"x 1\n" * 60000
    for client, bytes_, setting in (
        (server.api(), 204800, "tenant-max-bytes"),
        (server.anonymous(), 102400, "anonymous-max-bytes"),
    ):
        for response in (
            client.post("/api/v1/shares", body),
            client.post("/api/v1/uploads", json={"size": len(body)}),
        ):
            document = problem(
                response, 413, str(len(body)), f"storage quota has {bytes_}", setting
            )
            assert document["type"].endswith("too-large") and "retry-after" not in response.headers
    own = Tenant(server, max_bytes_stored=1000).api("share")
    problem(own.post("/api/v1/shares", body), 413, "1000", "max_bytes_stored")


def test_anonymous_clients_are_advised_to_sign_in(start_server):
    server = start_server("--anonymous-max-bytes", "1KiB")
    anonymous = server.anonymous()
    assert anonymous.post("/api/v1/uploads", json={"size": 250}).status == 201
    for response in (
        anonymous.post("/api/v1/uploads", json={"size": 200}),
        anonymous.post("/api/v1/shares", b"main;x 1\n" * 30),
    ):
        detail = problem(response, 429, "250 of 1024 bytes", "a quarter", "sign in")["detail"]
        assert "delete" not in detail and "operator" not in detail


def test_an_anonymous_address_stores_a_limited_number_of_bytes_in_a_day(start_server):
    """One address must not use up the storage of all anonymous shares."""
    server = start_server("--anonymous-max-daily-bytes", "20KiB", "--trust-forwarded-for", "yes")
    anonymous = server.anonymous()
    body = samples.FOLDED * (6000 // len(samples.FOLDED) + 1)

    def upload(address, client=anonymous):
        return client.post("/api/v1/shares", body, headers={"X-Forwarded-For": address})

    assert [upload("192.0.2.1").status for _ in range(4)] == [201, 201, 201, 429]
    refused = upload("192.0.2.1")
    problem(refused, 429, "anonymous-max-daily-bytes", "sign in", "try again in")
    assert 0 < int(refused.headers["retry-after"]) < 86400
    problem(announce_from(anonymous, "192.0.2.1", 6000), 429, "anonymous-max-daily-bytes")
    assert upload("192.0.2.2").status == 201, "another address"
    assert upload("192.0.2.1", server.api()).status == 201, "with an account"
    assert announce_from(anonymous, "192.0.2.3", MIB).status == 201, "a single upload"
    problem(upload("192.0.2.3"), 429, "anonymous-max-daily-bytes")
    pair = [upload("192.0.2.4").json()["id"] for _ in range(2)]
    for _ in range(20):  # of the same two shares
        merged = anonymous.post(
            "/api/v1/merge", json={"shares": pair}, headers={"X-Forwarded-For": "192.0.2.1"}
        )
        if merged.status != 201:
            break
    problem(merged, 429, "anonymous-max-daily-bytes")


def announce_from(client, address, size):
    return client.post("/api/v1/uploads", json={"size": size}, headers={"X-Forwarded-For": address})


def test_announced_bytes_of_an_anonymous_address_are_limited(start_server):
    """Without the limit, one address could use up the quota of all anonymous shares without sending
    a byte."""
    server = start_server(
        "--anonymous-max-announced-bytes",
        "20MiB",
        "--trust-forwarded-for",
        "yes",
        "--anonymous-upload-lifetime",
        "10m",
        "--anonymous-max-bytes",
        "20GiB",
        "--jobs-interval",
        "1s",
    )
    anonymous = server.anonymous()
    here = {"X-Forwarded-For": "192.0.2.1"}
    first = announce_from(anonymous, "192.0.2.1", 12 * MIB)
    assert first.status == 201
    refused = announce_from(anonymous, "192.0.2.1", 10 * MIB)
    detail = problem(
        refused, 429, str(12 * MIB), str(20 * MIB), "anonymous-max-announced-bytes", "sign in"
    )["detail"]
    assert "SQLSTATE" not in detail and refused.headers["retry-after"] == "600"
    assert stored_bytes(server, 1) == 12 * MIB
    assert announce_from(anonymous, "192.0.2.2", 10 * MIB).status == 201, "another address"
    assert (
        server.api().post("/api/v1/uploads", json={"size": 30 * MIB}, headers=here).status == 201
    ), "with an account"
    # Received bytes no longer count as announced, even if the part is sent twice.
    upload = first.json()
    token = {"X-Perfolio-Upload-Token": upload["upload_token"], **here}
    for _ in range(2):
        assert put(anonymous, upload, 0, bytes(12 * MIB), headers=token).status == 204
    second = announce_from(anonymous, "192.0.2.1", 12 * MIB)
    assert second.status == 201
    problem(announce_from(anonymous, "192.0.2.1", 1), 429, str(20 * MIB))
    # Deleted and expired uploads free announced bytes.
    assert anonymous.delete(f"/api/v1/uploads/{upload['id']}", headers=token).status == 204
    assert announce_from(anonymous, "192.0.2.1", MIB).status == 201
    query_one(server, "UPDATE upload SET expires_at = now() WHERE id = %s", second.json()["id"])
    wait_for(lambda: announce_from(anonymous, "192.0.2.1", 19 * MIB).status == 201)


def test_an_ipv6_network_counts_as_one_address_and_may_announce_one(start_server):
    server = start_server("--anonymous-max-announced-bytes", "1MiB", "--trust-forwarded-for", "yes")
    anonymous = server.anonymous()
    assert announce_from(anonymous, "2001:db8:1:2::1", 200 * MIB).status == 201
    problem(announce_from(anonymous, "2001:db8:1:2:ffff::9", 1), 429)
    assert announce_from(anonymous, "2001:db8:2:3::1", 1).status == 201


def test_one_network_cannot_use_up_the_storage_of_all_anonymous_shares(start_server):
    """A customer has 65,536 networks of 64 bits."""
    server = start_server(
        "--anonymous-max-bytes",
        "4MiB",
        "--trust-forwarded-for",
        "yes",
        "--anonymous-uploads-per-minute",
        "1000",
    )
    anonymous = server.anonymous()

    def upload(address, bytes_):
        body = b"main;%s 1\n" % os.urandom(bytes_ // 2).hex().encode()
        headers = {"X-Forwarded-For": address}
        return anonymous.post("/api/v1/shares", body, headers=headers).status

    of_site = [upload(f"2001:db8:1:{n:x}::1", 100_000) for n in range(40)]
    assert of_site[0] == 201 and set(of_site[5:]) == {429}
    assert stored_bytes(server, 1) < MIB
    # Many networks together leave a part for others, too.
    for n in range(60):
        upload(f"2001:db8:{n + 2:x}::1", 200_000)
    assert stored_bytes(server, 1) < 4 * MIB
    assert upload("192.0.2.1", 2000) == 201


def test_parallel_announcements_of_an_address_share_the_limit(start_server):
    server = start_server("--anonymous-max-announced-bytes", "25MiB")

    def announce():
        client = server.anonymous()
        response = client.post("/api/v1/uploads", json={"size": 10 * MIB})
        client.close()
        return response

    responses = all_at_once(server, 1, 4, announce)
    assert sorted(response.status for response in responses) == [201, 201, 429, 429], responses
    assert stored_bytes(server, 1) == 20 * MIB


def test_a_completed_anonymous_upload_no_longer_counts_as_announced(start_server):
    server = start_server("--anonymous-max-announced-bytes", "1KiB")
    anonymous = server.anonymous()
    body = samples.FOLDED * (600 // len(samples.FOLDED) + 1)
    for _ in range(3):
        upload = begin(anonymous, len(body))
        token = {"X-Perfolio-Upload-Token": upload["upload_token"]}
        assert put(anonymous, upload, 0, body, headers=token).status == 204
        assert (
            anonymous.post(f"/api/v1/uploads/{upload['id']}/complete", headers=token).status == 201
        )
