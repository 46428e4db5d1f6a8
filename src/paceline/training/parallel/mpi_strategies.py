"""Strategies that send gradients through MPI; all other communication uses gloo.

    mpi-allreduce                  Iallreduce of one flat buffer, in place
    mpi-reduce-broadcast           Ireduce of it to rank 0, Ibcast from there
    mpi-reduce-broadcast-pickled   reduce and bcast of a list of arrays, one per parameter, pickled

MPI fixes the order of summation by ranks, hosts and message size: a run is bitwise repeatable under the same MPI, and
equal on all ranks. The pickled form is that of the published programs, to measure its cost: every gradient is copied
into a message, out of it, and again in every step of the reduction.

MPI waits actively, which takes CPU time from other ranks if cores are shared. The first two strategies therefore poll:
without a pause for half a millisecond, then with short ones.
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
"""Name of COMM_WORLD in the trace."""
_SPIN_S = 0.0005
"""Longer than a message takes on one host."""
_SLEEP_S = 0.00005


class MpiStrategy(BufferedGradients):
    """Gradients in one buffer, and the communicator of all ranks."""

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer, context: ProcessContext) -> None:
        super().__init__(model, optimizer, context)
        self._world: Intracomm = mpi_session.world(context.rank, context.size)
        from mpi4py import MPI  # after mpi_session has initialised MPI

        self._in_place = MPI.IN_PLACE
        self._recorder.group(GROUP, range(context.size))
        self._arrays = [buffer.numpy() for buffer in self._gradients]  # shared memory

    @contextmanager
    def _message(self, operation: str, num_bytes: int, root: int = -1) -> Iterator[None]:
        """Record a message in the trace: the probe sees only those of torch."""
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
    """All gradients to rank 0, and their sums back."""

    def exchange(self) -> None:
        with self._recorder.span("communicate"):
            for array in self._arrays:
                with self._message("mpi_reduce", array.nbytes, root=0):
                    _poll(self._world.Ireduce(self._in_place if self._context.rank == 0 else array, array, root=0))
                with self._message("mpi_bcast", array.nbytes, root=0):
                    _poll(self._world.Ibcast(array, root=0))


class MpiReduceBroadcastPickled(MpiStrategy):
    """Reduce and broadcast of Python objects, as in the published programs."""

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer, context: ProcessContext) -> None:
        super().__init__(model, optimizer, context)
        self._parts = [p.grad.numpy() for p in model.parameters() if p.grad is not None]
        # Constant over all steps.
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
    spin_until = time.monotonic() + _SPIN_S
    while not request.Test():
        if time.monotonic() > spin_until:
            time.sleep(_SLEEP_S)


def _elementwise_sum(left: list[np.ndarray], right: list[np.ndarray]) -> list[np.ndarray]:
    return [a + b for a, b in zip(left, right, strict=True)]
