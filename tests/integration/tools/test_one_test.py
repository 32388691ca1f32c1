"""tests/one.py: T of `make one-test` selects a command, and a T that matches no test fails."""
import sys

import pytest

from conftest import ROOT

sys.path.insert(0, str(ROOT / "tests"))
import one  # noqa: E402

KNOWN = "test_a_unit_test_is_selected_by_its_file_and_a_pattern"


@pytest.mark.parametrize("suffix", ["", ".c"])
def test_a_unit_test_is_selected_by_its_file_and_a_pattern(suffix):
    path = "tests/unit/lib/base/test_compress"
    program = f"build/{one.BUILD}/{path}"
    assert one.unit_command(path + suffix) == (program, "")
    assert one.unit_command(f"{path}{suffix}::*bomb*") == (program, "*bomb*")


def test_an_integration_test_is_selected_by_its_file_and_name():
    path = "tests/integration/tools/test_one_test.py"
    assert one.integration_command(path)[-1] == path
    for name in (KNOWN, f"{KNOWN}[suffix]"):
        assert one.integration_command(f"{path}::{name}")[-1] == f"{path}::{name}"


def test_a_test_of_the_pages_is_selected_by_its_file_and_a_part_of_its_name():
    path = "web/test/model/continuous/plot_data.test.ts"
    assert one.web_command(path) == ["node", "--test", "model/continuous/plot_data.test.mjs"]
    assert r"--test-name-pattern=readable\ units" in one.web_command(f"{path}::readable units")


@pytest.mark.parametrize(
    "select, wanted, similar",
    [
        (one.unit_command, "tests/unit/lib/base/test_compres.c", "lib/base/test_compress.c"),
        (one.unit_command, "tests/unit/lib/base/test_compress.c::*bmb*", "a_bomb_is_refused"),
        (one.integration_command, "tests/integration/test_one_tes.py", "test_one_test.py"),
        (
            one.integration_command,
            "tests/integration/tools/test_one_test.py::test_a_unit_test",
            KNOWN,
        ),
        (one.web_command, "web/test/tree/flme.test.ts", "model/tree/flame.test.ts"),
        (one.web_command, "web/test/tree/flame.test.ts", "model/tree/flame.test.ts"),
        (one.web_command, "web/src/model/tree/flame.ts", "model/tree/flame.test.ts"),
        (
            one.web_command,
            "web/test/model/continuous/plot_data.test.ts::readble units",
            "readable units",
        ),
    ],
)
def test_a_name_that_matches_nothing_fails_and_shows_similar_ones(select, wanted, similar):
    with pytest.raises(SystemExit) as stopped:
        select(wanted)
    assert "matches" in stopped.value.code and similar in stopped.value.code


def test_one_py_lists_the_names_of_browser_tests():
    names = one.browser_names()
    assert len(names) > 100
    assert any("password" in name for name in one.similar("share with a pasword", names))
