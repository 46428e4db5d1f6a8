"""The first thing a rank does, before torch loads: tie its life to its launcher's, take its cores, keep its memory.

    launcher forks ──▶ interpreter starts ──▶ prctl ──▶ compare parents ──▶ the rank's work
         └─ killed here: the comparison ends the rank ──┘        └─ killed here: the kernel does

Without the comparison a launcher that dies before the `prctl` would leave its ranks running.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Callable

from paceline import host
from paceline.errors import RunError
from paceline.identity import Identity

_PR_SET_PDEATHSIG = 1
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_MEMORY_KEPT = (1 << 30, 1 << 25)
"""Bytes up to which an allocation is kept for the next one; older versions of glibc take no more than the second."""
_POLL_S = 0.2


def tie_to_parent(identity: Identity) -> None:
    """Make sure that this process does not outlive its launcher, however that ends.

    Does nothing where the launcher named no parent: it ends its ranks by other means.
    The kernel watches the launcher's *thread* that started the rank: it has to stay until the rank ends.
    """
    if identity.parent_pid is not None:
        end_with_parent(identity.parent_pid)


def end_with_parent(parent: int) -> None:
    """Make sure that this process does not outlive its parent, whose number is given as it was at the start."""
    if _signal_on_parent_death():
        _leave_if_orphaned(parent)
    else:
        threading.Thread(target=_watch, args=(parent,), name="parent-watch", daemon=True).start()


def pin(cores: tuple[int, ...] | None) -> None:
    """Keep this process and every thread that it starts from now on to `cores`; None leaves it free."""
    if cores is None or not host.can_pin():
        return
    try:
        os.sched_setaffinity(0, cores)
    except OSError as error:
        raise RunError(
            f"This rank cannot have cores {', '.join(map(str, cores))}: {error.strerror}.",
            right="They could be used when the run was started: the cores of this process were changed since.",
            next="Run the same command again, or with --set run.pin=false.",
        ) from error


def keep_freed_memory() -> None:
    """Let this process keep what it frees, where its C library is glibc.

    Left alone, glibc hands the large tensors of a step back to the kernel, which clears every page of them anew in the
    next: 6,000 to 9,000 page faults and a sixth of the time of a step of `cnn-690k`. The peak stays what it was.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None and any(mallopt(_M_MMAP_THRESHOLD, limit) for limit in _MEMORY_KEPT):
        mallopt(_M_TRIM_THRESHOLD, 2**31 - 1)


def _signal_on_parent_death() -> bool:
    """Whether the kernel has agreed to send SIGKILL here when the parent ends."""
    if sys.platform != "linux":
        return False
    return ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0) == 0


def _leave_if_orphaned(parent: int) -> None:
    if os.getppid() != parent:
        os.write(2, b"The launcher of this rank is gone: ending.\n")
        os._exit(1)


def _watch(parent: int, sleep: Callable[[float], None] = time.sleep) -> None:
    """End this process soon after its parent changed: later than the kernel would, and only when
    the interpreter's lock can be had."""
    while True:
        _leave_if_orphaned(parent)
        sleep(_POLL_S)
