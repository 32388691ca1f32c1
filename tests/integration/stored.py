"""The objects of a server under test, in its data folder or in a bucket: tests read and damage
them.

    server.objects.keys("segment/")      a set
    server.objects.read(key), .write(key, bytes), .has(key), .oldest("segment/")

If PERFOLIO_TEST_S3_ENDPOINT and the other PERFOLIO_TEST_S3_ variables are set (by
tests/s3/radosgw.sh), all servers store their objects in a bucket.
"""

import datetime
import hashlib
import hmac
import http.client
import os
import re
import urllib.parse
import xml.etree.ElementTree

PREFIX = "PERFOLIO_TEST_S3_"


class Folder:
    def __init__(self, path):
        self.path = path

    def keys(self, prefix=""):
        return {
            str(path.relative_to(self.path))
            for path in self.path.rglob("*")
            if path.is_file()
            and str(path.relative_to(self.path)).startswith(prefix)
            and path.name != ".held"
        }

    def has(self, key):
        return (self.path / key).exists()

    def read(self, key):
        return (self.path / key).read_bytes()

    def write(self, key, data):
        (self.path / key).chmod(0o600)
        (self.path / key).write_bytes(data)

    def oldest(self, prefix):
        return min(self.keys(prefix), key=lambda key: (self.path / key).stat().st_mtime_ns)


class Bucket:
    """Signs with Signature Version 4 as specified, independently of the server under test."""

    def __init__(self, prefix, environment=os.environ):
        def take(name):
            return environment[PREFIX + name]

        self.prefix, self.bucket, self.region = prefix, take("BUCKET"), take("REGION")
        self.endpoint = take("ENDPOINT")
        self.access_key, self.secret_key = take("ACCESS_KEY"), take("SECRET_KEY")

    def flags(self):
        """The arguments that make perfoliod use this bucket."""
        return [
            "--s3-bucket",
            self.bucket,
            "--s3-endpoint",
            self.endpoint,
            "--s3-prefix",
            self.prefix,
            "--s3-region",
            self.region,
            "--s3-path-style",
            "yes",
        ]

    def environment(self):
        return {"AWS_ACCESS_KEY_ID": self.access_key, "AWS_SECRET_ACCESS_KEY": self.secret_key}

    def sign(self, method, host, path, query, data):
        now = datetime.datetime.now(datetime.timezone.utc)
        time, day = now.strftime("%Y%m%dT%H%M%SZ"), now.strftime("%Y%m%d")
        payload = hashlib.sha256(data).hexdigest()
        fields = {"host": host, "x-amz-content-sha256": payload, "x-amz-date": time}
        names = ";".join(sorted(fields))
        text = "\n".join(
            [method, path, query, *(f"{n}:{fields[n]}" for n in sorted(fields)), "", names, payload]
        )
        scope = f"{day}/{self.region}/s3/aws4_request"
        to_sign = "\n".join(
            ["AWS4-HMAC-SHA256", time, scope, hashlib.sha256(text.encode()).hexdigest()]
        )
        key = ("AWS4" + self.secret_key).encode()
        for part in (day, self.region, "s3", "aws4_request"):
            key = hmac.new(key, part.encode(), hashlib.sha256).digest()
        signature = hmac.new(key, to_sign.encode(), hashlib.sha256).hexdigest()
        del fields["host"]
        fields["Authorization"] = (
            f"AWS4-HMAC-SHA256 Credential={self.access_key}/{scope}, "
            f"SignedHeaders={names}, Signature={signature}"
        )
        return fields

    def request(self, method, key=None, query=None, data=b""):
        host = self.endpoint.partition("://")[2]
        path = urllib.parse.quote(f"/{self.bucket}" + (f"/{self.prefix}/{key}" if key else ""))
        query = "&".join(
            f"{name}={urllib.parse.quote(value, safe='')}"
            for name, value in sorted((query or {}).items())
        )
        connection = http.client.HTTPConnection(host, timeout=60)
        connection.request(
            method,
            path + (f"?{query}" if query else ""),
            body=data or None,
            headers=self.sign(method, host, path, query, data),
        )
        response = connection.getresponse()
        body = response.read()
        connection.close()
        return response.status, body

    def entries(self, prefix=""):
        """{key: time of its last modification}"""
        found, query = {}, {"list-type": "2", "prefix": f"{self.prefix}/{prefix}"}
        while True:
            status, body = self.request("GET", query=query)
            assert status == 200, body
            tree = xml.etree.ElementTree.fromstring(re.sub(rb' xmlns="[^"]*"', b"", body))
            for entry in tree.iter("Contents"):
                found[entry.findtext("Key")[len(self.prefix) + 1 :]] = entry.findtext(
                    "LastModified"
                )
            if tree.findtext("IsTruncated") != "true":
                return found
            query["continuation-token"] = tree.findtext("NextContinuationToken")

    def keys(self, prefix=""):
        return set(self.entries(prefix))

    def oldest(self, prefix):
        entries = self.entries(prefix)
        return min(entries, key=entries.get)

    def has(self, key):
        return key in self.keys(key)

    def read(self, key):
        status, body = self.request("GET", key)
        assert status == 200, body
        return body

    def write(self, key, data):
        status, body = self.request("PUT", key, data=data)
        assert status == 200, body


def is_in_bucket():
    return PREFIX + "ENDPOINT" in os.environ
