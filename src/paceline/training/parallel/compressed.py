"""`ddp-fp16` and `ddp-powersgd`: DDP with compressed gradients. Lossy.

    ddp-fp16       every gradient as a 16-bit float: half the bytes of float32
    ddp-powersgd   a gradient of n × m as the product of n × r and r × m: r · (n + m) numbers instead of n · m, if that
                   is less than half; all other gradients uncompressed

PowerSGD adds the error of one step to the next (error feedback). This residual differs between ranks and is in no
checkpoint. A run with checkpoints therefore resets it at every possible checkpoint: a resumed run is then bitwise equal
to one without interruption.
"""

# Annotations are not put off here: DDP compares those of a hook with the types themselves.
from collections.abc import Callable

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook
from torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import PowerSGDState, powerSGD_hook

from paceline.training.parallel.ddp import Ddp
from paceline.training.parallel.strategy import ProcessContext


class DdpFp16(Ddp):
    """Gradients in 16 bits."""

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer, context: ProcessContext) -> None:
        super().__init__(model, optimizer, context)
        self._ddp.register_comm_hook(dist.group.WORLD, fp16_compress_hook)


class DdpPowerSgd(Ddp):
    """Gradients as products of thin matrices."""

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer, context: ProcessContext) -> None:
        super().__init__(model, optimizer, context)
        self._state = PowerSGDState(
            process_group=None,
            matrix_approximation_rank=context.point.options["compression_rank"],
            # The minimum: compression starts after DDP has fixed its buckets, in the warm-up pass.
            start_powerSGD_iter=2,
            # Gradients of zero cannot be made orthogonal without it.
            orthogonalization_epsilon=1e-8,  # pyright: ignore[reportArgumentType]  its default is a whole number
        )
        self._ddp.register_comm_hook(self._state, _compress)

    def warm_up(self, forward_backward: Callable[[], None]) -> None:
        super().warm_up(forward_backward)
        self._reset()

    def settle(self) -> None:
        super().settle()
        if self._context.point.train.checkpoint_every:
            self._reset()

    def _reset(self) -> None:
        """Reset the state to that after the warm-up pass: compression starts with the next step, without residuals."""
        state = self._state
        state.iter = state.start_powerSGD_iter
        state.rng = np.random.RandomState(0)
        for memory in (state.error_dict, state.p_memory_dict, state.q_memory_dict):
            memory.clear()


class OrderedBucket:
    """A bucket whose gradients are matrices in the order in which they lie in memory.

    PowerSGD views each gradient as a matrix, which PyTorch refuses for the channels-last weights of a convolution.
    The columns of such a matrix stand in another order, alike on all ranks: no product depends on it.
    """

    def __init__(self, bucket: dist.GradBucket) -> None:
        self.buffer = bucket.buffer
        self.index = bucket.index
        self.is_last = bucket.is_last
        self._bucket = bucket

    def gradients(self) -> list[torch.Tensor]:
        """One matrix per parameter: a row per output, or a single column for a vector."""
        matrices = []
        for gradient in self._bucket.gradients():
            rows = gradient.shape[0] if gradient.dim() else 1
            columns = gradient.numel() // max(rows, 1)
            matrices.append(gradient.as_strided((rows, columns), (columns, 1)))
        return matrices


def _compress(state: PowerSGDState, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """Compress one bucket at a time: each sends three messages in sequence, from threads of gloo.

    With two buckets in flight, ranks could send them in different orders, and gloo would sum unrelated messages.
    """
    ordered = OrderedBucket(bucket)
    done = powerSGD_hook(state, ordered)  # pyright: ignore[reportArgumentType]  it has all that the hook asks for
    done.wait()
    # Directions are reused in the next step. A zero gradient has none: without new ones that layer would never be
    # updated again. The result is equal on all ranks.
    if not all(matrix.any() for matrix in ordered.gradients() if matrix.shape[1] > 1):
        state.p_memory_dict.pop(bucket.index(), None)
    return done
