"""Ranks that live through many short runs: importing torch takes seconds, a run of thirty steps hardly one.

    with LiveRanks(PROGRAM, 2, log=folder / "ranks.log") as ranks:       over loopback; hosts=NetHosts: one on each host
        answers = ranks.ask("train", steps=30)                           what every rank's `train` returned

PROGRAM calls `serve({"train": train})`. It is started as a file, once per rank; a line of JSON on its standard input is
what to do, a line on its standard output the answer. It ends when its input does.
"""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import sys
import traceback
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from testbeds.net_hosts import NetHosts

PATIENCE_S = 240.0
GROUP_TIMEOUT_S = 120
"""After which a rank gives up a message that its peers never answer."""
PORT = 29411
"""On hosts of their own no other program has it."""
ROOT = Path(__file__).parents[1]

Action = Callable[..., Any]


class LiveRanks:
    """`size` processes joined by gloo."""

    def __init__(self, program: Path, size: int, *, log: Path, hosts: NetHosts | None = None) -> None:
        self.size = size
        self._log = log.open("ab")
        self._processes: list[subprocess.Popen[str]] = []
        address, port = (hosts.address("h1"), PORT) if hosts else ("127.0.0.1", _free_port())
        interface = hosts.interface if hosts else "lo"
        told = {"GLOO_SOCKET_IFNAME": interface, "OMP_NUM_THREADS": "1", "PYTHONPATH": _path()}
        for rank in range(size):
            words = [sys.executable, str(program), str(rank), str(size), address, str(port)]
            if hosts:
                words = hosts.command(hosts.names[rank], ["env", *(f"{n}={v}" for n, v in told.items()), *words])
            self._processes.append(
                subprocess.Popen(
                    words,
                    env=os.environ | told,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=self._log,
                    text=True,
                    bufsize=1,
                )
            )

    def __enter__(self) -> LiveRanks:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def ask(self, action: str, **arguments: Any) -> list[Any]:
        """What an action returned on each rank; raises with the ranks' tracebacks if one failed."""
        for process in self._processes:
            assert process.stdin is not None
            process.stdin.write(json.dumps({"do": action, **arguments}) + "\n")
        answers = [self._answer(process) for process in self._processes]
        failed = [answer["failed"] for answer in answers if "failed" in answer]
        if failed:
            raise RuntimeError("\n".join(failed))
        return [answer["done"] for answer in answers]

    def _answer(self, process: subprocess.Popen[str]) -> dict[str, Any]:
        assert process.stdout is not None
        if not select.select([process.stdout], [], [], PATIENCE_S)[0]:
            raise RuntimeError(f"A rank did not answer within {PATIENCE_S:g} s: see {self._log.name}")
        line = process.stdout.readline()
        if not line:
            raise RuntimeError(f"A rank has ended: see {self._log.name}")
        return json.loads(line)

    def close(self) -> None:
        """Let the ranks end, and end those that do not."""
        for process in self._processes:
            assert process.stdin is not None and process.stdout is not None
            process.stdin.close()
        for process in self._processes:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            assert process.stdout is not None
            process.stdout.close()
        self._log.close()


def serve(actions: Mapping[str, Action]) -> None:
    """The life of a rank: joins the others, does what it is told, and ends with its input."""
    import torch
    import torch.distributed as dist

    from paceline.guard import keep_freed_memory

    keep_freed_memory()
    rank, size, address, port = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    torch.set_num_threads(1)
    torch.set_num_interop_threads(1)
    limit = timedelta(seconds=GROUP_TIMEOUT_S)
    store = dist.TCPStore(address, port, size, is_master=rank == 0, timeout=limit)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=size, timeout=limit)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = {"done": actions[request.pop("do")](rank, size, **request)}
        except Exception:
            answer = {"failed": f"rank {rank} of {size}:\n{traceback.format_exc()}"}
        print(json.dumps(answer), flush=True)
    os._exit(0)


def _path() -> str:
    """Where the ranks find what their parent finds, and this package."""
    return os.pathsep.join(dict.fromkeys((str(ROOT), *filter(None, sys.path))))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
