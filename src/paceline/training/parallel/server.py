"""A server: owns one shard of the parameters with its optimizer state, and takes the optimizer steps.

    synchronous     gradients of all ranks ── summed in the order of ranks ──▶ one step ──▶ parameters to all
    asynchronous    gradients of one rank ──▶ one step ──▶ parameters to that rank, unless it is too far ahead

In asynchronous mode, `ranks` gradients correspond to one synchronous step: each is applied with the learning rate
divided by `ranks`, and a rank scales its loss by `ranks`. Plain SGD then moves as far as with their sum, for any shares
of samples; weight decay and optimizers that normalise gradients (Adam) keep their scale too.

The bound on staleness, for ranks 0, 1, 2 and a bound of 1:

    applied    3      5      4         gradients of each rank
                      ▲ waiting        2 ahead of the slowest: it gets parameters after the next gradient of rank 0

A rank with k applied gradients continues only when every rank has at least k - bound. Its parameters then lack at most
`bound` steps of the slowest rank; the number of missing steps is the staleness of its next gradient. With a bound of 0
ranks are synchronous. (Stale synchronous parallel: Ho et al., NIPS 2013.)

Ranks send the learning rate with the gradients.
"""

from __future__ import annotations

import queue
import threading

import torch
import torch.distributed as dist
from torch import nn

from paceline.records.settings import TrainSettings
from paceline.training.optim.build_optimizer import build_optimizer
from paceline.training.parallel.server_messages import (
    NUMBER_TYPES,
    ServerRequest,
    await_all,
    head_length,
    read_rate,
    receive,
    receiving,
    send,
    sending,
)
from paceline.training.parallel.shards import slots
from paceline.training.parallel.strategy import ProcessContext


class Shard:
    """A slice of the flat parameters, and its optimizer."""

    def __init__(self, settings: TrainSettings, values: torch.Tensor) -> None:
        self.values = values
        self._parameter = nn.Parameter(values)  # shared memory
        self._optimizer = build_optimizer(settings, [self._parameter])
        self._slots = slots(settings, values.dtype)

    def step(self, gradient: torch.Tensor, rate: float) -> None:
        """One optimizer step at this learning rate."""
        self._optimizer.param_groups[0]["lr"] = rate
        self._parameter.grad = gradient
        self._optimizer.step()
        self._parameter.grad = None

    def state(self) -> torch.Tensor:
        """Optimizer state as a message; zeros before the first step."""
        message = self.new_state()
        state = self._optimizer.state[self._parameter]
        if state:
            common, lines = self._slots.places(message)
            for index, name in enumerate(self._slots.common):
                common[index] = state[name].item()
            for name, line in zip(self._slots.each, lines, strict=True):
                line.copy_(state[name])
        return message

    def load(self, state_message: torch.Tensor) -> None:
        """Load the optimizer state from a message of `state`."""
        common, lines = self._slots.places(state_message)
        state = self._optimizer.state[self._parameter]
        for value, (name, dtype) in zip(common.tolist(), self._slots.common.items(), strict=True):
            state[name] = torch.tensor(value, dtype=dtype)
        for name, line in zip(self._slots.each, lines, strict=True):
            state[name] = line.clone()

    def new_state(self) -> torch.Tensor:
        """Empty message for the optimizer state."""
        return torch.zeros(self._slots.length(len(self.values)), dtype=self.values.dtype)


class Server:
    """Base of both kinds: the shard, a receive buffer for each rank, and requests of rank 0."""

    def __init__(self, context: ProcessContext) -> None:
        self._context = context
        self._recorder = context.recorder
        self._ranks = range(context.size)
        self.steps = 0
        self.staleness: tuple[int, ...] = ()
        """How many gradients were stale by 0, 1, 2, ... steps; empty where none can be."""
        with self._recorder.span("communicate"):
            size, number_type = self._hello()
            values = torch.zeros(size, dtype=NUMBER_TYPES[number_type])
            receive(values, 0)
            await_all(*(sending(values, rank) for rank in self._ranks[1:]))
        self.shard = Shard(context.point.train, values)
        self._head = head_length(values.dtype)
        # The first number is the request.
        self._inboxes = [torch.zeros(self._head + size, dtype=values.dtype) for _ in self._ranks]

    def serve(self) -> None:
        """Answer until all ranks are done."""
        raise NotImplementedError

    def _hello(self) -> tuple[int, int]:
        """Number of parameters of this shard, and index of their type."""
        message = torch.zeros(2, dtype=torch.int64)
        receive(message, 0)
        size, number_type = message.tolist()
        return size, number_type

    def _asked(self, rank: int) -> ServerRequest:
        return ServerRequest(int(self._inboxes[rank][0]))

    def _gradient(self, rank: int) -> torch.Tensor:
        return self._inboxes[rank][self._head :]

    def _rate(self, rank: int) -> float:
        return read_rate(self._inboxes[rank])

    def _serve_rank_0(self, ask: ServerRequest) -> None:
        """Answer requests that only rank 0 makes, between two steps."""
        with self._recorder.span("communicate"):
            if ask == ServerRequest.STATE:
                send(self.shard.state(), 0)
            elif ask == ServerRequest.LOAD:
                receive(self.shard.values, 0)
                state = self.shard.new_state()
                if len(state):
                    receive(state, 0)
                self.shard.load(state)
                send(torch.zeros(1, dtype=self.shard.values.dtype), 0)


