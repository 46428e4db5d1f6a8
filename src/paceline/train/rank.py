"""What one rank trains with, and how far it has come."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import nn

from paceline.probe.recorder import Recorder
from paceline.records.folder import RunFolder
from paceline.records.run import CachedFeatures, Epoch, Manifest, NoiseEpoch, PhaseEnd
from paceline.train.batches import Batches, Samples, ShareBatches
from paceline.train.notice import Notice
from paceline.train.optim.adascale import AdaScale
from paceline.train.optim.average import Average
from paceline.train.optim.gradient_noise import GradientNoise
from paceline.train.optim.pace import Pace
from paceline.train.parallel.base import Strategy
from paceline.train.parallel.batchnorm import Attendance
from paceline.train.phases import Phase


@dataclass(slots=True, kw_only=True)
class Rank:
    """What a rank trains with: everything the loop needs, made by `session.py`."""

    manifest: Manifest
    folder: RunFolder
    rank: int
    size: int
    host: str
    versions: dict[str, str]
    recorder: Recorder
    model: nn.Module
    learner: nn.Module
    """What the strategy trains: the model, or its head alone where features stand in for images."""
    phase: Phase
    total_steps: int
    """Optimizer steps of the whole run, over all phases."""
    strategy: Strategy
    optimizer: torch.optim.Optimizer
    pace: Pace
    average: Average | None = None
    """Evaluated in the weights' place, where there is one."""
    gain: float = 1.0
    """What a measured rule multiplies the learning rate with."""
    noise: GradientNoise
    adascale: AdaScale | None = None
    """None under any other rule for the learning rate."""
    batches: Batches | ShareBatches
    samples: Samples
    validation: np.ndarray
    notice: Notice = field(default_factory=Notice)
    on_step: Callable[[int, torch.Tensor], None] | None = None
    """Called with the step and this rank's part of the step's mean loss; for tests."""

    step: int = 0
    epochs: tuple[Epoch, ...] = ()
    noise_epochs: tuple[NoiseEpoch, ...] = ()
    """Those in which gradient noise was measured."""
    sums: torch.Tensor
    """Loss sum and correct answers of this rank in the epoch so far."""
    epoch_elapsed_s: float = 0.0
    resumed_in_epoch: bool = False

    phases: tuple[PhaseEnd, ...] = ()
    """Those that are over and tested."""
    features: CachedFeatures | None = None
    """What stood in for images in the first phase, where anything did."""
    advance: Callable[[], None] | None = None
    """Begins the next phase; for a run that resumes in it."""
    still: tuple[nn.Module, ...] = ()
    """Layers that stay in evaluation mode while the others train."""
    attendance: Attendance | None = None
    """Of synchronised batch-norm, which has to know whose samples count."""

    def begin_training(self) -> None:
        """Put the model into training mode, but for what stays as it is."""
        self.learner.train()
        for module in self.still:
            module.eval()
