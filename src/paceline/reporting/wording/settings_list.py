"""Settings as a flat list, under the names by which `--set` changes them; what few studies change, where it is."""

from __future__ import annotations

from dataclasses import asdict

from paceline.records.settings import shown_settings
from paceline.records.study import Point, Study

_RUN_FIELDS_OF_POINT = ("ranks", "hosts", "threads", "strategy", "launcher", "device", "pin")


def study_settings(study: Study) -> dict[str, object]:
    """Every setting of a study: `{"train.lr": 0.001, ...}`; None where it was left open."""
    if study.script is not None:
        return {**_section("script", asdict(study.script)), **_section("run", asdict(study.run)), **study.vary}
    return {
        **_section("data", shown_settings(study.data)),
        **_section("augment", shown_settings(study.augment)),
        **_section("model", {"name": study.model.name, **study.model.options}),
        **_section("train", shown_settings(study.train)),
        **_section("finetune", shown_settings(study.finetune)),
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
        **_section("data", shown_settings(point.data)),
        **_section("augment", shown_settings(point.augment)),
        **_section("model", {"name": point.model.name, **point.model.options}),
        **_section("train", shown_settings(point.train)),
        **_section("finetune", shown_settings(point.finetune)),
        **run,
        **_section("run", dict(point.options)),
    }


def _section(name: str, fields: dict[str, object]) -> dict[str, object]:
    return {f"{name}.{key}": value for key, value in fields.items()}
