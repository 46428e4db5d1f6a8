"""Real ranks for tests: one group of processes per world size, kept for the whole session.

Importing torch costs seconds, so a group is spawned once and then runs case after case: functions
of `cases.py`, called on every rank with the same arguments.
"""

from __future__ import annotations

import multiprocessing
import os
import socket
import traceback
from multiprocessing.connection import Connection
from typing import Any

TIMEOUT_S = 120


class Ranks:
    """`size` live ranks joined by gloo over loopback."""

    def __init__(self, size: int) -> None:
        self.size = size
        context = multiprocessing.get_context("spawn")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self._pipes: list[Connection] = []
        self._processes = []
        for rank in range(size):
            ours, theirs = context.Pipe()
            process = context.Process(target=member, args=(rank, size, port, theirs), daemon=True)
            process.start()
            theirs.close()
            self._pipes.append(ours)
            self._processes.append(process)

    def run(self, case: str, **arguments: Any) -> list[Any]:
        """What the case returned on each rank; raises with a rank's traceback if one failed."""
        for pipe in self._pipes:
            pipe.send((case, arguments))
        answers = []
        for rank, pipe in enumerate(self._pipes):
            assert pipe.poll(TIMEOUT_S), f"rank {rank} of {self.size} did not answer within {TIMEOUT_S} s"
            answers.append(pipe.recv())
        failed = [answer for ok, answer in answers if not ok]
        assert not failed, "\n".join(failed)
        return [answer for _, answer in answers]

    def close(self) -> None:
        for pipe in self._pipes:
            pipe.close()
        for process in self._processes:
            process.join(5)
            if process.is_alive():
                process.kill()
                process.join()


def member(rank: int, size: int, port: int, pipe: Connection) -> None:
    """A rank: does what it is told until the pipe closes."""
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    os.environ["OMP_NUM_THREADS"] = "1"
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    if size > 1:
        store = dist.TCPStore("127.0.0.1", port, size, is_master=rank == 0)
        dist.init_process_group("gloo", store=store, rank=rank, world_size=size)
    import cases

    while True:
        try:
            case, arguments = pipe.recv()
        except EOFError:
            os._exit(0)
        try:
            pipe.send((True, getattr(cases, case)(rank, size, **arguments)))
        except BaseException:
            pipe.send((False, f"rank {rank} of {size}:\n{traceback.format_exc()}"))
