"""Allocation check of a run: what every process was allocated, exchanged before the first step.

ProcessFacts     one process: host, cores, threads, memory, GPUs, network, versions, digests of code and settings
Clock            its monotonic clock against another
Link             latency and bandwidth between two of them, measured
Complaint        a difference between the request and the allocation
AllocationCheck  all of it: `ranks/allocation-check.json`, from which `machine.json` is made
"""

from __future__ import annotations

from dataclasses import dataclass, field

SEVERITIES = ("fatal", "warning", "info")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessFacts:
    """What one process was allocated, as it reports it. Ranks may run different versions: most fields have defaults."""

    rank: int
    host: str
    """Its hostname."""
    role: str = "rank"
    """rank, server or coordinator."""
    node: str = ""
    """The launcher's name of the host (SLURM's node, Ray's node ID); empty if it has none."""
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
    """CPU limit of its control groups, in cores; None is no limit."""
    affinity: tuple[int, ...] = ()
    """Logical cores that it may run on."""
    numa_nodes: tuple[int, ...] = ()
    """Memory nodes that these cores belong to."""
    threads_asked: int = 1
    threads: int = 1
    """As reported by torch."""
    memory_bytes: int = 0
    """Of the host."""
    memory_limit_bytes: int | None = None
    """Of its control groups; None is no limit."""
    device: str = "cpu"
    gpus: tuple[str, ...] = ()
    """Names of those that it can see."""
    interface: str = ""
    """The configured network interface."""
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
    """The environment variables from which it took its rank."""
    wall_ns: int = 0
    """Its wall clock when the record was made."""
    monotonic_ns: int = 0
    """Its monotonic clock at the same instant."""

    @property
    def place(self) -> str:
        """The launcher's name of its host, else its hostname."""
        return self.node or self.host

    @property
    def machine(self) -> str:
        """Identifier of its kernel: equal for all processes that share its cores."""
        return self.boot_id or self.host

    @property
    def clock(self) -> str:
        """Identifier of its monotonic clock."""
        return f"{self.machine} {self.time_namespace}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """A process's monotonic clock against another: rank 0's in a preflight check, the launcher's in `machine.json`."""

    rank: int
    offset_ns: int
    """Its value minus the other's at the same instant: subtract it from the process's instants."""
    error_ns: int | None
    """Upper bound of the offset's error; None if unknown."""
    method: str
    """same (one clock), exchange (time stamps sent both ways) or wall (wall clocks are assumed to agree)."""
    at_ns: int = 0
    """The process's clock when it was compared; 0 if it was not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """Measured latency and bandwidth between two processes; low and high are the quartiles of the repeats."""

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
    """Bytes of payload per second: the largest size over its median time. Headers are not counted."""
    bandwidth_low: float
    bandwidth_high: float
    sizes: tuple[int, ...]
    """Message sizes in bytes, smallest first; bandwidth is that of the last."""
    times_s: tuple[float, ...]
    """Median time of a message of each size."""
    repeats: int
    """Messages of the last size that were timed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Complaint:
    """One difference between the request and the allocation."""

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
    """Affected ranks; empty if all are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocationCheck:
    """`ranks/allocation-check.json`: written by rank 0 before the first step."""

    SCHEMA = "paceline.allocation-check/1"

    refused: bool
    """Whether the run was stopped because of a fatal complaint."""
    ranks: tuple[ProcessFacts, ...]
    """All processes, in order."""
    complaints: tuple[Complaint, ...]
    clocks: tuple[Clock, ...]
    """Against rank 0's."""
    links: tuple[Link, ...] = ()
