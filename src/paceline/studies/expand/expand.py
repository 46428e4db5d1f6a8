"""Study -> Points -> Runs: pure.

    points    a  b  c          repeat 1 ▶ a b c
    repeats   3                repeat 2 ◀ c b a
                               repeat 3 ▶ a b c

A point is one combination of a study's factors and a number of ranks: every combination, or with the design
one-at-a-time the baseline with the first value of each factor, and the baseline with one other value each.

    threads 1 2   neurons 32 64 128        grid            1·32 1·64 1·128 2·32 2·64 2·128
                                           one-at-a-time   1·32, 2·32, 1·64 1·128

Repeats are interleaved over points, so noise of a minute does not affect one point only. The
direction alternates, so a slow drift of the machine favours no point.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from paceline import catalog
from paceline.records.settings import DataSettings, LaunchSettings, ModelSettings, RunSettings
from paceline.records.study import Point, Run, Study
from paceline.studies.expand.recipe import explicit_settings, with_recipe

GRID, ONE_AT_A_TIME = "grid", "one-at-a-time"
DESIGNS = (GRID, ONE_AT_A_TIME)


def expand(
    study: Study,
    *,
    data_digest: str | Callable[[DataSettings], str],
    model_digest: str | Callable[[ModelSettings], str],
    script_digest: str = "",
) -> tuple[Point, ...]:
    """One point for each combination of the factors, in the order of the study file, the ranks changing fastest.
    Digests may be functions of the settings, if points differ in their data or models.

    Identical computations are one point: an option that a strategy or model does not take makes no
    other point, and a single rank is run with the first of several strategies.
    """
    points: dict[str, Point] = {}
    explicit = explicit_settings(study)
    for variant in variants(study):
        for ranks in rank_numbers(variant.run):
            data = data_digest if isinstance(data_digest, str) else data_digest(variant.data)
            model = model_digest if isinstance(model_digest, str) else model_digest(variant.model)
            point = replace(_point(variant, ranks, data, model), script_digest=script_digest)
            point = with_recipe(point, explicit)
            points.setdefault(_computation(point), point)
    return tuple(points.values())


def variants(study: Study) -> Iterator[Study]:
    """The study with one value of each factor, for every combination of its design.

    With one-at-a-time, only the first has all numbers of ranks; the others have the first number.
    """
    alone = replace(study, vary={})
    if study.design != ONE_AT_A_TIME:
        for values in itertools.product(*study.vary.values()):
            yield _with_values(alone, dict(zip(study.vary, values, strict=True)))
        return
    first = {path: values[0] for path, values in study.vary.items()}
    yield _with_values(alone, first)
    narrow = replace(alone, run=replace(alone.run, ranks=alone.run.ranks[:1]))
    for path, values in study.vary.items():
        for value in values[1:]:
            yield _with_values(narrow, first | {path: value})


def num_variants(study: Study) -> int:
    """Upper bound of the number of points of a study, without expanding it."""
    counts = [*map(len, study.vary.values()), max(1, len(study.run.ranks))]
    return math.prod(counts) if study.design != ONE_AT_A_TIME else 1 + sum(count - 1 for count in counts)


def _with_values(study: Study, values: Mapping[str, object]) -> Study:
    """The study with other settings by path, without options that its model does not take."""
    for path, value in values.items():
        section, key = path.split(".", 1)
        settings = getattr(study, section)
        if section == "model" and key != "name":
            settings = replace(settings, options={**settings.options, key: value})
        else:
            settings = replace(settings, **{key: value})
        study = replace(study, **{section: settings})
    if "model.name" not in values:
        return study
    taken = catalog.model(study.model.name).options
    options = {key: value for key, value in study.model.options.items() if taken is None or key in taken}
    return replace(study, model=replace(study.model, options=options))


def rank_numbers(run: RunSettings) -> tuple[int, ...]:
    """The numbers of ranks of a study without further factors."""
    return run.ranks if run.ranks or run.ranks_per_host is None else (run.hosts * run.ranks_per_host,)


def _point(study: Study, ranks: int, data_digest: str, model_digest: str) -> Point:
    run = study.run
    options = dict(catalog.strategy(run.strategy).options)
    given = {option: getattr(run, option) for option in options if getattr(run, option) is not None}
    return Point(
        data=study.data,
        data_digest=data_digest,
        model=study.model,
        model_digest=model_digest,
        train=study.train,
        augment=study.augment,
        finetune=study.finetune,
        ranks=ranks,
        hosts=run.hosts,
        threads=run.threads,
        cores=run.cores,
        strategy=run.strategy,
        launcher=run.launcher,
        device=run.device,
        pin=run.pin,
        options=options | given,
        site=_site(study.launch, run),
        script=study.script,
    )


def site_keys(run: RunSettings) -> tuple[str, ...]:
    """Settings of `[launch]` that affect the speed of these ranks."""
    return (*catalog.launcher(run.launcher).speed_keys, *(("interface",) if run.hosts > 1 else ()))


def _site(launch: LaunchSettings, run: RunSettings) -> dict[str, str]:
    """Settings of `[launch]` that affect this point and differ from their defaults."""
    usual = LaunchSettings()
    return {key: str(getattr(launch, key)) for key in site_keys(run) if getattr(launch, key) != getattr(usual, key)}


def launch_of(study: Study, point: Point) -> LaunchSettings:
    """`[launch]` of one point, if the study varies it."""
    varied = {path.split(".", 1)[1]: values for path, values in study.vary.items() if path.startswith("launch.")}
    given = {key: point.site.get(key, str(getattr(LaunchSettings(), key))) for key in varied}
    chosen = {key: next((v for v in varied[key] if str(v) == given[key]), varied[key][0]) for key in varied}
    return replace(study.launch, **chosen) if chosen else study.launch


def _computation(point: Point) -> str:
    """A key that is equal for points with identical computations."""
    alone = point.ranks == 1 and not point.servers
    return (replace(point, strategy="", options={}) if alone else point).point_id


def unchanging(study: Study) -> Iterator[tuple[str, object]]:
    """With one-at-a-time: path and value of every factor that does not change the baseline's computation."""
    if study.design != ONE_AT_A_TIME:
        return
    baseline, *others = variants(study)
    first = _computation(_point(baseline, rank_numbers(baseline.run)[0], "", ""))
    values = [(path, value) for path, own in study.vary.items() for value in own[1:]]
    for (path, value), variant in zip(values, others, strict=True):
        if _computation(_point(variant, rank_numbers(variant.run)[0], "", "")) == first:
            yield path, value


def schedule(points: Sequence[Point], repeats: int) -> tuple[Run, ...]:
    """All runs in the order of execution."""
    return tuple(
        Run(point=point, number=number)
        for number in range(1, repeats + 1)
        for point in (points if number % 2 else tuple(reversed(points)))
    )
