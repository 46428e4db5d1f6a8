"""Programs that end with whoever started them: with real processes."""

import contextlib
import os
import signal
import subprocess
import sys

import psutil
import pytest

from light_ranks.light_launch import wait_for
from paceline.launch.child import python
from paceline.launch.wrapper.wrapped_ranks import WATCHDOG, watchdog_command

TIDY = """
import pathlib, signal, sys, time
def leave(number, frame):
    pathlib.Path(sys.argv[1]).write_text("tidied up")
    sys.exit(5)
signal.signal(signal.SIGTERM, leave)
print("ready", flush=True)
time.sleep(600)
"""


def started(command):
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
    )


def finished(command):
    """Exit code and output of a command whose standard input stays open."""
    with started(command) as process:
        said = process.stdout.read().decode()
        return process.wait(30), said


@pytest.fixture
def tidy(tmp_path):
    """A program under a tether, that says in a file that it could tidy up; and its process."""
    with started(watchdog_command((sys.executable, "-c", TIDY, str(tmp_path / "said")))) as process:
        assert process.stdout.readline() == b"ready\n"
        (program,) = psutil.Process(process.pid).children()
        try:
            yield process, program, tmp_path / "said"
        finally:
            for one in (program, process):
                with contextlib.suppress(psutil.Error):
                    one.kill()


def gone(process):
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


@pytest.mark.parametrize("code", [0, 3])
def test_the_exit_code_is_the_programs(code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert finished(watchdog_command(("sh", "-c", f"pwd; exit {code}"))) == (code, f"{tmp_path}\n")


def test_a_program_that_a_signal_ends_is_told_as_by_a_shell():
    assert finished(watchdog_command(("sh", "-c", "kill -KILL $$"))) == (128 + signal.SIGKILL, "")


@pytest.mark.parametrize("tether", [watchdog_command(()), (*python("-m", WATCHDOG), str(os.getpid()))])
def test_a_program_that_is_not_there_is_told_as_by_a_shell(tether):
    assert finished((*tether, "/no/such/program")) == (127, "/no/such/program: No such file or directory\n")


def test_when_standard_input_ends_the_program_may_tidy_up(tidy):
    process, program, said = tidy
    process.stdin.close()
    assert wait_for(lambda: gone(program), 10)
    assert said.read_text() == "tidied up"


def test_a_program_that_does_not_leave_is_killed(tidy):
    process, program, said = tidy
    program.suspend()
    process.stdin.close()
    assert wait_for(lambda: gone(program), 15)
    assert process.wait(10) and not said.exists()


def test_a_signal_to_the_group_is_left_to_the_program(tidy):
    process, _, said = tidy
    os.killpg(process.pid, signal.SIGTERM)
    assert process.wait(10) == 5
    assert said.read_text() == "tidied up"


def test_the_program_does_not_outlive_a_killed_tether(tidy):
    process, program, _ = tidy
    process.kill()
    assert wait_for(lambda: gone(program), 5)


def test_what_is_tied_to_a_parent_becomes_the_program():
    process = started((*python("-m", WATCHDOG), str(os.getpid()), "sh", "-c", "echo $$"))
    said, _ = process.communicate(timeout=30)
    assert (int(said), process.returncode) == (process.pid, 0)


def test_a_parent_that_is_another_by_now_ends_it():
    code, said = finished((*python("-m", WATCHDOG), "1", "sleep", "600"))
    assert code == 1 and "has ended" in said
