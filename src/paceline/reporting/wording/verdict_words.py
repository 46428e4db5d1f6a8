"""The sentences of a report: the verdict, what explains it, and what has to be known.

A sentence claims no more than its figures show: a range is called a range, a difference within the interval is not
called one, and a cause of lost efficiency is named only if the ledgers account for the loss.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from paceline.records.finding import Finding
from paceline.records.results import PointResult, StudyResults
from paceline.reporting.wording.choice import (
    baseline,
    has_several_series,
    is_script,
    is_weak,
    main_comparison,
    point_by_id,
    verdict_point,
)
from paceline.reporting.wording.finding_words import finding_words
from paceline.reporting.wording.learning_words import (
    accuracy_checks_sentence,
    accuracy_verdict,
    features_sentences,
    gain_sentences,
    target_sentences,
)
from paceline.reporting.wording.one_factor_words import effects_sentences, effects_verdict
from paceline.reporting.wording.phrases import interval_phrase, labels_text, rate_text, spread_text, times_text
from paceline.reporting.wording.side_by_side import (
    accuracy_sentence,
    compared_alone,
    comparison_sentence,
    others_at_the_same_ranks,
)
from paceline.units import counted, duration_text, finite, percent_text

_SEVERITIES = ("error", "warning", "info")

# Kinds of the ledger, grouped by what a reader can do about them.
_LOSSES = {
    "computation that takes longer per sample": ("forward", "backward"),
    "waiting for the slowest rank": ("comm-wait",),
    "moving gradients between ranks": ("comm-transfer",),
    "the optimizer step, which every rank repeats": ("optimizer",),
    "waiting for input": ("input-wait",),
    "servers, which count as ranks and do not train": ("servers",),
    "writing checkpoints": ("checkpoint",),
    "what happens between the measured parts": ("other",),
}
_LONGEST_FIGURE = 40
"""Characters that can be emphasized: a longer figure is a sentence."""
_SMALLEST_LOSS = 0.01
"""Of the training time: below it a part is not worth a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownFinding:
    """A finding, or a failure, as it is shown."""

    name: str
    severity: str
    summary: str
    cause: str
    remedy: str
    about: str
    """The points it concerns; empty for the whole study."""


def verdict(results: StudyResults, opening: Sequence[str | None] = ()) -> str:
    """The answer with its figures and their interval: a sentence, or two or three where the question has two parts.

    `opening` has the sentences of another package that answer it, None in place of what the times say.
    """
    finished, expected = finished_runs(results), results.expected_runs
    if finished == 0:
        return f"No run is finished yet (0 of {expected}): there is nothing to report."
    led = _opening(results, opening)
    answer = f"{led[0].lower()}{led[1:]}" if led else f"{_answer(results)}."
    if finished < expected:
        return f"{finished} of {expected} runs {'is' if finished == 1 else 'are'} finished; so far, {answer}"
    return f"{answer[0].upper()}{answer[1:]}"


def verdict_figure(results: StudyResults, text: str, added: Sequence[str] = ()) -> str:
    """The first figure in the text of the verdict that the verdict rests on, to be emphasized; empty without one.

    `added` has the figures of another package's sentences.
    """
    point, compared = verdict_point(results), main_comparison(results)
    figures = [*added, *([times_text(point.speedup)] if point and point.speedup else [])]
    figures += [times_text(ratio) for ratio in compared.ratios.values()] if compared else []
    figures += [rate_text(point.samples_per_s) for point in results.points if point.samples_per_s]
    shown = [figure for figure in figures if figure and len(figure) <= _LONGEST_FIGURE and figure in text]
    return min(shown, key=text.index, default="")


def remarks(results: StudyResults, opening: Sequence[str | None] = ()) -> tuple[str, ...]:
    """Sentences after the verdict: largest loss, accuracy, first point at the target, excluded points."""
    accuracy = [] if not opening and _accuracy_answered(results) else [_accuracy(results), _checked(results)]
    accuracy += gain_sentences(results)
    if results.study.asks == "accuracy":  # its figures are of all points, those that share cores among them
        time = [comparison_sentence(results, compared)] if (compared := main_comparison(results)) else []
        sentences = [*accuracy, *target_sentences(results), *time]
    else:
        sentences = [_comparison(results), _lost_part(results), *accuracy, *target_sentences(results)]
        sentences += _left_out(results)
    sentences += features_sentences(results)
    sentences = [*effects_sentences(results), *sentences, _not_run(results)]
    return tuple(sentence for sentence in sentences if sentence)


