"""A study turned into a learning-rate range test, and what its runs measured.

    study ─ range_study ─▶ its data, model, batch and strategy with a rising rate ─ execute ─▶ range_tests

The test is a run like any other, with its own point, folder and launcher. Settings of a whole training (rule,
warm-up, schedule, average) are not used: they start from the rate that it finds.
"""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass, replace
from pathlib import Path

from paceline import catalog
from paceline.errors import FolderError, RequestError
from paceline.records.lr_range import LrAdvice
from paceline.records.settings import TrainSettings
from paceline.records.study import Point, Study
from paceline.studies.expand.expand import rank_numbers, variants
from paceline.studies.expand.recipe import explicit_settings, resolved
from paceline.studies.folder.collect import collect
from paceline.studies.load.load import LoadedStudy

FEWEST_STEPS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeTest:
    """The rates and losses of one run."""

    point: Point
    seed: int
    rates: tuple[float, ...]
    losses: tuple[float, ...]


def range_study(loaded: LoadedStudy, *, cores: int, first: float, last: float, steps: int, repeats: int) -> LoadedStudy:
    """The range test of a study at one of its numbers of ranks: the largest that fits the cores."""
    study = loaded.study
    _check(study, first, last, steps, repeats)
    numbers = rank_numbers(study.run)
    elsewhere = catalog.launcher(study.run.launcher).several_hosts
    fitting = [number for number in numbers if number * study.run.threads <= cores or elsewhere]
    chosen, usual = max(fitting, default=min(numbers)), TrainSettings()
    train = replace(
        _settled(study, study, chosen),
        schedule="range",
        lr=first,
        step_factor=last / first,
        steps=steps,
        **{key: getattr(usual, key) for key in _COURSE},
    )
    run = replace(study.run, ranks=(chosen,), ranks_per_host=None, repeats=repeats)
    return replace(loaded, study=replace(study, train=train, run=run, vary={}, given=()))


# Settings of a whole training.
_COURSE = (
    *("recipe", "lr_rule", "lr_batch", "warmup_epochs", "step_epochs", "epochs", "epochs_rule"),
    *("average_epochs", "noise_every", "checkpoint_every", "target_accuracy"),
)


def range_tests(folder: Path) -> tuple[RangeTest, ...]:
    """The range tests of the finished runs in a study folder."""
    found = []
    for run in collect(folder).runs:
        rates, losses = _curve(run.folder.lr_range)
        found.append(RangeTest(point=run.manifest.point, seed=run.result.seed, rates=rates, losses=losses))
    return tuple(found)


def _curve(path: Path) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The rates and losses in the file of a run."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            lines = [(float(line["lr"]), float(line["loss"])) for line in csv.DictReader(file)]
        rates, losses = zip(*lines, strict=True)
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise FolderError(
            f"{path} is missing or damaged: {error}.",
            right="A finished range test has a line with step, lr and loss for every step.",
            next="Start over with --fresh: what is there is moved aside, not removed.",
        ) from error
    return rates, losses


def changes_to(study: Study, advice: LrAdvice) -> list[str]:
    """Overrides that make a study train with the recommended rate; empty if there is none."""
    if advice.lr is None:
        return []
    lr = f"train.lr={advice.lr:g}"
    # Without lr_batch, a rule would scale the rate again.
    ruled = any(_settled(study, variant, advice.ranks).lr_rule != "none" for variant in variants(study))
    return [lr, f"train.lr_batch={advice.batch_global}"] if ruled else [lr]


def _settled(study: Study, variant: Study, ranks: int) -> TrainSettings:
    """The training settings of one combination of factors at so many ranks, with the choices of its recipe."""
    train = variant.train
    batch_global = train.batch_global if train.batch_global is not None else (train.batch_per_rank or 1) * ranks
    servers = catalog.strategy(variant.run.strategy).has_servers
    return resolved(train, batch_global=batch_global, ranks=ranks, servers=servers, explicit=explicit_settings(study))[
        0
    ]


def _check(study: Study, first: float, last: float, steps: int, repeats: int) -> None:
    if study.script is not None:
        raise RequestError(
            f"{study.name} is a study of a script, {study.script.path}: its learning rate is its own.",
            right="A range test needs Paceline's own training.",
            next="For example: paceline tune lr digits",
        )
    if not (0 < first < last < math.inf):
        raise RequestError(
            f"--from {first:g} and --to {last:g}: rates cannot rise from the one to the other.",
            right="Both are above 0, and --to is the larger one.",
            next="For example: --from 1e-5 --to 1",
        )
    if steps < FEWEST_STEPS:
        raise RequestError(
            f"--steps {steps} is too few to see a curve.",
            right=f"A range test takes {FEWEST_STEPS} steps or more; 100 are usual.",
            next="For example: --steps 100",
        )
    if repeats < 1:
        raise RequestError(
            f"--repeats {repeats}: there is nothing to run.",
            right="Each repeat is a test with a seed of its own.",
            next="For example: --repeats 3",
        )
