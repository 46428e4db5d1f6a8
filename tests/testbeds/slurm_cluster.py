"""A real SLURM of three nodes on this machine, for tests: munged, slurmctld and three slurmd, all of them ours.

Everything is private: a folder, ports of the kernel's choice, a key made for the occasion; nothing listens beyond
loopback. The first node goes by this machine's name and is the first to be given to a job; the others have host names
of their own (UTS namespaces), so that ranks on two nodes see two hosts. All daemons run in the foreground, are ended by
their process numbers, and die with the process that started them.
"""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from checks.ci import in_ci
from light_ranks.light_launch import wait_for
from paceline.records.settings import LaunchSettings

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "scontrol", "scancel", "unshare")
NODES = ("pace1", "pace2", "pace3")
HOSTS = {"pace1": socket.gethostname(), "pace2": "pace2", "pace3": "pace3"}
"""What gethostname() says on each."""
_WATCHDOG = (sys.executable, "-P", "-m", "paceline.launch.parent_watchdog")
# The scheduler looks at once and every second; a killed node is found in seconds; jobs are ended within two.
_CONFIGURATION = """
ClusterName=paceline
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CryptoType=crypto/munge
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
SlurmctldPort={ports[0]}
SlurmdParameters=config_overrides
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=0,bf_interval=1
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
SwitchType=switch/none
ReturnToService=2
SlurmctldTimeout=30
SlurmdTimeout={patience_s}
KillWait=2
MinJobAge=300
InactiveLimit=0
PreemptType=preempt/partition_prio
PreemptMode=CANCEL
"""
# More cores than there are: tests ask for threads that do nothing.
_NODE = "NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=8 RealMemory=4000 Weight={weight}\n"
# Jobs of `urgent` take the place of those of the first, which have half a minute to leave.
_PARTITIONS = """
PartitionName=paceline Nodes={names} Default=YES MaxTime=30 DefaultTime=10 PriorityTier=1 GraceTime=30
PartitionName=beside Nodes={names} MaxTime=30 DefaultTime=10 PriorityTier=1 PreemptMode=OFF
PartitionName=urgent Nodes={names} MaxTime=30 DefaultTime=10 PriorityTier=9 PreemptMode=OFF
"""
_PATIENCE_S = 60
"""How long a node may be silent. A busy machine must not lose nodes that no test has killed."""


