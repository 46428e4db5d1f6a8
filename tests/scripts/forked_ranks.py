"""Ranks without the price of importing torch each time: one process loads it, and every rank is forked from it.

    python forked_ranks.py      a line of JSON (script, arguments, size, probed, folder) ──▶ exit codes of the ranks

Each rank has an environment as torchrun makes it, the folder as its own, and its output in `out-0.txt` there. What only
a process of its own can show (signals, spawned workers, torchrun itself) is tested with real ones.
"""

from __future__ import annotations

import json
import os
import runpy
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any

import torch._dynamo  # every optimizer loads it
import torch.distributed.fsdp  # noqa: F401

import paceline.probe.attached
import paceline.probe.watcher  # noqa: F401
from paceline.probe import __main__ as probe

PATIENCE_S = 100


def main() -> None:
    for line in sys.stdin:
        print(json.dumps(run(**json.loads(line))), flush=True)


def run(script: str, arguments: list[str], size: int, probed: bool, folder: str) -> list[int]:
    """The exit codes of the ranks; those that outstay their time are killed."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        port = found.getsockname()[1]
    ranks = [start(script, arguments, rank, size, port, probed, Path(folder)) for rank in range(size)]
    until = time.monotonic() + PATIENCE_S
    codes: dict[int, int] = {}
    while len(codes) < size:
        for pid in set(ranks) - set(codes):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                codes[pid] = os.waitstatus_to_exitcode(status)
            elif time.monotonic() > until:
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)
    return [codes[pid] for pid in ranks]


def start(script: str, arguments: list[str], rank: int, size: int, port: int, probed: bool, folder: Path) -> int:
    pid = os.fork()
    if pid:
        return pid
    told = {"RANK": rank, "WORLD_SIZE": size, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": size, "MASTER_PORT": port}
    os.environ |= {name: str(value) for name, value in told.items()} | {"MASTER_ADDR": "127.0.0.1"}
    os.chdir(folder)
    output = os.open(f"out-{rank}.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, 1)
    os.dup2(output, 2)
    code: Any = 1
    try:
        if probed:
            code = probe.main([script, *arguments], time.monotonic_ns())
        else:
            sys.argv, sys.path[0] = [script, *arguments], str(Path(script).parent)
            runpy.run_path(script, run_name="__main__")
            code = 0
    except SystemExit as asked:
        code = asked.code if isinstance(asked.code, int) else 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
