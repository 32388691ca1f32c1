"""Password guesses: the server limits them, they lock out no other user, and the owner of the
account can see them."""

import time

import pytest

from people import PASSWORD, Browser, Tenant, come_from

DEVICE, SESSION = "__Host-perfolio_device", "__Host-perfolio_session"
LONG = "x" * 257  # longer than any password: refused without the cost of a hash


def browser_at(server, address, cookies=None):
    browser = Browser(server, cookies=cookies)
    come_from(browser, address)
    return browser


def sign_in(server, address, account, password, cookies=None):
    """Signs in; retries while the server is at its limit of concurrent password hashes (503)."""
    deadline = time.monotonic() + 120
    while True:
        browser = browser_at(server, address, cookies)
        response = browser.sign_in(email=account["email"], password=password)
        browser.close()
        if response.status != 503 or time.monotonic() > deadline:
            return browser, response


@pytest.fixture(scope="module")
def attacked(cluster_template, tmp_path_factory):
    """A server to which each of 100 addresses has sent one wrong password for one account."""
    import conftest

    folder = conftest.make_folder()
    conftest.copy_template(cluster_template, folder / "data")
    server = conftest.Server(folder / "data").start()
    server.account = Tenant(server).add_user("member")
    server.owner, response = sign_in(server, "127.0.3.1", server.account, PASSWORD)
    assert response.status == 200
    for number in range(100):
        _, response = sign_in(server, f"127.0.1.{number + 1}", server.account, "wrong password")
        assert response.status == 401, response
    yield server
    assert server.stop() == 0
    conftest.shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.long
def test_the_right_password_works_from_other_addresses_during_an_attack(attacked):
    for number in range(3):
        _, response = sign_in(attacked, f"127.0.2.{number + 1}", attacked.account, PASSWORD)
        assert response.status == 200, response


def test_the_owner_of_the_account_sees_the_guessing_addresses(attacked):
    browser, response = sign_in(
        attacked, "127.0.2.9", Tenant(attacked).add_user("member"), PASSWORD
    )
    assert browser.get("/api/v1/failed-sign-ins").json() == {
        "since": None,
        "addresses": [],
        "count": 0,
        "is_complete": True,
    }
    seen = attacked.owner.get("/api/v1/failed-sign-ins").json()
    assert seen["count"] == 100 and seen["is_complete"] is False
    assert {each["address"] for each in seen["addresses"]} == {
        f"127.0.1.{i + 1}" for i in range(100)
    }
    assert all(each["count"] == 1 and each["last_at"] for each in seen["addresses"])
    assert attacked.api().get("/api/v1/failed-sign-ins").status == 403
    assert attacked.anonymous().get("/api/v1/failed-sign-ins").status == 401


def test_a_session_shows_failures_since_the_previous_session(server):
    account = Tenant(server).add_user("member")
    assert sign_in(server, "127.0.4.1", account, PASSWORD)[1].status == 200
    assert sign_in(server, "127.0.4.2", account, "wrong password")[1].status == 401
    second, response = sign_in(server, "127.0.4.1", account, PASSWORD)
    seen = second.get("/api/v1/failed-sign-ins").json()
    assert [(each["address"], each["count"]) for each in seen["addresses"]] == [("127.0.4.2", 1)]
    third, response = sign_in(server, "127.0.4.1", account, PASSWORD)
    assert third.get("/api/v1/failed-sign-ins").json()["count"] == 0
    assert sign_in(server, "127.0.4.3", account, "wrong password")[1].status == 401
    assert third.get("/api/v1/failed-sign-ins").json()["count"] == 1


