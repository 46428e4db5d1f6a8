"""Told to leave: ranks of a job that will be ended soon agree on a step, write a checkpoint there, and go.

    SIGUSR1 or SIGTERM ──▶ noted by whichever rank got it ──▶ a sum over ranks, about once a second ──▶ all leave
                                                              before the same step, or none does

A scheduler warns a job before its time is over or another takes its place. The sum carries rank 0's choice of
the step before which to ask next, so that a run of fast steps asks no more often than one of slow ones: one
message of 16 bytes a second, and none at all where nobody can be warned.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable

import torch

from paceline.records.run import Manifest
from paceline.training.parallel.strategy import Peers

SIGNALS = (signal.SIGUSR1, signal.SIGTERM)
POLL_S = 1.0
"""Between two questions: short beside any time of grace, long beside what a question costs."""
_GROWTH = 4
"""How much longer the next wait may be than the one before, in steps: the first steps say little about the rest."""


class TerminationNotice:
    """Whether the ranks of a run leave."""

    def __init__(
        self, *, possible: bool = False, grace_s: float = 60.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._possible = possible
        self._every_s = min(POLL_S, grace_s / 4)
        self._clock = clock
        self._told = False
        self._asked_step: int | None = None
        self._asked_at = 0.0
        self._next_step = 0

    def listen(self) -> None:
        """Note the signals that announce the end. Those that came too early, and were held back, come now."""
        if self._possible and threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                signal.signal(number, self._note)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)

    def agreed(self, step: int, peers: Peers, *, rank: int, device: torch.device) -> bool:
        """Whether all ranks leave before this step: the same answer on each, where each asks before every step."""
        if not self._possible or step < self._next_step:
            return False
        if self._asked_step is None:  # a run that left before its first step would never get anywhere
            self._ask_again(step, steps=1)
            return False
        steps = self._steps_until_next(step) if rank == 0 else 0
        said = torch.tensor([float(self._told), float(steps)], dtype=torch.float64, device=device)
        peers.sum(said)
        told, steps = said.tolist()
        self._ask_again(step, steps=int(steps))
        return told > 0

    def _steps_until_next(self, step: int) -> int:
        assert self._asked_step is not None
        last = step - self._asked_step
        elapsed_s = max(self._clock() - self._asked_at, 1e-6)
        return max(1, min(round(last / elapsed_s * self._every_s), _GROWTH * last))

    def _ask_again(self, step: int, *, steps: int) -> None:
        self._asked_step, self._asked_at, self._next_step = step, self._clock(), step + steps

    def _note(self, number: int, frame: object) -> None:
        self._told = True


def installed_notice(manifest: Manifest) -> TerminationNotice:
    """The notice of a run: it listens where the launcher's jobs are warned."""
    made = TerminationNotice(possible=manifest.warned, grace_s=manifest.launch.grace_s)
    made.listen()
    return made
