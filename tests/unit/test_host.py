"""Facts about a host, read from trees that the test lays out, and from this one."""

from __future__ import annotations

import subprocess
import sys

import pytest

from paceline import host


@pytest.mark.parametrize(("cores", "nodes"), [((0, 1), (0,)), ((3, 8), (0, 1)), ((9,), (1,)), ((12,), ()), ((), ())])
def test_memory_nodes_of_cores(tmp_path, cores, nodes) -> None:
    for name, ranges in {"node0": "0-3,6", "node1": "8-9\n", "node2": ""}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "cpulist").write_text(ranges)
    assert host.numa_nodes(cores, tmp_path) == nodes


def test_a_system_without_memory_nodes_has_none(tmp_path) -> None:
    assert host.numa_nodes((0,), tmp_path / "none") == ()


def test_a_process_and_its_child_read_one_clock() -> None:
    code = "from paceline import host; print(host.boot_id(), host.time_namespace())"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.split() == [host.boot_id(), host.time_namespace()]
    assert len(host.boot_id()) == 36
