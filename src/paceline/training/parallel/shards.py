"""How the parameters of a model are divided over servers, with their optimizer state.

    flat      all trainable parameters in sequence, each in memory order:     [ conv.weight │ conv.bias │ … ]
    shards    one slice per server, sizes differ by at most one number:       [ server 0     │ server 1    ]

A large tensor may be divided over two servers. Servers accept only elementwise optimizers: a slice with its own state
steps as it would in the whole. Optimizers that need whole layers are refused before the run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import nn

from paceline.errors import ModelError
from paceline.records.settings import TrainSettings
from paceline.training.batches import share
from paceline.training.optim.build_optimizer import build_optimizer


def shards(count: int, servers: int) -> tuple[slice, ...]:
    """Slice of each server in `count` numbers."""
    return tuple(slice(*share(count, server, servers)) for server in range(servers))


class FlatParameters:
    """Trainable parameters of a model as one flat sequence."""

    def __init__(self, model: nn.Module) -> None:
        self.parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        types = {parameter.dtype for parameter in self.parameters}
        if len(types) > 1:
            raise ModelError(
                f"The model has parameters of several types: {', '.join(sorted(map(str, types)))}.",
                right="A server stores its shard as one array of one type.",
                next="Give all parameters one type, or use `--set run.strategy=flat`.",
            )
        self.dtype = types.pop()
        self.count = sum(parameter.numel() for parameter in self.parameters)

    def views(self, line: torch.Tensor) -> list[torch.Tensor]:
        """View of each parameter in a flat tensor, in its shape and strides."""
        found, start = [], 0
        for parameter in self.parameters:
            found.append(line.as_strided(parameter.shape, parameter.stride(), start))
            start += parameter.numel()
        return found


@dataclass(frozen=True, slots=True)
class Slots:
    """State of an optimizer: values per parameter number, and common values."""

    each: tuple[str, ...]
    """exp_avg, momentum_buffer, ...: as long as the shard."""
    common: Mapping[str, torch.dtype]
    """step: a single number, with its type."""

    def length(self, count: int) -> int:
        """Numbers in the state of `count` parameters: one message."""
        return len(self.common) + len(self.each) * count

    def places(self, message: torch.Tensor) -> tuple[torch.Tensor, list[torch.Tensor]]:
        """Views of the common numbers in a message, and of each slot."""
        common, lines = message[: len(self.common)], message[len(self.common) :]
        return common, list(lines.view(len(self.each), -1)) if self.each else []


def slots(settings: TrainSettings, dtype: torch.dtype) -> Slots:
    """State that the optimizer of these settings has, read from a copy that took one step with one parameter."""
    parameter = nn.Parameter(torch.zeros(1, dtype=dtype))
    parameter.grad = torch.zeros(1, dtype=dtype)
    probe = build_optimizer(settings, [parameter])
    probe.step()
    state = {name: value for name, value in probe.state[parameter].items() if isinstance(value, torch.Tensor)}
    return Slots(
        each=tuple(sorted(name for name, value in state.items() if value.dim())),
        common={name: value.dtype for name, value in sorted(state.items()) if not value.dim()},
    )
