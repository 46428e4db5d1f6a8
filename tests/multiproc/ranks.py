"""Real ranks for tests: one group of processes per world size, kept for the whole session.

Importing torch costs seconds, so a group is started once and then runs case after case: functions
of `cases.py`, called on every rank with the same arguments.

python ranks.py SIZE PORT ADDRESS      what mpiexec starts, once per rank
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Sequence
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import Any

TIMEOUT_S = 120
END_S = 30


class Ranks:
    """`size` live ranks joined by gloo over loopback."""

    size: int
    _pipes: list[Connection]
    _failed = False

    def run(self, case: str, **arguments: Any) -> list[Any]:
        """What the case returned on each rank; raises with a rank's traceback if one failed."""
        assert not self._failed, f"these {self.size} ranks failed in an earlier case"
        self._failed = True
        for pipe in self._pipes:
            pipe.send((case, arguments))
        answers = []
        for rank, pipe in enumerate(self._pipes):
            assert pipe.poll(TIMEOUT_S), f"rank {rank} of {self.size} did not answer within {TIMEOUT_S} s"
            answers.append(pipe.recv())
        failed = [answer for ok, answer in answers if not ok]
        # Ranks that all said how they failed are ready for the next case.
        self._failed = False
        assert not failed, "\n".join(failed)
        return [answer for _, answer in answers]

    def close(self) -> None:
        raise NotImplementedError


class SpawnedRanks(Ranks):
    """Ranks that are children of the test."""

    def __init__(self, size: int) -> None:
        self.size = size
        context = multiprocessing.get_context("spawn")
        port = _free_port()
        self._pipes = []
        self._processes = []
        for rank in range(size):
            ours, theirs = context.Pipe()
            process = context.Process(target=member, args=(rank, size, port, theirs), daemon=True)
            process.start()
            theirs.close()
            self._pipes.append(ours)
            self._processes.append(process)

    def close(self) -> None:
        for pipe in self._pipes:
            pipe.close()
        for process in self._processes:
            process.join(5)
            if process.is_alive():
                process.kill()
                process.join()


class MpiRanks(Ranks):
    """Ranks that mpiexec starts; they take their numbers from it, as every rank of a study does."""

    def __init__(self, size: int, mpiexec: Sequence[str], folder: Path, **environment: str) -> None:
        self.size = size
        address = str(folder / "ranks.socket")
        command = [*mpiexec, "-n", str(size), sys.executable, __file__, str(size), str(_free_port()), address]
        # A path of its own: ranks see the modules that the test sees.
        told = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))} | environment
        with Listener(address, family="AF_UNIX") as listener:
            self._log = (folder / "mpiexec.log").open("wb")
            self._process = subprocess.Popen(
                command, env=told, stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log, start_new_session=True
            )
            # Accepting has no time-out of its own; mpiexec that ends early would leave us waiting.
            listener._listener._socket.settimeout(TIMEOUT_S)  # type: ignore[attr-defined]
            try:
                found = dict(self._greeting(listener) for _ in range(size))
            except OSError as error:
                self._kill()
                raise AssertionError(f"not all ranks came:\n{(folder / 'mpiexec.log').read_text()}") from error
        self._pipes = [found[rank] for rank in range(size)]

    @staticmethod
    def _greeting(listener: Listener) -> tuple[int, Connection]:
        pipe = listener.accept()
        return pipe.recv(), pipe

    def close(self) -> None:
        """End the ranks; mpiexec has to find that they ended well."""
        for pipe in self._pipes:
            pipe.close()
        try:
            assert self._process.wait(END_S) == 0, Path(self._log.name).read_text()
        finally:
            self._kill()

    def _kill(self) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._log.close()


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
            cases.leave()
            os._exit(0)
        try:
            answer = True, getattr(cases, case)(rank, size, **arguments)
        except BaseException:
            answer = False, f"rank {rank} of {size}:\n{traceback.format_exc()}"
        cases.over()
        pipe.send(answer)


def main() -> None:
    from paceline.guard import end_with_parent
    from paceline.identity import this_rank

    end_with_parent(os.getppid())
    size, port, address = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    me = this_rank()
    assert me.size == size
    pipe = Client(address, family="AF_UNIX")
    pipe.send(me.rank)
    member(me.rank, size, port, pipe)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


if __name__ == "__main__":
    main()
