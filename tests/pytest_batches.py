#!/usr/bin/env python3
"""Runs the test files below a folder with pytest in several processes, each of which imports only
the files that it runs.

  tests/pytest_batches.py --processes=4 --junitxml=REPORT [OPTION OF PYTEST …] FOLDER

pytest-xdist imports and collects every file in every process, which for the integration tests costs
as much CPU time as a hundred starts of the server. Here a process runs a batch of files and
ends; the next batch begins where a process has ended. The first batches are large and the last ones
small, so that all processes end at about the same time. The files that took longest in the last run
come first (REPORT.seconds; without it, the longest files).

The output of a batch is printed when it ends. The last line is a summary of all, in the form of
pytest's own; REPORT has the results of all batches.
"""
import argparse
import collections
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree as xml_tree

SUMMARY = re.compile(r"^(?:=+ )?((?:\d+ \w+(?:, )?)+) in [\d.]+s", re.M)
NO_TESTS = 5  # pytest's exit status if every test is deselected
ORDER = ("failed", "passed", "skipped", "deselected", "xfailed", "xpassed", "warnings", "errors")


class Queue:
    """Files that wait for a process, longest first; take() is safe in all threads."""

    def __init__(self, seconds, processes):
        """seconds: {file: how long it takes, in any unit}"""
        self.seconds, self.processes = seconds, processes
        self.least = sum(seconds.values()) / (6 * processes)  # starting a process costs a second
        self.waiting = sorted(seconds, key=seconds.get, reverse=True)
        self.lock = threading.Lock()

    def take(self):
        """Files for one process, at least one while there are any: a part of what is left."""
        with self.lock:
            left = sum(self.seconds[file] for file in self.waiting)
            wanted = max(left / (3 * self.processes), self.least)
            batch, size = [], 0
            while self.waiting and (not batch or size < wanted):
                batch.append(self.waiting.pop(0))
                size += self.seconds[batch[-1]]
            return batch


def expected(files, path):
    """{file: seconds of the last run}; for a file that it did not run, by its number of lines."""
    known = {}
    if path.exists():
        for line in path.read_text().splitlines():
            seconds, _, name = line.partition("\t")
            known[name] = float(seconds)
    lines = {file: len(file.read_bytes().splitlines()) for file in files}
    seen = [file for file in files if file.name in known]
    seconds_per_line = sum(known[file.name] for file in seen) / max(
        1, sum(lines[file] for file in seen)
    )
    return {file: known.get(file.name, lines[file] * (seconds_per_line or 1)) for file in files}


def count(output):
    """How many tests passed, failed …, by the last line of pytest's output."""
    found = SUMMARY.findall(output)
    numbers = re.findall(r"(\d+) (\w+)", found[-1]) if found else []
    names = {"error": "errors", "warning": "warnings"}
    return collections.Counter({names.get(word, word): int(number) for number, word in numbers})


class Runner:
    def __init__(self, options, arguments, folder):
        self.options, self.arguments, self.folder = options, arguments, folder
        self.totals, self.statuses, self.reports = collections.Counter(), set(), []
        self.lock, self.running = threading.Lock(), set()

    def run_batches(self, queue):
        while batch := queue.take():
            self.run(batch)

    def run(self, batch):
        with self.lock:
            report = self.folder / f"{len(self.reports)}.xml"
            self.reports.append(report)
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "pytest", "-p", "no:cacheprovider"),
                *(f"--junitxml={report}", *self.arguments, *map(str, batch)),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            # The folder in which the processes share a template of a data folder (conftest.py).
            env={**os.environ, "PERFOLIO_TEST_SESSION": str(self.folder)},
            text=True,
            errors="replace",
        )
        with self.lock:
            self.running.add(process)
        output, _ = process.communicate()
        with self.lock:
            self.running.discard(process)
            self.totals += count(output)
            self.statuses.add(process.returncode)
            print(output, end="", flush=True)
            if process.returncode not in (0, 1, NO_TESTS):
                print(f"pytest ended with {process.returncode}:", *batch, flush=True)

    def stop(self):
        for process in self.running:
            process.terminate()

    def merge_reports(self):
        """One report with all test cases; returns {file name: seconds of its tests}."""
        merged, seconds = xml_tree.Element("testsuites"), collections.Counter()
        for report in self.reports:
            try:
                suites = xml_tree.parse(report).getroot()
            except (OSError, xml_tree.ParseError):
                continue  # the process was killed
            merged.extend(suites)
            for case in suites.iter("testcase"):
                name = case.get("classname", "").rpartition(".")[2] + ".py"
                seconds[name] += float(case.get("time", 0))
        xml_tree.ElementTree(merged).write(self.options.junitxml, encoding="utf-8")
        return seconds


def make_folder():
    """A temporary folder whose name lets a later run remove it if this process is killed
    (conftest.py)."""
    memory = pathlib.Path("/dev/shm")
    home = os.environ.get("PERFOLIO_TEST_HOME") or (memory if memory.is_mount() else None)
    folder = pathlib.Path(tempfile.mkdtemp(prefix=f"perfolio-test-{os.getpid()}-", dir=home))
    folder.chmod(0o755)  # for the users that servers run as
    return folder


def main():
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--junitxml", type=pathlib.Path, required=True)
    options, arguments = parser.parse_known_args()
    files = sorted(pathlib.Path(arguments.pop()).rglob("test_*.py"))
    times = options.junitxml.with_suffix(".seconds")
    queue = Queue(expected(files, times), options.processes)
    begin, folder = time.monotonic(), make_folder()
    runner = Runner(options, arguments, folder)
    try:
        with concurrent.futures.ThreadPoolExecutor(options.processes) as pool:
            lanes = [pool.submit(runner.run_batches, queue) for _ in range(options.processes)]
            try:
                for lane in lanes:
                    lane.result()
            except BaseException:
                queue.waiting.clear()
                runner.stop()
                raise
        seconds = runner.merge_reports()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    times.write_text("".join(f"{spent:.1f}\t{name}\n" for name, spent in seconds.most_common()))
    shown = [f"{runner.totals[name]} {name}" for name in ORDER if runner.totals[name]]
    print(f"{', '.join(shown) or '0 passed'} in {time.monotonic() - begin:.2f}s")
    sys.exit(int(bool(runner.statuses - {0, NO_TESTS})))


if __name__ == "__main__":
    main()
