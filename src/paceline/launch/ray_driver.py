"""The process that talks to Ray for a launcher, which itself never loads it: python -m paceline.launch.ray_driver

    run RUN_DIR SETTINGS CLUSTER_FOLDER COMMAND...       look ADDRESS

    launcher ──▶ driver ──▶ Ray ──▶ one task per rank, in its bundle ──▶ keeper ──▶ rank

Loading Ray takes a second and leaves handlers and threads behind. The driver ends with its launcher, Ray ends the
tasks with their driver, a keeper ends with its task and a rank with its keeper. All else goes through the run folder.
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
from paceline.identity import rank_variables, tell_libraries
from paceline.launch.kept import wrapper_command
from paceline.launch.ray_nodes import Node, bundles, check_capacity, lost_ranks_file, placement_strategy, rank_places
from paceline.launch.sweeper import SESSION_FILE
from paceline.records import roles
from paceline.records.codec import from_plain, read_record, write_record
from paceline.records.folder import RunFolder
from paceline.records.run import Manifest, RankEnd, RankStart
from paceline.records.settings import LaunchSettings
from paceline.records.study import Point
from paceline.units import duration_text

PATIENCE_S = 120.0
"""How long to wait for nodes that are there, but busy with something else."""
_STORE_BYTES = 80_000_000
"""Of Ray's object store, through which nothing goes: near the least that Ray accepts."""
_CONNECT_S = 0.5
# Ray's word for "no cluster beyond this machine": without it 127.0.0.1 is taken to mean the machine's own address.
_LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
_QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_DISABLE_FAILURE_SIGNAL_HANDLER": "1"}


def main() -> int:
    """Do what the command line says; what goes wrong becomes a sentence on standard error."""
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
        """0 when every keeper has ended after saying how; `cluster` is the folder of one to be started here."""
        here = os.getcwd()
        # Ray lets its workers import from the driver's folder: a file there must not stand in for a module of Python.
        os.chdir(self._folder.path)
        point, settings = self._point, self._settings
        ray = _joined(settings.ray_address) if settings.ray_address else _started(Path(cluster), point, settings)
        nodes = _nodes(ray)
        check_capacity(point, settings, nodes, f"the {_cluster_text(settings.ray_address)}")
        signal.signal(signal.SIGTERM, signal.SIG_DFL)  # Ray's own handler takes the cluster down in order
        bundle_nodes = self._granted(ray)
        by_number = {node.node: node for node in nodes}
        tasks = {}
        for rank, place in enumerate(rank_places(point, bundle_nodes)):
            told = rank_variables(rank, point.processes, place.local_rank, place.local_size)
            task = self._task(ray, rank, place.bundle).remote(
                self._command(told, command), here, str(self._folder.launcher_log.resolve())
            )
            tasks[task] = (rank, by_number[bundle_nodes[place.bundle]])
        code = self._wait(ray, tasks)
        if settings.ray_address:
            ray.shutdown()
        return code

    def _granted(self, ray: Any) -> list[str]:
        """Wait for Ray to set the bundles aside; the node of each."""
        from ray.util.placement_group import placement_group, placement_group_table

        asked = bundles(self._point, self._settings)
        self._group = placement_group(asked, strategy=placement_strategy(self._point, self._settings))
        if not self._group.wait(PATIENCE_S):
            free, there = (found.get("CPU", 0) for found in (ray.available_resources(), ray.cluster_resources()))
            wanted = " + ".join(f"{bundle['CPU']:g}" for bundle in asked)
            raise RunError(
                f"The {_cluster_text(self._settings.ray_address)} is busy: {free:g} of its {there:g} CPUs are free; "
                f"the {wanted} that were asked for were not to be had within {duration_text(PATIENCE_S)}.",
                next="ray status shows who uses it. Run the same command again when it is free.",
            )
        nodes = placement_group_table(self._group)["bundles_to_node_id"]
        return [nodes[bundle] for bundle in range(len(asked))]

    def _task(self, ray: Any, rank: int, bundle: int) -> Any:
        """The task of one rank, as it is to be scheduled."""
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        where = PlacementGroupSchedulingStrategy(self._group, placement_group_bundle_index=bundle)
        options: dict[str, Any] = {}
        if self._settings.gpus_per_host:
            # The bundle holds the host's GPUs; each rank takes its own by local rank, and so has to see them all.
            options["runtime_env"] = {"env_vars": {"RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES": "1"}}
        return ray.remote(run_wrapper).options(
            num_cpus=roles.cores(self._point, rank), max_retries=0, scheduling_strategy=where, **options
        )

    def _command(self, told: dict[str, str], command: tuple[str, ...]) -> tuple[str, ...]:
        """A keeper with a rank's place added to whatever environment Ray gives its workers."""
        return ("env", *(f"{name}={value}" for name, value in told.items()), *wrapper_command(self._folder, command))

    def _wait(self, ray: Any, tasks: dict[Any, tuple[int, Node]]) -> int:
        """Wait until every keeper has ended; what the keepers could not say is said here."""
        pending = list(tasks)
        while pending:
            (done,), pending = ray.wait(pending)
            rank, node = tasks[done]
            try:
                code = ray.get(done)
            except ray.exceptions.RayError as error:
                self._lost(rank, node, error)
            else:
                if code and not self._folder.rank_end(rank).exists():
                    return 1  # its keeper did not even start it: the others would wait for it in vain
        return 0

    def _lost(self, rank: int, node: Node, error: Exception) -> None:
        """A task that ended with its worker process or with its whole node, and the rank with it: said in its place."""
        ended_at_ns = time.monotonic_ns()
        start = self._folder.rank_start(rank)
        host = read_record(start, RankStart).host if start.exists() else node.host
        what = "the node died" if "NodeDied" in type(error).__name__ else "the Ray worker that kept it died"
        with lost_ranks_file(self._folder).open("a") as file:
            file.write(f"Ray lost rank {rank} on {host} (node {node.address}): {what}.\n")
        if not self._folder.rank_end(rank).exists():
            # Its keeper and the rank were killed by the kernel, with the process that they were tied to.
            end = RankEnd(rank=rank, host=host, code=-signal.SIGKILL, ended_at_ns=ended_at_ns)
            write_record(self._folder.rank_end(rank), end)


