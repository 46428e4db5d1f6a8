"""Settings as a flat list, under the names by which `--set` changes them; what few studies change, where it is."""

from __future__ import annotations

from dataclasses import asdict

from paceline.records.settings import said
from paceline.records.study import Point, Study

_RUN_FIELDS_OF_POINT = ("ranks", "hosts", "threads", "strategy", "launcher", "device", "pin")


def study_settings(study: Study) -> dict[str, object]:
    """Every setting of a study: `{"train.lr": 0.001, ...}`; None where it was left open."""
    if study.script is not None:
        return {**_section("script", asdict(study.script)), **_section("run", asdict(study.run)), **study.vary}
    return {
        **_section("data", said(study.data)),
        **_section("augment", said(study.augment)),
        **_section("model", {"name": study.model.name, **study.model.options}),
        **_section("train", said(study.train)),
        **_section("finetune", said(study.finetune)),
        **_section("run", asdict(study.run)),
        **study.vary,
    }


def point_settings(point: Point) -> dict[str, object]:
    """Every setting of a point; None where it was left open."""
    fields = (*_RUN_FIELDS_OF_POINT, *(("cores",) if point.cores is not None else ()))
    run = _section("run", {name: getattr(point, name) for name in fields})
    if point.script is not None:
        return {**_section("script", asdict(point.script)), **run}
    return {
        **_section("data", said(point.data)),
        **_section("augment", said(point.augment)),
        **_section("model", {"name": point.model.name, **point.model.options}),
        **_section("train", said(point.train)),
        **_section("finetune", said(point.finetune)),
        **run,
        **_section("run", dict(point.options)),
    }


def _section(name: str, fields: dict[str, object]) -> dict[str, object]:
    return {f"{name}.{key}": value for key, value in fields.items()}
