"""What changed between runs or studies, A and B, or A and C: the records behind `paceline compare` and its `--json`.

Comparison ─┬─ SideFigures    what each side measured
            └─ Changes        one for each side that is compared with A

Changes ─┬─ Difference     what was different before anything was measured
         └─ Change         one for each pair of points, or of runs
              ├─ Versus         a figure of A against that of B: time, accuracy, an efficiency, a bandwidth
              └─ Part           one for each kind of the ledger: they sum to the difference of the two times
"""

from __future__ import annotations

from dataclasses import dataclass, field

from paceline.records.results import Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A difference of A and B that is known without any measurement."""

    section: str
    """setting, machine, version or commit."""
    name: str
    a: str | None
    """None if unknown."""
    b: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Versus:
    """One figure of A against that of B."""

    a: Interval
    b: Interval
    change: Interval
    """B over A of times and bandwidths, B less A of fractions; its interval is that of the rank test, turned round."""
    p: float
    """Of the rank test, not corrected."""
    p_adjusted: float
    """`p`, corrected for all tests of the comparison."""
    p_least: float
    """The smallest possible p-value with so few values: above 0.05 no difference can be significant."""
    real: bool
    """Whether the corrected test is significant and the interval excludes "no change"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What one kind of the ledger contributes to a change. Seconds are per step or sample, mean over ranks."""

    kind: str
    a_s: float | None
    """None if the kind was not measured on both sides."""
    b_s: float | None
    change_s: Interval | None
    """B less A."""
    share: float | None
    """`change_s` as a fraction of A's total time: over all kinds they sum to the change of the total."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageChange:
    """One row of the message table on both sides."""

    operation: str
    group: str
    dtype: str | None
    payload_bytes: int
    a_per_step: float | None
    """Messages of the run for each of its steps; None if A sends none such."""
    b_per_step: float | None
    bandwidth: Versus | None
    """Bus bandwidth in bytes per second; None if a side has none."""
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
    """What the scatter is over: `runs` if both sides have several, `steps` if a side has a single run."""
    unit: str
    """step, or sample if a step of A and one of B have different numbers of samples."""
    time_s: Versus
    """Seconds per unit."""
    smallest_seen: float | None
    """The least change, as a fraction, that would have been called real with this scatter; None if none would."""
    block_steps: tuple[int, ...] = ()
    """If the scatter is over steps: how many consecutive ones form a block, in A and in B."""
    parts: tuple[Part, ...] = ()
    """In the order of the ledger; empty if spans are missing."""
    gap: str | None = None
    """Why parts are missing, in a sentence."""
    accuracy: Versus | None = None
    """Of the test; None if there was none."""
    efficiencies: dict[str, Versus] = field(default_factory=dict)
    """Of the efficiency tree: global, load_balance, serialisation, transfer."""
    messages: tuple[MessageChange, ...] = ()
    """Most bytes first."""
    notes: tuple[str, ...] = ()
    """Caveats, a sentence each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One of the sides, in words."""

    name: str
    """Path of its folder, as the user wrote it."""
    what: str
    """study or run."""
    runs: int
    """Finished runs in it."""
    first_at: str | None
    """When the first of them was launched, ISO 8601; None if unknown."""
    last_at: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """All changes between A and one other side, which is called B here."""

    a: Compared
    b: Compared
    letter: str = "B"
    """Of the other side: B, C, ..."""
    differences: tuple[Difference, ...]
    changes: tuple[Change, ...]
    """In order of ranks."""
    only_a: tuple[str, ...] = ()
    """Points that have no counterpart in B."""
    only_b: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """Caveats for the whole comparison, a sentence each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SideFigures:
    """What one side measured at one point."""

    letter: str
    """Of the side: A, B, ..."""
    point: str
    """Identifier of A's point that it is compared at; of runs, A's folder."""
    label: str
    runs: int
    epoch_s: Interval | None
    """None if no run completed an epoch, as of a script."""
    samples_per_s: Interval | None
    test_accuracy: Interval | None
    ledger_s: dict[str, float]
    """Seconds by kind for each `unit`, mean over ranks, of the median run; empty if unknown."""
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
        """A and the others, in the order of the command."""
        return (self.against[0].a, *(changes.b for changes in self.against))
