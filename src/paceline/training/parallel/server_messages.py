"""Messages between ranks, servers and coordinator: flat buffers on the CPU, through gloo.

The first number of a message is the request; a request without data may be shorter than the receive buffer. There is
no time limit: an epoch may take hours, and a failed peer closes its connection. The launcher detects hangs.
"""

from __future__ import annotations

from datetime import timedelta
from enum import IntEnum

import torch
import torch.distributed as dist

_TIMEOUT = timedelta(days=100)

NUMBER_TYPES = (torch.float32, torch.float64, torch.int64)
"""Types in messages, by index."""


class ServerRequest(IntEnum):
    """First number of a message to a server."""

    STEP = 1
    """Learning rate and gradients of one step follow; answered with parameters."""
    PULL = 2
    """Answered with the current parameters."""
    STATE = 3
    """Answered with the optimizer state."""
    LOAD = 4
    """Parameters and optimizer state follow; answered when loaded."""
    STOP = 5
    """The rank is done; no answer."""


class CoordinatorRequest(IntEnum):
    """First number of a message to the coordinator; equal on all ranks."""

    BARRIER = 1
    SUM = 2
    GATHER = 3
    BROADCAST = 4
    STOP = 5


def head_length(dtype: torch.dtype) -> int:
    """Numbers of this type before the gradients of a STEP: request and learning rate."""
    return 1 + torch.float64.itemsize // dtype.itemsize


def write_rate(message: torch.Tensor, rate: float) -> None:
    """Write a learning rate into the head of a message: a float64, bit for bit, for any message type."""
    message[1 : head_length(message.dtype)] = torch.tensor([rate], dtype=torch.float64).view(message.dtype)


def read_rate(message: torch.Tensor) -> float:
    """Learning rate in the head of a message."""
    return message[1 : head_length(message.dtype)].clone().view(torch.float64).item()


def sending(message: torch.Tensor, process: int) -> dist.Work:
    """Started send; the buffer must not change before `await_all`."""
    work = dist.isend(message, process)
    assert work is not None, "every process is a member of the group"
    return work


def receiving(message: torch.Tensor, process: int) -> dist.Work:
    """Started receive; the buffer is valid after `await_all`."""
    work = dist.irecv(message, process)
    assert work is not None, "every process is a member of the group"
    return work


def await_all(*works: dist.Work) -> None:
    """Wait for messages; RuntimeError if a peer has failed."""
    for work in works:
        work.wait(_TIMEOUT)


def send(message: torch.Tensor, process: int) -> None:
    """Send a message; its buffer may change afterwards."""
    await_all(sending(message, process))


def receive(message: torch.Tensor, process: int) -> None:
    """Receive a message into a buffer of at least its length."""
    await_all(receiving(message, process))
