"""The bound on staleness that a server enforces. Pure: who may go on, and how stale each gradient was.

    given      3      5      4         gradients of ranks 0, 1, 2 that were applied; bound 1
                      ▲ held           2 ahead of the slowest: its parameters come when rank 0 gives its next gradient

A rank that has given k gradients goes on only when every rank has given at least k - bound. The parameters that it
computes its next gradient from then lack at most `bound` steps of the slowest rank; how many they do lack is that
gradient's staleness. With a bound of 0 ranks walk in step. (Stale synchronous parallel: Ho et al., NIPS 2013.)
"""

from __future__ import annotations


class Pacing:
    """Counts the gradients of each rank, and holds back those that are too far ahead."""

    def __init__(self, ranks: int, bound: int) -> None:
        self._bound = bound
        self._given = [0] * ranks
        self._lacking = [0] * ranks
        self._held: list[int] = []
        self._counts: dict[int, int] = {}

    @property
    def steps(self) -> int:
        """Steps that every rank has taken."""
        return min(self._given)

    @property
    def counts(self) -> tuple[int, ...]:
        """How many gradients were stale by 0, 1, 2, ... steps."""
        return tuple(self._counts.get(steps, 0) for steps in range(max(self._counts, default=-1) + 1))

    def pulled(self, rank: int) -> None:
        """Note that a rank took over the parameters as they are, without giving a gradient for them."""
        self._lacking[rank] = self._given[rank] - self.steps

    def gave(self, rank: int) -> list[int]:
        """Count a gradient; the ranks that may go on now, in the order in which they have waited."""
        stale = self._lacking[rank]
        self._counts[stale] = self._counts.get(stale, 0) + 1
        self._given[rank] += 1
        self._held.append(rank)
        released = [held for held in self._held if self._given[held] - self.steps <= self._bound]
        for held in released:
            self._held.remove(held)
            self.pulled(held)
        return released
