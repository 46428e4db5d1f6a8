"""One factor at a time: what the table in per cent of the baseline says about each factor, in a sentence."""

from __future__ import annotations

import math
from collections.abc import Iterable

from paceline.metrics import POINT_METRICS
from paceline.records.results import Effect, Percent, StudyResults
from paceline.records.study import shown_value
from paceline.reporting.cells import factor_cell
from paceline.reporting.wording.phrases import factor_heading, interval_phrase, listed
from paceline.units import counted, number_text

FIGURES = {entry.key: entry.short for entry in POINT_METRICS if entry.record == "effect" and entry.parts}
"""Fields of an effect -> what they are called."""
_SHORT_NAMES = {"loss_pct": "loss", "accuracy_pct": "accuracy", "time_pct": "time"}
_DIGITS = 4


def effects_verdict(results: StudyResults) -> str:
    """The answer of such a study: which factor changes what most; a clause without its full stop."""
    factors = counted(len(_by_factor(results)), "factor")
    others = [effect for effect in results.effects if not effect.is_baseline]
    real = {name: [e for e in others if getattr(e, name) and getattr(e, name).real] for name in FIGURES}
    most = {name: max(own, key=lambda e: _distance(getattr(e, name))) for name, own in real.items() if own}
    first = {effect.factor: value_text(effect) for effect in results.effects if effect.is_baseline}
    asked = ("accuracy_pct",) if results.study.asks == "accuracy" else ("time_pct", "accuracy_pct")
    clauses = [_most(most[name], name, first) for name in asked if name in most]
    if clauses:
        return f"of {factors}, {'; '.join(clauses)}"
    if not any(_tested(effect, asked) for effect in others):
        return f"with {_repeats(others, asked)} no effect of {factors} can be called real: a test takes five"
    return f"no effect of {factors} on {listed([FIGURES[name] for name in asked])} is shown"


def effects_sentences(results: StudyResults) -> tuple[str, ...]:
    """For every factor, which of its effects are real and which are not shown."""
    return tuple(_sentence(own) for own in _by_factor(results).values())


def _by_factor(results: StudyResults) -> dict[str, list[Effect]]:
    found: dict[str, list[Effect]] = {}
    for effect in results.effects:
        found.setdefault(effect.factor, []).append(effect)
    return found


def _sentence(own: list[Effect]) -> str:
    name = factor_heading(own[0].factor)
    start = f"{name[0].upper()}{name[1:]}, {value_text(own[0])} at the baseline: "
    others = [effect for effect in own if not effect.is_baseline]
    tested = [effect for effect in others if _tested(effect)]
    if not others:
        return start + "no other value was measured."
    if not tested:
        seen = "; ".join(f"with {value_text(effect)} {_figures(effect, list(FIGURES))}" for effect in others)
        return f"{start}{seen} of it in these runs, and {_repeats(others)} cannot call any of it real."
    parts = [f"with {value_text(e)} {_figures(e, _real(e))} of it" for e in tested if _real(e)]
    untested = [n for n in FIGURES if any(getattr(e, n) for e in tested) and not any(_tested(e, (n,)) for e in tested)]
    missing = [n for n in FIGURES if any(_tested(e, (n,)) for e in tested) and not _ever(tested, n)]
    text = "; ".join(parts)
    if missing:
        no = f"no effect on {_either([FIGURES[name] for name in missing])} is shown"
        text = f"{text}; {no}" if text else f"{no} for {_either([value_text(e) for e in tested])}"
    if untested:
        are = f"{listed([FIGURES[name] for name in untested])} {'is' if len(untested) == 1 else 'are'}"
        text += f"; {are} not tested: {_repeats(tested, untested)} are too few"
    return f"{start}{text}."


def _ever(effects: list[Effect], name: str) -> bool:
    return any(name in _real(effect) for effect in effects)


def _figures(effect: Effect, names: list[str]) -> str:
    known = [(FIGURES[name], getattr(effect, name)) for name in names if getattr(effect, name)]
    return listed([f"{words} is {_text(percent)}" for words, percent in known])


def _most(effect: Effect, name: str, first: dict[str, str]) -> str:
    percent: Percent = getattr(effect, name)
    change = f"{value_text(effect)} in place of {first[effect.factor]}"
    figure = f"{_text(percent)} {interval_phrase(percent.interval, _DIGITS)}"
    return f"{factor_heading(effect.factor)} changes {FIGURES[name]} most: {change} makes it {figure}"


def _text(percent: Percent) -> str:
    return f"{number_text(percent.interval.median, _DIGITS)} %"


def real_effects_text(effect: Effect) -> str:
    """Which figures an effect is real on: `loss, time`."""
    if effect.is_baseline:
        return "baseline"
    if not _tested(effect):
        return "not tested"
    return ", ".join(_SHORT_NAMES[name] for name in _real(effect)) or "none shown"


def _real(effect: Effect) -> list[str]:
    return [name for name in FIGURES if getattr(effect, name) and getattr(effect, name).real]


def _tested(effect: Effect, names: Iterable[str] = FIGURES) -> bool:
    return any(getattr(effect, name) and getattr(effect, name).p is not None for name in names)


def value_text(effect: Effect) -> str:
    """A factor's value as it is shown."""
    return factor_cell(shown_value(effect.factor, effect.value)).figure


def effect_label(effect: Effect) -> str:
    """What was changed, and to what: `neurons 128`."""
    return f"{factor_heading(effect.factor)} {value_text(effect)}"


def single_change_labels(results: StudyResults) -> dict[str, str]:
    """Points by the one thing that each has otherwise than the baseline; empty where the design is another."""
    names = {effect.point_id: effect_label(effect) for effect in results.effects if not effect.is_baseline}
    return {effect.point_id: "baseline" for effect in results.effects if effect.is_baseline} | names


def _distance(percent: Percent) -> float:
    return abs(math.log(percent.interval.median / 100))


def _repeats(effects: Iterable[Effect], names: Iterable[str] = FIGURES) -> str:
    """The fewest that any of these figures is of: a run that learned nothing has no accuracy to compare."""
    figures = [getattr(effect, name) for effect in effects for name in names]
    return counted(min((percent.interval.n for percent in figures if percent), default=0), "repeat")


def _either(items: list[str]) -> str:
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} or {items[-1]}"
