"""What a rank is told (Manifest), what it says (RankReport), what a run came to (RunResult, Machine)."""

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
    """`manifest.json`: everything a rank is told, under every launcher."""

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
    """The same as wall-clock time, ISO 8601."""
    attempt: int = 1
    """Which try at this run: more than 1 after a kill."""
    versions: dict[str, str] = field(default_factory=dict)
    commit: str | None = None
    """Commit of Paceline's checkout, where it runs from one."""
    launch: LaunchSettings = LaunchSettings()
    """What was asked of the launcher."""
    force: bool = False
    """Whether to go on where what was given makes the measurement meaningless."""
    oversubscribed: bool = False
    """Whether more threads than cores were asked for, as far as that was known beforehand."""

    @property
    def warned(self) -> bool:
        """Whether the ranks may be told to write a checkpoint and leave, before they are ended."""
        return catalog.launcher(self.point.launcher).is_scheduler and self.launch.grace_s > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """`job.json`: the scheduler's job in which an attempt runs, kept up by the launcher."""

    SCHEMA = "paceline.job/1"

    scheduler: str
    name: str
    """Nobody else's: by it a job is found whose submitter was killed before it heard the number."""
    launched_at_ns: int
    """Of the manifest: the attempt that it belongs to."""
    job_id: str = ""
    """Empty until the scheduler has said it."""
    state: str = "SUBMITTING"
    """As the scheduler said it last."""
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
class Meeting:
    """`ranks/meeting.json`: where rank 0 listens for the others, where no launcher has said so."""

    SCHEMA = "paceline.meeting/1"

    address: str
    port: int
    launched_at_ns: int
    """Of the manifest: a file of an earlier attempt is not taken for this one's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankStart:
    """`ranks/rank-0003.start`: where a rank's process runs, as the keeper beside it says."""

    SCHEMA = "paceline.start/1"

    rank: int
    host: str
    pid: int
    started_at_ns: int | None = None
    """Instant on that host's monotonic clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankEnd:
    """`ranks/rank-0003.end`: how a rank's process ended, as the keeper beside it saw it."""

    SCHEMA = "paceline.end/1"

    rank: int
    host: str
    code: int
    """Exit code, minus the signal's number where one killed it."""
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
    """Whether every sample was used: False where `steps` ended the epoch early."""
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
    """The last of them, counted from 0."""
    measured: int
    """How many they are."""
    noise_scale: float | None
    """variance / signal, in samples; None where the signal is not above 0."""
    variance: float
    """tr(Σ): by how much the gradient of a single sample varies, squared and summed over parameters; their mean."""
    signal: float
    """|G|²: square of the gradient without noise; their mean, which may be below 0 where noise is all there is."""
    differences: int
    """Between neighbouring measured steps: from these come the three figures below, None where there are none."""
    variance_var: float | None
    """Variance of one step's `variance`."""
    signal_var: float | None
    covariance: float | None
    gain: float | None = None
    """Of AdaScale, after the epoch; None under any other rule."""
    progress: float | None = None
    """Of AdaScale: how many steps the schedule has come to, of those that were taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseEnd:
    """Where a phase of the training ended: what the test said then."""

    name: str
    """train or finetune."""
    steps: int
    """Optimizer steps in it."""
    test_loss: float
    test_accuracy: float
    test_s: float | None = None
    """How long the test took on rank 0, the wait for the others included; None in results from before it was noted."""
    trainable: int | None = None
    """Parameters that learned in it: those of the head alone where the base was frozen. None likewise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedFeatures:
    """What a frozen base made of the images, computed once and trained on in their place."""

    samples: int
    """Of training, validation and test."""
    size: int
    """Numbers for each."""
    ready_s: float
    """Until they were computed, or found in the cache."""
    found: bool
    """Whether an earlier run had left them there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingReport:
    """What a rank reports of Paceline's own training."""

    epochs: tuple[Epoch, ...] = ()
    test_loss: float | None = None
    test_accuracy: float | None = None
    load_s: float | None = None
    """Time until the data set was mapped or read, and its split known."""
    read_bytes: int | None = None
    """Bytes that went through read calls meanwhile; None where the system does not count them."""
    weights_sha256: str | None = None
    """Of the parameters and buffers at the end: equal on all ranks that hold the same shard of the network."""
    resumed_from_step: int | None = None
    resume_note: str | None = None
    """What differed from the process that wrote the checkpoint: host or versions."""
    phases: tuple[PhaseEnd, ...] = ()
    """Phases of the training that are over; the last one's test is that of the run."""
    features: CachedFeatures | None = None
    """None where it trained on the images themselves."""
    network: dict[str, str] = field(default_factory=dict)
    """Of a pretrained network: its name, where its weights came from, what was done to images; empty for others."""
    noise: tuple[NoiseEpoch, ...] = ()
    """Epochs in which gradient noise was measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptFigures:
    """What is known of a script, of one rank or of all together."""

    samples: int | None = None
    """What went through its model in the timed steps, all but the first; None where that is not known."""
    timed_s: float | None = None
    """From the start of its second step to the end of its last, of the slowest rank; None where there is no second."""
    found: tuple[str, ...] = ()
    """What the probe recognised in it, such as DDP."""
    notes: tuple[str, ...] = ()
    """What could not be measured, in sentences."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankReport:
    """`ranks/rank-0003.json`: what a rank says when it is done, or how it failed."""

    SCHEMA = "paceline.rank/1"

    rank: int
    status: str
    """done, failed, or stopped: it was told to leave, and has written a checkpoint."""
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
    """peer where another rank's end was the cause, own otherwise."""
    traceback: str | None = None
    role: str = "rank"
    """rank, server or coordinator; a server's steps and parameters are its own."""
    staleness: tuple[int, ...] = ()
    """Of an asynchronous server: gradients whose parameters lacked 0, 1, 2, ... steps of the slowest rank."""
    clock_offset_ns: int = 0
    """What its monotonic clock shows more than rank 0's at the same instant."""
    clock_error_ns: int | None = None
    """That is off by this at most; None where it was not found out."""
    clock_at_end: Clock | None = None
    """The same once more after the last step, where it reads another clock than rank 0."""
    training: TrainingReport = part(TrainingReport)
    """Empty for a script and for a server."""
    script: ScriptFigures = part(ScriptFigures)
    """Empty for Paceline's own training."""


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
    ranks: tuple[ProcessFacts, ...] = ()
    """What every process said of itself before the first step."""
    links: tuple[Link, ...] = ()
    complaints: tuple[Complaint, ...] = ()
    """Where it is not what was asked for."""
    clocks: tuple[Clock, ...] = ()
    """Of every process against the launcher's, before the first step."""
    clocks_at_end: tuple[Clock, ...] = ()
    """The same after the last step, of processes whose clock is another: between the two it drifts evenly."""


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
    test_loss: float | None
    """None for a script, of which no test, parameters, loading or weights are known."""
    test_accuracy: float | None
    parameters: int | None
    load_s: float | None
    steps: int
    weights_sha256: str | None
    """Of rank 0."""
    oversubscribed: bool
    """More threads than cores: kept out of fits."""
    device: str = "cpu"
    """cpu or cuda."""
    resumed_from_step: int | None = None
    resume_note: str | None = None
    read_bytes: int | None = None
    """Bytes that a rank read while it loaded the data, the most of any rank; None where they were not counted."""
    queue_s: float | None = None
    """Time that its job waited in a scheduler's queue, before the launch; None where there is none."""
    staleness_max: int | None = None
    """Of an asynchronous strategy: the most steps that a rank was ahead of the slowest."""
    emulated: bool = False
    """Whether several hosts were only namespaces of one machine: kept out of fits."""
    script: ScriptFigures = part(ScriptFigures)
    """Of all ranks together; empty for Paceline's own training."""
    classes: int | None = None
    """Of the data set: what guessing gives follows from it. None for a script, and where it was not noted."""
    phases: tuple[PhaseEnd, ...] = ()
    """Phases of the training, with the test after each; empty in results from before there were any."""
    features: CachedFeatures | None = None
    """Of a first phase on cached features: as the slowest rank saw them; None where it trained on the images."""
    network: dict[str, str] = field(default_factory=dict)
    """Of a pretrained network: its name, where its weights came from, what was done to images; empty for others."""
    noise: tuple[NoiseEpoch, ...] = ()
    """Epochs in which gradient noise was measured."""
