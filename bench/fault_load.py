"""Another program on a rank's core: python fault_load.py spin|copy CORE PARENT_PID

spin computes and touches no memory; copy moves 64 MB to and fro, past every cache. Says `ready` when it is about to
begin, waits until its standard input ends, and ends with its parent.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

from paceline.guard import end_with_parent

MEGABYTES = 64


def main() -> None:
    what, core, parent = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    end_with_parent(parent)
    os.sched_setaffinity(0, {core})
    work = copies() if what == "copy" else spins()
    print("ready", flush=True)
    sys.stdin.read()
    while True:
        work()


def spins() -> Callable[[], None]:
    def spin() -> None:
        for _ in range(1_000_000):
            pass

    return spin


def copies() -> Callable[[], None]:
    import numpy as np

    source = np.ones(MEGABYTES * 125_000)
    target = np.empty_like(source)
    return lambda: np.copyto(target, source)


if __name__ == "__main__":
    main()
