"""The sentences of findings: summary, cause and remedy from a finding's code and values.

WORDS has one entry for every code of `analyze/study/findings.py`. Findings of other packages bring their own words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from paceline.records.finding import Finding, FindingWords, outside_findings
from paceline.reporting.wording.learning_finding_words import LEARNING_WORDS, of_points
from paceline.reporting.wording.note_words import note_text
from paceline.units import counted, duration_text, number_text, percent_text

Values = Mapping[str, Any]


def finding_words(finding: Finding) -> FindingWords:
    """The sentences of a finding."""
    if finding.code in WORDS:
        return WORDS[finding.code](finding.values)
    return outside_findings()[finding.code].words(finding)


def _failed(values: Values) -> FindingWords:
    summary, _, more = values["failure"].partition("\n")
    return FindingWords(summary=summary, cause=more)


def _missing_runs(values: Values) -> FindingWords:
    failures = values["failures"]
    failed = f" and {len(failures)} of {counted(values['points'], 'point')} failed" if failures else ""
    reasons = " ".join(f"{label}: {failure}" for label, failure in failures)
    return FindingWords(
        summary=f"{values['finished']} of {values['expected']} runs are finished{failed}: the results are partial.",
        cause=reasons or "The study is still running, or was stopped before its end.",
        remedy="Run the same command again: it continues with the missing runs.",
    )


def _baseline_missing(values: Values) -> FindingWords:
    return FindingWords(
        summary=f"Speed-ups are against {values['used']}: {values['wanted']} was not timed.",
        cause="The point with the fewest ranks has no finished run with a time.",
        remedy="Run the study again to fill it in; until then compare these speed-ups with nothing else.",
    )


def _asked_for_against_given(values: Values) -> FindingWords:
    first = [complaint for complaint, _ in values["complaints"]]
    shown = " ".join(f"{complaint.what} ({counted(runs, 'run')})" for complaint, runs in values["complaints"])
    forced = "It makes these figures meaningless; the study was forced to continue. "
    right = " ".join(dict.fromkeys(complaint.right for complaint in first))
    return FindingWords(
        summary=f"{values['found']} of {counted(values['runs'], 'run')} did not get what was asked for. {shown}",
        cause=f"{forced if values['forced'] else ''}Right would be: {right}",
        remedy=" ".join(dict.fromkeys(complaint.next for complaint in first)),
    )


def _more_ranks_than_cores(values: Values) -> FindingWords:
    where = f" on {counted(values['cores'], 'core')}" if values["cores"] else ""
    return FindingWords(
        summary=f"Ranks share cores{where}: {_threads(values)}.",
        cause="Threads that take turns on one core measure the machine's limit, not how the training scales.",
        remedy="Leave these points out of any claim about scaling, or measure them on a machine with enough cores.",
    )


def _ranks_share_physical_cores(values: Values) -> FindingWords:
    return FindingWords(
        summary=f"Hyper-threads of {counted(values['cores'], 'core')} carry {_threads(values)}.",
        cause="Two hyper-threads share one core's arithmetic: together they are far from twice as fast.",
        remedy="Read the efficiency of these points as that of hyper-threads, or stay within the physical cores.",
    )


def _threads(values: Values) -> str:
    return ", ".join(f"{label} of {counted(threads, 'thread')}" for label, threads in values["threads"])


def _emulated_hosts(values: Values) -> FindingWords:
    complaint = values["complaint"]
    return FindingWords(
        summary=f"Hosts of {of_points(values)} are namespaces of one machine."
        + (f" {complaint.what}" if complaint else ""),
        cause="Ranks on such hosts share cores and kernel: they show that a run works across hosts, not how fast.",
        remedy="Leave these points out of any claim about scaling over hosts; measure them on hosts of their own.",
    )


def _superlinear(values: Values) -> FindingWords:
    shown = ", ".join(
        f"{label}: {number_text(efficiency.median)}, at least {number_text(efficiency.low)}"
        for label, efficiency in values["efficiencies"]
    )
    return FindingWords(
        summary=f"Efficiency is above {values['limit']} with its whole interval ({shown}).",
        cause="More often a slow baseline than a fast point: a disturbed run, cold caches, a smaller share per rank "
        "that fits a cache.",
        remedy="Distrust the baseline: measure it again on an idle machine before quoting these speed-ups.",
    )


def _mixed_environment(values: Values) -> FindingWords:
    shown = "; ".join(
        f"{_environment(*fact)}: " + ", ".join(f"{value} ({counted(runs, 'run')})" for value, runs in found.items())
        for fact, found in values["mixed"].items()
    )
    return FindingWords(
        summary=f"Not all runs saw the same environment. {shown}.",
        cause="The study was continued on another machine or after an update: differences between points may be "
        "differences between environments.",
        remedy="Measure all runs in one environment: the same command with --fresh.",
    )


def _environment(fact: str, hosts: int) -> str:
    if hosts == 1:
        return fact
    return f"{'names' if fact == 'host' else fact} of {hosts} hosts"


def _noisy_machine(values: Values) -> FindingWords:
    return FindingWords(
        summary=f"Times vary by more than {percent_text(values['limit'], 0)} between runs at {of_points(values)}; "
        f"most with {values['worst']}, where the interval is {percent_text(values['width'], 0)} of the median wide.",
        cause="Something else ran on the machine, its clock frequency changed, or ranks were moved between cores.",
        remedy="Close other programs and repeat more often: --repeats 9.",
    )


def _few_repeats(values: Values) -> FindingWords:
    enough = values["enough"]
    return FindingWords(
        summary=f"There are fewer than {enough} runs at {of_points(values)} (the fewest: {values['fewest']}): what "
        "stands beside their figures is the range, not a confidence interval.",
        cause="With so few runs no interval contains the true median with a confidence worth the name.",
        remedy=f"Repeat more often: --repeats {enough} adds the missing runs and keeps the finished ones.",
    )


def _small_timed_part(values: Values) -> FindingWords:
    part, longer = ("series of timed steps", "one") if values["script"] else ("timed epoch", "epoch")
    shortest, limit = duration_text(values["shortest_s"]), duration_text(values["limit_s"])
    return FindingWords(
        summary=f"The shortest {part} took {shortest}, less than {limit}.",
        cause="At this length a single interruption by the operating system shows in the figures.",
        remedy=f"Train on more samples: a longer {longer} averages over such interruptions.",
    )


def _warm_up_in_times(values: Values) -> FindingWords:
    return FindingWords(
        summary=f"The first epoch of each run is in the times of {of_points(values)}.",
        cause="The first epoch also pays for allocation, first use of kernels and cold caches; there was no other "
        "complete one.",
        remedy="Train for at least two epochs: the first is then left out.",
    )


def _resumed_runs(values: Values) -> FindingWords:
    resumed = values["resumed"]
    shown = "; ".join(
        f"run {each['run']} with {each['label']} at step {each['step']}"
        + (f" ({each['note']})" if each["note"] else "")
        for each in resumed
    )
    return FindingWords(
        summary=f"{len(resumed)} of {counted(values['runs'], 'run')} continued from a checkpoint: {shown}.",
        cause="They were interrupted: their total times are unknown and left out, and so are their interrupted epochs "
        "where there are others.",
        remedy="Nothing to do for accuracy; for undisturbed times run the study with --fresh.",
    )


def _incomplete_ledger(values: Values) -> FindingWords:
    gaps = " ".join(map(note_text, values["gaps"]))
    return FindingWords(
        summary=f"Where the time went is not fully known for {of_points(values)}. {gaps}",
        cause="Spans are missing or damaged: communication cannot be divided, or there is no ledger.",
        remedy="Times and accuracies are not touched by this. For a whole ledger run the study with --fresh.",
    )


WORDS: dict[str, Callable[[Values], FindingWords]] = {
    "failed": _failed,
    "missing-runs": _missing_runs,
    "baseline-missing": _baseline_missing,
    "asked-for-against-given": _asked_for_against_given,
    "more-ranks-than-cores": _more_ranks_than_cores,
    "ranks-share-physical-cores": _ranks_share_physical_cores,
    "emulated-hosts": _emulated_hosts,
    "superlinear": _superlinear,
    "mixed-environment": _mixed_environment,
    "noisy-machine": _noisy_machine,
    "few-repeats": _few_repeats,
    "small-timed-part": _small_timed_part,
    "warm-up-in-times": _warm_up_in_times,
    "resumed-runs": _resumed_runs,
    "incomplete-ledger": _incomplete_ledger,
    **LEARNING_WORDS,
}
