"""Settings of the whole suite."""

from __future__ import annotations

import os
import signal

import pytest
from hypothesis import settings
from xdist.scheduler import LoadFileScheduling

import turns
from testbeds.net_hosts import net_hosts as net_hosts
from testbeds.ray_cluster import ray_cluster as ray_cluster
from testbeds.slurm_cluster import slurm as slurm
from testbeds.slurm_cluster import slurm_cluster as slurm_cluster

# No deadline: a shared machine's pauses are not failures. The same examples every time in CI.
settings.register_profile("suite", deadline=None, max_examples=60, derandomize="CI" in os.environ)
settings.load_profile("suite")

# What a shell starts in the background, or with nohup, ignores these, and so does all that it starts: tests send some.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items[:] = turns.in_turn(items)


class _Together(LoadFileScheduling):
    """A process at a time takes a file, or the files that share a fixture."""

    def _split_scope(self, nodeid: str) -> str:
        return turns.together(super()._split_scope(nodeid))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> LoadFileScheduling:
    return _Together(config, log)
