"""Sections of a study file: one dataclass each, every key with its unit and its default.

    [data] [augment] [model] [train] [finetune] [run] [launch] [script]

To add a setting, add it here, its checks to studies/load/checks.py, and its meaning to docs/study-file.md.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSettings:
    """`[data]` of a study file."""

    dataset: str = "mnist"
    """A name of the catalog, or a path: `.npz`, or a folder of IDX files."""
    train_samples: int | None = None
    """Number of training samples; all but those for validation if None."""
    test_samples: int | None = None
    """Number of test samples; all if None."""
    validation: float = 0.0
    """Part of the training set for validation: a fraction below 1, or a number of samples from 1 on."""
    shape: tuple[int, ...] | None = None
    """Height, width, channels of `synthetic` images."""
    classes: int | None = None
    """Number of classes of `synthetic` data."""
    samples: int | None = None
    """Training samples that `synthetic` makes; a sixth as many for the test."""
    read: str = "mapped"
    """mapped (one decoded cache per host), whole (every rank reads all) or mpi-io (every rank reads its share)."""
    image_size: int | None = None
    """Height and width to which the images of a folder are resized; the data set's default if None."""
    test: float = 0.0
    """Fraction of an image folder for testing, if it has no test set; a sixth if 0."""
    damaged: str = "refuse"
    """refuse or skip: what to do with images that cannot be decoded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AugmentSettings:
    """`[augment]` of a study file: random changes of training images. All zero changes nothing."""

    crop: int = 0
    """Pixels of padding on every side; a random crop has the original size."""
    flip: bool = False
    """Random horizontal flip."""
    shift: float = 0.0
    """At most this fraction of height and width."""
    zoom: float = 0.0
    """At most this fraction larger or smaller."""
    rotation: float = 0.0
    """Largest angle in degrees, in both directions."""
    colour: float = 0.0
    """Largest change of brightness, contrast and saturation, as a fraction."""
    cutout: int = 0
    """Side of a square that is blanked, in pixels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """`[model]` of a study file."""

    name: str = "cnn-690k"
    """A name of the catalog, or `my_file.py:build`."""
    options: dict[str, object] = field(default_factory=dict)
    """All other keys of `[model]`: passed to the function that builds the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainSettings:
    """`[train]` of a study file."""

    optimizer: str = "adam"
    lr: float = 0.001
    momentum: float = 0.0
    """For SGD and LARS."""
    weight_decay: float | None = None
    """The optimizer's default if None: 0.01 for adamw and lamb, 0.0005 for lars, 0 for the others."""
    batch_global: int | None = None
    """Samples between two optimizer steps over all ranks: fixed in strong scaling."""
    batch_per_rank: int | None = None
    """Samples between two optimizer steps on one rank: fixed in weak scaling."""
    epochs: int | None = None
    steps: int | None = None
    """Optimizer steps, in place of epochs."""
    seed: int = 0
    """Seed of the first repeat; the n-th repeat takes seed + n - 1."""
    checkpoint_every: int = 0
    """Steps between two checkpoints; 0 writes none, because a short run is sooner repeated."""
    precision: str = "float32"
    """float32; bfloat16 (mixed: weights and messages stay float32); float64 if the order of summation matters."""
    recipe: str = ""
    """scale (chooses settings that preserve accuracy), as-published (as in the reports), or empty for none."""
    lr_rule: str = "none"
    """How `lr` grows with the batch: none, linear, sqrt or adascale."""
    lr_batch: int | float | None = None
    """The global batch of `lr`; if None, `batch_per_rank` if it is set, else the global batch. A
    recipe may choose a fraction: one rank's share of a batch that does not divide evenly."""
    warmup_epochs: float = 0.0
    """Epochs in which the rate rises from `lr` to the rate of the rule, if that is higher."""
    schedule: str = "constant"
    """constant, step, cosine or one-cycle, over the epochs of the run."""
    step_epochs: float | None = None
    """Of step: epochs between two drops."""
    step_factor: float = 0.1
    """Of step: factor of the rate at each drop. Both apply to both phases."""
    epochs_rule: str = "none"
    """none, or divide-by-ranks: epochs ÷ ranks, as a published study did."""
    label_smoothing: float = 0.0
    average_epochs: float = 0.0
    """Evaluate an exponential average of the weights over about this many epochs; 0 for no average."""
    clip_norm: float = 0.0
    """Largest norm of all gradients; 0 for no limit."""
    accumulate: int = 1
    """Micro-batches of a rank per step: more need less memory."""
    epsilon: float | None = None
    """Of adam, adamw, adadelta, lars and lamb; the optimizer's default if None."""
    rho: float | None = None
    """Of adadelta: decay of its running averages; PyTorch's 0.9 if None."""
    initialiser: str = ""
    """keras (Glorot uniform, zero biases), or PyTorch's default if empty."""
    sync_batchnorm: bool = False
    """Whether batch-norm takes its statistics over all ranks."""
    cached_features: bool = False
    """Whether the outputs of a frozen base are computed once per image and reused."""
    noise_every: int = 0
    """Steps between two measurements of the gradient noise; 0 for none."""
    target_accuracy: float | None = None
    """The validation accuracy for the time to target; changes no run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FinetuneSettings:
    """`[finetune]` of a study file: a second phase, in which a frozen base learns, too."""

    epochs: int = 0
    """None if 0."""
    lr: float = 0.00001
    optimizer: str = ""
    """That of `[train]` if empty."""
    schedule: str = ""
    """Over the epochs of this phase; that of `[train]` if empty."""
    epsilon: float | None = None
    rho: float | None = None
    """If None: those of `[train]` with the same optimizer, else the optimizer's default."""
    batchnorm: str = "frozen"
    """frozen (statistics of the pretrained weights) or train."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptSettings:
    """`[script]` of a study file: the user's script instead of data, model and training."""

    path: str = ""
    """A Python file, relative to the study file."""
    arguments: tuple[str, ...] = ()
    """Its command-line arguments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """`[run]` of a study file."""

    ranks: tuple[int, ...] = (1, 2)
    """Numbers of training processes. Empty if ranks_per_host is set."""
    hosts: int = 1
    """Number of hosts; ranks are distributed evenly."""
    ranks_per_host: int | None = None
    """Instead of `ranks`: hosts × ranks_per_host processes."""
    threads: int = 1
    """Threads per rank. With 1, the number of ranks is the number of cores in use."""
    cores: int | None = None
    """Cores per rank if it is pinned; as many as threads if None."""
    strategy: str = "ddp"
    launcher: str = "local"
    device: str = "auto"
    """auto uses one GPU per local rank if available, else the CPU."""
    pin: bool = True
    """Pin each rank to separate cores if there are enough."""
    repeats: int = 5
    """Runs per point. With three, no rank test can find a difference."""
    scaling: str | None = None
    """strong (batch_global fixed) or weak (batch_per_rank fixed); follows from the batch if None."""
    heartbeat_s: float = 30.0
    """Ranks without progress for this long are reported as hung."""
    servers: int | None = None
    """Of parameter-server: processes for the parameters, in addition to the ranks; 1 if None."""
    server_threads: int | None = None
    """Of parameter-server: threads, and so cores, of one server; 1 if None."""
    staleness: int | None = None
    """Of parameter-server-async: how many steps the fastest rank may be ahead of the slowest; 4 if None."""
    average_every: int | None = None
    """Of local-sgd: steps between two averages; 8 if None."""
    compression_rank: int | None = None
    """Of ddp-powersgd: rank of the gradient approximation; 2 if None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchSettings:
    """`[launch]` of a study file, or a site profile: how ranks are started."""

    site: str = ""
    """Name of the site profile with defaults for this section."""
    machines: tuple[str, ...] = ()
    """Names of the hosts for torchrun and mpi; the first `run.hosts` of them are used."""
    agent: tuple[str, ...] = ("ssh",)
    """Command that runs another on a host; its arguments are the host's name and the command."""
    interface: str = ""
    """Network interface between hosts. On one host everything stays on loopback."""
    mpiexec: str = "mpiexec"
    """MPICH's or Open MPI's: a name on the path, or a path."""
    start: str = "srun"
    """Of slurm: srun or mpiexec, to start the ranks inside the job."""
    account: str = ""
    partition: str = ""
    time_limit: str = ""
    """Of the job of one run, in the scheduler's format: 00:30:00."""
    constraint: str = ""
    gpus_per_host: int = 0
    directives: tuple[str, ...] = ()
    """Further options of the job, one each: --exclusive."""
    modules: tuple[str, ...] = ()
    """Environment modules that a job loads first."""
    grace_s: float = 60.0
    """Seconds of warning before a job ends, to write a checkpoint."""
    ray_address: str = ""
    """Of an existing cluster; a local one is started if empty."""
    spread: bool = True
    """Of ray: whether ranks are spread over `run.hosts` nodes, or packed onto as few as possible."""


# Keys that are shown, and part of a point's name, also at their default.
_FIRST: dict[type, tuple[str, ...]] = {
    DataSettings: ("dataset", "train_samples", "validation", "shape", "classes", "samples"),
    TrainSettings: (
        *("optimizer", "lr", "momentum", "weight_decay", "batch_global", "batch_per_rank"),
        *("epochs", "steps", "seed", "checkpoint_every", "precision"),
    ),
}


def shown_settings(settings: DataSettings | AugmentSettings | TrainSettings | FinetuneSettings) -> dict[str, object]:
    """The settings of a section that differ from their defaults, and its main settings."""
    usual, always = asdict(type(settings)()), _FIRST.get(type(settings), ())
    return {key: value for key, value in asdict(settings).items() if key in always or value != usual[key]}
