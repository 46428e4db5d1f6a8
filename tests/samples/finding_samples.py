"""A finding of every code, with each of its variants."""

from __future__ import annotations

from typing import Any

from paceline.records.allocation import Complaint
from paceline.records.finding import Finding, Note
from paceline.records.learning import AccuracyCheck, Fault, NoiseScale, Turn
from paceline.records.results import Interval

SOME = {"found": 1, "points": 4}
CHECK = AccuracyCheck(
    point_id="p4",
    against="p1",
    difference=-0.0477,
    low=-0.05,
    high=-0.045,
    n=5,
    margin=0.005,
    p_different=0.001,
    p_equal=1.0,
    different=True,
    equal=False,
    batch_ratio=8.0,
)
FALLS = {**SOME, "worst": "4 ranks", "against": "1 rank", "check": CHECK}
NAN = Note(code="loss-not-finite", values={"part": "training", "loss": float("nan"), "epoch": 1})
CHANCE = {"epoch": 2, "loss": 2.303, "accuracy": 0.099, "guessed_loss": 2.302585, "guessed_accuracy": 0.1}
FAULTY = {"found": 1, "runs": 10, "label": "2 ranks"}
RUN = {"run": 2, "ranks": 4}
GAPS = (
    Note(code="spans-unreadable", values={**RUN, "error": "rank-0000.arrows is not an Arrow stream."}),
    Note(code="no-spans", values=RUN),
    Note(code="gpu-step-undivided", values=RUN),
    Note(code="spans-of-some-ranks", values={**RUN, "found": 3, "problems": ("Rank 1 has no file.",)}),
    Note(code="spans-truncated", values={**RUN, "broken": (1, 3)}),
    Note(code="collectives-differ", values=RUN),
)
COMPLAINT = Complaint(name="uneven-spread", severity="warning", what="3 + 1.", right="2 + 2.", next="Ask for it.")
NOISE = NoiseScale(samples=20.0, low=18.0, high=22.0, coverage=0.9, steps=100, efficiency=0.135)


def _found(code: str, severity: str = "warning", of: tuple[str, ...] = ("p4",), /, **values: Any) -> Finding:
    return Finding(code=code, severity=severity, values=values, points=of)


def _diverged(why: Note, *advice: str) -> Finding:
    first = Fault(name="diverged", run=5, epoch=1, why=why)
    return _found("diverged", "error", **FAULTY, first=first, advice=advice)


def _resumed(note: str | None) -> Finding:
    resumed = ({"run": 5, "label": "2 ranks", "step": 50, "note": note},)
    return _found("resumed-runs", "warning" if note else "info", resumed=resumed, runs=10)


ALL = (
    _found("failed", "error", failure="Rank 3 on node-a was killed.\nIts log: rank-0003.log"),
    _found("missing-runs", "warning", (), finished=7, expected=10, failures=(), points=2),
    _found("missing-runs", "error", finished=7, expected=10, failures=(("2 ranks", "Rank 1 was killed."),), points=2),
    _found("baseline-missing", used="2 ranks", wanted="1 rank"),
    _diverged(NAN, "train.recipe=scale", "train.clip_norm=1"),
    _diverged(Note(code="test-loss-not-finite", values={"loss": float("inf")})),
    _found(
        "dead-network",
        "error",
        **FAULTY,
        first=Fault(name="dead", run=1, epoch=2, why=Note(code="at-chance", values=CHANCE)),
    ),
    _found("accuracy-falls", **FALLS, why="fewer-epochs", batch_ratio=None),
    _found("accuracy-falls", **FALLS, why="fewer-epochs", batch_ratio=4.0),
    _found("accuracy-falls", **FALLS, why="larger-batch", batch_ratio=8.0, scaled=True, same_rate=False),
    _found("accuracy-falls", **FALLS, why="larger-batch", batch_ratio=8.0, scaled=False, same_rate=True),
    _found("accuracy-falls", **FALLS, why="strategy", strategies=("local-sgd", "ddp")),
    _found("accuracy-falls", **FALLS, why="more-ranks"),
    _found("accuracy-falls", **FALLS, why="settings"),
    _found("schedule-unfinished", **SOME, worst="2 ranks", progress=0.75),
    _found("asked-for-against-given", "warning", (), found=2, runs=3, forced=False, complaints=((COMPLAINT, 2),)),
    _found("asked-for-against-given", "error", (), found=2, runs=3, forced=True, complaints=((COMPLAINT, 1),)),
    _found("more-ranks-than-cores", cores=2, threads=(("2 ranks", 2), ("4 ranks", 1))),
    _found("more-ranks-than-cores", cores=None, threads=(("4 ranks", 1),)),
    _found("ranks-share-physical-cores", cores=1, threads=(("2 ranks", 1),)),
    _found("emulated-hosts", "info", **SOME, complaint=None),
    _found("emulated-hosts", "info", **SOME, complaint=COMPLAINT),
    _found(
        "superlinear",
        limit=1.05,
        efficiencies=(("2 ranks", Interval(median=1.3333, low=1.31, high=1.35, n=5, coverage=0.9)),),
    ),
    _found(
        "mixed-environment",
        "warning",
        (),
        mixed={
            ("host", 1): {"here": 9, "there": 1},
            ("host", 2): {"h1, h2": 5, "h1, h3": 5},
            ("cores", 2): {"4": 9, "8": 1},
            ("torch", 1): {"2.13": 9, "2.12": 1},
        },
    ),
    _found("noisy-machine", **SOME, limit=0.1, worst="2 ranks", width=0.2),
    _found("few-repeats", "info", **SOME, enough=5, fewest=3),
    _found("small-timed-part", "info", script=False, shortest_s=0.3, limit_s=0.5),
    _found("small-timed-part", "info", script=True, shortest_s=0.3, limit_s=0.5),
    _found("warm-up-in-times", "info", **SOME),
    _resumed(None),
    _resumed("torch 2.12 then, 2.13 now"),
    _found("overfitting", "info", **SOME, worst="1 rank", turn=Turn(epoch=7, rise=0.2, fall=0.05)),
    _found("batch-beyond-noise", "info", **SOME, worst="2 ranks", batch=1280, noise=NOISE),
    _found("incomplete-ledger", **SOME, gaps=GAPS),
)
