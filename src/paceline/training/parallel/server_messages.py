"""Messages between the processes of a run that has servers: flat buffers on the CPU, through gloo.

A message that begins with a number says by it what is asked for; one that is only a number may be shorter than the
buffer it is received into. Nobody waits here with a time limit: an hour-long epoch is no failure, and a peer that is
gone breaks its connection. That nothing moves at all is for the launcher to notice.
"""

from __future__ import annotations

from datetime import timedelta
from enum import IntEnum

import torch
import torch.distributed as dist

_TIMEOUT = timedelta(days=100)

NUMBER_TYPES = (torch.float32, torch.float64, torch.int64)
"""Types of numbers that can be named in a message: by their place here."""


class ServerRequest(IntEnum):
    """The first number of a message to a server."""

    STEP = 1
    """Here are the learning rate and my gradients of one step; answer with the parameters."""
    PULL = 2
    """Answer with the parameters as they are."""
    STATE = 3
    """Answer with the optimizer's state."""
    LOAD = 4
    """Parameters and the optimizer's state follow; answer when they are in place."""
    STOP = 5
    """I am done; no answer."""


class CoordinatorRequest(IntEnum):
    """The first number of a message to the coordinator; the same from every rank."""

    BARRIER = 1
    SUM = 2
    GATHER = 3
    BROADCAST = 4
    STOP = 5


def head_length(dtype: torch.dtype) -> int:
    """Numbers of this type before the gradients of a STEP: what is asked for, and the learning rate."""
    return 1 + torch.float64.itemsize // dtype.itemsize


def write_rate(message: torch.Tensor, rate: float) -> None:
    """Put a learning rate into the head of a message: a float64, bit for bit, whatever type the message has."""
    message[1 : head_length(message.dtype)] = torch.tensor([rate], dtype=torch.float64).view(message.dtype)


def read_rate(message: torch.Tensor) -> float:
    """The learning rate in the head of a message."""
    return message[1 : head_length(message.dtype)].clone().view(torch.float64).item()


def sending(message: torch.Tensor, process: int) -> dist.Work:
    """A message on its way; it must not change before `await_all`."""
    work = dist.isend(message, process)
    assert work is not None, "every process is a member of the group"
    return work


def receiving(message: torch.Tensor, process: int) -> dist.Work:
    """A message that will have arrived after `await_all`."""
    work = dist.irecv(message, process)
    assert work is not None, "every process is a member of the group"
    return work


def await_all(*works: dist.Work) -> None:
    """Wait for messages; RuntimeError where a peer is gone."""
    for work in works:
        work.wait(_TIMEOUT)


def send(message: torch.Tensor, process: int) -> None:
    """Send a message; it may change when this returns."""
    await_all(sending(message, process))


def receive(message: torch.Tensor, process: int) -> None:
    """Receive a message into a buffer that is at least as long."""
    await_all(receiving(message, process))
