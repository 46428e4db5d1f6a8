"""Ranks, servers and a coordinator for tests: live processes that a case uses as many of as it needs.

Importing torch costs seconds, so seven processes are spawned once: four ranks, two servers, a coordinator. A smaller
context is made of the first of them, and the rest are idle. `Crewed.run` is called like `Ranks.run` of tests/multiproc.
"""

from __future__ import annotations

import multiprocessing
import os
import socket
import sys
import time
import traceback
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "multiproc"))

from ranks import Ranks

SIZE = 7


class Pool:
    """`SIZE` live processes joined by gloo over loopback."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.failed = False
        self.pipes: list[Connection] = []
        self._processes = []
        for number in range(SIZE):
            ours, theirs = context.Pipe()
            process = context.Process(target=member, args=(number, port, theirs), daemon=True)
            process.start()
            theirs.close()
            self.pipes.append(ours)
            self._processes.append(process)

    def close(self) -> None:
        for pipe in self.pipes:
            pipe.close()
        for process in self._processes:
            process.join(5)
            if process.is_alive():
                process.kill()
                process.join()


class Crewed(Ranks):
    """So many ranks with so many servers and a coordinator, of the processes of a pool."""

    def __init__(self, pool: Pool, ranks: int, servers: int, **options: int) -> None:
        self.size = ranks + servers + 1
        self._ranks = ranks
        self._pool = pool
        self._pipes = pool.pipes[: self.size]
        self._options = {"servers": servers, "server_threads": 1, **options}
        self.others: list[Any] = []
        """What servers and coordinator answered last."""

    def run(self, case: str, *, settings: dict[str, Any], **arguments: Any) -> list[Any]:
        """What each rank answered."""
        assert not self._pool.failed, "these processes failed in an earlier case, and may still wait for one another"
        self._pool.failed = True
        settings = {"strategy": "parameter-server", **settings, "strategy_options": self._options}
        answers = super().run(case, ranks=self._ranks, settings=settings, **arguments)
        self._pool.failed = False
        self.others = answers[self._ranks :]
        return answers[: self._ranks]


def member(number: int, port: int, pipe: Connection) -> None:
    """A process: does what it is told until the pipe closes."""
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    os.environ["OMP_NUM_THREADS"] = "1"
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    store = dist.TCPStore("127.0.0.1", port, SIZE, is_master=number == 0)
    dist.init_process_group("gloo", store=store, rank=number, world_size=SIZE)
    import cases

    while True:
        try:
            case, arguments = pipe.recv()
        except EOFError:
            os._exit(0)
        try:
            answer = True, CASES[case](number, **arguments)
        except BaseException:
            answer = False, f"process {number}:\n{traceback.format_exc()}"
        cases.over()
        pipe.send(answer)


def train(
    number: int,
    *,
    ranks: int,
    folder: str,
    data: str,
    settings: dict[str, Any],
    stop_at: int = 0,
    sleep_s: dict[int, float] | None = None,
) -> dict[str, Any]:
    """Train, from a checkpoint where the folder has one; `stop_at` ends it there, `sleep_s` makes ranks slow."""
    import cases
    import torch

    from paceline.probe.collectives import watch_collectives
    from paceline.training import loop
    from paceline.training.reading import load_data
    from paceline.training.resume import resume
    from paceline.training.session import Session

    _, manifest = cases.session(0, ranks, f"{folder}/told-{number}", data, settings)
    point = manifest.point
    me = replace(cases.identity(number, point.processes), rank=number, size=point.processes)
    one = cases.kept(Session(me, cases.RunFolder(Path(folder)), manifest, time.monotonic_ns()))
    watching = watch_collectives(one._recorder)
    if point.role(number) != "rank":
        facts = one.serve()
        del watching
        one._recorder.close()
        return facts
    rank = one.rank(load_data(Path(data), point, number))
    losses: list[float] = []

    def on_step(step: int, loss: torch.Tensor) -> None:
        losses.append(loss.item())
        time.sleep((sleep_s or {}).get(number, 0.0))
        if stop_at and step == stop_at:
            raise cases.Stopped

    rank.on_step = on_step
    resumed = resume(rank)
    try:
        loop.train(rank)
    except cases.Stopped:
        rank.optim.strategy.leave()
        return {"stopped": rank.progress.step}
    return finished(one, rank, losses, resumed, watching)


def finished(one: Any, rank: Any, losses: list[float], resumed: Any, watching: Any) -> dict[str, Any]:
    """What `cases.train` says of a rank, and its accuracy on the test set."""
    import cases
    import numpy as np
    import torch

    from paceline.data.cache import open_dataset

    together = torch.tensor(losses, dtype=torch.float64)
    peers = rank.optim.strategy.peers
    peers.sum(together)
    mapped = open_dataset(Path(rank.place.manifest.data_folder))
    test = one._samples(mapped.test_images, mapped.test_labels, mapped.dataset)
    everything = np.arange(mapped.dataset.test)
    _, accuracy = cases.evaluated(rank, test, everything)
    rank.optim.strategy.leave()
    del watching
    one._recorder.close()
    state = cases.state_tensors(rank.network.model, rank.optim.optimizer) if rank.place.rank == 0 else {}
    epochs = rank.progress.epochs
    return {
        "losses": together.tolist(),
        "weights": cases.weights_sha256(rank.network.model),
        "state": {name: hash(tensor.contiguous().numpy().tobytes()) for name, tensor in state.items()},
        "curves": cases.json.dumps([[e.train_loss, e.train_accuracy, e.validation_loss, e.step] for e in epochs]),
        "resumed_from": resumed.step if resumed else None,
        "accuracy": accuracy,
        "parameters": sum(p.numel() for p in rank.network.model.parameters()),
        "slots": sorted({name.rsplit(".", 1)[1] for name in state if name.startswith("optimizer.")}),
    }


CASES = {"train": train}
