"""A process that is sampled while it does one thing, and says what it measured of itself.

    python counted_process.py spin|sleep|write|threads PATH

`spin` computes for a second of CPU time, `sleep` sleeps for one, `write` writes files, `threads` spins in another one.
All that is said stands in one JSON object on the standard output: brackets [before, after] around the last sample.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path

from paceline.probe.counter_sampler import Counters


def spin(s: float) -> None:
    end = time.thread_time() + s
    while time.thread_time() < end:
        sum(range(1000))


def write(folder: Path) -> None:
    block = os.urandom(1 << 20)
    until = os.times().system + 0.3
    while os.times().system < until:
        with (folder / "file").open("wb") as file:
            for _ in range(16):
                file.write(block)
            file.flush()
            os.fsync(file.fileno())


def another_thread() -> None:
    thread = threading.Thread(target=spin, args=(0.5,))
    thread.start()
    thread.join()


def measured() -> dict[str, float]:
    times = os.times()
    return {
        "cpu_s": time.process_time(),
        "user_s": times.user,
        "system_s": times.system,
        "main_s": time.thread_time(),
        "at_ns": time.monotonic_ns(),
    }


def main() -> None:
    what, path = sys.argv[1], Path(sys.argv[2])
    opened = {"open": 0, "os.listdir": 0}

    def note(event: str, arguments: tuple) -> None:
        if event in opened:
            opened[event] += 1

    counters = Counters(path, host_energy=False, every_s=0.1)
    first = measured()
    with counters:
        {"spin": lambda: spin(1.0), "sleep": lambda: time.sleep(1.0), "write": lambda: write(path.parent)}.get(
            what, another_thread
        )()
        before = measured()
    after = measured()
    for _ in range(2):  # a thread's name is read until it was the same twice: now that of every thread was
        _ = [source() for source in counters._sources or ()]
    sys.addaudithook(note)  # for good: nothing that is measured comes after it
    taken = [source() for source in counters._sources or ()]
    threads = taken[0]["num_threads"]
    print(json.dumps({"first": first, "before": before, "after": after, "opened": opened, "threads": threads}))


if __name__ == "__main__":
    main()
