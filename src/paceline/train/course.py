"""The course of one rank's training: phase by phase, each with its test at the end.

    features of the frozen base, where they are cached ─▶ train ─▶ test ─▶ unfreeze ─▶ train ─▶ test
    └──────────────────────── train ─────────────────────────────┘        └─── finetune ────┘

Model, data and ranks stay; optimizer, strategy, learning rate and average are made anew for every phase, so that
neither a moment nor a gradient of the one is left in the other. The same happens where a run resumes in a later phase.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from paceline import units
from paceline.records.run import PhaseEnd
from paceline.train import features
from paceline.train.batches import Batches, Samples, ShareBatches
from paceline.train.evaluate import evaluate
from paceline.train.loop import train
from paceline.train.lr_range import RANGE, explore
from paceline.train.phases import Phase, kept_still, planned, unfreeze
from paceline.train.rank import Rank
from paceline.train.reading import Holding

Equipment = Callable[[nn.Module, Phase, int], dict[str, Any]]
"""(what is trained, phase, steps of an epoch) -> optimizer, strategy, pace and average of a rank."""


@dataclass(frozen=True, slots=True)
class _Inputs:
    """What a phase trains on, and is tested with."""

    batches: Batches | ShareBatches
    samples: Samples
    test: Samples


class Course:
    """Leads a rank through the phases of its run."""

    def __init__(self, rank: Rank, held: Holding, test: Samples, equipment: Equipment) -> None:
        self._rank = rank
        self._held = held
        self._equipment = equipment
        self._images = self._inputs = _Inputs(rank.batches, rank.samples, test)
        self._phases = planned(rank.manifest.point, rank.batches.steps_per_epoch)
        rank.advance = self.advance

    def run(self) -> bool:
        """Train to the end, with a test after every phase; False where the rank was told to leave before."""
        rank = self._rank
        while True:
            if rank.learner is not rank.model:
                self._take_features()
            ranged = rank.phase.settings.schedule == RANGE
            if ranged:
                explore(rank)
            elif not train(rank):
                return False
            rank.phases += (self._end(),)
            if ranged or rank.phase == self._phases[-1]:
                return True
            self.advance()

    def advance(self) -> None:
        """Begin the next phase: on images, with the whole model unfrozen."""
        rank = self._rank
        rank.strategy.leave()
        rank.model.zero_grad(set_to_none=True)
        batchnorm = rank.manifest.point.finetune.batchnorm
        rank.still = kept_still(rank.model) if batchnorm == "frozen" else ()
        unfreeze(rank.model, batchnorm)
        rank.phase = self._phases[self._phases.index(rank.phase) + 1]
        rank.learner = rank.model
        rank.gain = 1.0
        self._use(self._images)
        for name, value in self._equipment(rank.model, rank.phase, rank.batches.steps_per_epoch).items():
            setattr(rank, name, value)
        # What the phase before has left would otherwise be looked through in every collection to come.
        gc.unfreeze()
        gc.collect()
        gc.freeze()

    def _take_features(self) -> None:
        """Train on features in place of images."""
        rank, held, point = self._rank, self._held, self._rank.manifest.point
        used = np.sort(np.concatenate((held.parts.train, held.parts.validation)))
        wanted = features.Wanted(
            model=rank.model,
            point=point,
            digest=held.mapped.dataset.digest,
            cache=Path(rank.manifest.data_folder).parent,
            sources={"train": (self._images.samples, used), "test": (self._images.test, held.parts.test)},
        )
        made, rank.features = features.ready(wanted, rank.recorder, rank.strategy.peers, rank=rank.rank, size=rank.size)
        batches = Batches(
            made["train"],
            held.parts.train,
            batch_global=point.batch_global,
            seed=rank.manifest.seed,
            rank=rank.rank,
            size=rank.size,
        )
        self._use(_Inputs(batches, made["train"], made["test"]))

    def _use(self, inputs: _Inputs) -> None:
        self._inputs = inputs
        self._rank.batches, self._rank.samples = inputs.batches, inputs.samples

    def _end(self) -> PhaseEnd:
        """The test at the end of a phase."""
        rank, began_at_ns = self._rank, self._rank.recorder.clock_ns()
        loss, accuracy = evaluate(
            rank.learner,
            self._inputs.test,
            self._held.parts.test,
            rank.recorder,
            rank.strategy.peers,
            rank=rank.rank,
            size=rank.size,
            average=rank.average,
        )
        return PhaseEnd(
            name=rank.phase.name,
            steps=rank.phase.steps,
            test_loss=loss,
            test_accuracy=accuracy,
            test_s=units.seconds(rank.recorder.clock_ns() - began_at_ns),
            trainable=sum(each.numel() for each in rank.model.parameters() if each.requires_grad),
        )
