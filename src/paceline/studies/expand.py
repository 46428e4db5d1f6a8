"""Study -> Points -> Runs: pure.

    points    a  b  c          repeat 1 ▶ a b c
    repeats   3                repeat 2 ◀ c b a
                               repeat 3 ▶ a b c

A point is one combination of a study's factors and a number of ranks.
Repeats are interleaved over points so that a noisy minute does not fall on one of them, and the
direction alternates so that a machine that slowly warms up or slows down favours none.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from paceline import catalog
from paceline.records.study import LaunchSettings, Point, Run, RunSettings, Study
from paceline.studies.recipe import followed

# What of [launch] decides how fast the ranks of a launcher are. The interface counts where there are several hosts.
_SITE = {
    "mpi": ("mpiexec",),
    "slurm": ("partition", "constraint", "gpus_per_host", "start"),
    "pbs": ("partition", "constraint", "gpus_per_host"),
    "ray": ("gpus_per_host", "spread"),
}


def expand(
    study: Study,
    *,
    data_digest: str,
    model_digest: str,
    script_digest: str = "",
    other_sizes: Mapping[int | None, str] | None = None,
) -> tuple[Point, ...]:
    """One point for each combination of the factors, in the order of the study file, the ranks changing fastest.
    `other_sizes` has the digests of the data at further image sizes, where a study varies that.

    What would be the same computation is one point: an option that a strategy does not take makes no
    other, and a rank that exchanges nothing is run under the first of several strategies.
    """
    points: dict[str, Point] = {}
    for variant in variants(study):
        for ranks in rank_numbers(variant.run):
            digest = (other_sizes or {}).get(variant.data.image_size, data_digest)
            point = replace(_point(variant, ranks, digest, model_digest), script_digest=script_digest)
            point = followed(point, study.vary)
            points.setdefault(_computation(point), point)
    return tuple(points.values())


def variants(study: Study) -> Iterator[Study]:
    """The study with one value of each factor, for every combination of them."""
    for values in itertools.product(*study.vary.values()):
        variant = replace(study, vary={})
        for path, value in zip(study.vary, values, strict=True):
            section, key = path.split(".", 1)
            variant = replace(variant, **{section: replace(getattr(variant, section), **{key: value})})
        yield variant


def rank_numbers(run: RunSettings) -> tuple[int, ...]:
    """The numbers of ranks that a study without further factors asks for."""
    return run.ranks if run.ranks or run.ranks_per_host is None else (run.hosts * run.ranks_per_host,)


def _point(study: Study, ranks: int, data_digest: str, model_digest: str) -> Point:
    run = study.run
    options = catalog.strategy_options(run.strategy)
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
        strategy=run.strategy,
        launcher=run.launcher,
        device=run.device,
        pin=run.pin,
        options=options | given,
        site=_site(study.launch, run),
        script=study.script,
    )


def _site(launch: LaunchSettings, run: RunSettings) -> dict[str, str]:
    """What of `[launch]` this point depends on and is not as it would be anyway."""
    keys = (*_SITE.get(run.launcher, ()), *(("interface",) if run.hosts > 1 else ()))
    usual = LaunchSettings()
    return {key: str(getattr(launch, key)) for key in keys if getattr(launch, key) != getattr(usual, key)}


def _computation(point: Point) -> str:
    """The same for points that compute the same in the same way."""
    alone = point.ranks == 1 and not point.servers
    return (replace(point, strategy="", options={}) if alone else point).point_id


def schedule(points: Sequence[Point], repeats: int) -> tuple[Run, ...]:
    """All runs in the order in which they are executed."""
    return tuple(
        Run(point=point, number=number)
        for number in range(1, repeats + 1)
        for point in (points if number % 2 else tuple(reversed(points)))
    )
