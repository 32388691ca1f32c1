"""tests/lint/scoped.py: which declarations of scoped objects it rejects."""

import importlib.util

import pytest

from conftest import ROOT

SPECIFICATION = importlib.util.spec_from_file_location("scoped", ROOT / "tests/lint/scoped.py")
scoped = importlib.util.module_from_spec(SPECIFICATION)
SPECIFICATION.loader.exec_module(scoped)


def names(body):
    return [name for _, _, name in scoped.complaints_of(f"void f(void)\n{{\n{body}\n}}\n")]


@pytest.mark.parametrize("body", [
    "buf_auto a;\nif (x)\n    return;\nbuf_init(&a, 9);",
    "buf_auto a;\nif (x) {\n    goto done;\n}\nbuf_init(&a, 9);",
    "buf_auto a;\nif (x)\n    buf_init(&a, 9);",
    "buf_auto a, b = {0};\nuse(&a);\nbuf_init(&a, 9);",
    "buf_auto b = f(x, y), a;\n",
    "arena_auto a;\nreturn;",
    "for (;;) {\n    buf_auto a;\n    if (x)\n        continue;\n    buf_init(&a, 9);\n}",
])
def test_a_way_out_before_the_initialisation_is_rejected(body):
    assert names(body) == ["a"]


@pytest.mark.parametrize("body", [
    "buf_auto a = {0};\nreturn;",
    "arena_auto a = arena_create();\nreturn;",
    "buf_auto a;\nstruct parts parts = {0};\nint n = 3; /* a return; */\nbuf_init(&a, 9);\nreturn;",
    "buf_auto a, b;\nbuf_init(&a, 9);\nbuf_init(&b, 9);\nreturn;",
])
def test_an_initialised_one_passes(body):
    assert names(body) == []
