"""Series of points over ranks, and the baseline of each point.

    series      points that agree in every factor of the study but the ranks
    group       series with the same work per step; they differ in strategy and its options, launcher, hosts, pinning
                and site settings
    baseline    timed point of a group with the fewest ranks and servers; the first of the study if there are several

All series of a group have one baseline and can be compared: a single rank runs once for all strategies. Settings that
change the computation of a step (data, model, batch, precision, optimizer) or the resources of a rank (threads,
device) form another group: a speed-up across groups would mix two causes.

Settings that a recipe derives from the ranks (warm-up, batch of the learning rate, number of epochs) do not form a
group: a study measures how the recipe scales.
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
    """The varied settings that distinguish series.

    If ranks = hosts × ranks_per_host, one of the two is the axis of a series.
    """
    factors = [path for path in study.vary if path != RANKS_PER_HOST]
    if not study.run.ranks and RANKS_PER_HOST not in study.vary:
        factors = [path for path in factors if path != HOSTS]
    return tuple(factors)


def series_label(point: Point, factors: Collection[str]) -> str:
    """Label of a point's series: `flat`, `parameter-server, 2 servers on 2 hosts`; empty without factors."""
    others = [path for path in factors if path != HOSTS]
    _, _, words = point_label(point, others).partition(", ")
    if HOSTS not in factors:
        return words
    hosts = counted(point.hosts, "host")
    return f"{words} on {hosts}" if words else hosts


def baselines(points: Sequence[Point], timed: Collection[str]) -> dict[str, Point]:
    """point_id -> baseline; `timed` are the point_ids with a time. Groups without a timed point are left out."""
    groups: dict[str, list[Point]] = {}
    for point in points:
        groups.setdefault(work_key(without_recipe_choices(point)), []).append(point)
    found = {}
    for group in groups.values():
        candidates = [point for point in group if point.point_id in timed]
        if candidates:
            baseline = min(candidates, key=lambda point: point.ranks + point.servers)
            found |= {point.point_id: baseline for point in group}
    return found


def without_recipe_choices(point: Point) -> Point:
    """The point with the defaults in place of the settings that its recipe chose.

    A recipe only chooses settings that the study leaves at their default. Epochs that a rule divides by the ranks are
    reset in every point: on one rank the recipe chooses none.
    """
    usual = TrainSettings()
    paths = [choice.path.split(".") for choice in point.chosen]
    keys = {path[-1] for path in paths if path[0] == "train"}
    if point.train.epochs_rule != "none":
        keys.add("epochs")
    return replace(point, train=replace(point.train, **{key: getattr(usual, key) for key in keys}), chosen=())


def work_key(point: Point) -> str:
    """All settings of a point as text, without those that divide the work over ranks and hosts."""
    alike = replace(point, ranks=1, hosts=1, strategy="", launcher="", pin=True, options={}, site={})
    return json.dumps(asdict(alike), sort_keys=True, default=str)
