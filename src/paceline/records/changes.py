"""What changed between runs or studies, A and B, or A and C: the records behind `paceline compare` and its `--json`.

Comparison ─┬─ SideFigures    what each side measured, by itself
            └─ Changes        one for each side that is compared with A

Changes ─┬─ Difference     what was different before anything was measured
         └─ Change         one for each pair of points, or of runs
              ├─ Versus         a figure of A against the same of B: time, accuracy, an efficiency, a bandwidth
              └─ Part           one for each kind of the ledger: they sum to the difference of the two times
"""

from __future__ import annotations

from dataclasses import dataclass, field

from paceline.records.results import Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Something that A and B do not have in common, whatever was measured."""

    section: str
    """setting, machine, version or commit."""
    name: str
    a: str | None
    """None where A does not say."""
    b: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Versus:
    """One figure of A against the same of B."""

    a: Interval
    b: Interval
    change: Interval
    """B over A of times and bandwidths, B less A of fractions; its interval is that of the rank test, turned round."""
    p: float
    """Of the rank test by itself."""
    p_adjusted: float
    """The same, corrected for all that were tested beside it."""
    p_least: float
    """What so many values could give at best: above 0.05 no difference can be called real, however large."""
    real: bool
    """Whether the corrected test passes and the interval leaves out no change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What one kind of the ledger has to do with a change. Seconds are per step or sample, mean over ranks."""

    kind: str
    a_s: float | None
    """None where the kind was not measured on both sides."""
    b_s: float | None
    change_s: Interval | None
    """B less A."""
    share: float | None
    """The same as a fraction of A's whole time: over all kinds they sum to the change of the whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageChange:
    """One row of the message table on both sides."""

    operation: str
    group: str
    dtype: str | None
    payload_bytes: int
    a_per_step: float | None
    """Messages of the run for each of its steps; None where A sends none such."""
    b_per_step: float | None
    bandwidth: Versus | None
    """Bus bandwidth in bytes per second; None where one side does not show it."""
    main: bool
    """Whether it has a hundredth of the bytes of the largest row of a side, or more: not of start-up or of epochs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What changed at one pair of points, or between two runs."""

    label: str
    """The pair by what both have: `4 ranks, flat`."""
    a: str
    """Identifier of A's point; of a run, its folder."""
    b: str
    over: str
    """What scatters: `runs` where both sides have several, `steps` where one side has a single run."""
    unit: str
    """step, or sample where a step of A and one of B do not take the same number of samples."""
    time_s: Versus
    """Seconds per unit."""
    smallest_seen: float | None
    """The least change, as a fraction, that would have been called real with this scatter; None where none would."""
    block_steps: tuple[int, ...] = ()
    """Where steps scatter: how many consecutive ones are taken together, in A and in B."""
    parts: tuple[Part, ...] = ()
    """In the order of the ledger; empty where spans are missing."""
    gap: str | None = None
    """What is missing from the parts, in a sentence."""
    accuracy: Versus | None = None
    """Of the test; None where there was none."""
    efficiencies: dict[str, Versus] = field(default_factory=dict)
    """Of the efficiency tree: global, load_balance, serialisation, transfer."""
    messages: tuple[MessageChange, ...] = ()
    """Most bytes first."""
    notes: tuple[str, ...] = ()
    """What its reader has to know, a sentence each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One of the sides, in words."""

    name: str
    """Its folder, as given."""
    what: str
    """study or run."""
    runs: int
    """Finished runs in it."""
    first_at: str | None
    """When the first of them was launched, ISO 8601; None where not known."""
    last_at: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """All that was found between A and one other side, which is B here, whatever its letter."""

    a: Compared
    b: Compared
    letter: str = "B"
    """Of the other side among all that were given: B, C, ..."""
    differences: tuple[Difference, ...]
    changes: tuple[Change, ...]
    """In order of ranks."""
    only_a: tuple[str, ...] = ()
    """Points that have no counterpart in B."""
    only_b: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """What holds for all of it, a sentence each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SideFigures:
    """What one side measured at one point, by itself."""

    letter: str
    """Of the side: A, B, ..."""
    point: str
    """Identifier of A's point that it is compared at; of runs, A's folder."""
    label: str
    runs: int
    epoch_s: Interval | None
    """None where no run completed an epoch, as of a script."""
    samples_per_s: Interval | None
    test_accuracy: Interval | None
    ledger_s: dict[str, float]
    """Seconds by kind for each `unit`, mean over ranks, of the median run; empty where it is not known."""
    unit: str
    """step or sample."""
    shared_cores: bool
    """Whether there were more threads than cores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """All that `paceline compare` found: every other side against the first."""

    against: tuple[Changes, ...]
    """B against A, C against A, ..."""
    figures: tuple[SideFigures, ...]
    """By point, then by side."""

    @property
    def sides(self) -> tuple[Compared, ...]:
        """A and the others, in the order in which they were given."""
        return (self.against[0].a, *(changes.b for changes in self.against))
