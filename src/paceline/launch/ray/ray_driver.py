"""The process that uses Ray on behalf of the launcher: python -m paceline.launch.ray.ray_driver

    run RUN_DIR SETTINGS CLUSTER_FOLDER COMMAND...       look ADDRESS

    launcher ──▶ driver ──▶ Ray ──▶ one task per rank, in its bundle ──▶ wrapper ──▶ rank

The launcher never imports Ray: that takes a second and adds signal handlers and threads. The driver ends with its
launcher, a task with its driver, a wrapper with its task, and a rank with its wrapper. Everything else passes through
the run folder.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import signal
import socket
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import psutil

from paceline.errors import PacelineError, RunError
from paceline.identity import rank_variables, set_variables
from paceline.launch.ray.ray_nodes import (
    Node,
    bundles,
    check_capacity,
    lost_ranks_file,
    placement_strategy,
    rank_places,
)
from paceline.launch.sweeper import SESSION_FILE
from paceline.launch.wrapper.wrapped_ranks import wrapper_command
from paceline.records import process_roles
from paceline.records.run import Manifest, RankEnd, RankStart
from paceline.records.settings import LaunchSettings
from paceline.records.study import Point
from paceline.storage.codec import from_plain, read_record, write_record
from paceline.storage.folder import RunFolder
from paceline.units import duration_text

PATIENCE_S = 120.0
"""How long to wait for nodes that other work occupies."""
_STORE_BYTES = 80_000_000
"""Size of Ray's object store, which is not used: near the minimum that Ray accepts."""
_CONNECT_S = 0.5
# Limits the cluster to this machine: without it Ray replaces 127.0.0.1 by the machine's own address.
_LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
_QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_DISABLE_FAILURE_SIGNAL_HANDLER": "1"}
_QUIET_OPTIONS: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}


def main() -> int:
    """Run a command of the module's docstring; errors go to standard error."""
    verb, *rest = sys.argv[1:]
    try:
        if verb == "look":
            sys.stdout.write(json.dumps([asdict(node) for node in _nodes(_joined(rest[0]))]) + "\n")
            return 0
        run_dir, settings, cluster, *command = rest
        folder = RunFolder(Path(run_dir))
        return Driver(folder, from_plain(LaunchSettings, json.loads(settings))).run(cluster, tuple(command))
    except PacelineError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code


class Driver:
    """Starts the ranks of one run through Ray, and waits for them."""

    def __init__(self, folder: RunFolder, settings: LaunchSettings) -> None:
        self._folder = folder
        self._settings = settings
        self._point: Point = read_record(folder.manifest, Manifest).point

    def run(self, cluster: str, command: tuple[str, ...]) -> int:
        """0 when every wrapper has recorded the end of its rank; `cluster` is the folder of a private cluster."""
        here = os.getcwd()
        # Ray lets its workers import from the driver's folder: a file there must not shadow a standard module.
        os.chdir(self._folder.path)
        point, settings = self._point, self._settings
        ray = _joined(settings.ray_address) if settings.ray_address else _started(Path(cluster), point, settings)
        nodes = _nodes(ray)
        check_capacity(point, settings, nodes, f"the {_cluster_text(settings.ray_address)}")
        signal.signal(signal.SIGTERM, signal.SIG_DFL)  # Ray's handler would take seconds to shut the cluster down
        bundle_nodes = self._granted(ray)
        by_number = {node.node: node for node in nodes}
        tasks = {}
        for rank, place in enumerate(rank_places(point, bundle_nodes)):
            variables = rank_variables(rank, point.processes, place.local_rank, place.local_size)
            assignments = (f"{name}={value}" for name, value in variables.items())
            wrapper = ("env", *assignments, *wrapper_command(self._folder, command))
            task = self._task(ray, rank, place.bundle).remote(wrapper, here, str(self._folder.launcher_log.resolve()))
            tasks[task] = (rank, by_number[bundle_nodes[place.bundle]])
        code = self._wait(ray, tasks)
        if settings.ray_address:
            ray.shutdown()
        return code

    def _granted(self, ray: Any) -> list[str]:
        """Wait until Ray has reserved the bundles; the node of each."""
        from ray.util.placement_group import placement_group, placement_group_table

        requested = bundles(self._point, self._settings)
        self._group = placement_group(requested, strategy=placement_strategy(self._point, self._settings))
        if not self._group.wait(PATIENCE_S):
            free, total = (found.get("CPU", 0) for found in (ray.available_resources(), ray.cluster_resources()))
            cpus = " + ".join(f"{bundle['CPU']:g}" for bundle in requested)
            raise RunError(
                f"The {_cluster_text(self._settings.ray_address)} is busy: {free:g} of its {total:g} CPUs are free; "
                f"the requested {cpus} did not become free within {duration_text(PATIENCE_S)}.",
                next="ray status shows who uses it. Run the same command again when it is free.",
            )
        nodes = placement_group_table(self._group)["bundles_to_node_id"]
        return [nodes[bundle] for bundle in range(len(requested))]

    def _task(self, ray: Any, rank: int, bundle: int) -> Any:
        """The task of one rank, with its scheduling options."""
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        where = PlacementGroupSchedulingStrategy(self._group, placement_group_bundle_index=bundle)
        options: dict[str, Any] = {}
        if self._settings.gpus_per_host:
            # The bundle has the host's GPUs; each rank chooses one by its local rank, so it must see all of them.
            options["runtime_env"] = {"env_vars": {"RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES": "1"}}
        return ray.remote(run_wrapper).options(
            num_cpus=process_roles.cores(self._point, rank), max_retries=0, scheduling_strategy=where, **options
        )

    def _wait(self, ray: Any, tasks: dict[Any, tuple[int, Node]]) -> int:
        """Wait until every wrapper has ended; record the end of ranks whose wrappers could not."""
        pending = list(tasks)
        while pending:
            (done,), pending = ray.wait(pending)
            rank, node = tasks[done]
            try:
                code = ray.get(done)
            except ray.exceptions.RayError as error:
                self._record_lost(rank, node, error)
            else:
                if code and not self._folder.rank_end(rank).exists():
                    return 1  # its wrapper did not start it, and the other ranks would wait forever
        return 0

    def _record_lost(self, rank: int, node: Node, error: Exception) -> None:
        """Record the end of a rank whose task ended with its worker process or its node."""
        ended_at_ns = time.monotonic_ns()
        start = self._folder.rank_start(rank)
        host = read_record(start, RankStart).host if start.exists() else node.host
        what = "the node died" if "NodeDied" in type(error).__name__ else "its Ray worker died"
        with lost_ranks_file(self._folder).open("a") as file:
            file.write(f"Ray lost rank {rank} on {host} (node {node.address}): {what}.\n")
        if not self._folder.rank_end(rank).exists():
            # The kernel killed its wrapper and the rank with their parent.
            end = RankEnd(rank=rank, host=host, code=-signal.SIGKILL, ended_at_ns=ended_at_ns)
            write_record(self._folder.rank_end(rank), end)


