"""Facts about a machine, read from trees that the test lays out."""

import os
from pathlib import Path

import psutil
import pytest

from paceline.launch import machine
from paceline.launch.machine import Limits, Processor, cgroup_limits, processors, usable_count
from paceline.records.run import RankReport


def lay_out(tree: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)
    return tree


def topology(number: int, siblings: str, package: int, name: str = "core_cpus_list") -> dict[str, str]:
    return {
        f"cpu{number}/topology/{name}": f"{siblings}\n",
        f"cpu{number}/topology/physical_package_id": f"{package}\n",
    }


def test_distinct_physical_cores_come_before_hyper_threads_of_the_same(tmp_path):
    files = {}
    for number, siblings, package in ((0, "0-1", 0), (1, "0-1", 0), (2, "2,3", 1), (3, "2,3", 1)):
        files |= topology(number, siblings, package)
    found = processors(lay_out(tmp_path, files), {0, 1, 2, 3})
    assert found == [Processor(0, 0, 0), Processor(2, 2, 1), Processor(1, 0, 0), Processor(3, 2, 1)]


def test_older_kernels_name_the_siblings_otherwise(tmp_path):
    files = topology(0, "0,2", 0, "thread_siblings_list") | topology(2, "0,2", 0, "thread_siblings_list")
    assert [p.core for p in processors(lay_out(tmp_path, files), {0, 2})] == [0, 0]


def test_only_cores_of_this_process_are_named_and_their_missing_siblings_do_not_count(tmp_path):
    files = {}
    for number in range(4):
        files |= topology(number, f"{number % 2},{number % 2 + 2}", 0)
    assert [p.number for p in processors(lay_out(tmp_path, files), {2, 3})] == [2, 3]


def test_without_a_topology_every_logical_core_is_one_of_its_own(tmp_path):
    assert processors(tmp_path, {5, 3}) == [Processor(3, 3, 0), Processor(5, 5, 0)]


@pytest.mark.parametrize(
    ("own", "files", "limits"),
    [
        pytest.param("0::/\n", {}, (None, None), id="no limits"),
        pytest.param("0::/\n", {"cpu.max": "max 100000", "memory.max": "max"}, (None, None), id="version 2, unlimited"),
        pytest.param("0::/\n", {"cpu.max": "150000 100000", "memory.max": "1048576"}, (1.5, 1048576), id="version 2"),
        pytest.param(
            "0::/a/b\n",
            {"a/cpu.max": "200000 100000", "a/b/cpu.max": "max 100000", "a/b/memory.max": "7", "memory.max": "9"},
            (2.0, 7),
            id="the tightest on the way up",
        ),
        pytest.param("0::/not/here\n", {"cpu.max": "50000 100000"}, (0.5, None), id="a container's own root"),
        pytest.param(
            "4:memory:/m\n3:cpu,cpuacct:/c\n1:name=systemd:/\n",
            {
                "cpu,cpuacct/c/cpu.cfs_quota_us": "300000",
                "cpu,cpuacct/c/cpu.cfs_period_us": "100000",
                "memory/m/memory.limit_in_bytes": "4096",
                "memory/memory.limit_in_bytes": "9223372036854771712",
            },
            (3.0, 4096),
            id="version 1",
        ),
        pytest.param(
            "3:cpu:/\n4:memory:/\n",
            {
                "cpu/cpu.cfs_quota_us": "-1",
                "cpu/cpu.cfs_period_us": "100000",
                "memory/memory.limit_in_bytes": "9223372036854771712",
            },
            (None, None),
            id="version 1, unlimited",
        ),
        pytest.param("0::/../x\n", {"cpu.max": "100000 100000"}, (1.0, None), id="outside its own tree"),
        pytest.param("rubbish\n\n", {}, (None, None), id="rubbish"),
    ],
)
def test_limits_of_control_groups(tmp_path, own, files, limits):
    tree = lay_out(tmp_path / "tree", files)
    (tmp_path / "own").write_text(own)
    assert cgroup_limits(tmp_path / "own", tree) == Limits(cpus=limits[0], memory_bytes=limits[1])


def test_a_system_without_control_groups_has_no_limits(tmp_path):
    assert cgroup_limits(tmp_path / "none", tmp_path) == Limits(cpus=None, memory_bytes=None)


@pytest.mark.parametrize(("count", "quota", "usable"), [(8, None, 8), (8, 2.5, 2), (8, 0.5, 1), (2, 64.0, 2)])
def test_a_quota_says_how_many_cores_can_be_busy(count, quota, usable):
    assert usable_count(count, quota) == usable


def test_this_machine_is_described():
    here = machine.this_machine()
    assert 1 <= here.cores <= here.logical_cores <= (os.cpu_count() or 1)
    assert 0 < here.memory_bytes <= psutil.virtual_memory().total
    assert here.cpu
    assert here.platform
    assert sorted(machine.cores()) == sorted(psutil.Process().cpu_affinity())


def test_names_of_gpus_come_from_the_driver(monkeypatch):
    lines = "GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-1)\nGPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-2)\n"
    monkeypatch.setattr(machine, "_output", lambda *command: lines)
    assert machine._gpus.__wrapped__() == ("NVIDIA A100-SXM4-40GB",) * 2


def test_a_program_that_is_missing_or_fails_says_nothing():
    assert machine._output("no-such-program-anywhere") == ""
    assert machine._output("false") == ""
    assert machine._output("echo", "a word") == "a word\n"


def test_the_record_joins_this_machine_with_what_the_ranks_saw():
    reports = [
        RankReport(
            rank=rank,
            status="done",
            host=f"node-{rank // 2}",
            pid=1,
            device="cpu",
            backend="gloo",
            threads=3,
            affinity=(rank,),
            versions={"torch": "2"},
            steps=1,
            ended_at_ns=1,
        )
        for rank in range(3)
    ]
    record = machine.machine(reports)
    assert record.hosts == ("node-0", "node-1")
    assert record.affinity == ((0,), (1,), (2,))
    assert (record.threads, record.devices, record.backend) == ((3, 3, 3), ("cpu",) * 3, "gloo")
    assert record.versions == {"torch": "2"}
    assert record.cores == machine.this_machine().cores
