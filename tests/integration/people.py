"""Tenants, users and their clients for tests: clients with a token or a browser session."""

import http.client
import itertools
import os

from conftest import Api

UNIQUE = itertools.count(1)
PASSWORD = "correct horse battery"


def unique(text):
    return f"{text}-{os.getpid()}-{next(UNIQUE)}"


def come_from(client, address):
    """Makes the client's next connection come from another address of 127.0.0.0/8."""
    client.close()
    client.connection = http.client.HTTPSConnection(
        "localhost",
        client.server.port,
        context=client.server.trust(),
        timeout=client.timeout,
        source_address=(address, 0),
    )


class Browser(Api):
    """A client with a cookie session, whose unsafe requests carry its CSRF token."""

    csrf_token = None

    def request(self, method, path, **options):
        headers = dict(options.pop("headers", None) or {})
        if self.csrf_token and method not in ("GET", "HEAD", "OPTIONS"):
            headers.setdefault("X-CSRF-Token", self.csrf_token)
        return super().request(method, path, headers=headers, **options)

    def sign_in(self, **credentials):
        response = self.post("/api/v1/session", json=credentials)
        if response.status in (200, 201):
            self.csrf_token = response.json()["csrf_token"]
        return response


class Tenant:
    """A tenant that the operator creates for one test."""

    def __init__(self, server, **quotas):
        self.server = server
        self.operator = server.api()
        response = self.operator.post(
            "/api/v1/admin/tenants", json={"name": unique("team"), **quotas}
        )
        assert response.status == 201, response
        self.id = response.json()["id"]
        self.name = response.json()["name"]

    def limit(self, **quotas):
        """Changes quotas of the tenant."""
        response = self.operator.patch(f"/api/v1/admin/tenants/{self.id}", json=quotas)
        assert response.status == 200, response

    def add_user(self, role, **fields):
        """Creates a user with PASSWORD; returns the JSON of the response."""
        body = {
            "email": unique(role) + "@example.com",
            "role": role,
            "password": PASSWORD,
            **fields,
        }
        response = self.operator.post(f"/api/v1/admin/tenants/{self.id}/users", json=body)
        assert response.status == 201, response
        return response.json()

    def user(self, role):
        """A signed-in browser of a new user without a password; .user is the account."""
        account = self.add_user(role, password=None)
        browser = Browser(self.server)
        response = browser.sign_in(code=account["login_url"].partition("#code=")[2])
        assert response.status == 200, response
        browser.user = account
        return browser

    def make_token(self, *scopes, **fields):
        body = {"name": unique("token"), "scopes": list(scopes), **fields}
        response = self.operator.post(f"/api/v1/admin/tenants/{self.id}/tokens", json=body)
        assert response.status == 201, response
        return response.json()

    def api(self, *scopes):
        """A client with a token of these scopes."""
        return Api(self.server, self.make_token(*scopes)["token"])
