"""Tenants and people for tests: who asks, by token or by browser session."""

import http.client
import itertools
import os
import ssl

from conftest import Api

UNIQUE = itertools.count(1)
PASSWORD = "correct horse battery"


def unique(text):
    return f"{text}-{os.getpid()}-{next(UNIQUE)}"


def come_from(client, address):
    """Lets the client's next connection come from another address of 127.0.0.0/8."""
    context = ssl.create_default_context(cafile=str(client.server.ca_file))
    client.close()
    client.connection = http.client.HTTPSConnection(
        "localhost",
        client.server.port,
        context=context,
        timeout=client.timeout,
        source_address=(address, 0),
    )


class Browser(Api):
    """A client with a cookie session; unsafe requests carry its CSRF token."""

    csrf_token = None

    def request(self, method, path, **options):
        headers = dict(options.pop("headers", None) or {})
        if self.csrf_token and method not in ("GET", "HEAD", "OPTIONS"):
            headers.setdefault("X-CSRF-Token", self.csrf_token)
        return super().request(method, path, headers=headers, **options)

    def sign_in(self, **credentials):
        answer = self.post("/api/v1/session", json=credentials)
        if answer.status in (200, 201):
            self.csrf_token = answer.json()["csrf_token"]
        return answer


class Tenant:
    """A tenant of its own for one test, made by the operator."""

    def __init__(self, server, **quotas):
        self.server = server
        self.operator = server.api()
        answer = self.operator.post(
            "/api/v1/admin/tenants", json={"name": unique("team"), **quotas}
        )
        assert answer.status == 201, answer
        self.id = answer.json()["id"]
        self.name = answer.json()["name"]

    def add_user(self, role, **fields):
        """The answer for a new user with PASSWORD."""
        wish = {
            "email": unique(role) + "@example.com",
            "role": role,
            "password": PASSWORD,
            **fields,
        }
        answer = self.operator.post(f"/api/v1/admin/tenants/{self.id}/users", json=wish)
        assert answer.status == 201, answer
        return answer.json()

    def user(self, role):
        """A signed-in browser of a new user, who has no password; .user is the account."""
        account = self.add_user(role, password=None)
        browser = Browser(self.server)
        answer = browser.sign_in(code=account["login_url"].partition("#code=")[2])
        assert answer.status == 200, answer
        browser.user = account
        return browser

    def make_token(self, *scopes, **fields):
        wish = {"name": unique("token"), "scopes": list(scopes), **fields}
        answer = self.operator.post(f"/api/v1/admin/tenants/{self.id}/tokens", json=wish)
        assert answer.status == 201, answer
        return answer.json()

    def api(self, *scopes):
        """A client with a token of these scopes."""
        return Api(self.server, self.make_token(*scopes)["token"])
