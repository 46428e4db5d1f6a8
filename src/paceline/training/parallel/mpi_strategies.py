"""Strategies that send gradients through MPI; everything else ranks agree on stays with gloo.

    mpi-allreduce                  Iallreduce of one flat buffer, in place
    mpi-reduce-broadcast           Ireduce of it to rank 0, Ibcast from there
    mpi-reduce-broadcast-pickled   reduce and bcast of a list of arrays, one per parameter, pickled on the way

Sums are taken in an order that the MPI fixes by ranks, their hosts and the message's size: a run repeats its bits
under the same MPI, and every rank ends with the same ones. The pickled form is how the published programs were
written. It is here for its price to be seen: every gradient is copied into a message, out of it, and once more
at every turn of the reduction.

MPI waits by asking again and again, which keeps a core from the very rank that it waits for where cores are shared.
So the first two are started and then asked for: without a pause for half a millisecond, with short ones from then on.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn

from paceline.training import mpi_session
from paceline.training.parallel.strategy import BufferedGradients, ProcessContext

if TYPE_CHECKING:
    from mpi4py.MPI import Intracomm, Request

GROUP = "mpi"
"""What the trace calls the ranks of COMM_WORLD."""
_SPIN_S = 0.0005
"""Longer than a message takes on one host: ranks that arrive together lose no time."""
_SLEEP_S = 0.00005


class MpiStrategy(BufferedGradients):
    """Gradients in one buffer, and a communicator."""

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer, context: ProcessContext) -> None:
        super().__init__(model, optimizer, context)
        self._world: Intracomm = mpi_session.world(context.rank, context.size)
        from mpi4py import MPI  # not before MPI was started as this rank wants it

        self._in_place = MPI.IN_PLACE
        self._recorder.group(GROUP, range(context.size))
        self._arrays = [buffer.numpy() for buffer in self._gradients]  # the same memory

    @contextmanager
    def _message(self, operation: str, num_bytes: int, root: int = -1) -> Iterator[None]:
        """Put a message into the trace: the probe sees those of torch alone."""
        number = self._recorder.message(operation, num_bytes, GROUP, peer=root, dtype=str(self._arrays[0].dtype))
        yield
        self._recorder.completed(number)


class MpiAllreduce(MpiStrategy):
    """One Allreduce of all gradients."""

    def exchange(self) -> None:
        with self._recorder.span("communicate"):
            for array in self._arrays:
                with self._message("mpi_allreduce", array.nbytes):
                    _poll(self._world.Iallreduce(self._in_place, array))


class MpiReduceBroadcast(MpiStrategy):
    """All gradients to rank 0, and their sums back from it."""

    def exchange(self) -> None:
        with self._recorder.span("communicate"):
            for array in self._arrays:
                with self._message("mpi_reduce", array.nbytes, root=0):
                    _poll(self._world.Ireduce(self._in_place if self._context.rank == 0 else array, array, root=0))
                with self._message("mpi_bcast", array.nbytes, root=0):
                    _poll(self._world.Ibcast(array, root=0))


class MpiReduceBroadcastPickled(MpiStrategy):
    """The same with Python objects, as the published programs do it."""

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer, context: ProcessContext) -> None:
        super().__init__(model, optimizer, context)
        self._parts = [p.grad.numpy() for p in model.parameters() if p.grad is not None]
        # Measured once: the message is as long in every step.
        self._message_bytes = len(pickle.dumps(self._parts, protocol=pickle.HIGHEST_PROTOCOL))

    def exchange(self) -> None:
        with self._recorder.span("communicate"):
            with self._message("mpi_reduce_pickled", self._message_bytes, root=0):
                sums = self._world.reduce(self._parts, op=_elementwise_sum, root=0)
            with self._message("mpi_bcast_pickled", self._message_bytes, root=0):
                sums = self._world.bcast(sums, root=0)
            assert sums is not None
            for own, summed in zip(self._parts, sums, strict=True):
                own[...] = summed


def _poll(request: Request) -> None:
    patient_at = time.monotonic() + _SPIN_S
    while not request.Test():
        if time.monotonic() > patient_at:
            time.sleep(_SLEEP_S)


def _elementwise_sum(left: list[np.ndarray], right: list[np.ndarray]) -> list[np.ndarray]:
    return [a + b for a, b in zip(left, right, strict=True)]