class SynchronousServer(Server):
    """Waits for all ranks before each step."""

    def serve(self) -> None:
        self._recorder.begin_steps(0, 0)
        total = torch.zeros_like(self.shard.values)
        arriving = [self._expected(rank) for rank in self._ranks]
        while True:
            total.zero_()
            running, rate = 0, 0.0
            for rank in self._ranks:
                if self._next(rank, arriving) == ServerRequest.STOP:
                    continue
                running += 1
                rate = self._rate(rank)  # equal for all
                with self._recorder.span("optimizer"):
                    total += self._gradient(rank)
                arriving[rank] = self._expected(rank)
            if not running:
                return
            assert running == len(self._ranks), "ranks stop after the same step"
            with self._recorder.span("optimizer"):
                self.shard.step(total, rate)
            with self._recorder.span("communicate"):
                await_all(*(sending(self.shard.values, rank) for rank in self._ranks))
            self.steps += 1
            self._recorder.end_step(self.steps)

    def _expected(self, rank: int) -> dist.Work:
        return receiving(self._inboxes[rank], rank)

    def _next(self, rank: int, arriving: list[dist.Work]) -> ServerRequest:
        """Next STEP or STOP request of a rank; other requests are answered."""
        while True:
            with self._recorder.span("communicate"):
                await_all(arriving[rank])
            ask = self._asked(rank)
            if ask in (ServerRequest.STEP, ServerRequest.STOP):
                return ask
            self._serve_rank_0(ask)
            arriving[rank] = self._expected(rank)


class AsynchronousServer(Server):
    """Steps with every gradient that arrives; ranks that are too far ahead wait."""

    def __init__(self, context: ProcessContext) -> None:
        super().__init__(context)
        self._pacing = StalenessBound(context.size, context.point.options["staleness"])
        self._outboxes = [torch.zeros_like(self.shard.values) for _ in self._ranks]
        self._sending: list[dist.Work | None] = [None] * context.size

    def serve(self) -> None:
        self._recorder.begin_steps(0, 0)
        arrivals = Arrivals(len(self._ranks))
        for rank in self._ranks:
            arrivals.expect(rank, receiving(self._inboxes[rank], rank))
        running = len(self._ranks)
        while running:
            with self._recorder.span("communicate"):
                rank = arrivals.next()
            ask = self._asked(rank)
            if ask == ServerRequest.STOP:
                running -= 1
                continue
            answered: list[int] = []
            if ask == ServerRequest.STEP:
                with self._recorder.span("optimizer"):
                    self.shard.step(self._gradient(rank), self._rate(rank) / self._context.size)
                answered = self._pacing.applied(rank)
            elif ask == ServerRequest.PULL:
                self._pacing.pulled(rank)
                answered = [rank]
            else:
                self._serve_rank_0(ask)
            arrivals.expect(rank, receiving(self._inboxes[rank], rank))
            for other in answered:
                self._answer(other)
            self.steps = self._pacing.steps
            self._recorder.end_step(self.steps)
        arrivals.close()
        await_all(*(work for work in self._sending if work is not None))
        self.staleness = self._pacing.counts

    def _answer(self, rank: int) -> None:
        """Send the current parameters; does not wait until they are sent."""
        with self._recorder.span("communicate"):
            before = self._sending[rank]
            if before is not None:
                await_all(before)
            self._outboxes[rank].copy_(self.shard.values)
            self._sending[rank] = sending(self._outboxes[rank], rank)


class Arrivals:
    """Ranks whose message has arrived, in the order of arrival.

    One thread per rank waits for its message. gloo can receive from any process, but does not report a failed one then.
    """

    def __init__(self, size: int) -> None:
        self._arrived: queue.SimpleQueue[tuple[int, BaseException | None]] = queue.SimpleQueue()
        self._expected: list[queue.SimpleQueue[dist.Work | None]] = [queue.SimpleQueue() for _ in range(size)]
        for rank in range(size):
            threading.Thread(target=self._wait, args=(rank,), name=f"from-rank-{rank}", daemon=True).start()

    def expect(self, rank: int, work: dist.Work) -> None:
        """Wait for one message of a rank."""
        self._expected[rank].put(work)

    def next(self) -> int:
        """Next rank whose message has arrived; raises its error."""
        rank, error = self._arrived.get()
        if error is not None:
            raise error
        return rank

    def close(self) -> None:
        """End the threads."""
        for expected in self._expected:
            expected.put(None)

    def _wait(self, rank: int) -> None:
        while (work := self._expected[rank].get()) is not None:
            error = None
            try:
                await_all(work)
            except RuntimeError as caught:
                error = caught
            self._arrived.put((rank, error))


class StalenessBound:
    """Counts the gradients of each rank; ranks that are too far ahead wait."""

    def __init__(self, ranks: int, bound: int) -> None:
        self._bound = bound
        self._applied = [0] * ranks
        self._lacking = [0] * ranks
        self._waiting: list[int] = []
        self._counts: dict[int, int] = {}

    @property
    def steps(self) -> int:
        """Steps that every rank has taken."""
        return min(self._applied)

    @property
    def counts(self) -> tuple[int, ...]:
        """Number of gradients with a staleness of 0, 1, 2, ... steps."""
        return tuple(self._counts.get(steps, 0) for steps in range(max(self._counts, default=-1) + 1))

    def pulled(self, rank: int) -> None:
        """Note that a rank has received the current parameters."""
        self._lacking[rank] = self._applied[rank] - self.steps

    def applied(self, rank: int) -> list[int]:
        """Ranks that may continue after a gradient of `rank` was applied, in the order in which they have waited."""
        stale = self._lacking[rank]
        self._counts[stale] = self._counts.get(stale, 0) + 1
        self._applied[rank] += 1
        self._waiting.append(rank)
        released = [other for other in self._waiting if self._applied[other] - self.steps <= self._bound]
        for other in released:
            self._waiting.remove(other)
            self.pulled(other)
        return released
