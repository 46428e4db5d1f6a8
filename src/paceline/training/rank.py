"""State of one rank.

place       which rank of which run: fixed
network     the model, and the part of it that a phase trains   ┐
optim       strategy, optimizer, learning rate, noise           │ replaced as a whole when a phase begins
inputs      batches, validation and test samples                ┘
progress    finished steps, epochs and phases
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import nn

from paceline.layout import Layout
from paceline.probe.recorder import Recorder
from paceline.records.run import CachedFeatures, Epoch, Manifest, NoiseEpoch, PhaseEnd
from paceline.storage.folder import RunFolder
from paceline.training.batches import Batches, Samples, ShareBatches
from paceline.training.evaluate import evaluate
from paceline.training.gradient_noise import GradientNoise
from paceline.training.objective import Objective
from paceline.training.optim.adascale import AdaScale
from paceline.training.optim.average import Average
from paceline.training.optim.lr_schedule import LrSchedule
from paceline.training.parallel.batchnorm import BatchNormParticipation
from paceline.training.parallel.strategy import Strategy
from paceline.training.phases import Phase
from paceline.training.termination_notice import TerminationNotice


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Which rank of which run this is."""

    manifest: Manifest
    folder: RunFolder
    rank: int
    layout: Layout
    data_index: int
    """Its index along the data axis, which selects its share of the samples."""
    data_size: int
    """Size of the data axis."""
    host: str
    versions: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """The model, and the part of it that the phase trains."""

    model: nn.Module
    learner: nn.Module
    """Module that the strategy trains: the model, or only its head with cached features."""
    numel: Mapping[str, int]
    """Of each parameter of the whole network, by name, before the strategy divided it."""
    frozen: tuple[nn.Module, ...] = ()
    """Layers that stay in evaluation mode while the others train."""
    participation: BatchNormParticipation | None = None
    """Of synchronised batch-norm: whether this rank has samples."""

    @property
    def trainable(self) -> int:
        """Number of trained parameters, over all shards."""
        return sum(self.numel[name] for name, each in self.model.named_parameters() if each.requires_grad)

    def begin_training(self) -> None:
        """Put the model into training mode, except for frozen layers."""
        self.learner.train()
        for module in self.frozen:
            module.eval()


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimization:
    """How the weights are updated in a phase."""

    optimizer: torch.optim.Optimizer
    strategy: Strategy
    lr_schedule: LrSchedule
    noise: GradientNoise
    adascale: AdaScale | None
    """None for other learning-rate rules."""
    average: Average | None
    """Evaluated instead of the weights, if configured."""

    @property
    def gain(self) -> float:
        """Factor of a measured rule on the learning rate."""
        return self.adascale.gain if self.adascale else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """Training, validation and test samples of a phase."""

    batches: Batches | ShareBatches
    samples: Samples
    """Source of the batches and the validation set."""
    validation: np.ndarray
    """Indices of the validation set in `samples`."""
    test: Samples


@dataclass(slots=True, kw_only=True)
class Progress:
    """Finished steps, epochs and phases."""

    step: int = 0
    epochs: tuple[Epoch, ...] = ()
    noise_epochs: tuple[NoiseEpoch, ...] = ()
    """Epochs with measured gradient noise."""
    epoch_elapsed_s: float = 0.0
    resumed_in_epoch: bool = False
    phases: tuple[PhaseEnd, ...] = ()
    """Finished and tested phases."""
    features: CachedFeatures | None = None
    """Features that the first phase was trained on instead of images."""


@dataclass(slots=True, kw_only=True)
class Rank:
    """State of one rank, made by `session.py`."""

    place: Place
    recorder: Recorder
    network: Network
    phase: Phase
    total_steps: int
    """Optimizer steps of the whole run, over all phases."""
    optim: Optimization
    inputs: Inputs
    objective: Objective
    progress: Progress = field(default_factory=Progress)
    notice: TerminationNotice = field(default_factory=TerminationNotice)
    advance: Callable[[], None] | None = None
    """Begins the next phase, for a run that resumes there."""
    on_step: Callable[[int, torch.Tensor], None] | None = None
    """Called with the step and this rank's part of the step's mean loss; for tests."""

    def evaluate(self, samples: Samples, indices: np.ndarray) -> tuple[float, float]:
        """Mean loss and accuracy over `indices`, summed along the data axis: equal on all ranks."""
        return evaluate(
            self.network.learner,
            samples,
            indices,
            self.recorder,
            self.optim.strategy.peers,
            index=self.place.data_index,
            size=self.place.data_size,
            average=self.optim.average,
        )
