"""`parameter-server`, `parameter-server-async`: servers own the parameters and step them, ranks compute gradients.

    rank ── rate, gradients of one shard ───▶ server ── sum, optimizer ── parameters of the shard ──▶ rank
      └──── everything else that ranks agree on: coordinator.py

A rank sends one message to every server in a step and receives one; ranks send none to each other. In synchronous mode
all ranks receive equal parameters after every step. In asynchronous mode a rank continues with the current parameters
once its gradients are applied, and waits only if it is too far ahead of the slowest rank (server.py); ranks are equal
after `settle`.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from paceline.errors import ModelError
from paceline.training.parallel.coordinator import CoordinatorPeers
from paceline.training.parallel.server import AsynchronousServer, Server, SynchronousServer
from paceline.training.parallel.server_messages import (
    NUMBER_TYPES,
    ServerRequest,
    await_all,
    head_length,
    receive,
    receiving,
    send,
    sending,
    write_rate,
)
from paceline.training.parallel.shards import FlatParameters, shards, slots
from paceline.training.parallel.strategy import Peers, ProcessContext, Synchronous, gradient_buffers


class ParameterServer(Synchronous):
    """The rank's side, synchronous."""

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer, context: ProcessContext) -> None:
        super().__init__(model, optimizer, context)
        point = context.point
        self._coordinated = CoordinatorPeers(context)
        self.peers: Peers = self._coordinated
        self.everyone: Peers = self._coordinated
        self._line = FlatParameters(model)
        if self._line.count < point.servers:
            raise ModelError(
                f"The model has {self._line.count} trainable parameters for {point.servers} servers.",
                right="Every server needs at least one.",
                next=f"Ask for at most {self._line.count} servers with run.servers.",
            )
        self._slots = slots(point.train, self._line.dtype)
        self._servers = dict(
            zip(range(context.size, context.size + point.servers), shards(self._line.count, point.servers), strict=True)
        )
        (self._gradients,) = gradient_buffers(model)
        # Always on the CPU. The first number of a message is the request.
        self._head = head_length(self._line.dtype)
        self._outboxes = {
            server: self._new(self._head + part.stop - part.start) for server, part in self._servers.items()
        }
        self._inbox = self._new(self._line.count)
        self._begin()

    def before_forward(self) -> None:
        """Copy the buffers of rank 0, through the coordinator."""
        self._copy_from_rank_0(self._buffers)

    def exchange(self) -> None:
        """Send learning rate and gradients, receive parameters."""
        with self._recorder.span("communicate"):
            sent = []
            for server, part in self._servers.items():
                outbox = self._outboxes[server]
                outbox[0] = ServerRequest.STEP
                write_rate(outbox, self._optimizer.param_groups[0]["lr"])
                outbox[self._head :].copy_(self._gradients[part])
                sent.append(sending(outbox, server))
            self._receive_parameters()
            await_all(*sent)

    def update(self) -> None:
        """Copy the parameters that the servers have stepped into the model."""
        self._load_parameters()

    def clear(self) -> None:
        self._gradients.zero_()

    def settle(self) -> None:
        """Parameters are always equal; buffers and the optimizer of rank 0 are updated."""
        self._copy_from_rank_0(self._buffers)
        self._fetch_state()

    def restored(self) -> None:
        """Rank 0 sends the restored state to the servers, and waits until it is loaded."""
        if self._context.rank:
            return
        with self._recorder.span("communicate"), torch.no_grad():
            for parameter, place in zip(self._line.parameters, self._line.views(self._inbox), strict=True):
                place.copy_(parameter)
            for (server, part), state in zip(self._servers.items(), self._states_of_optimizer(), strict=True):
                self._ask(server, ServerRequest.LOAD)
                send(self._inbox[part], server)
                if len(state):
                    send(state, server)
                receive(self._new(1), server)

    def leave(self) -> None:
        """Tell servers and coordinator that this rank is done: they end when all ranks are."""
        for server in self._servers:
            self._ask(server, ServerRequest.STOP)
        self._coordinated.leave()

    def _begin(self) -> None:
        """Send the parameters of rank 0 to the servers, and copy its parameters and buffers to all ranks."""
        with self._recorder.span("communicate"), torch.no_grad():
            if self._context.rank == 0:
                for parameter, place in zip(self._line.parameters, self._line.views(self._inbox), strict=True):
                    place.copy_(parameter)
                for server, part in self._servers.items():
                    size, number_type = part.stop - part.start, NUMBER_TYPES.index(self._line.dtype)
                    send(torch.tensor([size, number_type]), server)
                    send(self._inbox[part], server)
            else:
                self._receive_parameters()
                self._load_parameters()
        frozen = [parameter for parameter in self._model.parameters() if not parameter.requires_grad]
        self._copy_from_rank_0([*frozen, *self._buffers])

    def _receive_parameters(self) -> None:
        await_all(*(receiving(self._inbox[part], server) for server, part in self._servers.items()))

    @torch.no_grad()
    def _load_parameters(self) -> None:
        for parameter, place in zip(self._line.parameters, self._line.views(self._inbox), strict=True):
            parameter.copy_(place)

    @torch.no_grad()
    def _copy_from_rank_0(self, tensors: Sequence[torch.Tensor]) -> None:
        """Copy tensors of any type from rank 0, in one message."""
        if not sum(tensor.numel() for tensor in tensors):
            return
        flat = [tensor.detach().cpu().contiguous().view(-1).view(torch.uint8) for tensor in tensors]
        message = torch.cat(flat)
        self.peers.broadcast(message)
        if self._context.rank:
            for tensor, own in zip(tensors, message.split([len(part) for part in flat]), strict=True):
                tensor.copy_(own.clone().view(tensor.dtype).view(tensor.shape))

    def _fetch_state(self) -> None:
        """Copy the optimizer state from the servers to the optimizer of rank 0."""
        if self._context.rank or not self._slots.length(1):
            return
        sizes = [part.stop - part.start for part in self._servers.values()]
        states = [self._new(self._slots.length(size)) for size in sizes]
        with self._recorder.span("communicate"):
            for server in self._servers:
                self._ask(server, ServerRequest.STATE)
            await_all(*(receiving(state, server) for server, state in zip(self._servers, states, strict=True)))
        common, _ = self._slots.places(states[0])
        # A fused optimizer counts steps on the device of its parameters, any other on the CPU.
        fused = bool(self._optimizer.defaults.get("fused"))
        for parameter in self._line.parameters:
            for value, (name, dtype) in zip(common.tolist(), self._slots.common.items(), strict=True):
                device = parameter.device if fused else "cpu"
                self._optimizer.state[parameter][name] = torch.tensor(value, dtype=dtype, device=device)
        for index, name in enumerate(self._slots.each):
            line = torch.cat([self._slots.places(state)[1][index] for state in states])
            for parameter, place in zip(self._line.parameters, self._line.views(line), strict=True):
                self._optimizer.state[parameter][name] = torch.empty_like(parameter).copy_(place).detach()

    def _states_of_optimizer(self) -> list[torch.Tensor]:
        """Optimizer state of rank 0 as one message per server."""
        state = self._optimizer.state
        lines = []
        for name in self._slots.each:
            lines.append(self._new(self._line.count))
            for parameter, place in zip(self._line.parameters, self._line.views(lines[-1]), strict=True):
                place.copy_(state[parameter][name])
        messages = []
        for part in self._servers.values():
            message = self._new(self._slots.length(part.stop - part.start))
            common, places = self._slots.places(message)
            for index, name in enumerate(self._slots.common):
                common[index] = state[self._line.parameters[0]][name].item()
            for place, line in zip(places, lines, strict=True):
                place.copy_(line[part])
            messages.append(message)
        return messages

    def _ask(self, server: int, ask: ServerRequest) -> None:
        send(torch.tensor([float(ask)], dtype=self._line.dtype), server)

    def _new(self, length: int) -> torch.Tensor:
        return torch.zeros(length, dtype=self._line.dtype)


class ParameterServerAsync(ParameterServer):
    """The rank's side, asynchronous up to the bound on staleness."""

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer, context: ProcessContext) -> None:
        super().__init__(model, optimizer, context)
        # Servers divide the learning rate by the ranks: see server.py.
        self.loss_factor = float(context.size)

    def before_forward(self) -> None:
        """Buffers differ between ranks until `settle`: copying them would make ranks wait for rank 0."""

    def settle(self) -> None:
        """Wait for all gradients, pull equal parameters, and continue when all ranks have them."""
        self.peers.barrier()
        with self._recorder.span("communicate"):
            for server in self._servers:
                self._ask(server, ServerRequest.PULL)
            self._receive_parameters()
        self._load_parameters()
        super().settle()
        self.peers.barrier()


def server_of(context: ProcessContext) -> Server:
    """Server of a run's strategy."""
    return AsynchronousServer(context) if "staleness" in context.point.options else SynchronousServer(context)
