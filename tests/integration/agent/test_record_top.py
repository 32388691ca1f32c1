"""perfolio record --top: the table that it shows while it records, and the restored terminal
afterwards."""

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

import pytest

from conftest import PERFOLIO
from test_agent import spinning
from test_record import REFUSAL, functions, program, record  # noqa: F401  (fixtures)

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(REFUSAL is not None, reason=f"the kernel refuses: {REFUSAL}"),
]

ENTER, LEAVE = b"\033[?1049h", b"\033[?1049l"
TIMEOUT_S = 60


def test_tables_are_appended_without_a_terminal(record, program, tmp_path):  # noqa: F811
    for seconds in (4, 16, 64):  # on a loaded machine a table may take several seconds
        with spinning(program) as process:
            done = record("--top", "-d", seconds, "-F", "499", "-p", process.pid)
        assert done.returncode == 0, done.stderr
        heads = [
            int(count)
            for count in re.findall(r"^\d+ s, (\d+) samples, \d+ functions$", done.stdout, re.M)
        ]
        if len(heads) >= 2:
            break
    assert len(heads) >= 2 and heads == sorted(heads) and heads[-1] > 0
    assert "\033" not in done.stdout
    last = done.stdout.rsplit(" samples, ", 1)[1]
    rows = {
        line.split("  ")[-1].split()[0]: line.split()
        for line in last.splitlines()[3:]
        if line.strip()
    }
    assert float(rows["inner"][2].rstrip("%")) > 50
    # One of 2000 samples may hit the two instructions of outer itself.
    assert rows["outer"][0] == "·" or float(rows["outer"][2].rstrip("%")) < 1, rows["outer"]
    assert not (tmp_path / "profile.pb.gz").exists()


def test_o_writes_the_shown_samples_to_a_file(record, program, tmp_path):  # noqa: F811
    with spinning(program) as process:
        done = record("--top", "-F", "499", "-d", "3", "-o", "kept.pb.gz", "-p", process.pid)
    assert done.returncode == 0, done.stderr
    shown = int(re.findall(r"^\d+ s, (\d+) samples", done.stdout, re.M)[-1])
    taken = int(re.search(r"^(\d+) samples at 499 Hz", done.stderr, re.M)[1])
    assert shown == taken > 0
    assert functions(tmp_path, "kept.pb.gz")["inner"]["cum"] > 0


def test_top_ends_when_its_output_is_closed(program, tmp_path):  # noqa: F811
    with spinning(program) as spun:
        process = subprocess.Popen(
            [str(PERFOLIO), "record", "--top", "-d", "600", "-p", str(spun.pid)],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert b"samples" in process.stdout.readline()
        process.stdout.close()
        assert process.wait(60) == -signal.SIGPIPE


def test_top_cannot_also_write_the_profile_to_standard_output(record):  # noqa: F811
    done = record("--top", "-o", "-", "--", "true")
    assert done.returncode == 2 and "both write to standard output" in done.stderr


class Screen:
    def __init__(self, folder, *arguments):
        self.master, self.slave = pty.openpty()
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
        self.before = termios.tcgetattr(self.slave)
        self.text = b""
        self.process = subprocess.Popen(
            [str(PERFOLIO), "record", *map(str, arguments)],
            cwd=folder,
            env={"HOME": str(folder), "PATH": os.environ["PATH"], "TERM": "xterm"},
            stdin=self.slave,
            stdout=self.slave,
            stderr=self.slave,
            preexec_fn=self.own_terminal,
        )

    @staticmethod
    def own_terminal():
        os.setsid()
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # the parent may ignore it
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    def read(self):
        if select.select([self.master], [], [], 0.05)[0]:
            self.text += os.read(self.master, 65536)

    def wait_for(self, pattern):
        deadline = time.monotonic() + TIMEOUT_S
        while not re.search(pattern, self.text):
            assert time.monotonic() < deadline and self.process.poll() is None, self.text[-2000:]
            self.read()

    def wait_for_end(self):
        deadline = time.monotonic() + TIMEOUT_S
        while self.process.poll() is None:
            assert time.monotonic() < deadline, self.text[-2000:]
            self.read()
        while select.select([self.master], [], [], 0)[0]:
            self.read()
        return self.process.returncode

    def is_restored(self):
        return termios.tcgetattr(self.slave) == self.before and self.text.count(
            ENTER
        ) == self.text.count(LEAVE)

    def close(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self.master)
        os.close(self.slave)


@pytest.fixture
def screen(tmp_path, program):  # noqa: F811
    made = Screen(tmp_path, "--top", "-F", "499", "--", program, "100000000")
    yield made
    made.close()


def test_q_ends_the_recording_and_leaves_the_last_table(screen):
    screen.wait_for(rb"[1-9]\d* samples, \d+ functions; q ends\r\n[^\033]*cpu: ")
    screen.wait_for(rb"inner")
    assert not termios.tcgetattr(screen.slave)[3] & (termios.ECHO | termios.ICANON)
    os.write(screen.master, b"xq")
    assert screen.wait_for_end() == 0
    assert screen.is_restored()
    assert b"inner" in screen.text.rpartition(LEAVE)[2]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_recording(screen, number):
    screen.wait_for(rb"[1-9]\d* samples")
    screen.process.send_signal(number)
    assert screen.wait_for_end() == 0
    assert screen.is_restored()


def test_ctrl_c_ends_the_recording(screen):
    screen.wait_for(rb"[1-9]\d* samples")
    os.write(screen.master, b"\x03")
    screen.wait_for_end()
    assert screen.is_restored()


@pytest.mark.parametrize("number", [signal.SIGQUIT, signal.SIGSEGV, signal.SIGABRT])
def test_the_terminal_is_restored_however_the_process_ends(screen, number):
    screen.wait_for(rb"[1-9]\d* samples")
    screen.process.send_signal(number)
    assert screen.wait_for_end() == -number
    assert screen.is_restored()