def test_a_wrong_password_is_recorded_with_and_without_an_account(server):
    account = Tenant(server).add_user("member")
    with server.cursor() as cursor:
        cursor.execute(
            "INSERT INTO failed_sign_in (tenant_id, user_id) SELECT 1, NULL FROM "
            "generate_series(1, 150)"
        )

        def written(email, address):
            cursor.execute("SELECT coalesce(max(id), 0) FROM failed_sign_in")
            before = cursor.fetchone()
            assert sign_in(server, address, {"email": email}, "wrong password")[1].status == 401
            cursor.execute(
                "SELECT tenant_id, user_id FROM failed_sign_in WHERE id > %s AND address = %s",
                [before, address],
            )
            return cursor.fetchall()

        [(tenant_id, user_id)] = written(account["email"], "127.0.6.1")
        assert tenant_id != 1 and user_id
        assert written("no-account@example.com", "127.0.6.2") == [(1, None)]
        cursor.execute("SELECT count(*) FROM failed_sign_in WHERE user_id IS NULL")
        assert cursor.fetchone() == (100,), "the server keeps as many rows as for an account"


def wrong_until_refused(server, address, account):
    for _ in range(40):
        _, response = sign_in(server, address, account, "wrong password")
        if response.status == 429:
            return response
        assert response.status == 401
    return pytest.fail("40 wrong passwords are not refused")


def test_a_known_browser_is_exempt_from_the_limit_of_its_address(start_server):
    server = start_server()
    tenant = Tenant(server)
    account, other = tenant.add_user("member"), tenant.add_user("member")
    known, response = sign_in(server, "127.0.2.1", account, PASSWORD)
    assert response.status == 200
    device = known.cookies[DEVICE]
    cookie = next(value for name, value in response.fields if value.startswith(DEVICE))
    assert all(word in cookie for word in ("Secure", "HttpOnly", "SameSite=Strict", "Path=/"))
    forged = device[:-1] + ("0" if device[-1] != "0" else "1")
    for value in (forged, "1.x.y", f"1.{device.partition('.')[2]}", "-", None):
        cookies = {DEVICE: value} if value else {}
        # The wait doubles, until it is longer than the two requests take.
        for _ in range(40):
            refused = wrong_until_refused(server, "127.0.2.1", account)
            _, response = sign_in(server, "127.0.2.1", account, PASSWORD, cookies)
            if response.status == 429:
                break
        assert response.status == 429 and "from your address" in refused.json()["detail"]
    browser, response = sign_in(server, "127.0.2.1", account, PASSWORD, {DEVICE: device})
    assert response.status == 200 and browser.cookies[DEVICE] != device
    # The cookie is valid for one account only.
    wrong_until_refused(server, "127.0.2.1", other)
    for _ in range(40):
        wrong_until_refused(server, "127.0.2.1", other)
        _, response = sign_in(server, "127.0.2.1", other, PASSWORD, {DEVICE: device})
        if response.status == 429:
            break
    assert response.status == 429


def test_sign_in_ends_the_session_of_the_sent_cookie(server):
    first, second = Tenant(server).add_user("member"), Tenant(server).add_user("member")
    browser, response = sign_in(server, "127.0.4.1", first, PASSWORD)
    assert response.status == 200
    before = dict(browser.cookies)
    old = browser_at(server, "127.0.4.1", before)
    assert old.get("/api/v1/session").json()["kind"] == "user"
    # The next account may belong to another team.
    browser, response = sign_in(server, "127.0.4.1", second, PASSWORD, before)
    assert response.status == 200 and browser.cookies[SESSION] != before[SESSION]
    assert (
        browser_at(server, "127.0.4.1", before).get("/api/v1/session").json()["kind"] == "anonymous"
    )
    assert browser.get("/api/v1/session").json()["user"]["email"] == second["email"]


def test_guesses_at_a_share_password_do_not_block_other_addresses(server, admin):
    made = admin.post(
        "/api/v1/shares",
        b"main;work 10\n",
        query={"visibility": "password"},
        headers={"X-Perfolio-Password": "open sesame"},
    ).json()
    path = f"/api/v1/shares/{made['id']}"
    for number in range(20):
        guesser = browser_at(server, f"127.0.6.{number + 1}")
        assert guesser.get(path, headers={"X-Perfolio-Password": LONG}).status == 401
    reader = browser_at(server, "127.0.7.1")
    assert reader.get(path, headers={"X-Perfolio-Password": "open sesame"}).status == 200
