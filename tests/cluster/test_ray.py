"""Ranks through a real Ray of two nodes on this machine, and through a cluster that the launcher starts itself."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from light_ranks.light_launch import (
    ENDLESS,
    HOST,
    launch,
    light,
    manifest,
    point,
    running_processes,
    running_ranks,
    wait_for,
)
from paceline.data import store
from paceline.errors import RankError, RequestError, RunError
from paceline.launch.local import LocalLauncher
from paceline.launch.ray.ray_launcher import RayLauncher
from paceline.records.settings import DataSettings, LaunchSettings, ModelSettings, TrainSettings
from paceline.records.study import Point
from paceline.storage.folder import RunFolder
from testbeds.ray_cluster import HEAD_CPUS, SECOND_HOST, RayCluster

# A process that launches light ranks through Ray: RUN_DIR, settings as JSON, options of the ranks.
LAUNCHING = """
import json, sys
from pathlib import Path
from light_ranks.light_launch import launch, light, manifest, point
from paceline.launch.ray.ray_launcher import RayLauncher
from paceline.records.settings import LaunchSettings
settings = LaunchSettings(**json.loads(sys.argv[2]))
launch(Path(sys.argv[1]), manifest(point(2), settings=settings), RayLauncher(light(*sys.argv[3:]), settings))
"""


def on_two_hosts(**settings) -> Point:
    """Two ranks on two nodes; both are this machine's cores in truth, so none is pinned."""
    return point(2, hosts=2, pin=False, **settings)


def seen(path: Path, ranks: int) -> list[dict]:
    return [json.loads((path / f"seen-{rank}.json").read_text()) for rank in range(ranks)]


def run(path: Path, where: Point, settings: LaunchSettings, *options: object, progress=lambda progress: None):
    return launch(path, manifest(where, settings=settings), RayLauncher(light(*options), settings), progress=progress)


def places(path: Path, ranks: int) -> list[tuple[str, str]]:
    names = ("PACELINE_LOCAL_RANK", "PACELINE_LOCAL_SIZE")
    return [tuple(at["environment"][name] for name in names) for at in seen(path, ranks)]


def listening(processes: list[psutil.Process]) -> set[str]:
    found = set()
    for process in processes:
        try:
            connections = process.net_connections("inet")
        except psutil.Error:
            continue
        found |= {c.laddr.ip.removeprefix("::ffff:") for c in connections if c.status == psutil.CONN_LISTEN}
    return found


def test_ranks_are_spread_over_the_nodes_and_know_their_places(ray_cluster: RayCluster, tmp_path: Path) -> None:
    outcome = run(tmp_path, on_two_hosts(), ray_cluster.settings)
    assert {report.host for report in outcome.reports} == {HOST, SECOND_HOST}
    assert places(tmp_path, 2) == [("0", "1"), ("0", "1")]


def test_packed_ranks_share_a_node(ray_cluster: RayCluster, tmp_path: Path) -> None:
    outcome = run(tmp_path, on_two_hosts(), replace(ray_cluster.settings, spread=False, gpus_per_host=1))
    assert [report.host for report in outcome.reports] == [HOST, HOST]  # the one node with two GPUs
    assert places(tmp_path, 2) == [("0", "2"), ("1", "2")]
    # Each takes a GPU by its local rank, so Ray must not have hidden them.
    assert not any("CUDA_VISIBLE_DEVICES" in at["environment"] for at in seen(tmp_path, 2))


def test_what_the_cluster_can_never_give_is_refused_with_what_is_there(ray_cluster: RayCluster, tmp_path: Path) -> None:
    launcher = RayLauncher(light(), ray_cluster.settings)
    launcher.check(on_two_hosts())
    with pytest.raises(RequestError, match=rf"{HEAD_CPUS + 1} ranks of 1 thread need {HEAD_CPUS + 1} CPUs on one node"):
        launcher.check(point(HEAD_CPUS + 1))
    with pytest.raises(RequestError, match=r"3 ranks of 1 thread need 3 nodes .* has 2 nodes: .*with 1 CPU") as refused:
        launcher.check(point(3, hosts=3))
    assert SECOND_HOST in str(refused.value)
    # The driver refuses the same without waiting: a study checks all its points, another caller may not.
    began = time.monotonic()
    with pytest.raises(RunError, match="3 ranks of 1 thread need 3 nodes"):
        run(tmp_path, point(3, hosts=3), ray_cluster.settings)
    assert time.monotonic() - began < 60


def test_a_rank_killed_on_another_node_is_named_with_its_host(ray_cluster: RayCluster, tmp_path: Path) -> None:
    def kill(progress) -> None:
        if progress.step > 5:
            for rank in running_ranks(tmp_path).values():
                if rank.environ()["PACELINE_RANK"] == other_rank(tmp_path):
                    rank.kill()

    with pytest.raises(RankError, match=rf"^Rank \d of 2 on {SECOND_HOST} was killed by SIGKILL after step "):
        run(tmp_path, on_two_hosts(), ray_cluster.settings, *ENDLESS, progress=kill)


def other_rank(path: Path) -> str:
    """The rank on the second node."""
    starts = [json.loads(RunFolder(path).rank_start(rank).read_text()) for rank in range(2)]
    return next(str(start["rank"]) for start in starts if start["host"] == SECOND_HOST)


def test_a_node_that_dies_is_named_and_ends_the_run(ray_cluster: RayCluster, tmp_path: Path) -> None:
    killed_at = []

    def kill(progress) -> None:
        if progress.step > 5 and not killed_at:
            killed_at.append(time.monotonic())
            ray_cluster.second.end()

    try:
        with pytest.raises(RankError, match=rf"^Ray lost rank \d on {SECOND_HOST} \(node 127.0.0.1\): ") as caught:
            run(tmp_path, on_two_hosts(), ray_cluster.settings, *ENDLESS, progress=kill)
        assert time.monotonic() - killed_at[0] < 30
        assert f"on {SECOND_HOST} was killed by SIGKILL after step" in str(caught.value)
        assert wait_for(lambda: not running_processes(tmp_path), 10)
    finally:
        ray_cluster.start_second()


