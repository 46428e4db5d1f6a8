from __future__ import annotations

import subprocess
import sys

import pytest

from paceline import identity

CLEAN = [name for names in identity._VARIABLES.values() for name in names]
CLEAN += ["MASTER_ADDR", "MASTER_PORT", identity.PARENT_PID, identity.STORE_FD, "SLURM_NODEID"]


@pytest.fixture(autouse=True)
def no_launcher(monkeypatch):
    for name in CLEAN:
        monkeypatch.delenv(name, raising=False)


def test_alone_without_a_launcher():
    me = identity.this_rank()
    assert (me.rank, me.size, me.local_rank, me.launcher) == (0, 1, 0, "none")
    assert (me.store_host, me.store_fd, me.parent_pid) == ("127.0.0.1", None, None)


@pytest.mark.parametrize("launcher", list(identity._VARIABLES))
def test_every_launcher_is_understood(monkeypatch, launcher):
    for name, value in zip(identity._VARIABLES[launcher], ("3", "8", "1", "4"), strict=True):
        monkeypatch.setenv(name, value)
    me = identity.this_rank()
    assert (me.rank, me.size, me.local_rank, me.local_size, me.launcher) == (3, 8, 1, 4, launcher)


@pytest.mark.parametrize(
    ("counts", "node", "expected"),
    [("4", "1", 4), ("2(x2)", "1", 2), ("2,1", "0", 2), ("2,1", "1", 1), ("3(x2),2(x3)", "4", 2), ("3(x2),1", "2", 1)],
)
def test_slurm_writes_the_ranks_of_all_hosts_at_once(monkeypatch, counts, node, expected):
    told = {"SLURM_PROCID": "5", "SLURM_NTASKS": "9", "SLURM_LOCALID": "0", "SLURM_NODEID": node}
    for name, value in (told | {"SLURM_STEP_TASKS_PER_NODE": counts}).items():
        monkeypatch.setenv(name, value)
    assert identity.this_rank().local_size == expected


def test_the_place_on_a_host_comes_from_srun_where_pmi_does_not_say_it(monkeypatch):
    slurm = {"SLURM_PROCID": "3", "SLURM_NTASKS": "4", "SLURM_LOCALID": "1", "SLURM_STEP_TASKS_PER_NODE": "2(x2)"}
    for name, value in (slurm | {"PMI_RANK": "3", "PMI_SIZE": "4", "SLURM_NODEID": "1"}).items():
        monkeypatch.setenv(name, value)
    me = identity.this_rank()
    assert (me.rank, me.size, me.local_rank, me.local_size, me.launcher) == (3, 4, 1, 2, "slurm")


def test_what_the_local_launcher_tells_wins_inside_an_allocation(monkeypatch):
    monkeypatch.setenv("SLURM_PROCID", "0")
    monkeypatch.setenv("SLURM_NTASKS", "1")
    told = identity.local_environment(2, 3, store_port=4000, store_fd=7, parent_pid=99)
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    me = identity.this_rank()
    assert (me.rank, me.size, me.store_port, me.store_fd, me.parent_pid) == (2, 3, 4000, 7, 99)


def test_a_childs_environment_inherits_no_rank(monkeypatch):
    monkeypatch.setenv("RANK", "5")
    monkeypatch.setenv("KEPT", "yes")
    inherited = identity.inherited_environment()
    assert inherited["KEPT"] == "yes" and "RANK" not in inherited


def test_versions_of_what_computes_come_without_importing_it():
    code = "import sys; from paceline.identity import versions; print(*versions()); sys.exit('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert set(done.stdout.split()) == {"python", "paceline", "torch", "numpy"}
    assert "unknown" not in identity.versions().values()


def test_a_package_that_is_not_installed_has_no_version():
    assert identity._installed("no-such-package") == {"no-such-package": "unknown"}
