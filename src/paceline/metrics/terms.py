"""Words of tables and plots that are no figure, or have neither unit nor formula: page -> word -> definition."""

from __future__ import annotations

from paceline.metrics.metric import Metric

_WORDS = {
    "metrics/messages.md": {
        "messages": "What ranks send to each other: every collective and every message between two processes.",
    },
    "metrics/payload.md": {
        "payload": "Bytes that a rank sends or receives in a message, at its own end.",
    },
    "trace.md": {
        "operation": "What the message does, as the library names it.",
        "group": "The ranks that take part, by the number of their group.",
        "count": "Messages of this kind; a message of several ranks counts once.",
        "median": "From issue to completion on one rank, median over messages.",
        "p99": "From issue to completion on one rank: 99 of 100 messages take no longer.",
        "wait": "From the issue on this rank to the issue on the last rank.",
        "last": "Collectives at which this rank arrived last by more than the error of the clocks, of all.",
        "late by": "How much later than the rank before it, median over these collectives.",
        "others waited": "Total time that other ranks waited for it, from the arrival of the second to last rank on.",
        "what it did longer than the others": "Kinds of work that explain its lateness.",
        "of the path": "Share of the critical path: the chain of work and messages that decides when a step ends.",
    },
    "measuring.md#the-timeline": {
        "timeline": "What each rank does at each moment, by kind of the ledger.",
    },
    "glossary.md": {
        "ranks": "Processes that train, each on its part of every batch.",
        "rank": "Number of a process that trains, from 0 on.",
        "servers": "Processes that hold parameters and do not train: they count as ranks in ideal and efficiency.",
        "series": "Points that agree in every factor but the ranks.",
        "epoch": "As many steps as use every training sample once.",
        "cannot be told apart": "The interval of the ratio of two figures contains 1, or there are fewer than five "
        "repeats.",
        "value": "What the factor is set to; its first value is the baseline's.",
    },
    "metrics/speed-up.md": {
        "baseline": "The timed point with the fewest ranks and servers, against which speed-ups are measured.",
    },
    "measuring.md#series-side-by-side": {
        "common baseline": "Series that differ in strategy, launcher, hosts or pinning alone are measured against one "
        "point, that with the fewest ranks and servers. What changes the work of a step or the means of a rank (data, "
        "model, batch, precision, threads, device) has a baseline of its own.",
        "of the fastest": "Samples/s divided by those of the fastest series at the same number of ranks, paired "
        "within each repeat.",
    },
    "measuring.md": {
        "lost part": "What a part of the training loop takes beyond its ideal share of the baseline's, over the "
        "loop's time, without startup, load and evaluation.",
    },
    "metrics/ledger.md": {
        "where the time went": "The time of the median run from launch to end, divided into kinds without remainder, "
        "mean over ranks.",
        "kind": "A part of the ledger, or a message.",
    },
    "metrics/accuracy.md": {
        "accuracy": "The part of the samples that the model classifies correctly, in training and in validation.",
        "p different": "Probability of so large a difference where there is none: Student's test, with Holm's "
        "correction.",
        "p equal": "Probability of so small a difference where it is as large as the margin: two one-sided tests.",
        "called": "What the two tests allow to say.",
        "different, equal": "By Student's test of the differences within repeats, and by two one-sided tests with the "
        "margin; each at 5 %, corrected by Holm's method.",
    },
    "metrics/test-loss.md": {
        "loss": "What the training minimizes, mean over the samples of an epoch.",
    },
    "metrics/gain.md": {
        "phase": "A part of the training with an optimizer of its own.",
    },
    "measuring.md#one-factor-at-a-time": {
        "real effect": "By Student's test of the logarithms of the ratios within repeats, at 5 % and corrected by "
        "Holm's method for all rows, where the interval leaves out 100 as well.",
    },
    "scaling-laws.md": {
        "law": "The speed-up of N ranks over one. Amdahl: N ÷ (1 + σ(N−1)). Universal Scalability Law: "
        "N ÷ (1 + σ(N−1) + κN(N−1)). Gustafson: N − σ(N−1).",
        "serial or contention": "σ: the part of the work that ranks do not share, or wait for one another to do.",
        "coherency": "κ: what every pair of ranks costs to agree. Above 0 there is a fastest number of ranks.",
        "limit": "By the law: the speed-up that no number of ranks exceeds (1 ÷ σ), or the fastest number of ranks.",
        "off by": "How far the measured points are from the law: root of the mean square over numbers of ranks.",
    },
    "metrics/interval.md": {
        "interval": "Two of the repeats between which the median lies with the stated confidence; the range of fewer "
        "than five.",
    },
}

TERMS = tuple(
    Metric(name=name, definition=definition, page=page)
    for page, words in _WORDS.items()
    for name, definition in words.items()
)
