"""How the parameters of a model are divided over servers, and what of the optimizer belongs to each part.

    line      all trainable parameters end to end, each in the order of its memory:  [ conv.weight │ conv.bias │ … ]
    shards    the line cut into one part per server, equal to within one number:      [ server 0     │ server 1    ]

A large tensor may lie on two servers. The optimizers that servers take work number by number, so that a part of the
line with its own state steps as it would have in the whole; those of whole layers are refused beforehand.
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
    """The part of each server in a line of `count` numbers."""
    return tuple(slice(*share(count, server, servers)) for server in range(servers))


class FlatParameters:
    """The trainable parameters of a model as one line of numbers."""

    def __init__(self, model: nn.Module) -> None:
        self.parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        types = {parameter.dtype for parameter in self.parameters}
        if len(types) > 1:
            raise ModelError(
                f"The model has parameters of several types: {', '.join(sorted(map(str, types)))}.",
                right="A server holds its part of all parameters as one line of numbers of one type.",
                next="Give all parameters one type, or use `--set run.strategy=flat`.",
            )
        self.dtype = types.pop()
        self.count = sum(parameter.numel() for parameter in self.parameters)

    def views(self, line: torch.Tensor) -> list[torch.Tensor]:
        """Each parameter's place in a line, in the parameter's shape and layout."""
        found, start = [], 0
        for parameter in self.parameters:
            found.append(line.as_strided(parameter.shape, parameter.stride(), start))
            start += parameter.numel()
        return found


@dataclass(frozen=True, slots=True)
class Slots:
    """What an optimizer keeps: numbers for each parameter's number, and numbers that count for all of them."""

    each: tuple[str, ...]
    """exp_avg, momentum_buffer, ...: as long as the part of the line."""
    common: Mapping[str, torch.dtype]
    """step: a single number, with the type that the optimizer gives it."""

    def length(self, count: int) -> int:
        """Numbers in the state for `count` parameters: one message."""
        return len(self.common) + len(self.each) * count

    def places(self, message: torch.Tensor) -> tuple[torch.Tensor, list[torch.Tensor]]:
        """Where in a message the common numbers stand, and the line of each slot."""
        common, lines = message[: len(self.common)], message[len(self.common) :]
        return common, list(lines.view(len(self.each), -1)) if self.each else []


def slots(settings: TrainSettings, dtype: torch.dtype) -> Slots:
    """What the optimizer of these settings keeps, seen on a twin that took one step with one parameter."""
    parameter = nn.Parameter(torch.zeros(1, dtype=dtype))
    parameter.grad = torch.zeros(1, dtype=dtype)
    twin = build_optimizer(settings, [parameter])
    twin.step()
    state = {name: value for name, value in twin.state[parameter].items() if isinstance(value, torch.Tensor)}
    return Slots(
        each=tuple(sorted(name for name, value in state.items() if value.dim())),
        common={name: value.dtype for name, value in sorted(state.items()) if not value.dim()},
    )
