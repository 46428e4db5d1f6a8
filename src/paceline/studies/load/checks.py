"""Checks for invalid values and combinations, before any process starts.

Combinations are checked for all variants of a study; each mistake is reported once.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from paceline import catalog
from paceline.published.table_files import published_names
from paceline.records.settings import AugmentSettings, DataSettings, ModelSettings, RunSettings, TrainSettings
from paceline.records.study import Study
from paceline.studies.expand.expand import DESIGNS, ONE_AT_A_TIME, num_variants, rank_numbers, unchanging, variants
from paceline.studies.load import (
    launch_checks,
    model_factors,
    network_checks,
    phase_checks,
    recipe_checks,
    scripts,
)
from paceline.studies.load.files import data_path, model_path
from paceline.studies.load.keys import Problem, mistake, shown
from paceline.units import counted

MAX_RANKS = 4096
MAX_POINTS = 10_000
MAX_SEED = 2**31
MIN_IMAGE_SIDE, MAX_IMAGE_SIDE = 8, 1024
_FOLDER_NAME = re.compile(r"\w([\w .+-]*[\w+-])?")


def problems(study: Study, base: Path) -> Iterator[Problem]:
    """All mistakes of a study whose keys and types are valid."""
    yield from _naming(study)
    num_points = num_variants(study)
    if num_points > MAX_POINTS:
        text = f"The factors of this study make {num_points:,} points: at most {MAX_POINTS:,} are taken. Vary less."
        yield Problem(("study", *study.vary), text)
        return
    yield from recipe_checks.varied_problems(study.train, study.vary)
    yield from phase_checks.unused(study)
    reported: set[str] = set()
    for variant in variants(study):
        for problem in _of_combination(variant, base, study.vary):
            if problem.text not in reported:
                reported.add(problem.text)
                yield problem
    yield from _options(study)
    yield from launch_checks.problems(study)
    if not reported:
        yield from _one_at_a_time(study)


def _options(study: Study) -> Iterator[Problem]:
    """Options that none of several models takes. A single model reports its own."""
    names = [str(name) for name in study.vary.get("model.name", ())]
    for key in model_factors.unknown_options(tuple(study.model.options), names) if names else ():
        text = f"model.{key} = {shown(study.vary.get(f'model.{key}', study.model.options[key]))}"
        yield Problem((f"model.{key}", "model.name"), f"{text}: none of {', '.join(names)} takes it.")


def _one_at_a_time(study: Study) -> Iterator[Problem]:
    """Mistakes of a one-at-a-time study."""
    if study.design != ONE_AT_A_TIME:
        return
    if num_variants(study) == 1:
        text = 'study.design = "one-at-a-time": nothing is varied. Give a list in place of some value.'
        yield Problem(("study.design",), text)
    for path, value in unchanging(study):
        yield Problem(
            (path, "study.design"),
            f"{path} = {shown(value)}: changes nothing at the baseline, which has the first value of every factor. "
            "Put another first, or leave it out.",
        )


def _of_combination(study: Study, base: Path, vary: Mapping[str, Collection[object]]) -> Iterator[Problem]:
    ranks = rank_numbers(study.run)
    inner = math.prod(axis.size for axis in catalog.strategy(study.run.strategy).axes)
    shares = tuple(max(1, count // inner) for count in ranks)
    if study.script is not None:
        yield from scripts.problems(study.script, base)
    else:
        yield from _data(study.data, base, shares=max(shares, default=1))
        yield from _augment(study.augment, study.train)
        yield from _model(study.model, base)
        yield from network_checks.problems(study, base)
        yield from _train(study.train)
        yield from recipe_checks.problems(study, shares, vary)
        yield from phase_checks.problems(study)
        yield from recipe_checks.noise_problems(study, shares)
        yield from recipe_checks.target_problems(study)
        if any(count > 1 and count % inner for count in ranks):
            yield mistake(
                "run.ranks", study.run.ranks, f"{study.run.strategy} needs multiples of {inner}, or 1.", "run.strategy"
            )
    yield from _run(study.run, ranks, script=study.script is not None)
    yield from _together(study.train, study.run, ranks, max(shares, default=1))


def _naming(study: Study) -> Iterator[Problem]:
    if not study.name:
        yield Problem(("study", "study.name"), 'study.name is missing: a study needs a name, e.g. name = "my-study".')
    elif not _FOLDER_NAME.fullmatch(study.name) or len(study.name.encode()) > 100:
        yield mistake(
            "study.name",
            study.name,
            "a folder is named after it, so it must be made of letters, digits, "
            "spaces and . _ + - (at most 100, a letter or digit first).",
        )
    yield from _one_of("study.design", study.design, DESIGNS)
    yield from _one_of("study.asks", study.asks, ("time", "accuracy"))
    if study.script and study.asks == "accuracy":
        text = 'study.asks = "accuracy": what a script reaches is not known to Paceline. Leave it out.'
        yield Problem(("study.asks",), text)
    yield from _one_of("study.published", study.published, ("", *published_names()))
    yield from _one_of("study.fits", study.fits, ("", "machine"))
    yield from _one_of("study.size", study.size, ("", "small", "full"))


def _data(data: DataSettings, base: Path, *, shares: int) -> Iterator[Problem]:
    path = data_path(data.dataset, base)
    if path is not None and not os.path.exists(path):
        yield mistake("data.dataset", data.dataset, _no_dataset(data.dataset, path))
    yield from _least("data.train_samples", data.train_samples, 1)
    yield from _least("data.test_samples", data.test_samples, 1)
    if data.train_samples is not None and 1 <= data.train_samples < shares:
        yield mistake(
            "data.train_samples",
            data.train_samples,
            f"must be at least the largest number of ranks, {shares}.",
            "run.ranks",
            "run.hosts",
            "run.ranks_per_host",
        )
    yield from _one_of("data.read", data.read, ("mapped", "whole", "mpi-io"))
    if not math.isfinite(data.validation) or data.validation < 0 or (data.validation > 1 and data.validation % 1):
        yield mistake(
            "data.validation", data.validation, "must be a fraction from 0 to below 1, or a whole number of samples."
        )
    yield from image_problems(data)
    if not catalog.dataset(data.dataset).made:
        makers = [shown(name) for name, entry in catalog.entries("dataset") if entry.made]
        for key in ("shape", "classes", "samples"):
            if getattr(data, key) is not None:
                yield mistake(
                    f"data.{key}", getattr(data, key), f"only dataset = {' or '.join(makers)} takes it.", "data.dataset"
                )
        return
    if data.shape is not None and (len(data.shape) != 3 or min(data.shape) < 1):
        yield mistake("data.shape", data.shape, "must be height, width, channels, e.g. [28, 28, 1].")
    yield from _least("data.classes", data.classes, 2)
    yield from _least("data.samples", data.samples, 1)


def _augment(augment: AugmentSettings, train: TrainSettings) -> Iterator[Problem]:
    yield from _least("augment.crop", augment.crop, 0)
    yield from _least("augment.cutout", augment.cutout, 0)
    for key, most in (("shift", 1), ("zoom", 1), ("colour", 1), ("rotation", 180)):
        value, whole = getattr(augment, key), most == 180 or key == "colour"
        if not (0 <= value < most or (whole and value == most)):
            limits = f"from 0 to {'' if whole else 'below '}{most}"
            yield mistake(f"augment.{key}", value, f"must be {limits}.")
    if train.cached_features and augment != AugmentSettings():
        yield Problem(
            ("train.cached_features", "augment"),
            "train.cached_features = true: features are computed once for every image, and [augment] changes the "
            "images in every epoch. Leave one of them out.",
        )


def image_problems(data: DataSettings) -> Iterator[Problem]:
    """Mistakes in the settings for decoding images."""
    yield from _least("data.image_size", data.image_size, MIN_IMAGE_SIDE, MAX_IMAGE_SIDE)
    yield from _one_of("data.damaged", data.damaged, ("refuse", "skip"))
    if not 0 <= data.test < 1:
        yield mistake("data.test", data.test, "must be a fraction from 0 to below 1.")
    form, usual = data.dataset.partition(":")[0], DataSettings()
    arrays = form in ("npz", "idx") or (form != "images" and data.dataset.endswith(".npz"))
    if arrays or (catalog.known("dataset", data.dataset) and not catalog.dataset(data.dataset).image_folder):
        for key in ("image_size", "test", "damaged"):
            value = getattr(data, key)
            if value != getattr(usual, key):
                yield mistake(
                    f"data.{key}",
                    value,
                    f"only image folders take it, and {shown(data.dataset)} is none.",
                    "data.dataset",
                )


def _no_dataset(name: str, path: Path) -> str:
    if "/" in name or "." in name:
        return f"there is no file or folder {path}."
    return _unknown("dataset", name) + " Or give the path of an .npz file, or of a folder of IDX files or images."


def _model(model: ModelSettings, base: Path) -> Iterator[Problem]:
    fault = model_fault(model.name, base)
    if fault:
        yield mistake("model.name", model.name, fault)
    for key, value in model.options.items():
        items = value if isinstance(value, list) else [value]
        if not all(isinstance(item, bool | int | float | str) for item in items):
            yield mistake(f"model.{key}", value, "must be a number, text, true or false, or a list of those.")
        elif not all(math.isfinite(item) for item in items if isinstance(item, float)):
            yield mistake(f"model.{key}", value, "must be finite.")


def model_fault(name: str, base: Path) -> str:
    """What is wrong with the name of a model; empty if it is valid."""
    path = model_path(name, base)
    if path is None:
        return ""
    file, colon, function = name.rpartition(":")
    if not colon and not name.endswith(".py"):
        return f'{_unknown("model", name)} Or name a function of your own: "my_file.py:build".'
    if not (file.endswith(".py") and function.isidentifier()):
        return 'must be "my_file.py:function", e.g. "my_file.py:build".'
    return "" if os.path.isfile(path) else f"there is no file {path}."


def _train(train: TrainSettings) -> Iterator[Problem]:
    yield from _known("train.optimizer", "optimizer", train.optimizer)
    if not (math.isfinite(train.lr) and train.lr > 0):
        yield mistake("train.lr", train.lr, "must be a finite number above 0.")
    if not 0 <= train.momentum < 1:
        yield mistake("train.momentum", train.momentum, "must be from 0 to below 1.")
    elif train.momentum and "momentum" not in catalog.optimizer(train.optimizer).takes:
        takers = " and ".join(name for name, entry in catalog.entries("optimizer") if "momentum" in entry.takes)
        yield mistake(
            "train.momentum", train.momentum, f"only {takers} take it, not {shown(train.optimizer)}.", "train.optimizer"
        )
    decay = train.weight_decay
    if decay is not None and not (math.isfinite(decay) and decay >= 0):
        yield mistake("train.weight_decay", decay, "must be finite, 0 or more.")
    for key in ("batch_global", "batch_per_rank", "epochs", "steps"):
        yield from _least(f"train.{key}", getattr(train, key), 1)
    yield from _least("train.seed", train.seed, 0, MAX_SEED)
    yield from _least("train.checkpoint_every", train.checkpoint_every, 0)
    yield from _one_of("train.precision", train.precision, ("float32", "float64", "bfloat16"))
    yield from _exactly_one(train, "batch_global", "batch_per_rank", "the samples of one optimizer step")
    yield from _exactly_one(train, "epochs", "steps", "how long to train")


def _run(run: RunSettings, ranks: tuple[int, ...], *, script: bool) -> Iterator[Problem]:
    given = f"run.ranks = {shown(run.ranks)}"
    if not ranks:
        yield Problem(("run.ranks",), f"{given}: must name at least one number of ranks, e.g. [1, 2].")
    elif run.ranks and (min(run.ranks) < 1 or max(run.ranks) > MAX_RANKS):
        yield Problem(("run.ranks",), f"{given}: each must be from 1 to {MAX_RANKS}.")
    if len(set(run.ranks)) < len(run.ranks):
        yield Problem(("run.ranks",), f"{given}: each number may stand there once. run.repeats says how often to run.")
    yield from _least("run.hosts", run.hosts, 1, MAX_RANKS)
    yield from _least("run.ranks_per_host", run.ranks_per_host, 1, MAX_RANKS)
    for key in ("servers", "server_threads", "average_every", "compression_rank"):
        yield from _least(f"run.{key}", getattr(run, key), 1, MAX_RANKS)
    yield from _least("run.staleness", run.staleness, 0, MAX_RANKS)
    yield from _least("run.threads", run.threads, 1, 4096)
    yield from _least("run.cores", run.cores, 1, 4096)
    if run.cores is not None and not run.pin:
        yield mistake(
            "run.cores", run.cores, "a rank is kept to so many cores by pinning it, and run.pin is false.", "run.pin"
        )
    yield from _least("run.repeats", run.repeats, 1, 10_000)
    if not script:
        yield from _known("run.strategy", "strategy", run.strategy)
    yield from _known("run.launcher", "launcher", run.launcher)
    yield from _one_of("run.device", run.device, ("auto", "cpu", "cuda"))
    if run.scaling is not None:
        yield from _one_of("run.scaling", run.scaling, ("strong", "weak"))
    if not (math.isfinite(run.heartbeat_s) and run.heartbeat_s > 0):
        yield mistake("run.heartbeat_s", run.heartbeat_s, "must be a finite number above 0.")


def _together(train: TrainSettings, run: RunSettings, ranks: tuple[int, ...], shares: int) -> Iterator[Problem]:
    """Mistakes in combinations of keys."""
    most, fewest = max(ranks, default=1), min(ranks, default=1)
    about = ("run.ranks", "run.hosts", "run.ranks_per_host")
    if train.batch_global is not None and 1 <= train.batch_global < shares:
        yield mistake(
            "train.batch_global",
            train.batch_global,
            f"is smaller than the {shares} ranks that share it. Give at least {shares}, or fewer ranks.",
            *about,
        )
    if run.ranks and run.ranks_per_host is not None:
        text = "run.ranks and run.ranks_per_host are both given: leave one of them out."
        yield Problem(about[::2], f"{text} With ranks_per_host there are hosts × ranks_per_host ranks.")
    elif run.ranks_per_host is not None and most > MAX_RANKS:
        yield Problem(about[1:], f"run.hosts × run.ranks_per_host = {most}: at most {MAX_RANKS} ranks are taken.")
    elif 1 <= fewest < run.hosts <= MAX_RANKS:
        text = f"is more than {counted(fewest, 'rank')} can be spread over. Give fewer hosts, or at least {run.hosts}"
        yield Problem(about[:2], f"run.hosts = {run.hosts}: {text} ranks.")
    fixed = {"strong": "batch_global", "weak": "batch_per_rank"}
    other = {"strong": "batch_per_rank", "weak": "batch_global"}
    if run.scaling in fixed and getattr(train, fixed[run.scaling]) is None and getattr(train, other[run.scaling]):
        yield Problem(
            ("run.scaling", "train.batch_global", "train.batch_per_rank"),
            f'run.scaling = "{run.scaling}": keeps train.{fixed[run.scaling]} fixed, '
            f"but train.{other[run.scaling]} is given. Give train.{fixed[run.scaling]} in its place.",
        )
    if 0 <= train.seed <= MAX_SEED < train.seed + run.repeats - 1:
        yield mistake(
            "train.seed",
            train.seed,
            f"the last of {run.repeats} repeats would have a seed above {MAX_SEED}.",
            "run.repeats",
        )


def _exactly_one(train: TrainSettings, one: str, other: str, what: str) -> Iterator[Problem]:
    about = (f"train.{one}", f"train.{other}")
    given = [key for key in (one, other) if getattr(train, key) is not None]
    if not given:
        yield Problem(about, f"[train] says nothing about {what}: give {one} or {other}.")
    elif len(given) == 2:
        yield Problem(about, f"train.{one} and train.{other} are both given: leave one of them out.")


def _least(path: str, value: int | None, least: int, most: int | None = None) -> Iterator[Problem]:
    if value is None or (value >= least and (most is None or value <= most)):
        return
    limits = f"{least} or more" if most is None else f"from {least} to {most}"
    yield mistake(path, value, f"must be {limits}.")


def _known(path: str, kind: str, name: str) -> Iterator[Problem]:
    if not catalog.known(kind, name):
        yield mistake(path, name, _unknown(kind, name))


def _one_of(path: str, value: str, allowed: tuple[str, ...]) -> Iterator[Problem]:
    if value not in allowed:
        yield mistake(path, value, f"must be {' or '.join(map(shown, allowed))}.")


def _unknown(kind: str, name: str) -> str:
    known = catalog.names(kind)
    near = catalog.nearest(name, known)
    hint = f" Did you mean {shown(near)}?" if near else ""
    return f"there is no such {kind}.{hint} Known: {', '.join((*known, *catalog.members(kind)))}."