def run_wrapper(command: tuple[str, ...], folder: str, log: str) -> int:
    """A task of Ray's: runs a keeper to its end. Sent to the workers as it stands, so it imports what it needs."""
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
    """Ray, after starting a cluster on this machine that ends with this process and listens on loopback alone."""
    (folder / SESSION_FILE).write_text(str(os.getsid(0)))
    token = folder / "token"
    with open(token, "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
        file.write(os.urandom(32).hex())
    tell_libraries(
        {
            **_LOOPBACK,
            "RAY_AUTH_MODE": "token",  # loopback is shared with everybody on this machine
            "RAY_AUTH_TOKEN_PATH": str(token),
            "RAY_memory_monitor_refresh_ms": "0",  # a rank is ended by the kernel or not at all, as everywhere else
        }
    )
    ray = _loaded()
    try:
        ray.init(
            address="local",
            num_cpus=sum(roles.cores(point, process) for process in range(point.processes)),
            num_gpus=settings.gpus_per_host,
            object_store_memory=_STORE_BYTES,
            include_dashboard=False,
            _temp_dir=str(folder / "r"),  # which Ray opens to everybody: the folder above stays ours
            _node_ip_address="127.0.0.1",
            **_quietly(),
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
        tell_libraries(_LOOPBACK)
    ray = _loaded()
    try:
        ray.init(address=address, **_quietly())
    except (ray.exceptions.RayError, OSError, RuntimeError, ValueError) as error:
        raise RunError(
            f"The {_cluster_text(address)} cannot be joined: {_first_line(error)}",
            right="A study has to be started on one of the cluster's nodes, with the version of Ray and of Python that "
            "the cluster runs.",
            next=f"Try: ray status --address={address}",
        ) from error
    return ray


def _loaded() -> Any:
    tell_libraries(_QUIET)
    try:
        import ray
        import ray.exceptions
    except ImportError as error:
        raise RunError(
            f"Ray does not load: {_first_line(error)}", next="Install it: pip install 'paceline[ray]'"
        ) from error
    return ray


def _quietly() -> dict[str, Any]:
    return {"log_to_driver": False, "logging_level": logging.ERROR}


def _is_loopback_cluster(address: str) -> bool:
    """Whether a cluster listens on loopback alone: Ray would take 127.0.0.1 to mean the machine's own address."""
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
    # A cluster of our own ends with this process; taking it down in order would take seconds.
    os._exit(code)
