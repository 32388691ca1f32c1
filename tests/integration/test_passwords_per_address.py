"""One address cannot prevent others from signing in, whether its passwords are right or wrong."""

import threading

import pytest

import people
import sample_profiles
from conftest import REAL_SCRYPT

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
    """Opens the given shares with the right password, on several connections of one address."""

    def __init__(self, server, address, paths):
        self.statuses = []
        self.should_stop = threading.Event()
        self.has_waited = (
            threading.Event()
        )  # a request was refused because another request of the address runs
        self.threads = [
            threading.Thread(target=self.run, args=(client_from(server, address), path))
            for path in paths
        ]
        for thread in self.threads:
            thread.start()

    def run(self, client, path):
        while not self.should_stop.is_set():
            response = client.get(path, headers={"X-Perfolio-Password": SHARE_PASSWORD})
            self.statuses.append(response.status)
            if response.status == 503:
                self.has_waited.set()

    def stop(self):
        self.should_stop.set()
        for thread in self.threads:
            thread.join()


def test_right_passwords_of_one_address_do_not_delay_other_addresses(start_server):
    server = start_server("--passwords-per-minute", "1000000", environment=REAL_SCRYPT)
    account = people.Tenant(server).add_user("member")
    others_share = protected_share(server, "127.0.0.9")
    paths = [protected_share(server, "127.0.0.3") for _ in range(4)]
    attack = Attack(server, "127.0.0.3", paths)
    try:
        assert attack.has_waited.wait(60)
        for number in range(2):
            browser = people.Browser(server)
            people.come_from(browser, f"127.0.1.{number}")
            response = browser.sign_in(email=account["email"], password=people.PASSWORD)
            assert response.status == 200, response
            response = client_from(server, f"127.0.2.{number}").get(
                others_share, headers={"X-Perfolio-Password": SHARE_PASSWORD}
            )
            assert response.status == 200, response
    finally:
        attack.stop()


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
