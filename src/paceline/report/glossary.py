"""What the columns of tables and the axes of plots mean, with their formulas: one click away from every figure.

A study's own definitions (facts.definitions and its neighbours) come first: they say what holds for its kind of
scaling and its target. What they leave out, and every formula, is here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from paceline.report.facts import KIND_WORDS, Fact


@dataclass(frozen=True, slots=True)
class Meaning:
    """A term, what it means, and its formula where it has one."""

    term: str
    text: str
    formula: str = ""


_FORMULAS = {
    "epoch time": "median over repeats of (last step's end − first step's start)",
    "samples/s": "training samples of an epoch ÷ epoch time",
    "speed-up": "samples/s ÷ samples/s of the baseline",
    "speed-up of an epoch": "epoch time of the baseline ÷ epoch time",
    "ideal": "ranks ÷ ranks of the baseline",
    "efficiency": "speed-up ÷ ideal",
    "statistical efficiency": "samples to the target, baseline ÷ here",
    "effective speed-up": "speed-up × statistical efficiency",
    "sample efficiency": "1 ÷ (1 + batch ÷ noise scale)",
    "rank-hours": "ranks × time to the target in hours",
    "% of the baseline": "median ÷ median of the baseline × 100",
    "exposed": "time of communication without computation ÷ time of the timed epochs",
    "global": "computation scaling × load balance × serialisation × transfer",
    "algbw": "payload ÷ median transfer",
    "busbw": "algbw × nccl-tests' factor for the operation",
    "messages per step": "messages of the timed epochs ÷ their steps",
    "messages per epoch": "messages per step × steps of an epoch",
    "payload per epoch": "payload per step × steps of an epoch",
    "whole run": "startup + load + input-wait + forward + backward + … + other",
}

_TEXTS = {
    "ranks": "Processes that train, each on its part of every batch.",
    "runs": "Finished runs of those that the study asks for.",
    "epoch time": "From the first step's start to the last step's end of an epoch; evaluation is not in it.",
    "samples/s": "Training samples over the time that they took, all ranks together.",
    "baseline": "The timed point with the fewest ranks.",
    "speed-up": "How many times as many samples a second as at the baseline.",
    "speed-up of an epoch": "How many times as fast an epoch of the same samples is as at the baseline.",
    "run time": "From the launch of a run to its last rank's end.",
    "ideal": "A speed-up equal to the ratio of ranks to the baseline's.",
    "efficiency": "What of the ideal speed-up was reached.",
    "test accuracy": "On the test set after the last epoch: mean and standard deviation over repeats.",
    "test loss": "On the test set after the last epoch, mean over repeats.",
    "accuracy": "The share of samples that the model puts into the right class, in training and in validation.",
    "loss": "What the training makes small, mean over the samples of an epoch; in validation without training.",
    "epoch": "As many steps as use every training sample once.",
    "whole run": "From the launch of the run to its last rank's end.",
    "rank": "The number of the process, from 0 on.",
    "epochs to stable": "The first epoch from which validation accuracy stays within its own noise of its plateau.",
    "epochs to the target": "Epochs until validation accuracy reaches the target, on a straight line within the last.",
    "steps": "Updates of the parameters up to then.",
    "time": "Time of the epochs up to then; training alone.",
    "rank-hours": "What the training up to then costs in hours of one rank.",
    "phase": "A part of the training with an optimizer of its own.",
    "gain": "Test accuracy of this phase less that of the one before it, in points of a hundred, within each repeat.",
    "difference": "Test accuracy less that of the point it is held against, in points of a hundred.",
    "p different": "How probable so large a difference is where there is none (Student's test, Holm's correction).",
    "p equal": "How probable so small a difference is where it is as large as the margin (two one-sided tests).",
    "called": "What the two tests allow to say.",
    "load time": "Until the data set was ready, the most of any rank.",
    "read per rank": "Bytes of the data set that a rank read, the most of any.",
    "time in the queue": "From handing the job in to its start.",
    "staleness": "Steps of the slowest rank that were missing from the parameters behind a gradient, at most.",
    "payload": "Bytes that a rank gives or takes in a message, at its own end.",
    "messages per step": "Messages with a payload that a rank takes part in, per step in the timed epochs.",
    "messages per epoch": "As many of them as an epoch has steps for.",
    "payload per step": "Payload of the messages that a rank takes part in, per step in the timed epochs.",
    "payload per epoch": "The same for all steps of an epoch.",
    "memory of a rank": "Most that was ever resident, of the process that had most, servers included.",
    "GPU memory of a rank": "Most that torch ever held on the GPUs of a rank, of the rank that had most.",
    "real": "Time from the launch of the run to its end.",
    "user": "CPU time of all threads of all processes in their own code, added up: over real where several cores work.",
    "sys": "CPU time that the kernel worked for them, added up likewise: memory, files, messages.",
    "energy": "What the meters of the hosts counted while the run was sampled, of all that ran there: processors, GPUs "
    "and memory that has a meter of its own.",
    "global": "The share of the timed steps that a mean rank spends on useful work, against the baseline.",
    "computation scaling": "Useful rank-seconds per sample, baseline ÷ here.",
    "load balance": "Useful time of the mean rank ÷ of the busiest.",
    "serialisation": "Useful time of the busiest rank ÷ a replay with instant messages.",
    "transfer": "Of a message: after the last rank had issued it. Of the tree: instant messages ÷ measured.",
    "operation": "What the message does, as the library calls it.",
    "group": "The ranks that take part, by the number of their group.",
    "size": "Payload of one message at one rank.",
    "count": "Messages of this kind; one that several ranks take part in counts once.",
    "median": "From issue to completion on one rank, median over messages.",
    "p99": "From issue to completion on one rank: 99 in 100 messages take no longer.",
    "wait": "From the issue on this rank to the issue on the last one.",
    "hidden": "The share of all transfer time in which the rank computed.",
    "algbw": "Algorithm bandwidth, as nccl-tests has it: payload moved in a second.",
    "busbw": "Bus bandwidth, as nccl-tests has it: comparable with the speed of a link.",
    "last": "Collectives to which this rank came last by more than the clocks' error, of all.",
    "late by": "How much later than the rank before it, median over those.",
    "others waited": "Time that other ranks waited for it altogether, from the second to last rank's arrival on.",
    "what it did longer than the others": "Kinds of work that make up its lateness.",
    "of the path": "Share of the critical path: the chain of work and messages that decides when a step ends.",
    "kind": "A part of the ledger, or a message.",
    "messages": "What ranks sent one another: every collective and every message between two.",
    "timeline": "What each rank did at each moment; kinds are those of the ledger.",
    **{kind: f"{words[0].upper()}{words[1:]}." for kind, words in KIND_WORDS.items()},
}
_DIGITS = re.compile(r"epochs to [\d.,]+\s?%")


def term_of(heading: str) -> str:
    """The term behind a heading: `epoch time (ms)` is about `epoch time`."""
    if _DIGITS.fullmatch(heading):
        return "epochs to the target"
    return heading.partition(" (")[0].strip()


def meanings(headings: Iterable[str], definitions: Iterable[Fact] = ()) -> tuple[Meaning, ...]:
    """What is known of these headings, in their order and each once; names of factors and points mean themselves."""
    own = {fact.label: fact.text for fact in definitions}
    found: dict[str, Meaning] = {}
    for heading in headings:
        # A heading with its unit may mean another thing than its term alone, a key or a figure of other tables.
        term = heading if heading in own else term_of(heading)
        text = own.get(term) or _TEXTS.get(term)
        if text:
            found.setdefault(term, Meaning(term, text, _FORMULAS.get(term, "")))
    return tuple(found.values())
