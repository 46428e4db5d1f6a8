"""Scaling laws in words and as a table: what was fitted to each series, what it means, and what was refused."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from paceline.records.laws import Fitted, Law, SeriesLaws
from paceline.records.results import StudyResults
from paceline.reporting.cells import Cell, Form, fraction_cell
from paceline.reporting.tables.point_tables import Table
from paceline.reporting.wording.choice import has_several_series
from paceline.reporting.wording.facts import Fact, term_facts
from paceline.reporting.wording.phrases import LAW_NAMES, listed
from paceline.units import number_text, percent_text

SIGNIFICANT = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesSentences:
    """Sentences about the laws of one series; of all series if its name is empty."""

    series: str
    sentences: tuple[str, ...]

    @property
    def text(self) -> str:
        """The sentences, behind the name of the series."""
        return (f"{self.series}: " if self.series else "") + " ".join(self.sentences)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownLaws:
    """The laws of a study: one row for each that was fitted, and sentences."""

    table: Table
    sentences: tuple[SeriesSentences, ...]
    definitions: tuple[Fact, ...]
    """Of its columns; empty where nothing was fitted."""


def shown_laws(results: StudyResults) -> ShownLaws:
    """What scaling laws say of a study; without rows and sentences where ranks are not varied."""
    several = has_several_series(results)
    rows = [_row(own, law, several) for own in results.laws for law in own.laws]
    keys = (*(("series",) if several else ()), "law")
    table = Table(
        caption="Scaling laws, fitted to the throughput of every run",
        columns=(*keys, "serial or contention", "coherency", "limit", "off by"),
        rows=tuple(rows),
        footnotes=_footnotes(results) if rows else (),
        keys=len(keys),
        words=keys,
    )
    return ShownLaws(
        table=table, sentences=tuple(_series_sentences(results, several)), definitions=_DEFINITIONS if rows else ()
    )


def _series_sentences(results: StudyResults, several: bool) -> Iterator[SeriesSentences]:
    """Sentences about fitted laws of each series, then reasons why others are not fitted, each once."""
    refused: dict[str, list[str]] = {}
    for own in results.laws:
        for why in dict.fromkeys(own.refusals.values()):
            refused.setdefault(why, []).append(own.series)
        if own.laws and several:
            yield SeriesSentences(series=own.series, sentences=tuple(_sentences(own)))
    if not several:
        fitted = [sentence for own in results.laws for sentence in (*_sentences(own), *_misfit(own))]
        if fitted or refused:
            yield SeriesSentences(series="", sentences=(*fitted, *refused))
        return
    for why, names in refused.items():
        everywhere = len(names) == len(results.laws)
        yield SeriesSentences(series="" if everywhere else listed(names), sentences=(why,))


def _row(own: SeriesLaws, law: Law, several: bool) -> tuple[Cell, ...]:
    shared = law.parameters.get("serial") or law.parameters["contention"]
    return (
        *((Cell(own.series),) if several else ()),
        Cell(LAW_NAMES[law.name], marks=("*",) if _is_off(law) else ()),
        _percent_cell(shared),
        _percent_cell(law.parameters["coherency"]) if "coherency" in law.parameters else Cell(None),
        _limit_cell(law),
        fraction_cell(law.deviation),
    )


def _limit_cell(law: Law) -> Cell:
    if law.peak is not None:
        return _fitted_cell(law.peak, Form(unit="ranks", grouped=False))
    if law.limit is not None and math.isfinite(law.limit.value):
        return _fitted_cell(law.limit, Form(digits=3, unit="×", apart=True))
    return Cell("none in reach" if law.name == "usl" else "none")


def _footnotes(results: StudyResults) -> tuple[str, ...]:
    notes = ["[ ] is a 95 % interval by profile likelihood, over all runs of a series. Limits are against one rank."]
    if any(_is_off(law) for own in results.laws for law in own.laws):
        notes.append("* points are further from the law than noise explains.")
    return tuple(notes)


def _sentences(own: SeriesLaws) -> Iterator[str]:
    by_name = {law.name: law for law in own.laws}
    if "amdahl" in by_name:
        yield _amdahl_sentence(by_name["amdahl"])
    if "gustafson" in by_name:
        yield _gustafson_sentence(by_name["gustafson"])
    if "usl" in by_name:
        yield _usl_sentence(by_name["usl"])
    yield from _compared(own)
    if own.laws and own.left_out and not own.refusals:
        yield f"Emulated points ({', '.join(map(str, own.left_out))} ranks) are kept out."


def _amdahl_sentence(law: Law) -> str:
    serial, limit = law.parameters["serial"], law.limit
    assert limit is not None
    if serial.value == 0:
        if serial.high == 0:
            return "All of the work gets faster with ranks: by Amdahl's law nothing limits the speed-up."
        return (
            "No part of the work is seen that does not get faster with ranks, and none above "
            f"{number_text(100 * serial.high, 2)} % is likely: by Amdahl's law there is no limit below "
            f"{number_text(limit.low, 2)} × one rank."
        )
    text = (
        f"{_percent_cell(serial).text} of the work does not get faster with ranks; by Amdahl's law no number of ranks "
    )
    text += f"is faster than {number_text(limit.value, 2)} × one rank"
    return text + ("." if serial.low > 0 else ", and as the interval reaches 0, there may be no such limit.")


def _gustafson_sentence(law: Law) -> str:
    serial = law.parameters["serial"]
    return (
        f"{_percent_cell(serial).text} of the time on many ranks goes into what one rank would do as fast; by "
        f"Gustafson's law every rank more adds {number_text(1 - serial.value)} of one rank's throughput."
    )


def _usl_sentence(law: Law) -> str:
    contention, coherency = (_percent_cell(law.parameters[name]).text for name in ("contention", "coherency"))
    text = f"By the Universal Scalability Law contention is {contention} and coherency {coherency}: "
    if law.peak is None or law.peak_speedup is None:
        return text + "coherency cannot be told from 0, so there is no peak within reach."
    peak = _fitted_cell(law.peak, Form(grouped=False)).text
    text += f"{peak} ranks are fastest, {number_text(law.peak_speedup.value)} × one rank, and more make it slower."
    if law.peak.value > 2 * law.curve.measured_to:
        return text + f" That is far from what was measured, {law.curve.measured_to} ranks at most: take it for a hint."
    if law.peak.value > law.curve.measured_to:
        return text + f" That is extrapolated: at most {law.curve.measured_to} were measured."
    return text


def _compared(own: SeriesLaws) -> Iterator[str]:
    """Which of two laws the points speak for."""
    if own.coherency_p is not None:
        p = _p_text(own.coherency_p)
        if own.coherency_p < SIGNIFICANT:
            yield f"The points speak for coherency ({p}): Amdahl's law alone does not describe them."
        else:
            yield f"The points do not tell the two laws apart ({p}): Amdahl's, the simpler one, is drawn."
    elif len(own.laws) > 1:
        offs = [f"{percent_text(law.deviation)} from {_the(law)}" for law in own.laws]
        yield f"The points are {' and '.join(offs)} on average."


def _misfit(own: SeriesLaws) -> Iterator[str]:
    """That the drawn law does not describe the points; of several series the mark in the table says it."""
    best = own.best
    if best is not None and best.misfit_p is not None and _is_off(best):
        yield (
            f"But the points are further from {_the(best)} than noise explains ({_p_text(best.misfit_p)}): it sums "
            "them up, and does not describe them."
        )


def _the(law: Law) -> str:
    return f"the {LAW_NAMES[law.name]}" if law.name == "usl" else LAW_NAMES[law.name]


def _is_off(law: Law) -> bool:
    return law.misfit_p is not None and law.misfit_p < SIGNIFICANT


def _p_text(p: float) -> str:
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}" if p < 0.1 else f"p = {p:.2f}"


def _fitted_cell(figure: Fitted, form: Form) -> Cell:
    return Cell(figure.value, form=form, interval=(figure.low, figure.high))


def _percent_cell(figure: Fitted) -> Cell:
    """`3.1 % [2.0, 4.4]`: two digits of the interval's width, and for all three the same."""
    width = 100 * figure.high - 100 * figure.low or 100 * figure.value or 1.0
    decimals = min(6, max(0, 1 - math.floor(math.log10(width))))
    return _fitted_cell(figure, Form(scale=100, decimals=decimals, unit="%", grouped=False, bare_zero="exact"))


_DEFINITIONS = term_facts("law", "serial or contention", "coherency", "limit", "off by")