def test_a_killed_launcher_leaves_a_clusters_nodes_as_they_were(ray_cluster: RayCluster, tmp_path: Path) -> None:
    process = start_launching(tmp_path, {"ray_address": ray_cluster.address}, *ENDLESS)
    try:
        assert wait_for(lambda: len(running_ranks(tmp_path)) == 2, 120, every_s=0.1)
    finally:
        process.kill()
        process.wait()
    assert wait_for(lambda: not running_processes(tmp_path), 30, every_s=0.1), running_processes(tmp_path)
    # What was set aside for the dead is free again.
    assert run(tmp_path / "next", point(2, threads=HEAD_CPUS // 2), ray_cluster.settings).reports


def start_launching(path: Path, settings: dict, *options: str) -> subprocess.Popen[bytes]:
    tests = str(Path(__file__).parents[1])
    return subprocess.Popen(
        [sys.executable, "-c", LAUNCHING, str(path), json.dumps(settings), *options],
        env={**os.environ, "PYTHONPATH": tests},
    )


def cluster_folders() -> set[Path]:
    return set(Path(tempfile.gettempdir()).glob("paceline-ray-*/r"))


def test_a_cluster_of_our_own_listens_on_loopback_and_goes_with_a_killed_launcher(tmp_path: Path) -> None:
    before = cluster_folders()
    process = start_launching(tmp_path, {}, *ENDLESS)
    try:
        assert wait_for(lambda: len(running_ranks(tmp_path)) == 2, 180, every_s=0.1)
        family = psutil.Process(process.pid).children(recursive=True)
        names = {child.name() for child in family}
        assert {"gcs_server", "raylet"} <= names
        assert listening(family) == {"127.0.0.1"}
        (folder,) = cluster_folders() - before
        assert folder.parent.stat().st_mode & 0o777 == 0o700
        assert_a_stranger_is_refused(folder.parent, tmp_path / "stranger")
    finally:
        process.kill()
        process.wait()
    assert wait_for(lambda: not any(map(alive, family)), 30, every_s=0.1), [p for p in family if alive(p)]
    assert not folder.parent.exists()


def assert_a_stranger_is_refused(folder: Path, output: Path) -> None:
    """Somebody else on this machine, who reaches loopback and does not have the token, gets nothing."""
    (port,) = folder.glob("r/session_2*/gcs_server_port_*")
    command = (sys.executable, "-P", "-m", "paceline.launch.ray.ray_driver", "look", f"127.0.0.1:{port.read_text()}")
    with output.open("wb") as file:
        environment = {**os.environ, "RAY_AUTH_MODE": "disabled"}
        process = subprocess.Popen(command, env=environment, stdout=file, stderr=subprocess.STDOUT)
    try:
        # Ray tries again for some 20 s before it gives up: the first refusal will do.
        assert wait_for(lambda: "InvalidAuthToken" in output.read_text(), 60, every_s=0.1), output.read_text()
    finally:
        process.kill()
        process.wait()


def alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def test_a_cluster_of_our_own_is_gone_when_the_run_is(tmp_path: Path) -> None:
    folders, others = cluster_folders(), set(psutil.Process().children(recursive=True))
    family: set[psutil.Process] = set()

    def look(progress) -> None:
        if progress.step:
            family.update(set(psutil.Process().children(recursive=True)) - others)
            assert {"gcs_server", "raylet"} <= {process.name() for process in family}
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, point(2), LaunchSettings(), *ENDLESS, progress=look)
    assert not [process for process in family if alive(process)]
    assert cluster_folders() == folders


def test_hosts_need_a_cluster_that_spans_them() -> None:
    with pytest.raises(RequestError, match=r"run.hosts = 2, and no Ray cluster is named(.|\n)*launch.ray_address"):
        RayLauncher(light()).check(point(2, hosts=2))


def test_an_address_where_nobody_listens_is_refused_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(RequestError, match=f"There is no Ray cluster at 127.0.0.1:{port}: Connection refused"):
        RayLauncher(light(), LaunchSettings(ray_address=f"127.0.0.1:{port}")).check(point(2))


def test_training_over_two_nodes_ends_with_the_weights_of_local_ranks(ray_cluster: RayCluster, tmp_path: Path) -> None:
    data = DataSettings(dataset="digits")
    prepared = store.prepare(data, base=tmp_path, cache=tmp_path / "cache")
    where = Point(
        data=data,
        data_digest=prepared.dataset.digest,
        model=ModelSettings(name="mlp"),
        model_digest="",
        train=TrainSettings(batch_global=64, steps=20, optimizer="sgd", lr=0.05),
        ranks=2,
        strategy="flat",
        device="cpu",
        pin=False,
    )
    launchers = {"local": LocalLauncher(), "ray": RayLauncher(settings=ray_cluster.settings)}
    weights, hosts = {}, {}
    for name, launcher in launchers.items():
        there = replace(where, launcher=name, hosts=2 if name == "ray" else 1)
        told = replace(manifest(there, settings=ray_cluster.settings), data_folder=str(prepared.folder))
        reports = launch(tmp_path / name, told, launcher, heartbeat_s=60).reports
        weights[name] = {report.training.weights_sha256 for report in reports}
        hosts[name] = {report.host for report in reports}
    assert hosts == {"local": {HOST}, "ray": {HOST, SECOND_HOST}}
    assert weights["ray"] == weights["local"] and len(weights["local"]) == 1
