"""A process that issues messages by a clock of its own: python clock_rank.py RANK FOLDER AHEAD_NS GAIN

It shows AHEAD_NS more than the clock that all processes share, and gains GAIN seconds every second from its start on.

A line on standard input is how long to wait, in seconds, before the next message; the answer is what the shared
clock showed before and after it was issued. It ends when its input does.
"""

import sys
import time
from pathlib import Path

from paceline.probe.recorder import Recorder
from paceline.storage.folder import RunFolder
from paceline.storage.pulse import PulseWriter
from paceline.storage.span_stream import SpanWriter


def main() -> None:
    rank, folder, ahead_ns, gain = int(sys.argv[1]), RunFolder(Path(sys.argv[2])), int(sys.argv[3]), float(sys.argv[4])
    started = time.monotonic_ns()

    def clock_ns() -> int:
        now = time.monotonic_ns()
        return now + ahead_ns + round((now - started) * gain)

    print(started, flush=True)
    pulse = PulseWriter(folder.rank_pulse(rank))
    recorder = Recorder(SpanWriter(folder.rank_spans(rank)), pulse, clock_ns=clock_ns)
    recorder.group("0", (0, 1))
    for number, line in enumerate(sys.stdin):
        recorder.step = number
        with recorder.span("step"), recorder.span("communicate"):
            time.sleep(float(line))
            before = time.monotonic_ns()
            message = recorder.message("allreduce_", 1000, "0")
            print(before, time.monotonic_ns(), flush=True)
            time.sleep(0.01)
            recorder.completed(message)
    recorder.close()
    print(time.monotonic_ns(), flush=True)


if __name__ == "__main__":
    main()
