"""Study (a file), Point (one configuration), Run (one execution of it).

    Study ── expand ──▶ Point × all combinations of its factors ── repeats ──▶ Run × repeats

A point's identity is its settings: `point_id` is a hash of everything that can change what a run
computes or how fast it does so, the contents of the data and of a model file or script included. What only
says how often or how patiently to measure (repeats, heartbeat) is left out of it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection
from dataclasses import asdict, dataclass, field, replace

from paceline import catalog
from paceline.units import counted

# Factors that a label shows as a number of something.
_COUNTED = {
    "threads": "thread",
    "cores": "core",
    "neurons": "neuron",
    "layers": "layer",
    "servers": "server",
    "server_threads": "server thread",
    "train_samples": "sample",
    "test_samples": "test sample",
    "epochs": "epoch",
    "steps": "step",
}


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """A question, and the settings of every run that answers it."""

    name: str
    title: str = ""
    question: str = ""
    design: str = "grid"
    """grid (every combination of the factors), or one-at-a-time (the first value of each is the baseline)."""
    asks: str = "time"
    """time or accuracy: what its report opens with."""
    published: str = ""
    """The published table that its report puts beside its own results."""
    fits: str = ""
    """machine leaves out what the machine or cluster at hand cannot hold; otherwise every point is run."""
    size: str = ""
    """small or full, of a study file that has both; empty where there is only one."""
    data: DataSettings = DataSettings()
    augment: AugmentSettings = AugmentSettings()
    model: ModelSettings = ModelSettings()
    train: TrainSettings = TrainSettings()
    finetune: FinetuneSettings = FinetuneSettings()
    run: RunSettings = RunSettings()
    launch: LaunchSettings = LaunchSettings()
    vary: dict[str, tuple[str | int | float | bool, ...]] = field(default_factory=dict)
    """Factors besides the ranks: path of a setting -> its values; the sections above hold the first of each."""
    full: dict[str, str] = field(default_factory=dict)
    """At the small size: path of a setting -> what the file has for the full one, as TOML; empty where it is open."""
    given: tuple[str, ...] = ()
    """Settings that a recipe may choose and that were given at their default: what is given, no recipe changes."""
    script: ScriptSettings | None = None
    """Where there is one, it brings its own data, model and training: the sections for these mean nothing."""


# Keys that have been part of a point's name from the first version on, at their default, too.
_FIRST: dict[type, tuple[str, ...]] = {
    DataSettings: ("dataset", "train_samples", "validation", "shape", "classes", "samples"),
    TrainSettings: (
        *("optimizer", "lr", "momentum", "weight_decay", "batch_global", "batch_per_rank"),
        *("epochs", "steps", "seed", "checkpoint_every", "precision"),
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One configuration: all that decides what a run computes and how fast."""

    data: DataSettings
    data_digest: str
    """SHA-256 of the decoded data set: a file that was changed in place is another point."""
    model: ModelSettings
    model_digest: str
    """SHA-256 of the user's model file; empty for a model of the catalog."""
    train: TrainSettings
    """With exactly one of batch_global and batch_per_rank as the study gave it."""
    ranks: int
    hosts: int = 1
    threads: int = 1
    cores: int | None = None
    """Cores that a rank is kept to; as many as it has threads where None."""
    strategy: str = "ddp"
    launcher: str = "local"
    device: str = "auto"
    pin: bool = True
    options: dict[str, int] = field(default_factory=dict)
    """What the strategy alone takes: servers, staleness, average_every, ..."""
    site: dict[str, str] = field(default_factory=dict)
    """What of `[launch]` decides how fast a run is: partition, constraint, interface, ..."""
    augment: AugmentSettings = AugmentSettings()
    finetune: FinetuneSettings = FinetuneSettings()
    script: ScriptSettings | None = None
    script_digest: str = ""
    """SHA-256 of the script's file; empty where there is none."""
    chosen: tuple[str, ...] = ()
    """What its recipe chose and why, in words: `train` has it already, so it is no part of the point's name."""

    @property
    def servers(self) -> int:
        """Processes that hold parameters and do not train."""
        return self.options.get("servers", 0)

    @property
    def processes(self) -> int:
        """All processes of a run: ranks that train, servers, and with servers a coordinator."""
        return self.ranks + (self.servers + 1 if self.servers else 0)

    def role(self, process: int) -> str:
        """rank, server or coordinator: in this order they are numbered."""
        if process < self.ranks:
            return "rank"
        return "server" if process < self.ranks + self.servers else "coordinator"

    @property
    def ranks_on_hosts(self) -> tuple[int, ...]:
        """Processes on each host, larger shares first."""
        base, extra = divmod(self.processes, self.hosts)
        return tuple(base + (host < extra) for host in range(self.hosts))

    @property
    def point_id(self) -> str:
        """A readable name that changes with any setting: `2-ranks-ddp-1f0c9a77e2`."""
        data = replace(self.data, dataset=_file_name(self.data.dataset))
        model = replace(self.model, name=_file_name(self.model.name), options=_portable_options(self.model))
        script = self.script and replace(self.script, path=_file_name(self.script.path))
        settings = asdict(replace(self, data=data, model=model, script=script))
        # What came later says nothing where it is at its default: points that were measured before keep their names.
        for name in ("cores", "options", "site", "script", "script_digest"):
            if not settings[name]:
                del settings[name]
        del settings["chosen"]
        settings |= {"data": said(data), "train": said(self.train)}
        for name in ("augment", "finetune"):
            settings[name] = said(getattr(self, name))
            if not settings[name]:
                del settings[name]
        settings["train"].pop("target_accuracy", None)  # it is asked of results, and changes none
        if script is not None:  # which brings all of these itself
            for name in ("data", "data_digest", "model", "model_digest", "train", "augment", "finetune"):
                settings.pop(name, None)
        canonical = json.dumps(settings, sort_keys=True, separators=(",", ":"))
        digest = hashlib.sha256(canonical.encode()).hexdigest()[:10]
        return f"{self.ranks}-rank{'s' if self.ranks > 1 else ''}-{self.strategy}-{digest}"

    @property
    def batch_global(self) -> int:
        """Samples between two optimizer steps over all ranks; not known of a script."""
        if self.train.batch_global is not None:
            return self.train.batch_global
        assert self.train.batch_per_rank is not None
        return self.train.batch_per_rank * self.ranks


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One execution of a point."""

    point: Point
    number: int
    """From 1 on."""

    @property
    def seed(self) -> int:
        """The seed of this run: repeats differ in it, points do not."""
        return self.point.train.seed + self.number - 1


def point_label(point: Point, vary: Collection[str]) -> str:
    """A point by its ranks and the factors that a study varies: `4 ranks on 2 hosts, parameter-server, 2 servers`."""
    hosts = f" on {counted(point.hosts, 'host')}" if "run.hosts" in vary else ""
    factors = (_factor_text(point, path) for path in vary)
    return ", ".join([f"{counted(point.ranks, 'rank')}{hosts}", *filter(None, factors)])


def factor_value(point: Point, path: str) -> str | int | float | bool | None:
    """The value of a setting such as `run.strategy` at a point; None where its strategy does not take it."""
    section, key = path.split(".", 1)
    if key == "ranks_per_host":
        return point.ranks // point.hosts
    if section == "launch":
        return point.site.get(key, getattr(LaunchSettings(), key))
    if section == "model" and key != "name":
        value = point.model.options.get(key)
        return value if isinstance(value, str | int | float) else None
    if section != "run":
        return getattr(getattr(point, section), key)
    return getattr(point, key) if hasattr(point, key) and key != "servers" else point.options.get(key)


def shown_value(path: str, value: str | int | float | bool | None) -> str | int | float | bool | None:
    """A factor's value as it is shown: of a file its name, without the folder that it lies in."""
    return _file_name(value) if path in ("data.dataset", "model.name") and isinstance(value, str) else value


