"""What is said about changes: no more than the figures carry."""

from __future__ import annotations

from dataclasses import replace

import pytest

from paceline.records.changes import Change, Changes, Compared, Difference, MessageChange, Part, Versus
from paceline.records.results import Interval
from paceline.reporting.text.changes_text import render, sentence
from samples import report_samples


def interval(median: float, low: float, high: float, n: int = 5, coverage: float | None = 0.968) -> Interval:
    return Interval(median=median, low=low, high=high, n=n, coverage=coverage)


def versus(a: float, b: float, low: float, high: float, *, real: bool, ratio: bool = True, p: float = 0.008) -> Versus:
    return Versus(
        a=interval(a, a * 0.99, a * 1.01),
        b=interval(b, b * 0.99, b * 1.01),
        change=interval(b / a if ratio else b - a, low, high),
        p=p,
        p_adjusted=p,
        p_least=2 / 252,
        real=real,
    )


def part(kind: str, a_s: float, b_s: float, within: float = 0.0001) -> Part:
    change = b_s - a_s
    return Part(
        kind=kind,
        a_s=a_s,
        b_s=b_s,
        change_s=interval(change, change - within, change + within),
        share=change / 0.01,
    )


SLOWER = Change(
    label="4 ranks",
    a="4-ranks-ddp-1",
    b="4-ranks-flat-2",
    over="runs",
    unit="step",
    time_s=versus(0.0100, 0.0118, 1.15, 1.21, real=True),
    smallest_seen=0.03,
    parts=(
        part("input-wait", 0.001, 0.0015),
        part("forward", 0.004, 0.0043, within=0.001),
        part("comm-wait", 0.001, 0.0022),
        part("optimizer", 0.004, 0.0038),
        Part(kind="checkpoint", a_s=0.0, b_s=0.0, change_s=interval(0, 0, 0), share=0.0),
    ),
    accuracy=versus(0.9512, 0.9521, -0.004, 0.006, real=False, ratio=False, p=0.42),
    efficiencies={"transfer": versus(0.9, 0.8, -0.11, -0.09, real=True, ratio=False)},
    messages=(
        MessageChange(
            operation="allreduce_",
            group="0",
            dtype="float32",
            payload_bytes=4000,
            a_per_step=2.0,
            b_per_step=1.0,
            bandwidth=versus(4e7, 2e7, 0.4, 0.6, real=True),
            main=True,
        ),
        MessageChange(
            operation="broadcast_",
            group="0",
            dtype=None,
            payload_bytes=800,
            a_per_step=None,
            b_per_step=1,
            bandwidth=None,
            main=True,
        ),
    ),
)
FASTER = replace(SLOWER, label="8 ranks, flat", time_s=versus(0.0100, 0.0088, 0.86, 0.90, real=True), parts=())
ALIKE = replace(SLOWER, label="1 rank", time_s=versus(0.0100, 0.0101, 0.98, 1.05, real=False, p=0.42), notes=("Note.",))
UNTESTED = replace(
    ALIKE,
    time_s=replace(ALIKE.time_s, change=interval(1.01, 0.9, 1.2, 3, None), p_adjusted=0.1),
    smallest_seen=None,
)
FOUND = Changes(
    a=Compared(name="runs/a", what="study", runs=10, first_at="2030-01-01T10:00:59+00:00", last_at=None),
    b=Compared(name="runs/b", what="study", runs=1, first_at=None, last_at=None),
    differences=(Difference(section="setting", name="run.strategy", a="ddp", b=None),),
    changes=(ALIKE, SLOWER),
    only_a=("16 ranks",),
    notes=("What holds for all.",),
)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            SLOWER,
            "B is 18 % [15, 21] slower per step with 4 ranks: +12 points comm-wait, +5.0 input-wait, −2.0 optimizer, "
            "+3.0 the rest.",
        ),
        (
            replace(SLOWER, time_s=versus(0.0100, 0.0351, 2.1234, 7.7, real=True), parts=()),
            "B takes 3.5 [2.1, 7.7] times as long per step with 4 ranks.",
        ),
        (FASTER, "B is 12 % [10, 14] faster per step with 8 ranks, flat."),
        (
            ALIKE,
            "With 1 rank A and B cannot be told apart: B takes 1.01 times as long per step (interval 0.980 to 1.05), "
            "p 0.42; less than 3.0 % would not have been seen.",
        ),
        (
            UNTESTED,
            "With 1 rank B takes 1.01 times as long per step (range 0.900 to 1.20): too few runs to call that a "
            "difference.",
        ),
    ],
    ids=["slower", "several times", "faster", "alike", "untested"],
)
def test_sentences(change: Change, said: str) -> None:
    assert sentence(change) == said


def test_the_text_has_what_differs_first_then_times_sentences_parts_and_the_rest() -> None:
    text = render(FOUND)
    lines = text.splitlines()
    assert lines[0] == "A  runs/a: a study of 10 finished runs, 2030-01-01 10:00"
    assert lines[1] == "B  runs/b: a study of 1 finished run"
    places = [
        text.index(part)
        for part in (
            "What differs before anything is measured",
            "Time per step: medians over runs",
            "With 1 rank A and B",
            "Note.",
            "B is 18 %",
            "Where it comes from with 4 ranks",
            "Efficiencies with 4 ranks",
            "Messages with 4 ranks",
            "Test accuracy",
            "Only in A: 16 ranks.",
            "What holds for all.",
        )
    ]
    assert places == sorted(places)
    assert "Where it comes from with 1 rank:" not in text
    shown = {" ".join(line.split()) for line in lines}
    for line in (
        "run.strategy ddp –",
        "4 ranks 5 and 5 runs 10.0 [9.9, 10.1] 11.8 [11.7, 11.9] 1.18 [1.15, 1.21] 0.0080 slower",
        "comm-wait 1.00 2.20 +1.20 [+1.10, +1.30] +12.0",
        "whole step 10.00 11.80 +1.80 +18.0",
        "transfer 90.0 % 80.0 % −10.0 [−11.0, −9.0] real",
        "allreduce float32 4.0 kB 2.00 → 1.00 40.0 20.0 0.500 [0.400, 0.600] real",
        "broadcast 800 B – → 1.00 – – – –",
        "4 ranks 95.1 % [94.2, 96.1] 95.2 % [94.3, 96.2] +0.09 [−0.40, +0.60] 0.42 undecided",
    ):
        assert line in shown, line
    assert "checkpoint" not in text


def test_where_nothing_is_real_the_last_pair_is_shown_and_what_is_missing_is_said() -> None:
    text = render(replace(FOUND, changes=(SLOWER, replace(UNTESTED, gap="Spans are missing.", parts=()))[1:]))
    assert "Efficiencies with 1 rank" in text and "Spans are missing." in text
    assert "not tested" in text and "With fewer than four values on a side it is the range of all pairs." in text
    assert render(replace(FOUND, changes=())).count("Time per") == 0


@pytest.mark.parametrize("width", [40, 60, 100])
def test_no_line_of_words_is_wider_than_the_terminal(width: int) -> None:
    for line in render(FOUND, width=width).splitlines():
        assert len(line) <= width or "  " in line or line.startswith(("A  ", "B  ", "Where", "Messages"))


@pytest.mark.parametrize("text", report_samples.HOSTILE)
def test_names_are_never_markup(text: str) -> None:
    hostile = replace(FOUND, differences=(Difference(section="setting", name=text, a=text, b=text),), only_b=(text,))
    assert render(hostile)
