"""One address cannot prevent others from signing in, whether its passwords are right or wrong."""

import threading

import pytest

import people
import sample_profiles
from conftest import REAL_SCRYPT
from test_shares import wait_for

pytestmark = pytest.mark.long

PER_MINUTE = 30
SHARE_PASSWORD = "open sesame"


def client_from(server, address):
    client = server.anonymous()
    people.come_from(client, address)
    return client


def protected_share(server, address):
    response = client_from(server, address).post(
        "/api/v1/shares?visibility=password",
        sample_profiles.FOLDED,
        headers={"X-Perfolio-Password": SHARE_PASSWORD},
    )
    assert response.status == 201, response
    return f"/p/{response.json()['id']}/raw"


class Attack:
    """Clients of several addresses that open a share with its right password and create further
    shares with passwords, as often as they can."""

    def __init__(self, server, addresses):
        self.statuses = []
        self.should_stop = threading.Event()
        self.threads = [
            threading.Thread(target=act, args=(client_from(server, address),))
            for address in addresses
            for act in (self.read, self.create)
        ]
        self.path = protected_share(server, addresses[0])
        for thread in self.threads:
            thread.start()

    def read(self, client):
        while not self.should_stop.is_set():
            headers = {"X-Perfolio-Password": SHARE_PASSWORD}
            self.statuses.append(client.get(self.path, headers=headers).status)

    def create(self, client):
        while not self.should_stop.is_set():
            headers = {"X-Perfolio-Password": SHARE_PASSWORD}
            url = "/api/v1/shares?visibility=password"
            self.statuses.append(client.post(url, sample_profiles.FOLDED, headers=headers).status)

    def stop(self):
        self.should_stop.set()
        for thread in self.threads:
            thread.join()


def test_passwords_of_shares_do_not_delay_signing_in(start_server):
    server = start_server("--passwords-per-minute", "1000000", environment=REAL_SCRYPT)
    account = people.Tenant(server).add_user("member")
    attack = Attack(server, [f"127.0.3.{number}" for number in range(8)])
    try:
        wait_for(lambda: len(attack.statuses) >= 100)
        for number in range(5):
            browser = people.Browser(server)
            people.come_from(browser, f"127.0.1.{number}")
            response = browser.sign_in(email=account["email"], password=people.PASSWORD)
            assert response.status == 200, response
    finally:
        attack.stop()
    assert set(attack.statuses) <= {200, 201, 429, 503}, set(attack.statuses)


def test_a_right_password_is_hashed_once(start_server):
    """Twenty requests with the same right password take less CPU time than three hashes."""
    server = start_server("--passwords-per-minute", "1000000", environment=REAL_SCRYPT)
    client = client_from(server, "127.0.0.3")
    headers = {"X-Perfolio-Password": SHARE_PASSWORD}
    before = server.cpu_seconds()
    path = protected_share(server, "127.0.0.3")  # one hash
    assert client.get(path, headers=headers).status == 200  # another one
    two_hashes = server.cpu_seconds() - before
    before = server.cpu_seconds()
    for _ in range(20):
        assert client.get(path, headers=headers).status == 200
    assert server.cpu_seconds() - before < 1.5 * two_hashes
    assert client.get(path, headers={"X-Perfolio-Password": "wrong"}).status == 401


def test_passwords_of_an_address_are_limited_per_minute(start_server):
    server = start_server("--passwords-per-minute", str(PER_MINUTE))
    path = protected_share(server, "127.0.0.3")
    client = client_from(server, "127.0.0.3")
    responses = [
        client.get(path, headers={"X-Perfolio-Password": SHARE_PASSWORD})
        for _ in range(3 * PER_MINUTE)
    ]
    refused = [response for response in responses if response.status != 200]
    assert {response.status for response in refused} == {429}
    assert "from your address" in refused[0].json()["detail"]
    assert int(refused[0].headers["retry-after"]) >= 1
    other = client_from(server, "127.0.0.4")
    assert other.get(path, headers={"X-Perfolio-Password": SHARE_PASSWORD}).status == 200


def test_a_browser_that_has_signed_in_before_is_exempt(start_server):
    server = start_server("--passwords-per-minute", str(PER_MINUTE))
    account = people.Tenant(server).add_user("member")
    browser = people.Browser(server)
    credentials = {"email": account["email"], "password": people.PASSWORD}
    assert browser.sign_in(**credentials).status == 200
    path = protected_share(server, "127.0.0.1")
    statuses = [
        server.anonymous().get(path, headers={"X-Perfolio-Password": SHARE_PASSWORD}).status
        for _ in range(3 * PER_MINUTE)
    ]
    assert statuses[-1] == 429
    assert browser.sign_in(**credentials).status == 200
