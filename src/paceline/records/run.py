"""What a rank is told (Manifest), what it says (RankReport), what a run came to (RunResult, Machine)."""

from __future__ import annotations

from dataclasses import dataclass, field

from paceline.records.study import Point


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """`manifest.json`: everything a rank is told, under every launcher."""

    SCHEMA = "paceline.manifest/1"

    study: str
    point_id: str
    point: Point
    run: int
    """From 1 on."""
    seed: int
    data_folder: str
    """The decoded cache that the ranks map."""
    model_file: str | None
    """The user's model file, absolute; None for a model of the catalog."""
    cores: tuple[tuple[int, ...], ...] | None
    """Cores of each local rank; None leaves placement to the operating system."""
    placement: str
    """The policy behind `cores`, in words: printed at the start of a study."""
    launched_at_ns: int
    """Instant on the host's monotonic clock from which the ranks' ledgers run."""
    launched_at: str
    """The same as wall-clock time, ISO 8601."""
    attempt: int = 1
    """Which try at this run: more than 1 after a kill."""
    versions: dict[str, str] = field(default_factory=dict)
    commit: str | None = None
    """Commit of Paceline's checkout, where it runs from one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Epoch:
    """One line of `curves.csv`."""

    epoch: int
    """From 1 on."""
    step: int
    """Optimizer steps taken when it ended."""
    samples: int
    train_loss: float
    train_accuracy: float
    validation_loss: float | None
    validation_accuracy: float | None
    epoch_s: float
    """From the first step's start to the last step's end; evaluation is not in it."""
    evaluate_s: float
    whole: bool
    """Whether every sample was used: False where `steps` ended the epoch early."""
    resumed: bool = False
    """Whether it was interrupted: its time is then the sum of its parts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankReport:
    """`ranks/rank-0003.json`: what a rank says when it is done, or how it failed."""

    SCHEMA = "paceline.rank/1"

    rank: int
    status: str
    """done or failed."""
    host: str
    pid: int
    device: str
    backend: str
    threads: int
    affinity: tuple[int, ...]
    """Cores this rank was allowed to use."""
    versions: dict[str, str]
    steps: int
    ended_at_ns: int
    epochs: tuple[Epoch, ...] = ()
    test_loss: float | None = None
    test_accuracy: float | None = None
    parameters: int | None = None
    load_s: float | None = None
    """Time until the data set was mapped and its split known."""
    weights_sha256: str | None = None
    """Of the parameters and buffers at the end: equal on all ranks."""
    resumed_from_step: int | None = None
    resume_note: str | None = None
    """What differed from the process that wrote the checkpoint: host or versions."""
    error: str | None = None
    error_kind: str | None = None
    """peer where another rank's end was the cause, own otherwise."""
    traceback: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """`machine.json`: what the ranks were given."""

    SCHEMA = "paceline.machine/1"

    hosts: tuple[str, ...]
    cpu: str
    cores: int
    """Physical cores this process may use."""
    logical_cores: int
    memory_bytes: int
    gpus: tuple[str, ...]
    platform: str
    affinity: tuple[tuple[int, ...], ...]
    """Of each rank, as the rank itself saw it."""
    threads: tuple[int, ...]
    devices: tuple[str, ...]
    backend: str
    versions: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """`result.json`: without it the run did not happen."""

    SCHEMA = "paceline.result/1"

    point_id: str
    run: int
    seed: int
    ranks: int
    attempt: int
    launched_at: str
    launched_at_ns: int
    total_s: float | None
    """From launch to the last rank's end; None for a resumed run, of which only a part was seen."""
    wall_s: float
    """The same for this attempt alone: what its ledger sums to."""
    epochs: tuple[Epoch, ...]
    """Times are those of the slowest rank."""
    test_loss: float
    test_accuracy: float
    parameters: int
    load_s: float
    steps: int
    weights_sha256: str
    oversubscribed: bool
    """More threads than cores: kept out of fits."""
    device: str = "cpu"
    """cpu or cuda."""
    resumed_from_step: int | None = None
    resume_note: str | None = None