def _factor_text(point: Point, path: str) -> str:
    """What a label says about one factor; empty where the point has none, or its ranks and hosts say it."""
    key, value = path.split(".", 1)[1], shown_value(path, factor_value(point, path))
    if value is None or key in ("hosts", "ranks_per_host"):
        return ""
    if key in _COUNTED and isinstance(value, int | float):
        return counted(int(value), _COUNTED[key])
    if path == "model.name" or key in ("dataset", "strategy", "launcher", "device", "optimizer", "precision"):
        return str(value)
    if key == "pin":
        return "pinned" if value else "not pinned"
    return f"{key.replace('_', ' ')} {value}"


def said(settings: DataSettings | AugmentSettings | TrainSettings | FinetuneSettings) -> dict[str, object]:
    """The settings of a section that are not at their default, and those that were there from the first version on."""
    usual, always = asdict(type(settings)()), _FIRST.get(type(settings), ())
    return {key: value for key, value in asdict(settings).items() if key in always or value != usual[key]}


def _portable_options(model: ModelSettings) -> dict[str, object]:
    """A model's options with the file of a pretrained network's weights as `_file_name` has it."""
    weights = model.options.get("weights")
    if not isinstance(weights, str) or not catalog.pretrained(model.name):
        return model.options
    return {**model.options, "weights": _file_name(weights)}


def _file_name(name: str) -> str:
    """A file's name without its folder: the digest says what is in it, wherever it lies."""
    return name.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1]
