"""Scaling laws of a study: the fitted laws of each series, and why others are not fitted.

    scaling     laws                       required numbers of ranks
    strong      Amdahl's, USL              3, 4
    weak        Gustafson's, USL           3, 4
    unknown     USL                        4

Points with shared cores or emulated hosts are excluded: they show the limit of the machine, not of the training. At
least two repeats are needed, to separate noise from misfit.

Formulas are in law_forms.py, the fit and its uncertainty in law_fit.py. The speed-up of a curve is relative to the
baseline of the series by the same law: it is 1 there and never exceeds the ratio of ranks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from paceline.analyze.points.law_fit import Fit, LogPaces, fit, log_paces
from paceline.analyze.points.law_forms import AMDAHL, GUSTAFSON, USL, Array, Form, limits, peak_speedups, peaks
from paceline.analyze.points.speedups import Throughputs
from paceline.analyze.stats.students_t import tail
from paceline.records.laws import Law, LawCurve, SeriesLaws
from paceline.records.results import PointResult
from paceline.records.study import Study

SIGNIFICANT = 0.05
_FORMS = {"strong": (AMDAHL, USL), "weak": (GUSTAFSON, USL), "": (USL,)}
_WITHIN, _BEYOND = 25, 9
"""Points of a curve up to the largest measured number of ranks, and from there to twice as many."""


def scaling_laws(
    study: Study, rows: Sequence[PointResult], throughputs: Mapping[str, Throughputs]
) -> tuple[SeriesLaws, ...]:
    """The laws of each series with at least two numbers of ranks; `throughputs` are samples per second."""
    found = (_series(study, name, _line(rows, name), throughputs) for name in dict.fromkeys(row.series for row in rows))
    return tuple(laws for laws in found if len(laws.ranks) + len(laws.left_out) > 1)


def _line(rows: Sequence[PointResult], name: str) -> list[PointResult]:
    """The points of a series, with its baseline, which may belong to another series."""
    own = [row for row in rows if row.series == name]
    base = next((row for row in rows if row.point_id == own[0].baseline), None)
    if base is not None and base.ranks_and_servers < min(row.ranks_and_servers for row in own):
        own.insert(0, base)
    return own


def _series(study: Study, name: str, line: Sequence[PointResult], throughputs: Mapping[str, Throughputs]) -> SeriesLaws:
    timed = [row for row in line if throughputs.get(row.point_id)]
    # Reversed: of two points with equal ranks the first one counts.
    fair = {row.ranks_and_servers: throughputs[row.point_id] for row in reversed(timed) if row.fair}
    laws = SeriesLaws(
        series=name,
        scaling=_scaling(study),
        ranks=tuple(sorted(fair)),
        left_out=tuple(sorted({row.ranks_and_servers for row in timed} - set(fair))),
        runs=sum(len(own) for own in fair.values()),
    )
    if not timed:
        return laws
    measured = log_paces(fair) if len(fair) > 1 else None
    refusals = _refusals(laws, measured)
    fits = [fit(form, measured) for form in _FORMS[laws.scaling] if form.name not in refusals and measured]
    base = next((row for row in line if row.point_id == line[0].baseline), line[0]).ranks_and_servers
    return replace(
        laws,
        refusals=refusals,
        laws=tuple(_law(found, base, laws.ranks) for found in fits),
        coherency_p=_coherency_p(fits),
        preferred=_preferred(fits),
    )


def _scaling(study: Study) -> str:
    """`strong` or `weak`; empty for a script without run.scaling."""
    if study.run.scaling is not None or study.script is not None:
        return study.run.scaling or ""
    return "weak" if study.train.batch_per_rank is not None else "strong"


_SCALING_NOT_KNOWN = (
    "Amdahl's and Gustafson's laws are not fitted: whether the work of this script grows with the ranks is not known. "
    'Say it with run.scaling = "strong" or "weak".'
)


def _refusals(laws: SeriesLaws, measured: LogPaces | None) -> dict[str, str]:
    """Name of a law -> a sentence why it is not fitted; laws with the same reason share a sentence."""
    forms = _FORMS[laws.scaling]
    why = {} if laws.scaling else {AMDAHL.name: _SCALING_NOT_KNOWN}
    short = [form for form in forms if len(laws.ranks) < form.fewest_sizes]
    if short:
        return why | dict.fromkeys((form.name for form in short), _too_few(short, laws))
    if measured is None:
        who = f"{_named(forms)} not fitted: two repeats or more of all points are needed, to tell noise from misfit."
        return why | dict.fromkeys((form.name for form in forms), who)
    return why


def _too_few(forms: Sequence[Form], laws: SeriesLaws) -> str:
    wanted = " and ".join(str(form.fewest_sizes) for form in forms)
    need = "they need" if len(forms) > 1 else "it needs"
    there = len(laws.ranks)
    counts = f"there {'is' if there == 1 else 'are'} {there} ({', '.join(map(str, laws.ranks))})"
    text = f"{_named(forms)} not fitted: {need} {wanted} numbers of ranks, and {counts if there else 'there is none'}."
    which = ", ".join(map(str, laws.left_out))
    return f"{text} Emulated points ({which} ranks) do not count." if which else text


def _named(forms: Sequence[Form]) -> str:
    """`Amdahl's law and the Universal Scalability Law are`."""
    text = " and ".join(form.title for form in forms)
    return f"{text[0].upper()}{text[1:]} {'are' if len(forms) > 1 else 'is'}"


def _law(found: Fit, base: int, ranks: Sequence[int]) -> Law:
    form = found.form
    law = Law(
        name=form.name,
        parameters={
            name: found.figure(lambda rows, index=index: rows[:, index]) for index, name in enumerate(form.parameters)
        },
        curve=_curve(found, base, ranks),
        deviation=found.deviation,
        misfit_p=found.misfit_p,
    )
    if form is AMDAHL:
        return replace(law, limit=found.figure(limits))
    if form is USL and law.parameters["coherency"].low > 0:
        return replace(law, peak=found.figure(peaks), peak_speedup=found.figure(peak_speedups))
    return law


def _curve(found: Fit, base: int, ranks: Sequence[int]) -> LawCurve:
    """The law over the measured ranks and up to twice as many, at equal distances on a logarithmic axis."""
    first, last = float(min(ranks)), float(max(ranks))
    shown = np.concatenate([np.geomspace(first, last, _WITHIN), np.geomspace(last, 2 * last, _BEYOND)[1:]])
    every = np.vstack([found.best, found.region])
    at_base = found.form.log_speedup(np.array([float(base)]), every)
    speedups = np.exp(found.form.log_speedup(shown, every) - at_base)
    return LawCurve(
        ranks=_floats(shown),
        speedup=_floats(speedups[0]),
        low=_floats(speedups.min(axis=0)),
        high=_floats(speedups.max(axis=0)),
        measured_to=max(ranks),
    )


def _coherency_p(fits: Sequence[Fit]) -> float | None:
    """One-sided p-value of the USL against Amdahl's law, which is the USL with κ = 0; None if one is not fitted."""
    by_name = {found.form.name: found for found in fits}
    simple, full = by_name.get(AMDAHL.name), by_name.get(USL.name)
    if simple is None or full is None or full.variance <= 0:
        return None
    return tail(float(np.sqrt(max(0.0, simple.misfit - full.misfit) / full.variance)), full.df)


def _preferred(fits: Sequence[Fit]) -> str | None:
    """Name of the law with the fewest parameters, unless the test of coherency or of misfit favours the other."""
    if not fits:
        return None
    first, last = fits[0], fits[-1]
    coherency_p = _coherency_p(fits)
    if coherency_p is not None:
        return last.form.name if coherency_p < SIGNIFICANT else first.form.name
    misfits = first.misfit_p is not None and first.misfit_p < SIGNIFICANT
    return last.form.name if misfits and (last.misfit_p or 0.0) >= SIGNIFICANT else first.form.name


def _floats(values: Array) -> tuple[float, ...]:
    return tuple(map(float, values))
