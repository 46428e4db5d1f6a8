"""What is shown of a study that runs: figures, dashes where there are none, and no name that a terminal obeys."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from paceline.records.live_study import PointNow, RankNow, RunNow, Watched
from paceline.records.rank_trace import LEDGER_KINDS
from paceline.records.results import Interval, Spread
from paceline.reporting.text.watch_text import render
from samples import report_samples
from samples.finished_study import epoch

LEDGER: dict[str, float | None] = dict.fromkeys(LEDGER_KINDS, 0.0) | {
    "startup": 2.0,
    "forward": 6.0,
    "comm-wait": None,
    "comm-transfer": None,
    "other": 2.0,
}
RANK = RankNow(
    rank=0, phase="compute", step=120, steps_per_s=4.5, samples_per_s=144.0, still_s=0.5, ended=None, ledger_s=LEDGER
)
RUN = RunNow(
    point="2-ranks",
    label="2 ranks",
    run=3,
    attempt=1,
    phase="compute",
    step=120,
    total_steps=1880,
    elapsed_s=61.0,
    samples_per_s=288.0,
    ranks=(RANK, replace(RANK, rank=1, still_s=12.0, phase="communicate")),
    epochs=tuple(epoch(number, 0.5) for number in range(1, 8)),
    ledger_s=LEDGER,
    ledger_step=110,
    ledger_reaches_s=10.0,
)
POINT = PointNow(
    point="1-rank",
    label="1 rank",
    done=2,
    of=3,
    state="waiting",
    epoch_s=Interval(median=2.0, low=1.9, high=2.1, n=2, coverage=None),
    samples_per_s=Interval(median=600, low=590, high=610, n=2, coverage=None),
    test_accuracy=Spread(mean=0.97, std=0.01, n=2),
    failure=None,
)
SEEN = Watched(
    folder="runs/digits",
    name="digits",
    state="running",
    told="It is run by process 1.",
    looked_at="2030-01-01T00:00:00+00:00",
    done=2,
    of=6,
    unread=0,
    left_s=95.0,
    points=(POINT, replace(POINT, point="2-ranks", label="2 ranks", done=0, state="running", epoch_s=None)),
    run=RUN,
    next="paceline report runs/digits",
)


def test_all_that_was_asked_for_is_there() -> None:
    text = render(SEEN)
    for part in (
        "digits  runs/digits",
        "2 of 6 runs, about 1 min 35 s left",
        "1 rank   2 of 3  waiting  2.00 [1.90, 2.10]",
        "2 ranks, run 3: step 120 of 1,880, 288.0 samples/s, launched 1 min 1 s ago.",
        "no sign of life for 12 s",
        "The last 5 of 7 epochs",
        "Ledger so far: from the launch to step 110, 10.0 s",
        "– not measured",
        "[ ] is the range",
    ):
        assert part in text, (part, text)
    rows = [line.split() for line in text.splitlines() if line.startswith(("   0", "   1", "mean"))]
    assert [row for row in rows if row[0] == "mean"] == [["mean", "20", "%", "60", "%", "–", "–", "20", "%"]]
    assert "Report" not in text and "Next" not in text, "it still runs"
    assert max(map(len, text.splitlines())) <= 100


def test_an_end_is_said_with_the_report_and_the_next_command() -> None:
    text = render(replace(SEEN, state="finished", report="runs/digits/report.html", left_s=None))
    assert "Report  runs/digits/report.html\nNext    paceline report runs/digits\n" in text
    assert "run 3" not in text
    killed = render(replace(SEEN, state="killed", told="It was killed."))
    assert "run 3, which is not finished" in killed and "Where each rank was" in killed and "no sign" not in killed


def test_what_is_not_known_is_a_dash() -> None:
    blank = replace(RANK, phase=None, step=None, steps_per_s=None, samples_per_s=None, ledger_s=None)
    run = replace(RUN, ranks=(blank,), epochs=(), step=None, ledger_s=None, ledger_step=None, phase="starting")
    text = render(replace(SEEN, run=run, left_s=None))
    assert "2 ranks, run 3: starting" in text and "Ledger" not in text and "Epochs" not in text
    assert "   0  starting      –        –          –" in text
    assert "left" not in text


def test_many_points_and_ranks_are_cut_short_and_said_to_be() -> None:
    points = tuple(replace(POINT, point=str(number), label=f"{number} ranks") for number in range(400))
    points = (*points, replace(POINT, point="on", label="the one that is on", state="running"))
    run = replace(RUN, ranks=tuple(replace(RANK, rank=rank) for rank in range(512)))
    text = render(replace(SEEN, points=points, run=run))
    assert "389 more points: --json." in text and "504 more ranks: --json." in text
    assert "the one that is on" in text and len(text.splitlines()) < 70
    low = render(replace(SEEN, points=points, run=run), height=40)
    assert "2 of 6 runs" in low and "Ledger" in low and len(low.splitlines()) <= 32


def test_a_loss_that_is_none_is_said() -> None:
    bad = replace(RUN, epochs=(epoch(1, 0.5), replace(epoch(2, 0.5), train_loss=float("nan"))))
    assert "The training loss of epoch 2 is not a number" in render(replace(SEEN, run=bad))


@pytest.mark.parametrize("color", [False, True])
def test_no_name_reaches_the_terminal_as_a_command(color: bool) -> None:
    hostile = " ".join((*report_samples.HOSTILE, "\x1b[2J\x1b]0;owned\x07\x9b31m\u202e\r\x08"))
    run = replace(RUN, label=hostile, phase=hostile, step=0, notes=(hostile,))
    run = replace(run, ranks=(replace(RANK, ended=hostile), replace(RANK, rank=1, phase=hostile)))
    points = (replace(POINT, label=hostile, state="failed", failure=hostile),)
    text = render(
        replace(
            SEEN,
            name=hostile,
            folder=hostile,
            told=hostile,
            run=run,
            points=points,
            state="killed",
            report=hostile,
            next=hostile,
        ),
        color=color,
    )
    styled = re.sub(r"\x1b\[[0-9;]*m", "", text) if color else text
    assert not set(styled) & {"\x1b", "\x07", "\x9b", "\r", "\x08", "\u202e"}
    assert "owned" in text
