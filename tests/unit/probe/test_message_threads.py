"""The threads of a real gloo: they are known by their names, and what they use is told apart."""

from __future__ import annotations

import threading
from datetime import timedelta

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import HashStore

from paceline.probe.process_counters import ProcessCounters
from paceline.units import seconds

ELEMENTS = 1 << 20


def exchange(store: dist.Store, rank: int, times: int) -> None:
    """One of two ends: a group of its own, over loopback, that sums tensors with the other."""
    options = dist.ProcessGroupGloo._Options()
    options._devices = [dist.ProcessGroupGloo.create_device(interface="lo")]
    options._timeout = timedelta(seconds=120)
    group = dist.ProcessGroupGloo(store, rank, 2, options)
    values = torch.ones(ELEMENTS)
    for _ in range(times):
        group.allreduce([values]).wait()


def both(times: int) -> None:
    store = HashStore()
    ends = [threading.Thread(target=exchange, args=(store, rank, times)) for rank in (0, 1)]
    for end in ends:
        end.start()
    for end in ends:
        end.join()


def test_what_gloo_uses_is_told_apart_and_kept_when_its_threads_end() -> None:
    process = ProcessCounters()
    used_s = []
    for _ in range(2):
        watched = threading.Event()
        seen = []

        def watch(over: threading.Event = watched, samples: list = seen) -> None:
            while not over.wait(0.02):
                samples.append(process.sample())

        watcher = threading.Thread(target=watch)
        watcher.start()
        both(60)
        watched.set()
        watcher.join()
        last = process.sample()
        used_s.append(seconds(last["comm_user_ns"] + last["comm_system_ns"]))
        grew = [sample["comm_user_ns"] for sample in seen if "comm_user_ns" in sample]
        assert grew == sorted(grew), "a thread that ended took its time along"
        assert last["user_ns"] + last["system_ns"] > last["comm_user_ns"] + last["comm_system_ns"]
    # 240 MB each way and added up: not to be had in less than these ticks of 10 ms.
    assert used_s[1] > used_s[0] >= 0.03
