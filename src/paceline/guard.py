"""The setup of a rank before torch loads: end with its launcher, pin to cores, configure the allocator.

    launcher forks ──▶ interpreter starts ──▶ prctl ──▶ compare parents ──▶ the rank's work
         └─ killed here: the comparison ends the rank ──┘        └─ killed here: the kernel does

Without the comparison, ranks would survive a launcher that dies before the `prctl`.
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
_REUSED_BYTES = (1 << 30, 1 << 25)
"""Size up to which freed memory is reused; older versions of glibc accept at most the second."""
_POLL_S = 0.2


def end_with_launcher(identity: Identity) -> None:
    """Make this process end with its launcher, however that ends.

    Does nothing if the launcher named no parent: it ends its ranks by other means.
    The kernel watches the *thread* of the launcher that started the rank: it has to live until the rank ends.
    """
    if identity.parent_pid is not None:
        end_with_parent(identity.parent_pid)


def end_with_parent(parent: int) -> None:
    """Make this process end with its parent; `parent` is the pid of the parent at the start."""
    if _signal_on_parent_death():
        _exit_if_orphaned(parent)
    else:
        threading.Thread(target=_watch, args=(parent,), name="parent-watch", daemon=True).start()


def pin(cores: tuple[int, ...] | None) -> None:
    """Pin this process and every thread that it starts later to `cores`; None does nothing."""
    if cores is None or not host.can_pin():
        return
    try:
        os.sched_setaffinity(0, cores)
    except OSError as error:
        raise RunError(
            f"This rank cannot be pinned to cores {', '.join(map(str, cores))}: {error.strerror}.",
            right="The cores that this process may use were changed after the run was started.",
            next="Run the same command again, or with --set run.pin=false.",
        ) from error


def keep_freed_memory() -> None:
    """Make this process reuse freed memory, if its C library is glibc.

    By default glibc returns the large tensors of a step to the kernel, which clears their pages again in the next one:
    6,000 to 9,000 page faults and a sixth of the time of a step of `cnn-690k`. The peak memory does not change.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None and any(mallopt(_M_MMAP_THRESHOLD, limit) for limit in _REUSED_BYTES):
        mallopt(_M_TRIM_THRESHOLD, 2**31 - 1)


def _signal_on_parent_death() -> bool:
    """Request SIGKILL from the kernel at the end of the parent; whether the kernel supports it."""
    if sys.platform != "linux":
        return False
    return ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0) == 0


def _exit_if_orphaned(parent: int) -> None:
    if os.getppid() != parent:
        os.write(2, b"The launcher of this rank has ended: exiting.\n")
        os._exit(1)


def _watch(parent: int, sleep: Callable[[float], None] = time.sleep) -> None:
    """End this process soon after its parent: later than the kernel would, and only when the GIL is free."""
    while True:
        _exit_if_orphaned(parent)
        sleep(_POLL_S)
