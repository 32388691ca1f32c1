#!/usr/bin/python3
"""Checks api/openapi.yaml: OpenAPI 3.1 in form, references that resolve, no key given twice, path
parameters that match their paths, unique operationIds, schemas that are valid JSON Schema.

    tests/lint/openapi.py [PERFOLIOD]    with the program, also: each API route is described and
    none
                                         is described that the server does not have
"""
import json
import re
import subprocess
import sys

import jsonschema
import yaml

METHODS = {"get", "put", "post", "delete", "options", "head", "patch", "trace"}
PARAMETER_PLACES = {"path", "query", "header", "cookie"}


class UniqueKeyLoader(yaml.SafeLoader):
    """PyYAML lets the last of two equal keys win, which hides half of a description."""

    def construct_mapping(self, node, deep=False):
        seen = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key!r} is given twice", key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep)


class Checker:
    def __init__(self, document):
        self.document = document
        self.problems = []

    def report(self, where, text):
        self.problems.append(f"{where}: {text}")

    def resolve(self, value, where):
        """The object to which a {$ref: "#/…"} refers."""
        while isinstance(value, dict) and "$ref" in value:
            reference = value["$ref"]
            if not reference.startswith("#/"):
                self.report(where, f"{reference} is not within this document")
                return {}
            value = self.document
            for part in reference[2:].split("/"):
                part = part.replace("~1", "/").replace("~0", "~")
                if not isinstance(value, dict) or part not in value:
                    self.report(where, f"{reference} does not exist")
                    return {}
                value = value[part]
        return value

    def walk_references(self, value, where="#"):
        if isinstance(value, dict):
            if isinstance(value.get("$ref"), str):
                self.resolve(value, where)
            for key, inner in value.items():
                self.walk_references(inner, f"{where}/{key}")
        elif isinstance(value, list):
            for index, inner in enumerate(value):
                self.walk_references(inner, f"{where}/{index}")

    def check_schema(self, schema, where):
        try:
            jsonschema.Draft202012Validator.check_schema(schema)
        except jsonschema.SchemaError as error:
            self.report(where, error.message)

    def check_content(self, content, where):
        if not isinstance(content, dict) or not content:
            self.report(where, "content is empty")
            return
        for media_type, media in content.items():
            if "/" not in media_type:
                self.report(where, f"{media_type!r} is no media type")
            if media and "schema" in media:
                self.check_schema(media["schema"], f"{where} {media_type}")

    def check_parameters(self, path, operation, shared, where):
        in_path = set()
        for parameter in shared + operation.get("parameters", []):
            parameter = self.resolve(parameter, where)
            name, place = parameter.get("name"), parameter.get("in")
            if not name or place not in PARAMETER_PLACES:
                self.report(where, f"a parameter has no name or place: {parameter}")
                continue
            if "schema" not in parameter and "content" not in parameter:
                self.report(where, f"parameter {name} has no schema")
            if "schema" in parameter:
                self.check_schema(parameter["schema"], f"{where} {name}")
            if place == "path":
                in_path.add(name)
                if parameter.get("required") is not True:
                    self.report(where, f"path parameter {name} must be required")
        in_template = set(re.findall(r"\{([^}]+)\}", path))
        if in_path != in_template:
            self.report(
                where, f"path parameters {sorted(in_path)} differ from {sorted(in_template)}"
            )

    def check_responses(self, operation, where):
        responses = operation.get("responses")
        if not responses:
            self.report(where, "no responses")
            return
        for status, response in responses.items():
            if not re.fullmatch(r"[1-5](\d\d|XX)|default", str(status)):
                self.report(where, f"{status} is no status")
            if not isinstance(status, str):
                self.report(where, f"the status {status} must be quoted")
            response = self.resolve(response, where)
            if not response.get("description"):
                self.report(where, f"response {status} has no description")
            if "content" in response:
                self.check_content(response["content"], f"{where} {status}")

    def check_operation(self, path, method, operation, shared, known_ids):
        where = f"{method.upper()} {path}"
        identity = operation.get("operationId")
        if not identity:
            self.report(where, "no operationId")
        elif identity in known_ids:
            self.report(where, f"operationId {identity} is taken")
        known_ids.add(identity)
        if not operation.get("summary"):
            self.report(where, "no summary")
        known_tags = {tag["name"] for tag in self.document.get("tags", [])}
        for tag in operation.get("tags", []):
            if tag not in known_tags:
                self.report(where, f"unknown tag {tag}")
        schemes = self.document.get("components", {}).get("securitySchemes", {})
        for need in operation.get("security", []):
            for scheme in need:
                if scheme not in schemes:
                    self.report(where, f"unknown security scheme {scheme}")
        self.check_parameters(path, operation, shared, where)
        body = self.resolve(operation.get("requestBody", {}), where)
        if body:
            self.check_content(body.get("content"), f"{where} body")
        self.check_responses(operation, where)

    def check(self):
        document = self.document
        if not re.fullmatch(r"3\.1\.\d+", str(document.get("openapi"))):
            self.report("openapi", "must be 3.1.x")
        for key in ("title", "version"):
            if not isinstance(document.get("info", {}).get(key), str):
                self.report("info", f"{key} must be a text")
        self.walk_references(document)
        known_ids = set()
        for path, item in document.get("paths", {}).items():
            if not path.startswith("/"):
                self.report(path, "must begin with a slash")
            for method, operation in item.items():
                if method in METHODS:
                    self.check_operation(
                        path, method, operation, item.get("parameters", []), known_ids
                    )
                elif method not in {"parameters", "summary", "description", "servers"}:
                    self.report(path, f"unknown key {method}")
        for name, schema in document.get("components", {}).get("schemas", {}).items():
            self.check_schema(schema, f"schema {name}")


def without_names(path):
    return re.sub(r"\{[^}]*\}", "{}", path)


def check_routes(checker, program):
    output = subprocess.run([program, "routes", "--json"], check=True, capture_output=True).stdout
    routes = [json.loads(line) for line in output.splitlines()]
    served = {(route["method"].lower(), without_names(route["pattern"])) for route in routes}
    described = {
        (method, without_names(path))
        for path, item in checker.document["paths"].items()
        for method in item
        if method in METHODS
    }
    for method, path in sorted(served - described):
        if path.startswith("/api/v1/"):
            checker.report(f"{method.upper()} {path}", "is served but not described")
    for method, path in sorted(described - served):
        checker.report(f"{method.upper()} {path}", "is described but not served")


def main():
    with open("api/openapi.yaml", encoding="utf-8") as file:
        try:
            document = yaml.load(file, UniqueKeyLoader)
        except yaml.YAMLError as error:
            sys.exit(f"api/openapi.yaml: {error}")
    checker = Checker(document)
    checker.check()
    if len(sys.argv) > 1:
        check_routes(checker, sys.argv[1])
    for problem in checker.problems:
        print(f"api/openapi.yaml: {problem}")
    sys.exit(bool(checker.problems))


if __name__ == "__main__":
    main()