def _accuracy_answered(results: StudyResults) -> bool:
    """Whether the verdict already contains the accuracies."""
    asked = results.study.asks == "accuracy" and not results.effects
    return asked and bool(accuracy_verdict(results))


def _checked(results: StudyResults) -> str:
    return "" if results.effects else accuracy_checks_sentence(results)  # those say it for every factor


def _not_run(results: StudyResults) -> str:
    """Number of points that were not run, with the first reason; a table has all."""
    if not results.not_run:
        return ""
    first = results.not_run[0]
    if len(results.not_run) == 1:
        return f"{first.label} was not run: {first.reason}"
    return f"{len(results.not_run)} points were not run, the first of them {first.label}: {first.reason}"


def finished_runs(results: StudyResults) -> int:
    """Runs behind the figures, over all points."""
    return sum(point.runs for point in results.points)


def _opening(results: StudyResults, sentences: Sequence[str | None]) -> str:
    """Sentences that another package answers the question with, each once; empty where it has none."""
    if not sentences:
        return ""
    time = _time_answer(results)
    time = f"{time[0].upper()}{time[1:]}."
    return " ".join(dict.fromkeys(time if sentence is None else sentence for sentence in sentences))


def _answer(results: StudyResults) -> str:
    asked = accuracy_verdict(results) if results.study.asks == "accuracy" and not results.effects else ""
    return asked or _time_answer(results)


def _time_answer(results: StudyResults) -> str:
    if results.effects:
        return effects_verdict(results)
    point = verdict_point(results)
    base = point_by_id(results, point.baseline) if point else None
    compared = main_comparison(results)
    if compared is not None and compared_alone(results):
        sentence = comparison_sentence(results, compared).rstrip(".")
        return f"{sentence[0].lower()}{sentence[1:]}"
    if base is None or point is None or point.speedup is None:
        return _throughput(results)
    text = _scaled(results, point, base)
    if has_several_series(results):
        text += others_at_the_same_ranks(results, point)
    if point.oversubscribed:
        text += "; but they share cores, so this says little about how the training scales"
    elif point.emulated:
        text += "; but its hosts are one machine, so this says little about how the training scales"
    return text


def _scaled(results: StudyResults, point: PointResult, base: PointResult) -> str:
    """How much faster a point is than its baseline, and what of the ideal that is."""
    assert point.speedup is not None
    # What stays the same over ranks in a script is not known: that it counts samples always holds.
    speedup, weak = point.speedup, is_weak(results) or is_script(results)
    ranks = counted(point.point.ranks, "rank")
    who, against, they, are, verb = ranks, str(base.point.ranks), "they", "are", "process samples" if weak else "train"
    if has_several_series(results):
        who, against, they, are = f"with {ranks} {point.series}", _base_text(results, base), "it", "is"
        verb = "processes samples" if weak else "trains"
    figure = times_text(speedup)
    ideal = f"{percent_text(point.efficiency.median, 0)} of the ideal" if point.efficiency else ""
    if speedup.low <= 1 <= speedup.high and speedup.low < speedup.high:
        text = f"{who} {verb} {figure} as fast as {against} {interval_phrase(speedup)}, which is no clear difference"
        return text + (f" and {ideal}" if ideal else "")
    if speedup.median < 1:
        text = f"{who} {are} slower than {against}: {they} {verb} {figure} as fast {interval_phrase(speedup)}"
        return text + (f", {ideal}" if ideal else "")
    text = f"{who} {verb} {figure} as fast as {against} {interval_phrase(speedup)}"
    return text + (f": {ideal}" if ideal else "")


def _base_text(results: StudyResults, base: PointResult) -> str:
    """The baseline by its ranks, where no other point has as many."""
    alone = sum(point.point.ranks == base.point.ranks for point in results.points) == 1
    return counted(base.point.ranks, "rank") if alone else f"{base.series} with {counted(base.point.ranks, 'rank')}"


