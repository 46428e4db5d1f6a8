"""What the processes of a run were given, as they said it to one another before the first step.

Given      one process: host, cores, threads, memory, GPUs, network, versions, digests of code and settings
Clock      its monotonic clock against another
Link       latency and bandwidth between two of them, measured
Complaint  where what was given is not what was asked for
PreflightCheck   all of it: `ranks/roll-call.json`, from which `machine.json` is made
"""

from __future__ import annotations

from dataclasses import dataclass, field

SEVERITIES = ("fatal", "warning", "info")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessFacts:
    """What one process was given, as it saw it itself. What another version may not know has a default."""

    rank: int
    host: str
    """Its host's own name."""
    role: str = "rank"
    """rank, server or coordinator."""
    node: str = ""
    """The host's name in the launcher's words (SLURM's node, Ray's), where it has one of its own."""
    boot_id: str = ""
    """Of the running kernel: equal for all containers and namespaces of one machine."""
    machine_id: str = ""
    time_namespace: str = ""
    """Within one boot, processes of one time namespace read one monotonic clock."""
    local_rank: int = 0
    local_size: int = 1
    cpu: str = ""
    platform: str = ""
    cores: int = 0
    """Logical cores of the host."""
    physical_cores: int = 0
    cpu_quota: float | None = None
    """Cores' worth of time that its control groups leave to it; None is no limit."""
    affinity: tuple[int, ...] = ()
    """Logical cores that it may run on."""
    numa_nodes: tuple[int, ...] = ()
    """Memory nodes that these cores belong to."""
    threads_asked: int = 1
    threads: int = 1
    """As torch says."""
    memory_bytes: int = 0
    """Of the host."""
    memory_limit_bytes: int | None = None
    """Of its control groups; None is no limit."""
    device: str = "cpu"
    gpus: tuple[str, ...] = ()
    """Names of those that it can see."""
    interface: str = ""
    """The network interface that it was told to communicate over."""
    addresses: tuple[str, ...] = ()
    """Of that interface."""
    versions: dict[str, str] = field(default_factory=dict)
    code_sha256: str = ""
    """Of Paceline's own files."""
    model_sha256: str = ""
    """Of the user's model file; empty for a model of the catalog."""
    settings_sha256: str = ""
    """Of the manifest as it read it."""
    variables: dict[str, str] = field(default_factory=dict)
    """By which its launcher told it its place."""
    wall_ns: int = 0
    """What its wall clock showed when it made this."""
    monotonic_ns: int = 0
    """What its monotonic clock showed at the same instant."""

    @property
    def place(self) -> str:
        """Its host's name: the launcher's where that has one."""
        return self.node or self.host

    @property
    def machine(self) -> str:
        """What is equal for all that share one kernel, and so its cores."""
        return self.boot_id or self.host

    @property
    def clock(self) -> str:
        """What is equal for all that read the same monotonic clock."""
        return f"{self.machine} {self.time_namespace}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """A process's monotonic clock against another: rank 0's in a roll call, the launcher's in `machine.json`."""

    rank: int
    offset_ns: int
    """What it shows more than the other at the same instant: subtract it from the process's instants."""
    error_ns: int | None
    """The offset is off by this at most; None where nothing bounds it."""
    method: str
    """same (it is the same clock), exchange (time stamps sent to and fro) or wall (wall clocks are taken to agree)."""
    at_ns: int = 0
    """What the process's own clock showed when it was compared; 0 where it was not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """What two processes were measured to have between them; low and high enclose the middle half of the repeats."""

    source: int
    target: int
    """Ranks; bandwidth is from source to target."""
    source_host: str
    target_host: str
    kind: str
    """inside a host, or between two."""
    latency_s: float
    """Half the median round trip of 8 bytes."""
    latency_low_s: float
    latency_high_s: float
    bandwidth: float
    """Bytes of payload per second: the largest size over its median time. A wire carries headers besides."""
    bandwidth_low: float
    bandwidth_high: float
    sizes: tuple[int, ...]
    """Bytes of the messages of one direction that were tried, smallest first; bandwidth is that of the last."""
    times_s: tuple[float, ...]
    """Median time of a message of each size."""
    repeats: int
    """Messages of the last size that were timed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Complaint:
    """One way in which what was given is not what was asked for."""

    name: str
    """Stable identifier in kebab case, e.g. `fewer-hosts`."""
    severity: str
    """fatal (the measurement would be meaningless), warning or info."""
    what: str
    """One sentence with the figures in it."""
    right: str
    next: str
    """What to do."""
    ranks: tuple[int, ...] = ()
    """Those it concerns; empty where it concerns all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreflightCheck:
    """`ranks/roll-call.json`: written by rank 0 before the first step."""

    SCHEMA = "paceline.roll-call/1"

    refused: bool
    """Whether the run was stopped because of it."""
    ranks: tuple[ProcessFacts, ...]
    """All processes, in order."""
    complaints: tuple[Complaint, ...]
    clocks: tuple[Clock, ...]
    """Against rank 0's."""
    links: tuple[Link, ...] = ()
