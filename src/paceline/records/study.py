"""Study (a file), Point (one configuration), Run (one execution of it).

    Study ── expand ──▶ Point × all combinations of its factors ── repeats ──▶ Run × repeats

A point's identity is its settings: `point_id` is a hash of everything that can change what a run
computes or how fast it does so, the contents of the data and of a model file or script included. What only
sets how often and with which timeout to measure (repeats, heartbeat) is not included.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection
from dataclasses import asdict, dataclass, field, replace

from paceline import catalog
from paceline.layout import DATA, Layout, mesh
from paceline.records.recipe_choice import Choice
from paceline.records.settings import (
    AugmentSettings,
    DataSettings,
    FinetuneSettings,
    LaunchSettings,
    ModelSettings,
    RunSettings,
    ScriptSettings,
    TrainSettings,
    shown_settings,
)
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
    "epochs": "epoch",
    "steps": "step",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """A question, and the settings of every run that answers it."""

    name: str
    title: str = ""
    question: str = ""
    design: str = "grid"
    """grid (every combination of the factors), or one-at-a-time (the first value of each is the baseline)."""
    asks: str = "time"
    """time or accuracy: the main figure of its report."""
    published: str = ""
    """The published table that its report compares with."""
    fits: str = ""
    """machine: points that do not fit on this machine or cluster are not run; empty: every point is run."""
    size: str = ""
    """small or full, of a study file that has both; empty if there is only one."""
    data: DataSettings = DataSettings()
    augment: AugmentSettings = AugmentSettings()
    model: ModelSettings = ModelSettings()
    train: TrainSettings = TrainSettings()
    finetune: FinetuneSettings = FinetuneSettings()
    run: RunSettings = RunSettings()
    launch: LaunchSettings = LaunchSettings()
    vary: dict[str, tuple[str | int | float | bool, ...]] = field(default_factory=dict)
    """Factors in addition to the ranks: path of a setting -> its values; the sections above have the first values."""
    full: dict[str, str] = field(default_factory=dict)
    """At the small size: path of a setting -> what the file has for the full one, as TOML; empty if it is open."""
    given: tuple[str, ...] = ()
    """Settings that a recipe may choose and that are explicitly set to their default: no recipe changes them."""
    script: ScriptSettings | None = None
    """If set, it replaces data, model and training: the sections for these are not used."""


class _Named:
    """Slot for a point's name, which is computed once. Not a field: records, copies and equality ignore it."""

    __slots__ = ("_point_id",)
    _point_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Point(_Named):
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
    """Cores per rank if it is pinned; as many as threads if None."""
    strategy: str = "ddp"
    launcher: str = "local"
    device: str = "auto"
    pin: bool = True
    options: dict[str, int] = field(default_factory=dict)
    """Options of the strategy: servers, staleness, average_every, ..."""
    site: dict[str, str] = field(default_factory=dict)
    """Settings of `[launch]` that affect speed: partition, constraint, interface, ..."""
    augment: AugmentSettings = AugmentSettings()
    finetune: FinetuneSettings = FinetuneSettings()
    script: ScriptSettings | None = None
    script_digest: str = ""
    """SHA-256 of the script's file; empty if there is none."""
    chosen: tuple[Choice, ...] = ()
    """Choices of its recipe and their reasons: already in `train` and `finetune`, so not part of the point's name."""

    @property
    def layout(self) -> Layout:
        """The mesh of its ranks: the data axis, and the axes of its strategy."""
        axes = catalog.strategy(self.strategy).axes
        return mesh(self.ranks, [replace(axis, size=self.options.get(axis.name, axis.size)) for axis in axes])

    @property
    def data_size(self) -> int:
        """The number of ranks along the data axis: shares of a step's samples."""
        return self.layout.size(DATA)

    @property
    def servers(self) -> int:
        """Number of processes that store parameters and do not train."""
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
        try:
            return self._point_id
        except AttributeError:
            object.__setattr__(self, "_point_id", self._computed_id())
            return self._point_id

    def _computed_id(self) -> str:
        data = replace(self.data, dataset=_file_name(self.data.dataset))
        model = replace(self.model, name=_file_name(self.model.name), options=_portable_options(self.model))
        script = self.script and replace(self.script, path=_file_name(self.script.path))
        settings = asdict(replace(self, data=data, model=model, script=script))
        # Values at their default are omitted: a setting that is added to Paceline renames no point.
        for name in ("cores", "options", "site", "script", "script_digest"):
            if not settings[name]:
                del settings[name]
        del settings["chosen"]
        settings |= {"data": shown_settings(data), "train": shown_settings(self.train)}
        for name in ("augment", "finetune"):
            settings[name] = shown_settings(getattr(self, name))
            if not settings[name]:
                del settings[name]
        settings["train"].pop("target_accuracy", None)  # used by the analysis alone
        if script is not None:  # a script replaces all of these
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
        return self.train.batch_per_rank * self.data_size


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
    """The value of a setting such as `run.strategy` at a point; None if its strategy does not take it."""
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
    return point.options.get(key) if key in catalog.RUN_OPTIONS else getattr(point, key)


def shown_value(path: str, value: str | int | float | bool | None) -> str | int | float | bool | None:
    """A factor's value for display: of a file its name, without its folder."""
    return _file_name(value) if path in ("data.dataset", "model.name") and isinstance(value, str) else value


def _factor_text(point: Point, path: str) -> str:
    """The text of one factor in a label; empty if the point has none, or if ranks and hosts imply it."""
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


def _portable_options(model: ModelSettings) -> dict[str, object]:
    """A model's options with the weights file of a pretrained network without its folder."""
    weights = model.options.get("weights")
    if not isinstance(weights, str) or not catalog.model(model.name).pretrained:
        return model.options
    return {**model.options, "weights": _file_name(weights)}


def _file_name(name: str) -> str:
    """A file's name without its folder: the digest identifies its contents."""
    return name.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1]