def run_wrapper(command: tuple[str, ...], folder: str, log: str) -> int:
    """A Ray task that runs a rank wrapper. Ray sends the function to its workers, so it imports what it needs."""
    import os
    import subprocess

    with open(log, "ab", buffering=0) as output:
        process = subprocess.Popen(
            command,
            cwd=folder if os.path.isdir(folder) else None,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    return process.wait()


def _started(folder: Path, point: Point, settings: LaunchSettings) -> Any:
    """Ray, after starting a cluster on this machine that ends with this process and listens on loopback only."""
    (folder / SESSION_FILE).write_text(str(os.getsid(0)))
    token = folder / "token"
    with open(token, "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
        file.write(os.urandom(32).hex())
    set_variables(
        {
            **_LOOPBACK,
            "RAY_AUTH_MODE": "token",  # all users of this machine share its loopback
            "RAY_AUTH_TOKEN_PATH": str(token),
            "RAY_memory_monitor_refresh_ms": "0",  # only the kernel kills ranks when memory runs out
        }
    )
    ray = _loaded()
    try:
        ray.init(
            address="local",
            num_cpus=sum(process_roles.cores(point, process) for process in range(point.processes)),
            num_gpus=settings.gpus_per_host,
            object_store_memory=_STORE_BYTES,
            include_dashboard=False,
            _temp_dir=str(folder / "r"),  # Ray makes it readable for all; its parent is private
            _node_ip_address="127.0.0.1",
            **_QUIET_OPTIONS,
        )
    except (ray.exceptions.RayError, OSError, RuntimeError, ValueError) as error:
        raise RunError(
            f"Ray could not start a cluster on this machine: {_first_line(error)}",
            right=f"Its logs were in {folder}.",
            next="Start one by hand (ray start --head) and name it: --set launch.ray_address=ADDRESS.",
        ) from error
    return ray


def _joined(address: str) -> Any:
    """Ray, as a member of an existing cluster."""
    if _is_loopback_cluster(address):
        set_variables(_LOOPBACK)
    ray = _loaded()
    try:
        ray.init(address=address, **_QUIET_OPTIONS)
    except (ray.exceptions.RayError, OSError, RuntimeError, ValueError) as error:
        raise RunError(
            f"The {_cluster_text(address)} cannot be joined: {_first_line(error)}",
            right="A study must run on one of the cluster's nodes, with the versions of Ray and Python of the cluster.",
            next=f"Try: ray status --address={address}",
        ) from error
    return ray


def _loaded() -> Any:
    set_variables(_QUIET)
    try:
        import ray
        import ray.exceptions
    except ImportError as error:
        raise RunError(
            f"Ray does not load: {_first_line(error)}", next="Install it: pip install 'paceline[ray]'"
        ) from error
    return ray


def _is_loopback_cluster(address: str) -> bool:
    """Whether a cluster listens on loopback only: Ray would replace 127.0.0.1 by the machine's own address."""
    host, _, port = address.rpartition(":")
    if host not in ("127.0.0.1", "localhost") or not port.isdigit():
        return False
    own = [a.address for found in psutil.net_if_addrs().values() for a in found if a.family == socket.AF_INET]
    for other in own:
        if not other.startswith("127."):
            with contextlib.suppress(OSError), socket.create_connection((other, int(port)), timeout=_CONNECT_S):
                return False
    return True


def _nodes(ray: Any) -> list[Node]:
    return [
        Node(
            node=node["NodeID"],
            host=node["NodeManagerHostname"],
            address=node["NodeManagerAddress"],
            cpus=int(node["Resources"].get("CPU", 0)),
            gpus=int(node["Resources"].get("GPU", 0)),
        )
        for node in ray.nodes()
        if node["Alive"]
    ]


def _cluster_text(address: str) -> str:
    return f"Ray cluster at {address}" if address else "Ray cluster on this machine"


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    # A private cluster ends with this process; an orderly shutdown would take seconds.
    os._exit(code)
