"""Which points make a line over ranks, and which point each is measured against.

    series      points that agree in every factor that the study varies besides the ranks
    group       series that do the same work with the same means and differ only in how it is divided:
                strategy and its options, launcher, hosts, pinning, what the site gives
    baseline    of a group: the timed point with the fewest ranks and servers, the first of the study among equals

One baseline for a group, so that strategies can be compared side by side: a single rank, which has
nothing to exchange, is run once for all of them. Whatever changes what a step computes (data, model,
batch, precision, optimizer) or what a rank computes it with (threads, device) makes a group of its
own: a speed-up across that line would mix two causes, and an efficiency would count threads as ranks.

What a recipe chose makes none: a warm-up, a rate's batch or a number of epochs that follows from the ranks is what the
same recipe means there, and a study asks how the recipe scales.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import asdict, replace

from paceline.records.settings import TrainSettings
from paceline.records.study import Point, Study, point_label
from paceline.units import counted

HOSTS, RANKS_PER_HOST = "run.hosts", "run.ranks_per_host"


def series_factors(study: Study) -> tuple[str, ...]:
    """The varied settings that tell one series from another.

    Where ranks follow from hosts × ranks_per_host, one of the two is what a series runs over.
    """
    factors = [path for path in study.vary if path != RANKS_PER_HOST]
    if not study.run.ranks and RANKS_PER_HOST not in study.vary:
        factors = [path for path in factors if path != HOSTS]
    return tuple(factors)


def series_label(point: Point, factors: Collection[str]) -> str:
    """The series of a point in words: `flat`, `parameter-server, 2 servers on 2 hosts`; empty without factors."""
    others = [path for path in factors if path != HOSTS]
    _, _, words = point_label(point, others).partition(", ")
    if HOSTS not in factors:
        return words
    hosts = counted(point.hosts, "host")
    return f"{words} on {hosts}" if words else hosts


def baselines(points: Sequence[Point], timed: Collection[str]) -> dict[str, Point]:
    """The baseline of every point by its identifier, given which points are timed; none for a group without any."""
    groups: dict[str, list[Point]] = {}
    for point in points:
        groups.setdefault(_work(point), []).append(point)
    found = {}
    for group in groups.values():
        candidates = [point for point in group if point.point_id in timed]
        if candidates:
            baseline = min(candidates, key=lambda point: point.ranks + point.servers)
            found |= {point.point_id: baseline for point in group}
    return found


def without_recipe_choices(point: Point) -> Point:
    """The point without what its recipe chose, equal for all that differ in nothing else.

    A recipe chooses what is at its default alone, so that is what the study said; epochs that a rule divides by the
    ranks are left out of every point, because none is chosen where the only divisor is 1.
    """
    usual = TrainSettings()
    paths = [choice.path.split(".") for choice in point.chosen]
    keys = {path[-1] for path in paths if path[0] == "train"}
    if point.train.epochs_rule != "none":
        keys.add("epochs")
    return replace(point, train=replace(point.train, **{key: getattr(usual, key) for key in keys}), chosen=())


def _work(point: Point) -> str:
    """What a step computes and what a rank computes it with: equal for all points of a group."""
    given = without_recipe_choices(point)
    alike = replace(given, ranks=1, hosts=1, strategy="", launcher="", pin=True, options={}, site={})
    return json.dumps(asdict(alike), sort_keys=True, default=str)
