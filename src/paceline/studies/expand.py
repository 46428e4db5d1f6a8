"""Study -> Points -> Runs: pure.

    points    a  b  c          repeat 1 ▶ a b c
    repeats   3                repeat 2 ◀ c b a
                               repeat 3 ▶ a b c

Repeats are interleaved over points so that a noisy minute does not fall on one of them, and the
direction alternates so that a machine that slowly warms up or slows down favours none.
"""

from __future__ import annotations

from collections.abc import Sequence

from paceline.records.study import Point, Run, Study


def expand(study: Study, *, data_digest: str, model_digest: str) -> tuple[Point, ...]:
    """One point per number of ranks, in the order of the study file."""
    return tuple(
        Point(
            data=study.data,
            data_digest=data_digest,
            model=study.model,
            model_digest=model_digest,
            train=study.train,
            ranks=ranks,
            threads=study.run.threads,
            strategy=study.run.strategy,
            launcher=study.run.launcher,
            device=study.run.device,
            pin=study.run.pin,
        )
        for ranks in study.run.ranks
    )


def schedule(points: Sequence[Point], repeats: int) -> tuple[Run, ...]:
    """All runs in the order in which they are executed."""
    return tuple(
        Run(point=point, number=number)
        for number in range(1, repeats + 1)
        for point in (points if number % 2 else tuple(reversed(points)))
    )
