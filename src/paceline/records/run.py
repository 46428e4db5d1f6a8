"""Input of a rank (Manifest), its output (RankReport), and the results of a run (RunResult, Machine)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

from paceline import catalog
from paceline.records.allocation import Clock, Complaint, Link, ProcessFacts
from paceline.records.settings import LaunchSettings
from paceline.records.study import Point

_Part = TypeVar("_Part")

STOPPED = 75
"""Exit code of a rank that was asked to stop and has written a checkpoint: EX_TEMPFAIL of sysexits.h."""


def part(cls: type[_Part]) -> _Part:
    """A field that is a nested record in Python; in JSON its fields are in the enclosing object."""
    return field(default_factory=cls, metadata={"part": cls})


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """`manifest.json`: the input of every rank, under every launcher."""

    SCHEMA = "paceline.manifest/1"

    study: str
    point_id: str
    point: Point
    run: int
    """From 1 on."""
    seed: int
    data_folder: str
    """The decoded cache that the ranks map; empty for a script."""
    model_file: str | None
    """The user's model file or script, absolute; None for a model of the catalog."""
    cores: tuple[tuple[int, ...], ...] | None
    """Cores of each local rank; None leaves placement to the operating system."""
    placement: str
    """The policy behind `cores`, in words: printed at the start of a study."""
    launched_at_ns: int
    """Instant on the host's monotonic clock from which the ranks' ledgers run."""
    launched_at: str
    """Wall-clock time of the launch, ISO 8601."""
    attempt: int = 1
    """Which try at this run: more than 1 after a kill."""
    versions: dict[str, str] = field(default_factory=dict)
    commit: str | None = None
    """Commit of Paceline's checkout; None if it is installed."""
    launch: LaunchSettings = LaunchSettings()
    """Settings of the launcher."""
    force: bool = False
    """Whether to run although the preflight check calls the measurement meaningless."""
    oversubscribed: bool = False
    """Whether there are more threads than cores, as known before the launch."""

    @property
    def warned(self) -> bool:
        """Whether the ranks may be asked to write a checkpoint and stop before their job ends."""
        return catalog.launcher(self.point.launcher).is_scheduler and self.launch.grace_s > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """`job.json`: the scheduler's job of an attempt, updated by the launcher."""

    SCHEMA = "paceline.job/1"

    scheduler: str
    name: str
    """Unique: a job is found by it if its submitter was killed before it knew the job ID."""
    launched_at_ns: int
    """Of the manifest: the attempt that it belongs to."""
    job_id: str = ""
    """Empty until the scheduler has assigned it."""
    state: str = "SUBMITTING"
    """As last reported by the scheduler."""
    over: bool = False
    """Whether the launcher has seen the job's end, or has ended it."""
    submitted_at: str | None = None
    """Wall-clock time of the scheduler, ISO 8601, in whole seconds."""
    started_at: str | None = None
    queue_s: float | None = None
    """From being submitted to being started."""
    hosts: str = ""
    """As the scheduler writes lists of them: n[1-2]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendezvous:
    """`ranks/rendezvous.json`: the rendezvous address of rank 0, if no launcher provides one."""

    SCHEMA = "paceline.rendezvous/1"

    address: str
    port: int
    launched_at_ns: int
    """Of the manifest: a file of an earlier attempt is not taken for this one's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankStart:
    """`ranks/rank-0003.start`: the process of a rank, written by its wrapper."""

    SCHEMA = "paceline.start/1"

    rank: int
    host: str
    pid: int
    started_at_ns: int | None = None
    """Instant on that host's monotonic clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankEnd:
    """`ranks/rank-0003.end`: how the process of a rank ended, written by its wrapper."""

    SCHEMA = "paceline.end/1"

    rank: int
    host: str
    code: int
    """Exit code; minus the signal's number if a signal killed it."""
    ended_at_ns: int
    """Instant on that host's monotonic clock."""


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
    """Whether every sample was used: False if `steps` ended the epoch early."""
    resumed: bool = False
    """Whether it was interrupted: its time is then the sum of its parts."""
    phase: str = "train"
    """train, or finetune: the second phase, in which a frozen base learns, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseEpoch:
    """One line of `noise.csv`: the gradient noise in the measured steps of one epoch."""

    epoch: int
    """As in `curves.csv`."""
    step: int
    """The last measured step, counted from 0."""
    measured: int
    """Number of measured steps."""
    noise_scale: float | None
    """variance / signal, in samples; None if the signal is not above 0."""
    variance: float
    """tr(Σ): by how much the gradient of a single sample varies, squared and summed over parameters; their mean."""
    signal: float
    """|G|²: square of the gradient without noise; their mean, which may be below 0 if noise is all there is."""
    differences: int
    """Number of differences between neighbouring measured steps; the next three figures are None if 0."""
    variance_var: float | None
    """Variance of one step's `variance`."""
    signal_var: float | None
    covariance: float | None
    gain: float | None = None
    """Of AdaScale, after the epoch; None under any other rule."""
    progress: float | None = None
    """Of AdaScale: steps of the schedule that are done, at most those that were taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseEnd:
    """The end of a training phase: results of its test."""

    name: str
    """train or finetune."""
    steps: int
    """Optimizer steps in it."""
    test_loss: float
    test_accuracy: float
    test_s: float | None = None
    """How long the test took on rank 0, the wait for the others included; None if not measured."""
    trainable: int | None = None
    """Trainable parameters: only those of the head if the base is frozen. None if unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedFeatures:
    """Outputs of a frozen base for all images, computed once and trained on instead of the images."""

    samples: int
    """Of training, validation and test."""
    size: int
    """Numbers for each."""
    ready_s: float
    """Seconds until they were computed, or found in the cache."""
    found: bool
    """Whether they were in the cache."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingReport:
    """Results of a rank in Paceline's own training."""

    epochs: tuple[Epoch, ...] = ()
    test_loss: float | None = None
    test_accuracy: float | None = None
    load_s: float | None = None
    """Time until the data set was mapped or read, and its split known."""
    read_bytes: int | None = None
    """Bytes of read calls during loading; None if the system does not count them."""
    weights_sha256: str | None = None
    """Of the parameters and buffers at the end: equal on all ranks with the same shard of the network."""
    resumed_from_step: int | None = None
    resume_note: str | None = None
    """What differed from the process that wrote the checkpoint: host or versions."""
    phases: tuple[PhaseEnd, ...] = ()
    """Phases of the training that are over; the last one's test is that of the run."""
    features: CachedFeatures | None = None
    """None if it trained on the images themselves."""
    network: dict[str, str] = field(default_factory=dict)
    """Of a pretrained network: its name, the source of its weights, its preprocessing; empty for others."""
    noise: tuple[NoiseEpoch, ...] = ()
    """Epochs in which gradient noise was measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptFigures:
    """Figures of a script, of one rank or of all ranks together."""

    samples: int | None = None
    """Samples of its model in the timed steps, all but the first; None if unknown."""
    timed_s: float | None = None
    """From the start of its second step to the end of its last, of the slowest rank; None if there is no second."""
    found: tuple[str, ...] = ()
    """What the probe recognised in it, such as DDP."""
    notes: tuple[str, ...] = ()
    """What could not be measured, in sentences."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankReport:
    """`ranks/rank-0003.json`: the result of a rank, or its error."""

    SCHEMA = "paceline.rank/1"

    rank: int
    status: str
    """done, failed, or stopped: it was asked to stop, and has written a checkpoint."""
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
    parameters: int | None = None
    error: str | None = None
    error_kind: str | None = None
    """peer if another rank's end was the cause, else own."""
    traceback: str | None = None
    role: str = "rank"
    """rank, server or coordinator; a server's steps and parameters are its own."""
    staleness: tuple[int, ...] = ()
    """Of an asynchronous server: gradients whose parameters lacked 0, 1, 2, ... steps of the slowest rank."""
    clock_offset_ns: int = 0
    """Its monotonic clock minus that of rank 0 at the same instant."""
    clock_error_ns: int | None = None
    """Upper bound of the offset's error; None if unknown."""
    clock_at_end: Clock | None = None
    """Its clock after the last step; None if it reads the same clock as rank 0."""
    training: TrainingReport = part(TrainingReport)
    """Empty for a script and for a server."""
    script: ScriptFigures = part(ScriptFigures)
    """Empty for Paceline's own training."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """`machine.json`: the hardware and software of the ranks."""

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
    ranks: tuple[ProcessFacts, ...] = ()
    """Facts of every process before the first step."""
    links: tuple[Link, ...] = ()
    complaints: tuple[Complaint, ...] = ()
    """Differences from the requested allocation."""
    clocks: tuple[Clock, ...] = ()
    """Of every process against the launcher's, before the first step."""
    clocks_at_end: tuple[Clock, ...] = ()
    """After the last step, of processes with another clock: a linear drift between the two is assumed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """`result.json`: a run without it is not finished."""

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
    """Of this attempt only: the sum of its ledger."""
    epochs: tuple[Epoch, ...]
    """Times are those of the slowest rank."""
    test_loss: float | None
    """None for a script, of which no test, parameters, loading or weights are known."""
    test_accuracy: float | None
    parameters: int | None
    load_s: float | None
    steps: int
    weights_sha256: str | None
    """Of rank 0."""
    oversubscribed: bool
    """More threads than cores: excluded from fits."""
    device: str = "cpu"
    """cpu or cuda."""
    resumed_from_step: int | None = None
    resume_note: str | None = None
    read_bytes: int | None = None
    """Bytes that a rank read while it loaded the data, the most of any rank; None if they were not counted."""
    queue_s: float | None = None
    """Time that its job waited in a scheduler's queue, before the launch; None without a queue."""
    staleness_max: int | None = None
    """Of an asynchronous strategy: the most steps that a rank was ahead of the slowest."""
    emulated: bool = False
    """Whether several hosts were only namespaces of one machine: excluded from fits."""
    script: ScriptFigures = part(ScriptFigures)
    """Of all ranks together; empty for Paceline's own training."""
    classes: int | None = None
    """Of the data set: what guessing gives follows from it. None for a script, and if it was not noted."""
    phases: tuple[PhaseEnd, ...] = ()
    """Phases of the training, with the test after each; empty for a script."""
    features: CachedFeatures | None = None
    """Of a first phase on cached features, on the slowest rank; None if it trained on the images."""
    network: dict[str, str] = field(default_factory=dict)
    """Of a pretrained network: its name, the source of its weights, its preprocessing; empty for others."""
    noise: tuple[NoiseEpoch, ...] = ()
    """Epochs in which gradient noise was measured."""
