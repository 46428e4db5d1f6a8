"""The rank's side of not outliving its launcher, and of keeping to its cores. The kills are in tests/faults."""

import ctypes
import os
import signal
import subprocess
import sys
import time

import pytest

from paceline import guard
from paceline.errors import RunError
from paceline.identity import local_environment


def child(code: str, parent_pid: int) -> subprocess.CompletedProcess[str]:
    """Run code in a process that was told of a parent."""
    told = os.environ | local_environment(0, 1, store_port=0, store_fd=None, parent_pid=parent_pid)
    imports = "import ctypes, os, sys\nfrom paceline.identity import this_rank\nfrom paceline import guard\n"
    command = [sys.executable, "-c", imports + code]
    return subprocess.run(command, env=told, capture_output=True, text=True, timeout=30, check=False)


def dead_pid() -> int:
    """The number of a process that has been and gone."""
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    return gone.pid


@pytest.mark.skipif(sys.platform != "linux", reason="prctl is Linux's")
def test_the_kernel_is_asked_to_end_a_rank_with_its_parent():
    asked = child(
        "guard.end_with_launcher(this_rank())\n"
        "number = ctypes.c_int()\n"
        "ctypes.CDLL(None).prctl(2, ctypes.byref(number), 0, 0, 0)\n"  # PR_GET_PDEATHSIG
        "print(number.value)",
        os.getpid(),
    )
    assert (asked.returncode, asked.stdout.strip()) == (0, str(int(signal.SIGKILL)))


def test_a_rank_whose_parent_died_before_it_could_ask_leaves_at_once():
    left = child("guard.end_with_launcher(this_rank())\nprint('still here')", dead_pid())
    assert left.returncode == 1
    assert "still here" not in left.stdout
    assert "launcher of this rank has ended" in left.stderr


def test_where_the_kernel_cannot_watch_a_thread_does():
    code = "guard._signal_on_parent_death = lambda: False\nguard.end_with_launcher(this_rank())\n"
    began = time.monotonic()
    left = child(code + "import time\ntime.sleep(20)\nprint('still here')", dead_pid())
    assert (left.returncode, left.stdout) == (1, "")
    assert time.monotonic() - began < 10
    stays = child(code + "import time\ntime.sleep(3 * guard._POLL_S)\nprint('still here')", os.getpid())
    assert (stays.returncode, stays.stdout) == (0, "still here\n")


def test_a_rank_without_a_named_parent_is_left_alone():
    code = (
        "import dataclasses\nguard.end_with_launcher(dataclasses.replace(this_rank(), parent_pid=None))\nprint('here')"
    )
    assert child(code, dead_pid()).stdout == "here\n"


def test_guarding_imports_no_torch():
    assert child("print('torch' in sys.modules, 'numpy' in sys.modules)", os.getpid()).stdout == "False False\n"


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this operating system cannot pin")
def test_a_pinned_rank_keeps_to_its_cores():
    core = max(os.sched_getaffinity(0))
    assert child(f"guard.pin(({core},))\nprint(os.sched_getaffinity(0))", os.getpid()).stdout == f"{{{core}}}\n"
    before = os.sched_getaffinity(0)
    guard.pin(None)
    assert os.sched_getaffinity(0) == before


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this operating system cannot pin")
def test_cores_that_are_gone_are_refused_with_a_sentence():
    with pytest.raises(RunError, match="cannot be pinned to cores 1023"):
        guard.pin((1023,))


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="the C library is not glibc")
def test_memory_that_is_freed_is_kept_for_the_next_time():
    code = (
        "import resource\n"
        "def faults(): return resource.getrusage(resource.RUSAGE_SELF).ru_minflt\n"
        "libc = ctypes.CDLL(None)\n"
        "libc.malloc.restype, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]\n"
        "libc.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]\n"
        "def use(size):\n"
        "    memory = libc.malloc(ctypes.c_size_t(size))\n"
        "    libc.memset(memory, 1, size)\n"
        "    libc.free(memory)\n"
        "{keep}\n"
        "for _ in range(3): use(100 << 20)\n"
        "before = faults()\n"
        "for _ in range(3): use(100 << 20)\n"
        "print(faults() - before)\n"
    )
    left_alone = child(code.replace("{keep}", ""), os.getpid())
    kept = child(code.replace("{keep}", "guard.keep_freed_memory()"), os.getpid())
    assert int(left_alone.stdout) > 10 * int(kept.stdout) + 100
