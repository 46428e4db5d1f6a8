"""What the sections of a study file may say: one dataclass each, every key with its unit and its default.

    [data] [augment] [model] [train] [finetune] [run] [launch] [script]

A new setting goes here, its checks into studies/load/checks.py, and its meaning into docs/study-file.md.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSettings:
    """`[data]` of a study file."""

    dataset: str = "mnist"
    """A name of the catalog, or a path: `.npz`, or a folder of IDX files."""
    train_samples: int | None = None
    """How many samples to train on; all that are left after validation where None."""
    test_samples: int | None = None
    """How many samples of the test set to test on; all of it where None."""
    validation: float = 0.0
    """Held out of the training set: a fraction below 1, a number of samples from 1 on."""
    shape: tuple[int, ...] | None = None
    """Height, width, channels of `synthetic` images."""
    classes: int | None = None
    """Number of classes of `synthetic` data."""
    samples: int | None = None
    """Training samples that `synthetic` makes; a sixth as many for the test."""
    read: str = "mapped"
    """mapped (one decoded cache per host), whole (every rank reads all) or mpi-io (every rank reads its share)."""
    image_size: int | None = None
    """Height and width to which the images of a folder are brought; the data set's own where None."""
    test: float = 0.0
    """Fraction of an image folder held out as its test set, where it brings none; a sixth where 0."""
    damaged: str = "refuse"
    """refuse or skip: what is done where images of a folder cannot be decoded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AugmentSettings:
    """`[augment]` of a study file: how training images are changed, each in its own way. All zero changes nothing."""

    crop: int = 0
    """Pixels of padding on every side, out of which the image's own size is cut again."""
    flip: bool = False
    """Left and right exchanged, every other time."""
    shift: float = 0.0
    """At most this fraction of height and width."""
    zoom: float = 0.0
    """At most this fraction larger or smaller."""
    rotation: float = 0.0
    """At most so many degrees, either way."""
    colour: float = 0.0
    """How far brightness, contrast and saturation change at most, as a fraction."""
    cutout: int = 0
    """Side of a square that is blanked, in pixels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """`[model]` of a study file."""

    name: str = "cnn-690k"
    """A name of the catalog, or `my_file.py:build`."""
    options: dict[str, object] = field(default_factory=dict)
    """What else stands in `[model]`: passed to the function that builds the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainSettings:
    """`[train]` of a study file."""

    optimizer: str = "adam"
    lr: float = 0.001
    momentum: float = 0.0
    """For SGD and LARS."""
    weight_decay: float | None = None
    """The optimizer's own default where None: 0.01 for adamw and lamb, 0.0005 for lars, 0 for the others."""
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
    """float32; bfloat16 (mixed: weights and messages stay float32); float64 where the order of summation matters."""
    recipe: str = ""
    """scale (what keeps accuracy at this size, chosen and said), as-published (what the reports did), or as given."""
    lr_rule: str = "none"
    """How `lr` grows with the batch: none, linear, sqrt or adascale."""
    lr_batch: int | float | None = None
    """The global batch that `lr` is meant for; where None, one rank's batch if that is given, else the global one. A
    recipe may make it a fraction: one rank's share of a batch that does not divide."""
    warmup_epochs: float = 0.0
    """Over so many epochs the rate rises from `lr` to what the rule makes of it, where that is more."""
    schedule: str = "constant"
    """constant, step, cosine or one-cycle, over the epochs of the run."""
    step_epochs: float | None = None
    """Of step: epochs between two falls."""
    step_factor: float = 0.1
    """Of step: what the rate is multiplied with at each. Both hold for either phase."""
    epochs_rule: str = "none"
    """none, or divide-by-ranks: epochs ÷ ranks, as a published study did."""
    label_smoothing: float = 0.0
    average_epochs: float = 0.0
    """Evaluate an exponential average of the weights over about so many epochs; 0 the weights themselves."""
    clip_norm: float = 0.0
    """The most that the norm of all gradients may be; 0 for no limit."""
    accumulate: int = 1
    """Parts in which a rank computes its share of a step, so that less memory is needed."""
    epsilon: float | None = None
    """Of adam, adamw, adadelta, lars and lamb; the optimizer's own where None."""
    rho: float | None = None
    """Of adadelta: how much of its averages is kept from step to step; PyTorch's 0.9 where None."""
    initialiser: str = ""
    """keras (Glorot uniform, zero biases), or PyTorch's own where empty."""
    sync_batchnorm: bool = False
    """Whether batch-norm takes its statistics over all ranks."""
    cached_features: bool = False
    """Whether what a frozen base makes of every image is computed once and reused."""
    noise_every: int = 0
    """Steps between two measurements of the gradient noise; 0 for none."""
    target_accuracy: float | None = None
    """The accuracy that time and steps are asked for; changes no run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FinetuneSettings:
    """`[finetune]` of a study file: a second phase, in which a frozen base learns, too."""

    epochs: int = 0
    """None where 0."""
    lr: float = 0.00001
    optimizer: str = ""
    """That of `[train]` where empty."""
    schedule: str = ""
    """Over the epochs of this phase; that of `[train]` where empty."""
    epsilon: float | None = None
    rho: float | None = None
    """Those of `[train]` where None and its optimizer is the same; else the optimizer's own."""
    batchnorm: str = "frozen"
    """frozen (statistics as they came with the weights) or train."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptSettings:
    """`[script]` of a study file: a program of the user's own, in place of data, model and training."""

    path: str = ""
    """A Python file, relative to the study file."""
    arguments: tuple[str, ...] = ()
    """What follows its name on a command line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """`[run]` of a study file."""

    ranks: tuple[int, ...] = (1, 2)
    """Processes that train. Empty where hosts × ranks_per_host says it."""
    hosts: int = 1
    """Machines that the ranks are spread over, as equally as can be."""
    ranks_per_host: int | None = None
    """In place of `ranks`: their number is then hosts × ranks_per_host."""
    threads: int = 1
    """Threads of one rank: one, so that ranks and not BLAS decide how many cores are used."""
    cores: int | None = None
    """Cores that a rank is kept to, where it is pinned; as many as it has threads where None."""
    strategy: str = "ddp"
    launcher: str = "local"
    device: str = "auto"
    """auto takes one GPU per local rank where there is one, else the CPU."""
    pin: bool = True
    """Give each rank cores of its own where there are enough."""
    repeats: int = 5
    """With three, no rank test can find a difference."""
    scaling: str | None = None
    """strong (batch_global fixed) or weak (batch_per_rank fixed); follows from the batch where None."""
    heartbeat_s: float = 30.0
    """Ranks that make no progress for this long are called hung."""
    servers: int | None = None
    """Of parameter-server: processes that hold the parameters, beside the ranks; 1 where None."""
    server_threads: int | None = None
    """Of parameter-server: threads, and so cores, of one server; 1 where None."""
    staleness: int | None = None
    """Of parameter-server-async: how many steps the fastest rank may be ahead of the slowest; 4 where None."""
    average_every: int | None = None
    """Of local-sgd: steps between two averages; 8 where None."""
    compression_rank: int | None = None
    """Of ddp-powersgd: rank of the matrices that stand in for a gradient; 2 where None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchSettings:
    """`[launch]` of a study file, or a site profile: how ranks come to exist on the machines at hand."""

    site: str = ""
    """Name of the site profile that fills in what the study file does not say."""
    machines: tuple[str, ...] = ()
    """Names of the hosts for torchrun and mpi; the first `run.hosts` of them are used."""
    agent: tuple[str, ...] = ("ssh",)
    """Command that runs another on a host: it is given the host's name and the command."""
    interface: str = ""
    """Network interface between hosts. On one host everything stays on loopback."""
    mpiexec: str = "mpiexec"
    """MPICH's or Open MPI's: a name on the path, or a path."""
    start: str = "srun"
    """Of slurm: srun or mpiexec, which starts the ranks inside the job."""
    account: str = ""
    partition: str = ""
    time_limit: str = ""
    """Of one run's job, as the scheduler writes it: 00:30:00."""
    constraint: str = ""
    gpus_per_host: int = 0
    directives: tuple[str, ...] = ()
    """Further options of the job, one each: --exclusive."""
    modules: tuple[str, ...] = ()
    """Environment modules that a job loads first."""
    grace_s: float = 60.0
    """How long before its end a job is warned, to write a checkpoint."""
    ray_address: str = ""
    """Of an existing cluster; a local one is started where empty."""
    spread: bool = True
    """Of ray: whether ranks go to as many nodes as `run.hosts` asks for, or packed onto as few as can be."""


# Keys that have been part of a point's name from the first version on, at their default, too.
_FIRST: dict[type, tuple[str, ...]] = {
    DataSettings: ("dataset", "train_samples", "validation", "shape", "classes", "samples"),
    TrainSettings: (
        *("optimizer", "lr", "momentum", "weight_decay", "batch_global", "batch_per_rank"),
        *("epochs", "steps", "seed", "checkpoint_every", "precision"),
    ),
}


def said(settings: DataSettings | AugmentSettings | TrainSettings | FinetuneSettings) -> dict[str, object]:
    """The settings of a section that are not at their default, and those that were there from the first version on."""
    usual, always = asdict(type(settings)()), _FIRST.get(type(settings), ())
    return {key: value for key, value in asdict(settings).items() if key in always or value != usual[key]}
