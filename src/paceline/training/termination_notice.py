"""Termination notice: the ranks of a job that will end soon agree on a step, write a checkpoint there, and exit.

    SIGUSR1 or SIGTERM ──▶ noted by any rank ──▶ a sum over ranks, about once a second ──▶ all ranks exit before the
                                                                                           same step, or none does

A scheduler sends a signal before the time limit or before preemption. The sum also carries rank 0's choice of the
next step at which to sum: one message of 16 bytes a second for fast and slow steps, and none if the launcher's jobs
get no signal.
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
"""Between two sums: short against any grace period, long against the cost of a sum."""
_GROWTH = 4
"""Largest growth of the interval, in steps: the first steps are not typical."""


class TerminationNotice:
    """Whether the ranks of a run stop early."""

    def __init__(
        self, *, possible: bool = False, grace_s: float = 60.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._possible = possible
        self._every_s = min(POLL_S, grace_s / 4)
        self._clock = clock
        self._received = False
        self._asked_step: int | None = None
        self._asked_at = 0.0
        self._next_step = 0

    def listen(self) -> None:
        """Install the signal handlers; signals that were blocked during startup are delivered now."""
        if self._possible and threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                signal.signal(number, self._note)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)

    def agreed(self, step: int, peers: Peers, *, rank: int, device: torch.device) -> bool:
        """Whether all ranks stop before this step: equal on all ranks, if each asks before every step."""
        if not self._possible or step < self._next_step:
            return False
        if self._asked_step is None:  # a run that stops before its first step would never advance
            self._ask_again(step, steps=1)
            return False
        steps = self._steps_until_next(step) if rank == 0 else 0
        message = torch.tensor([float(self._received), float(steps)], dtype=torch.float64, device=device)
        peers.sum(message)
        received, steps = message.tolist()
        self._ask_again(step, steps=int(steps))
        return received > 0

    def _steps_until_next(self, step: int) -> int:
        assert self._asked_step is not None
        last = step - self._asked_step
        elapsed_s = max(self._clock() - self._asked_at, 1e-6)
        return max(1, min(round(last / elapsed_s * self._every_s), _GROWTH * last))

    def _ask_again(self, step: int, *, steps: int) -> None:
        self._asked_step, self._asked_at, self._next_step = step, self._clock(), step + steps

    def _note(self, number: int, frame: object) -> None:
        self._received = True


def installed_notice(manifest: Manifest) -> TerminationNotice:
    """The notice of a run; it handles signals if the launcher sends them."""
    made = TerminationNotice(possible=manifest.warned, grace_s=manifest.launch.grace_s)
    made.listen()
    return made
