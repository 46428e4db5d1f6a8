"""Launchers: how ranks are started. A new one is a file in launch/ and an entry here."""

from __future__ import annotations

from dataclasses import dataclass

from paceline.catalog.entry import Entry


@dataclass(frozen=True, slots=True, kw_only=True)
class LauncherEntry(Entry):
    """Capabilities and requirements of a launcher."""

    provides_mpi: bool = False
    """Whether its ranks can find each other through MPI."""
    several_hosts: bool = False
    """Whether it can start ranks on other hosts."""
    hosts_need: tuple[str, ...] = ("interface",)
    """Settings of `[launch]` without which all ranks are on one host."""
    named_machines: bool = False
    """Whether its hosts are listed in launch.machines."""
    is_scheduler: bool = False
    """Whether its ranks run in jobs, which outlive the study and are warned before they are killed."""
    queues: bool = False
    """Whether ranks may wait in a queue. They are started by the wrapper, which records when each starts."""
    doctor_asks: str = ""
    """The program or package that `paceline doctor` checks; empty if it always works."""
    lists_partitions: bool = False
    """Whether its partitions are those that SLURM's sinfo lists."""
    speed_keys: tuple[str, ...] = ()
    """Settings of `[launch]` that affect speed: part of a point's identity if they are set."""


LAUNCHERS: dict[str, LauncherEntry] = {
    "local": LauncherEntry(at="paceline.launch.local:LocalLauncher", text="one process per rank on this machine"),
    "torchrun": LauncherEntry(
        at="paceline.launch.torchrun:TorchrunLauncher",
        text="torchrun, on this machine or on several",
        several_hosts=True,
        named_machines=True,
        doctor_asks="torch",
    ),
    "mpi": LauncherEntry(
        at="paceline.launch.mpi_launcher:MpiLauncher",
        text="mpiexec of MPICH or Open MPI, on this machine or on several",
        provides_mpi=True,
        several_hosts=True,
        named_machines=True,
        doctor_asks="mpiexec",
        speed_keys=("mpiexec",),
    ),
    "slurm": LauncherEntry(
        at="paceline.launch.slurm.slurm_launcher:SlurmLauncher",
        text="one SLURM job per run, with srun or mpiexec inside",
        provides_mpi=True,
        several_hosts=True,
        is_scheduler=True,
        queues=True,
        lists_partitions=True,
        doctor_asks="sinfo",
        speed_keys=("partition", "constraint", "gpus_per_host", "start"),
    ),
    "pbs": LauncherEntry(
        at="paceline.launch.pbs:PbsLauncher",
        text="writes a PBS job script per run, to be submitted by hand",
        several_hosts=True,
        is_scheduler=True,
        queues=True,
        doctor_asks="qstat",
        speed_keys=("partition", "constraint", "gpus_per_host"),
    ),
    "ray": LauncherEntry(
        at="paceline.launch.ray.ray_launcher:RayLauncher",
        text="tasks of a Ray cluster, or of one started for the run",
        several_hosts=True,
        hosts_need=("interface", "ray_address", "spread"),
        queues=True,
        doctor_asks="ray",
        speed_keys=("gpus_per_host", "spread"),
    ),
}
