"""`local-sgd`: every rank steps with its own gradients; parameters are averaged every K steps.

    step 1 … K-1      no communication: ranks diverge
    step K, settle    parameters, optimizer state and float buffers become their mean over ranks: one all-reduce

A rank's gradient is the sum over its samples, times ranks, divided by the samples of all ranks: for even shares, the
mean over its own batch. With uneven shares, a larger share takes a longer step and a rank without samples takes none:
the mean over ranks is always the gradient of the whole batch. With K = 1 and plain SGD this is synchronous training.

Steps are counted from the last average, and `settle` averages too. A resumed run is therefore bitwise equal to one
without interruption, and the checkpoint interval changes the result.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.distributed as dist
from torch import nn

from paceline.layout import DATA
from paceline.training.parallel.strategy import BufferedGradients, ProcessContext


class LocalSgd(BufferedGradients):
    """Weights are equal on all ranks after every K-th step and after `settle`, and not in between.

    Gradients are buffers and never None: every rank's optimizer then has the same state to average.
    """

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer, context: ProcessContext) -> None:
        super().__init__(model, optimizer, context)
        self.loss_factor = float(context.point.data_size)
        self._average_every = context.point.options["average_every"]
        self._local_steps = 0

    def restored(self) -> None:
        self._local_steps = 0

    def before_forward(self) -> None:
        """Buffers differ between ranks until the next average."""

    def exchange(self) -> None:
        """Gradients are not exchanged."""

    def update(self) -> None:
        self._optimizer.step()
        self._local_steps += 1
        if self._local_steps == self._average_every:
            self._average()

    def settle(self) -> None:
        # The mean of equal floats may differ in the last bit: equal ranks are not averaged.
        if self._local_steps:
            self._average()

    @torch.no_grad()
    def _average(self) -> None:
        """Make all ranks equal: floats become their mean, integers those of rank 0."""
        by_type: dict[torch.dtype, list[torch.Tensor]] = {}
        for tensor in self._diverging():
            by_type.setdefault(tensor.dtype, []).append(tensor)
        with self._recorder.span("communicate"):
            for tensors in by_type.values():
                self._mean(tensors)
            self._copy_from_first(buffer for buffer in self._buffers if not buffer.is_floating_point())
        self._local_steps = 0

    def _diverging(self) -> Iterator[torch.Tensor]:
        yield from self._model.parameters()
        yield from (buffer for buffer in self._buffers if buffer.is_floating_point())
        for group in self._optimizer.param_groups:
            for parameter in group["params"]:
                state = self._optimizer.state.get(parameter, {})
                # A scalar counts steps: equal on all ranks.
                yield from (
                    value for _, value in sorted(state.items()) if isinstance(value, torch.Tensor) and value.dim()
                )

    def _mean(self, tensors: list[torch.Tensor]) -> None:
        """Replace tensors of one type by their mean along the data axis, in one message."""
        message = torch.cat([tensor.detach().reshape(-1) for tensor in tensors])
        dist.all_reduce(message, group=self._context.group(DATA))
        message /= self._context.point.data_size
        for tensor, mean in zip(tensors, message.split([tensor.numel() for tensor in tensors]), strict=True):
            tensor.copy_(mean.view(tensor.shape))
