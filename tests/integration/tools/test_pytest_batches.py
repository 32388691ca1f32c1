"""tests/pytest_batches.py: every file runs once, and the results of all processes are summed."""

import pathlib
import subprocess
import sys
import xml.etree.ElementTree as xml_tree

import pytest

from conftest import ROOT

sys.path.insert(0, str(ROOT / "tests"))
import pytest_batches  # noqa: E402

FILES = {
    "test_good.py": "def test_one():\n    pass\ndef test_two():\n    pass\n",
    "test_bad.py": "def test_wrong():\n    assert False, 'the reason'\n",
    "test_long.py": "import pytest\n@pytest.mark.long\ndef test_later():\n    pass\n",
    "test_skipped.py": "import pytest\ndef test_no():\n    pytest.skip('no reason')\n",
}


def run(folder, *options):
    return subprocess.run(
        [
            *(sys.executable, ROOT / "tests" / "pytest_batches.py", "--processes=2"),
            *(f"--junitxml={folder / 'report.xml'}", "-q", *options, folder),
        ],
        capture_output=True,
        text=True,
        check=False,
    )


def write(folder, names):
    for name in names:
        (folder / name).write_text(FILES[name])


def cases_of(folder):
    return {case.get("name") for case in xml_tree.parse(folder / "report.xml").iter("testcase")}


@pytest.mark.long
def test_results_of_all_files_are_summed(tmp_path):
    write(tmp_path, FILES)
    done = run(tmp_path, "-m", "not long", "-W", "ignore")
    assert done.returncode == 1 and "the reason" in done.stdout, done
    summary = done.stdout.splitlines()[-1]
    assert summary.startswith("1 failed, 2 passed, 1 skipped, 1 deselected in "), done.stdout
    assert cases_of(tmp_path) == {"test_one", "test_two", "test_wrong", "test_no"}


def test_files_without_a_selected_test_do_not_fail(tmp_path):
    write(tmp_path, ["test_good.py", "test_long.py"])
    done = run(tmp_path, "-m", "long", "-W", "ignore")
    assert done.returncode == 0, done
    assert done.stdout.splitlines()[-1].startswith("1 passed, 2 deselected in "), done.stdout


@pytest.mark.long
def test_a_file_that_cannot_be_imported_fails_the_run(tmp_path):
    write(tmp_path, ["test_good.py"])
    (tmp_path / "test_broken.py").write_text("import nothing_of_that_name\n")
    done = run(tmp_path)
    assert done.returncode == 1 and "nothing_of_that_name" in done.stdout, done
    assert "1 errors" in done.stdout.splitlines()[-1], done.stdout


def test_the_slowest_files_run_first_and_every_file_runs_once(tmp_path):
    seconds = {pathlib.Path(f"test_{number}.py"): 1.0 + number for number in range(50)}
    queue = pytest_batches.Queue(seconds, 4)
    batches = []
    while batch := queue.take():
        batches.append(batch)
    assert [file for batch in batches for file in batch] == sorted(
        seconds, key=seconds.get, reverse=True
    )
    sizes = [sum(seconds[file] for file in batch) for batch in batches]
    assert 4 < len(batches) < 24 and max(sizes) == sizes[0] < sum(sizes) / 4, sizes


def test_the_expected_time_of_a_file_comes_from_the_last_run(tmp_path):
    files = [tmp_path / name for name in ("test_a.py", "test_b.py", "test_new.py")]
    for file, lines in zip(files, (10, 30, 20)):
        file.write_text("#\n" * lines)
    times = tmp_path / "report.seconds"
    assert pytest_batches.expected(files, times) == dict(zip(files, (10, 30, 20)))
    times.write_text("8.0\ttest_a.py\n2.0\ttest_b.py\n")
    assert pytest_batches.expected(files, times) == dict(zip(files, (8, 2, 5)))
