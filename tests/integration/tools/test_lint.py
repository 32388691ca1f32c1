"""The checks of scoped objects (tests/lint/scoped.py), commits (tests/lint/commits.py), and
cycles inside folders, mutable globals and pages (tests/lint/layers.py)."""

import importlib.util

import pytest

from conftest import ROOT


def load(name):
    specification = importlib.util.spec_from_file_location(name, ROOT / f"tests/lint/{name}.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


scoped, commits, layers = load("scoped"), load("commits"), load("layers")


def names(body):
    return [name for _, _, name in scoped.complaints_of(f"void f(void)\n{{\n{body}\n}}\n")]


@pytest.mark.parametrize(
    "body",
    [
        "buf_auto a;\nif (x)\n    return;\nbuf_init(&a, 9);",
        "buf_auto a;\nif (x) {\n    goto done;\n}\nbuf_init(&a, 9);",
        "buf_auto a;\nif (x)\n    buf_init(&a, 9);",
        "buf_auto a, b = {0};\nuse(&a);\nbuf_init(&a, 9);",
        "buf_auto b = f(x, y), a;\n",
        "arena_auto a;\nreturn;",
        "for (;;) {\n    buf_auto a;\n    if (x)\n        continue;\n    buf_init(&a, 9);\n}",
    ],
)
def test_an_exit_before_the_initialisation_is_rejected(body):
    assert names(body) == ["a"]


@pytest.mark.parametrize(
    "body",
    [
        "buf_auto a = {0};\nreturn;",
        "arena_auto a = arena_create();\nreturn;",
        "buf_auto a;\nstruct parts parts = {0};\nint n = 3; /* a return; */\nbuf_init(&a, "
        "9);\nreturn;",
        "buf_auto a, b;\nbuf_init(&a, 9);\nbuf_init(&b, 9);\nreturn;",
    ],
)
def test_an_initialised_object_passes(body):
    assert names(body) == []


@pytest.mark.parametrize(
    "subject, body, problem",
    [
        ("store: sum granules in parallel", "A query used one core.\n", None),
        ("s" * 72, "Because.\n", None),
        ("ü" * 72, "Because.\n", None),
        ("s" * 73, "Because.\n", "73 characters"),
        ("store: sum granules in parallel", "\n", "no body"),
    ],
)
def test_a_commit_must_have_a_short_subject_and_a_body(subject, body, problem):
    found = commits.problems(f"1a2b3c4\0{subject}\0{body}\0\x01\n")
    assert len(found) == (problem is not None) and all(problem in line for line in found)


@pytest.mark.parametrize(
    "uses, allowed, problem",
    [
        ({"a": {"b"}, "b": {"c"}, "c": set()}, [], None),
        ({"a": {"b", "c"}, "b": {"c"}, "c": {"c"}}, [], None),
        ({"a": {"b"}, "b": {"c"}, "c": {"a"}}, [], "a, b, c use each other"),
        ({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}, [], "b, c use each other"),
        ({"a": {"b"}, "b": {"a"}}, ["a b"], None),
        ({"a": {"b"}, "b": {"a"}, "c": set()}, ["a b c"], None),
        ({"a": {"b"}, "b": {"c"}, "c": {"a"}}, ["a b"], "a, b, c use each other"),
        ({"a": {"b"}, "b": set()}, ["a b"], "no cycle any more"),
        ({"a": {"b"}}, ["a b"], None),
    ],
)
def test_modules_use_each_other_only_in_the_listed_groups(uses, allowed, problem):
    checker = layers.Checker()
    checker.check_inside("lib/x", uses, allowed)
    assert len(checker.errors) == (problem is not None)
    assert all(problem in error for error in checker.errors)


def test_uses_inside_a_folder_are_found_by_the_symbols_of_object_files():
    defined = {"a_open": "lib/x/a.o", "b_open": "lib/x/b.o", "c_open": "lib/y/c.o"}
    undefined = {"lib/x/a.o": ["b_open", "c_open", "malloc"], "lib/y/c.o": ["a_open"]}
    objects = ["lib/x/a.o", "lib/x/b.o", "lib/y/c.o"]
    assert layers.uses_inside(objects, defined, undefined) == {
        "lib/x": {"a": {"b"}, "b": set()},
        "lib/y": {"c": set()},
    }


@pytest.mark.parametrize(
    "page, problem",
    [
        ("May include: `lib/base`, libelf in `a.c`, `lib/symbols`. Text about `lib/io`.", None),
        ("May include: `lib/base`,\n`lib/symbols`.\n\n## Decisions\n", None),
        ("May include: `lib/base`.\n", "lib/symbols"),
        ("May include: `lib/base`, `lib/io`, `lib/symbols`.", "lib/io"),
        ("Allowed includes: `lib/base`.", "no sentence"),
    ],
)
def test_a_page_names_the_folders_that_its_folder_may_use(page, problem):
    found = layers.page_problem("debuginfod", f"# debuginfod\n\n{page}")
    assert found is None if problem is None else problem in found


def test_mutable_globals_are_found_by_the_sections_of_object_files():
    listed = """
Symbols from lib/base/log.o:

Name                  Value           Class        Type         Size             Line  Section

lib/base/log.o:level      |00|   d  |            OBJECT|04|     |.data
lib/base/log.o:output     |00|   b  |            OBJECT|38|     |.bss
lib/base/log.o:thread     |00|   b  |               TLS|08|     |.tbss
lib/base/log.o:version    |00|   D  |            OBJECT|08|     |.data.rel.local
lib/base/log.o:names      |00|   d  |            OBJECT|20|     |.data.rel.ro.local
lib/base/log.o:log_format |00|   T  |              FUNC|20|     |.text
lib/base/log.o:malloc     |  |   U  |            NOTYPE|  |     |*UND*
"""
    assert layers.mutable_globals(listed) == [
        ("lib/base/log.o", name) for name in ("level", "output", "thread", "version")
    ]


def test_a_mutable_global_must_be_listed():
    checker = layers.Checker()
    variables = [("lib/base/log.o", "level"), ("lib/base/vec.o", "count")]
    checker.check_globals(variables, ["lib/base/log.o", "lib/base/vec.o", "lib/base/os.o"])
    unlisted, unused = checker.errors
    assert "lib/base/vec.c: count" in unlisted and "lib/base/os.c has no" in unused
