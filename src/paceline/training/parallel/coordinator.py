"""The coordinator: ranks of a run with servers agree through it.

    rank 0 ──▶ ┌─────────────┐        [request, bytes, type] and data, from every rank;
    rank 1 ──▶ │ coordinator │        then the answer, to every rank that needs one
    rank 2 ──▶ └─────────────┘

Sums are taken in the order of ranks, so they are repeatable. Gradients never pass through it.
"""

from __future__ import annotations

import torch

from paceline.probe.recorder import Recorder
from paceline.training.parallel.server_messages import (
    NUMBER_TYPES,
    CoordinatorRequest,
    await_all,
    receive,
    receiving,
    send,
    sending,
)
from paceline.training.parallel.strategy import ProcessContext

_HEADER = 3


class CoordinatorPeers:
    """The `Peers` of a rank, through the coordinator."""

    def __init__(self, context: ProcessContext) -> None:
        self._context = context
        self._recorder = context.recorder
        self._coordinator = context.point.processes - 1

    def sum(self, tensor: torch.Tensor) -> None:
        numbers = tensor.detach().reshape(-1).cpu()
        assert numbers.dtype in NUMBER_TYPES
        with self._recorder.span("communicate"):
            self._ask(CoordinatorRequest.SUM, _bytes(numbers), NUMBER_TYPES.index(numbers.dtype))
            receive(_bytes(numbers), self._coordinator)
        tensor.copy_(numbers.view(tensor.shape))

    def gather(self, tensor: torch.Tensor) -> torch.Tensor:
        own = tensor.detach().cpu().contiguous()
        rows = torch.zeros((self._context.size, *tensor.shape), dtype=tensor.dtype)
        with self._recorder.span("communicate"):
            self._ask(CoordinatorRequest.GATHER, _bytes(own))
            if self._context.rank == 0:
                receive(_bytes(rows), self._coordinator)
        return rows.to(tensor.device)

    def broadcast(self, tensor: torch.Tensor) -> None:
        values = tensor.detach().cpu().contiguous()
        with self._recorder.span("communicate"):
            if self._context.rank == 0:
                self._ask(CoordinatorRequest.BROADCAST, _bytes(values))
                return
            self._ask(CoordinatorRequest.BROADCAST)
            receive(_bytes(values), self._coordinator)
        tensor.copy_(values)

    def barrier(self) -> None:
        with self._recorder.span("communicate"):
            self._ask(CoordinatorRequest.BARRIER)
            receive(torch.zeros(1, dtype=torch.uint8), self._coordinator)

    def leave(self) -> None:
        """Send the last request."""
        self._ask(CoordinatorRequest.STOP)

    def _ask(self, what: CoordinatorRequest, own: torch.Tensor | None = None, number_type: int = 0) -> None:
        length = 0 if own is None else len(own)
        send(torch.tensor([what, length, number_type]), self._coordinator)
        if own is not None:
            send(own, self._coordinator)


class Coordinator:
    """The coordinator's side: answers until all ranks are done."""

    def __init__(self, context: ProcessContext) -> None:
        self._ranks = range(context.size)
        self._recorder: Recorder = context.recorder
        self.answered = 0

    def serve(self) -> None:
        """Answer collective requests of all ranks, one after the other."""
        self._recorder.begin_steps(0, 0)
        headers = [torch.zeros(_HEADER, dtype=torch.int64) for _ in self._ranks]
        while True:
            with self._recorder.span("communicate"):
                await_all(*(receiving(header, rank) for rank, header in zip(self._ranks, headers, strict=True)))
                what = CoordinatorRequest(int(headers[0][0]))
                assert all(header[0] == what for header in headers), "all ranks make the same request"
                if what == CoordinatorRequest.STOP:
                    return
                self._answer_all(what, int(headers[0][1]), NUMBER_TYPES[int(headers[0][2])])
            self.answered += 1
            self._recorder.end_step(self.answered)

    def _answer_all(self, what: CoordinatorRequest, length: int, number_type: torch.dtype) -> None:
        """Receive the data of a collective request, and answer."""
        if what == CoordinatorRequest.BARRIER:
            self._answer(torch.zeros(1, dtype=torch.uint8), self._ranks)
        elif what == CoordinatorRequest.BROADCAST:
            values = torch.zeros(length, dtype=torch.uint8)
            receive(values, 0)
            self._answer(values, self._ranks[1:])
        else:
            rows = torch.zeros(len(self._ranks), length, dtype=torch.uint8)
            await_all(*(receiving(row, rank) for rank, row in zip(self._ranks, rows, strict=True)))
            if what == CoordinatorRequest.GATHER:
                self._answer(rows.view(-1), self._ranks[:1])
                return
            numbers = rows.view(number_type)
            for row in numbers[1:]:
                numbers[0] += row
            self._answer(rows[0], self._ranks)

    def _answer(self, message: torch.Tensor, ranks: range) -> None:
        await_all(*(sending(message, rank) for rank in ranks))


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    """Memory of a contiguous tensor as bytes."""
    return tensor.view(-1).view(torch.uint8)