def _throughput(results: StudyResults) -> str:
    for point in results.points:
        if point.samples_per_s is not None:
            who = counted(point.point.ranks, "rank")
            verb = "processes" if point.point.ranks == 1 or has_several_series(results) else "process"
            who = f"{point.series} with {who}" if has_several_series(results) else who
            text = f"{who} {verb} {rate_text(point.samples_per_s)}"
            text += " " + interval_phrase(point.samples_per_s, digits=4)
            return text + (f": {duration_text(point.epoch_s.median)} an epoch" if point.epoch_s else "")
    return "no finished run has a time that counts"


def _comparison(results: StudyResults) -> str:
    compared = main_comparison(results)
    return "" if compared is None or compared_alone(results) else comparison_sentence(results, compared)


def _lost_part(results: StudyResults) -> str:
    point = verdict_point(results)
    if point is None or point.efficiency is None or not point.fair or compared_alone(results):
        return ""
    lost = 1 - point.efficiency.median
    lost_to = point.lost_shares
    shares = {words: sum(lost_to.get(kind, 0.0) for kind in kinds) for words, kinds in _LOSSES.items()}
    if not lost_to or lost < _SMALLEST_LOSS or abs(sum(shares.values()) - lost) > max(0.02, lost / 2):
        return ""
    words, share = max(shares.items(), key=lambda item: item[1])
    if share < _SMALLEST_LOSS:
        return ""
    what = f"{point.series} lost" if has_several_series(results) else "was lost"
    return f"The largest part of what {what} is {words}: {percent_text(share, 0)} of the training time."


def _accuracy(results: StudyResults) -> str:
    base, point = baseline(results), verdict_point(results)
    if base is None or point is None or base.test_accuracy is None or point.test_accuracy is None:
        return ""
    if finite(base.test_accuracy.mean) is None or finite(point.test_accuracy.mean) is None:
        return ""
    if has_several_series(results):
        return accuracy_sentence(results, base)
    first, last = spread_text(base.test_accuracy), spread_text(point.test_accuracy)
    return f"Test accuracy is {first} with {counted(base.point.ranks, 'rank')} and {last} with {point.point.ranks}."


def _left_out(results: StudyResults) -> list[str]:
    """What the verdict is not about, because its figures are about the machine and not about the training."""
    point = verdict_point(results)
    if point is None or not point.fair:
        return []
    others = [p for p in results.points if p.runs and p is not point]
    crowded = [p for p in others if p.oversubscribed]
    emulated = [p for p in others if p.emulated and not p.oversubscribed]
    sentences = []
    if crowded:
        sentences.append(f"Runs with {_who(results, crowded)} had to share cores; the verdict leaves them out.")
    if emulated:
        sentences.append(f"Hosts of runs with {_who(results, emulated)} are one machine; the verdict leaves them out.")
    return sentences


def _who(results: StudyResults, points: list[PointResult]) -> str:
    """`4, 8 ranks`; where others with as many ranks are not meant, each by its name."""
    if not has_several_series(results):
        return f"{', '.join(str(p.point.ranks) for p in points)} ranks"
    return labels_text([p.label for p in points])


def shown_findings(results: StudyResults) -> tuple[ShownFinding, ...]:
    """Failures and findings, the most severe first."""
    labels = {point.point_id: point.label for point in results.points}
    named = {point_id for finding in results.findings if finding.code == "missing-runs" for point_id in finding.points}
    failures = [_failure(point) for point in results.points if point.failure and point.point_id not in named]
    ordered = sorted((*failures, *results.findings), key=lambda finding: _severity(finding.severity))
    return tuple(_shown(finding, labels) for finding in ordered)


def _failure(point: PointResult) -> Finding:
    return Finding(code="failed", severity="error", values={"failure": point.failure}, points=(point.point_id,))


def _severity(name: str) -> int:
    return _SEVERITIES.index(name) if name in _SEVERITIES else len(_SEVERITIES)


def _shown(finding: Finding, labels: Mapping[str, str]) -> ShownFinding:
    words = finding_words(finding)
    return ShownFinding(
        name=finding.code,
        severity=finding.severity,
        summary=words.summary,
        cause=words.cause,
        remedy=words.remedy,
        about=labels_text([labels.get(point_id, point_id) for point_id in finding.points]),
    )
