"""Settings of the whole suite."""

from __future__ import annotations

import os
import signal

from hypothesis import settings

from net_hosts import net_hosts as net_hosts
from ray_cluster import ray_cluster as ray_cluster
from slurm_cluster import slurm as slurm
from slurm_cluster import slurm_cluster as slurm_cluster

# No deadline: a shared machine's pauses are not failures. The same examples every time in CI.
settings.register_profile("suite", deadline=None, max_examples=60, derandomize="CI" in os.environ)
settings.load_profile("suite")

# What a shell starts in the background, or with nohup, ignores these, and so does all that it starts: tests send some.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
