"""Study (a file), Point (one configuration), Run (one execution of it).

    Study ── expand ──▶ Point × len(ranks) ── repeats ──▶ Run × repeats

A point's identity is its settings: `point_id` is a hash of everything that can change what a run
computes or how fast it does so, the data's and the model file's contents included. What only
says how often or how patiently to measure (repeats, heartbeat) is left out of it.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSettings:
    """`[data]` of a study file."""

    dataset: str = "mnist"
    """A name of the catalog, or a path: `.npz`, or a folder of IDX files."""
    train_samples: int | None = None
    """How many samples to train on; all that are left after validation where None."""
    validation: float = 0.0
    """Held out of the training set: a fraction below 1, a number of samples from 1 on."""
    shape: tuple[int, ...] | None = None
    """Height, width, channels of `synthetic` images."""
    classes: int | None = None
    """Number of classes of `synthetic` data."""
    samples: int | None = None
    """Training samples that `synthetic` makes; a sixth as many for the test."""


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
    """For SGD."""
    weight_decay: float | None = None
    """The optimizer's own default where None: 0.01 for adamw, 0 for the others."""
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
    """float32, or float64 where the order of summation matters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """`[run]` of a study file."""

    ranks: tuple[int, ...] = (1, 2)
    threads: int = 1
    """Threads of one rank: one, so that ranks and not BLAS decide how many cores are used."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """A question, and the settings of every run that answers it."""

    name: str
    title: str = ""
    question: str = ""
    data: DataSettings = DataSettings()
    model: ModelSettings = ModelSettings()
    train: TrainSettings = TrainSettings()
    run: RunSettings = RunSettings()


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
    strategy: str = "ddp"
    launcher: str = "local"
    device: str = "auto"
    pin: bool = True

    @property
    def point_id(self) -> str:
        """A readable name that changes with any setting: `2-ranks-ddp-1f0c9a77e2`."""
        data = replace(self.data, dataset=_file_name(self.data.dataset))
        model = replace(self.model, name=_file_name(self.model.name))
        settings = asdict(replace(self, data=data, model=model))
        canonical = json.dumps(settings, sort_keys=True, separators=(",", ":"))
        digest = hashlib.sha256(canonical.encode()).hexdigest()[:10]
        return f"{self.ranks}-rank{'s' if self.ranks > 1 else ''}-{self.strategy}-{digest}"

    @property
    def batch_global(self) -> int:
        """Samples between two optimizer steps over all ranks."""
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


def _file_name(name: str) -> str:
    """A file's name without its folder: the digest says what is in it, wherever it lies."""
    return name.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1]
