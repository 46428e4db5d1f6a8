"""Runs the training phases of one rank, each with a test at its end.

    features of the frozen base, if cached ─▶ train ─▶ test ─▶ unfreeze ─▶ train ─▶ test
    └──────────────────────── train ─────────────────────────┘        └─── finetune ────┘

Model, data and ranks are the same in all phases. Optimizer, strategy, learning rate and average are new in each phase,
also in a run that resumes in a later phase: no moment and no gradient of one phase is used in another.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from torch import nn

from paceline import units
from paceline.records.run import PhaseEnd
from paceline.training import features
from paceline.training.batches import Batches
from paceline.training.loop import train
from paceline.training.lr_range_test import RANGE, run_range_test
from paceline.training.phases import Phase, frozen_batchnorm, planned_phases, unfreeze
from paceline.training.rank import Optimization, Rank
from paceline.training.reading import LoadedData

Optimizing = Callable[[nn.Module, Phase, int], Optimization]
"""(trained module, phase, steps per epoch) -> Optimization."""


class PhaseRunner:
    """Runs a rank through the phases of its run."""

    def __init__(self, rank: Rank, data: LoadedData, optimizing: Optimizing) -> None:
        self._rank = rank
        self._data = data
        self._optimizing = optimizing
        self._images = rank.inputs
        self._phases = planned_phases(rank.place.manifest.point, rank.inputs.batches.steps_per_epoch)
        rank.advance = self.advance

    def run(self) -> bool:
        """Whether all phases were trained and tested; False after a termination notice."""
        rank = self._rank
        while True:
            if rank.network.learner is not rank.network.model:
                self._take_features()
            ranged = rank.phase.settings.schedule == RANGE
            if ranged:
                run_range_test(rank)
            elif not train(rank):
                return False
            rank.progress.phases += (self._end(),)
            if ranged or rank.phase == self._phases[-1]:
                return True
            self.advance()

    def advance(self) -> None:
        """Begin the next phase: on images, with the whole model unfrozen."""
        rank = self._rank
        rank.optim.strategy.leave()
        rank.network.model.zero_grad(set_to_none=True)
        batchnorm = rank.place.manifest.point.finetune.batchnorm
        frozen = frozen_batchnorm(rank.network.model) if batchnorm == "frozen" else ()
        unfreeze(rank.network.model, batchnorm)
        rank.network = replace(rank.network, learner=rank.network.model, frozen=frozen)
        rank.phase = self._phases[self._phases.index(rank.phase) + 1]
        rank.inputs = self._images
        rank.optim = self._optimizing(rank.network.model, rank.phase, rank.inputs.batches.steps_per_epoch)
        # Objects of the last phase would otherwise be scanned in every later collection.
        gc.unfreeze()
        gc.collect()
        gc.freeze()

    def _take_features(self) -> None:
        """Train on cached features instead of images."""
        rank, data, place = self._rank, self._data, self._rank.place
        point = place.manifest.point
        used = np.sort(np.concatenate((data.parts.train, data.parts.validation)))
        wanted = features.FeatureRequest(
            model=rank.network.model,
            point=point,
            digest=data.mapped.dataset.digest,
            cache=Path(place.manifest.data_folder).parent,
            sources={"train": (self._images.samples, used), "test": (self._images.test, data.parts.test)},
        )
        everyone = rank.optim.strategy.everyone
        made, rank.progress.features = features.cached_features(wanted, rank.recorder, everyone, place.rank)
        batches = Batches(
            made["train"],
            data.parts.train,
            batch_global=point.batch_global,
            seed=place.manifest.seed,
            index=place.data_index,
            size=place.data_size,
        )
        rank.inputs = replace(rank.inputs, batches=batches, samples=made["train"], test=made["test"])

    def _end(self) -> PhaseEnd:
        """Test at the end of a phase."""
        rank, began_at_ns = self._rank, self._rank.recorder.clock_ns()
        loss, accuracy = rank.evaluate(rank.inputs.test, self._data.parts.test)
        return PhaseEnd(
            name=rank.phase.name,
            steps=rank.phase.steps,
            test_loss=loss,
            test_accuracy=accuracy,
            test_s=units.seconds(rank.recorder.clock_ns() - began_at_ns),
            trainable=rank.network.trainable,
        )