class Cluster:
    """The daemons, and what a test asks of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.settings = LaunchSettings(interface="lo")
        self.busy = False
        """Whether jobs of the partition `beside` go on beside the tests."""
        self.conf = folder / "slurm.conf"
        self._ports = _free_ports(1 + len(NODES))
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}

    def start(self) -> None:
        """Start every daemon and wait until all nodes are idle."""
        for name in ("state", *(f"spool.{node}" for node in NODES)):
            (self.folder / name).mkdir(parents=True)
        self.folder.chmod(0o755)  # munged refuses a socket in a folder that others cannot reach
        key = self.folder / "munge.key"
        key.write_bytes(secrets.token_bytes(1024))
        key.chmod(0o400)
        (self.folder / "hosts").write_text(f"127.0.0.1 localhost {socket.gethostname()} {' '.join(NODES)}\n")
        self.write_configuration()
        self._start("munged", "munged", "--foreground", "--force", *self._munge_options(key))
        assert wait_for((self.folder / "munge.socket").exists, 20), self.logs()
        self._start("slurmctld", "slurmctld", "-D", "-c", "-f", str(self.conf))
        for node in NODES:
            self.start_node(node)
        assert wait_for(self.all_idle, 60, every_s=0.1), self.logs()

    def write_configuration(self, patience_s: int = _PATIENCE_S) -> None:
        text = _CONFIGURATION.format(
            folder=self.folder, ports=self._ports, host=socket.gethostname(), patience_s=patience_s
        )
        for weight, (node, port) in enumerate(zip(NODES, self._ports[1:], strict=True), start=1):
            text += _NODE.format(name=node, host=HOSTS[node], port=port, weight=weight)
        self.conf.write_text(text + _PARTITIONS.format(names=",".join(NODES)))

    def _munge_options(self, key: Path) -> list[str]:
        files = {"key-file": key.name, "socket": "munge.socket", "pid-file": "munged.pid", "seed-file": "munge.seed"}
        return [f"--{option}={self.folder / name}" for option, name in (files | {"log-file": "munged.log"}).items()]

    def start_node(self, node: str) -> None:
        """A slurmd, its host's name, and a list of hosts in which that stands for loopback."""
        script = 'mount --bind "$0" /etc/hosts && hostname "$1" && shift && exec "$@"'
        named = ("unshare", "--uts", "--mount", "sh", "-c", script, str(self.folder / "hosts"), HOSTS[node])
        self._start(node, *named, "slurmd", "-D", "-N", node, "-f", str(self.conf))

    def kill_node(self, node: str) -> None:
        """SIGKILL to a slurmd: its node falls silent."""
        self._daemons[node].kill()
        self._daemons.pop(node).wait(10)

    def _start(self, name: str, *command: str) -> None:
        with (self.folder / f"{name}.out").open("ab") as output:
            self._daemons[name] = subprocess.Popen(
                (*_WATCHDOG, str(os.getpid()), *command),
                env=os.environ | {"SLURM_CONF": str(self.conf)},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def ask(self, *command: str, check: bool = True) -> str:
        """What a command of SLURM's prints."""
        done = subprocess.run(
            command,
            env=os.environ | {"SLURM_CONF": str(self.conf)},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert not check or done.returncode == 0, f"{command}: {done.stderr}"
        return done.stdout.strip()

    def all_idle(self) -> bool:
        states = self.ask("sinfo", "-h", "-N", "-p", "paceline", "-o", "%N %T", check=False).splitlines()
        return sorted(states) == [f"{node} idle" for node in NODES]

    def jobs(self) -> list[str]:
        """Numbers of the jobs that wait or run; SLURM's own tidying up does not count, nor what goes on beside."""
        lines = self.ask("squeue", "-h", "-t", "pending,running,suspended", "-o", "%i %P").splitlines()
        return [job for job, partition in map(str.split, lines) if partition != "beside"]

    def logs(self) -> str:
        return "\n".join(f"{path.name}:\n{path.read_text()[-800:]}" for path in self.folder.glob("*.[lo][ou][gt]"))

    def stop(self) -> None:
        """End every daemon: the nodes first, so that the controller still hears them go."""
        for name in (*NODES, "slurmctld", "munged"):
            daemon = self._daemons.pop(name, None)
            if daemon is not None:
                daemon.terminate()
                try:
                    daemon.wait(10)
                except subprocess.TimeoutExpired:
                    daemon.kill()
                    daemon.wait(10)


def _free_ports(count: int) -> list[int]:
    """Ports that nobody had a moment ago, taken all at once so that they differ."""
    with ExitStack() as held:
        sockets = [held.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [taken.getsockname()[1] for taken in sockets]


def _missing() -> str:
    absent = [name for name in PROGRAMS if shutil.which(name) is None]
    if absent:
        return f"not installed: {', '.join(absent)}"
    return "" if os.geteuid() == 0 else "a SLURM of one's own needs root"


@pytest.fixture(scope="session")
def slurm_cluster(tmp_path_factory) -> Iterator[Cluster]:
    """The cluster, started when the first test asks for it; commands find it from then on."""
    reason = _missing()
    if reason:
        assert not in_ci(), reason
        pytest.skip(reason)
    cluster = Cluster(tmp_path_factory.mktemp("slurm"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLURM_CONF", str(cluster.conf))
        try:
            cluster.start()
            yield cluster
        finally:
            cluster.stop()


@pytest.fixture
def slurm(slurm_cluster) -> Iterator[Cluster]:
    """The cluster for one test, which may leave no job behind."""
    yield slurm_cluster
    left = slurm_cluster.jobs()
    if left:
        slurm_cluster.ask("scancel", "--full", "--signal=KILL", *left, check=False)
        slurm_cluster.ask("scancel", *left, check=False)
    assert slurm_cluster.busy or wait_for(slurm_cluster.all_idle, 60, every_s=0.1), slurm_cluster.logs()
    assert not left, f"jobs were left: {left}"


def main() -> None:
    """Start a cluster and hold it, to try things by hand: python slurm_cluster.py FOLDER"""
    cluster = Cluster(Path(sys.argv[1]).absolute())
    cluster.start()
    print(f"export SLURM_CONF={cluster.conf}", flush=True)
    try:
        time.sleep(float(sys.argv[2]) if len(sys.argv) > 2 else 3600)
    finally:
        cluster.stop()


if __name__ == "__main__":
    main()
