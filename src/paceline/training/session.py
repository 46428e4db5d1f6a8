"""One rank of a training run: join, load, build, resume, train, test, report."""

from __future__ import annotations

import contextlib
import functools
import gc
import hashlib
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from paceline import catalog, host, units
from paceline.data.cache import Dataset
from paceline.errors import PacelineError, RequestError
from paceline.identity import Identity, versions
from paceline.layout import DATA
from paceline.probe.collectives import PendingMessages, watch_collectives
from paceline.probe.counter_sampler import Counters
from paceline.probe.recorder import Recorder
from paceline.records import process_roles
from paceline.records.allocation import Clock
from paceline.records.run import Manifest, RankReport, TrainingReport
from paceline.storage.folder import RunFolder
from paceline.storage.pulse import PulseWriter
from paceline.storage.span_stream import SpanWriter
from paceline.training import allocation_check, group, mpi_session
from paceline.training.batches import Samples
from paceline.training.checkpoint import CheckpointState
from paceline.training.gradient_noise import gradient_noise
from paceline.training.models.build_model import build_model, init_as_keras
from paceline.training.models.weights import tensor_bytes
from paceline.training.objective import Objective
from paceline.training.optim.adascale import adascale_of
from paceline.training.optim.average import Average
from paceline.training.optim.build_optimizer import build_optimizer
from paceline.training.optim.lr_schedule import LrSchedule
from paceline.training.parallel.batchnorm import BatchNormParticipation, synchronise
from paceline.training.parallel.coordinator import Coordinator
from paceline.training.parallel.parameter_server import server_of
from paceline.training.parallel.strategy import ProcessContext, SingleRank, Strategy
from paceline.training.phase_runner import PhaseRunner
from paceline.training.phases import Phase, freeze_for_first_phase, planned_phases
from paceline.training.precision import WEIGHT_DTYPES, move_to_device
from paceline.training.rank import Inputs, Network, Optimization, Place, Rank
from paceline.training.reading import LoadedData, load_data, make_batches, read_bytes, reads_shares
from paceline.training.resume import resume
from paceline.training.termination_notice import installed_notice


def scaling(dataset: Dataset, *, pixels: bool) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and standard deviation that scale images to inputs; 0 and 1/255 for a model that takes pixels, 0 to 255."""
    if pixels:
        channels = dataset.shape[2]
        return (0.0,) * channels, (1 / 255,) * channels
    return dataset.mean, dataset.std


class Session:
    """Makes a Rank from a manifest, and a report from its results."""

    def __init__(self, identity: Identity, folder: RunFolder, manifest: Manifest, started_at_ns: int) -> None:
        self._identity = identity
        self._folder = folder
        self._manifest = manifest
        self._role = manifest.point.role(identity.rank)
        self._device = torch.device("cpu")
        self._wants_pixels = False
        self._network: dict[str, str] = {}
        self._versions = versions()
        self._clocks: tuple[Clock, ...] = ()
        self._clock_at_end: Clock | None = None
        pulse = PulseWriter(folder.rank_pulse(identity.rank))
        self._recorder = Recorder(SpanWriter(folder.rank_spans(identity.rank)), pulse)
        self._recorder.flush_every()
        self._recorder.add("startup", started_at_ns, self._recorder.clock_ns(), "imports")
        # One process per host reads the energy meters.
        self._counters = Counters(folder.rank_counters(identity.rank), host_energy=identity.local_rank == 0)
        self._counters.start()

    def run(self) -> RankReport:
        """Report of a finished rank, after training and test."""
        with PendingMessages(self._recorder) as pending:
            return self._run(pending)

    def _run(self, pending: PendingMessages) -> RankReport:
        identity, recorder = self._identity, self._recorder
        with recorder.span("startup", "rendezvous"):
            torch.set_num_threads(process_roles.threads(self._manifest.point, identity.rank))
            torch.set_num_interop_threads(1)
            with contextlib.suppress(RequestError):  # on the CPU the preflight check complains
                if self._role == "rank":
                    self._device = group.choose_device(self._manifest.point.device, identity.local_rank)
            _make_deterministic(self._device)
            group.join(identity, self._folder, self._manifest, self._message_device)
            self._clocks = allocation_check.run_allocation_check(identity, self._folder, self._manifest, self._device)
            # A reference until the end: watching stops when it is destroyed.
            watching = watch_collectives(recorder, pending) if identity.size > 1 else None
        if self._role != "rank":
            facts = self.serve()
            self._leave()
            return self._done(**facts)
        loading_at_ns, read_before = recorder.clock_ns(), read_bytes()
        with recorder.span("load"):
            data = load_data(Path(self._manifest.data_folder), self._manifest.point, identity.rank)
        read_after = read_bytes()
        load_s = units.seconds(recorder.clock_ns() - loading_at_ns)
        with recorder.span("startup", "model"):
            rank = self.rank(data)
            runner = self.phase_runner(rank, data)
            resumed = resume(rank)
            gc.collect()
            gc.freeze()
        progress = rank.progress
        if not runner.run():
            rank.optim.strategy.leave()
            self._leave()
            self._counters.close()
            recorder.close()
            return self._report(status="stopped", steps=progress.step, training=TrainingReport(epochs=progress.epochs))
        rank.optim.strategy.leave()
        del watching
        self._leave()
        return self._done(
            steps=progress.step,
            parameters=sum(rank.network.numel.values()),
            training=TrainingReport(
                epochs=progress.epochs,
                test_loss=progress.phases[-1].test_loss,
                test_accuracy=progress.phases[-1].test_accuracy,
                phases=progress.phases,
                features=progress.features,
                noise=progress.noise_epochs,
                network=self._network,
                load_s=load_s,
                read_bytes=None if read_before is None else (read_after or 0) - read_before,
                weights_sha256=weights_sha256(rank.network.model),
                resumed_from_step=resumed.step if resumed else None,
                resume_note=self._resume_note(resumed) if resumed else None,
            ),
        )

    def serve(self) -> dict[str, Any]:
        """Results of a server or coordinator, which has no data and no model."""
        point, recorder = self._manifest.point, self._recorder
        context = self.context
        if reads_shares(point):
            mpi_session.world(self._identity.rank, self._identity.size)  # MPI_Init is collective
        if self._role == "coordinator":
            coordinator = Coordinator(context)
            coordinator.serve()
            return {"steps": coordinator.answered}
        with recorder.span("startup"):
            server = server_of(context)
        server.serve()
        return {"steps": server.steps, "parameters": len(server.shard.values), "staleness": server.staleness}

    def failure(self, error: BaseException) -> RankReport:
        """Report of a failed rank; its spans so far are written."""
        self._counters.close()
        with contextlib.suppress(PacelineError):
            self._recorder.close()
        return self._report(steps=max(self._recorder.step, 0), **group.failure_facts(error))

    def rank(self, data: LoadedData) -> Rank:
        """Data, model, strategy and optimizer, as configured in the manifest."""
        manifest, identity, dataset = self._manifest, self._identity, data.mapped.dataset
        point = manifest.point
        torch.manual_seed(manifest.seed)
        model = build_model(
            point.model.name,
            point.model.options,
            shape=dataset.shape,
            classes=dataset.classes,
            model_file=Path(manifest.model_file) if manifest.model_file else None,
            model_digest=point.model_digest,
        )
        self._wants_pixels = getattr(model, "wants_pixels", False)
        self._network = dict(getattr(model, "facts", {}))
        if point.train.initialiser == "keras":
            init_as_keras(model)
        learner = freeze_for_first_phase(model, point)
        move_to_device(model, point.train, self._device)
        participation = self._synchronised(model) if point.train.sync_batchnorm else None
        numel = {name: parameter.numel() for name, parameter in model.named_parameters()}
        self._strategy.divide(model, self.context)
        own = self._samples(data.train_images, data.train_labels, dataset)
        batches = make_batches(own, data.parts, point, manifest.seed, identity.rank, dataset.mean)
        phases = planned_phases(point, batches.steps_per_epoch)
        mapped = data.mapped
        return Rank(
            place=self._place(),
            recorder=self._recorder,
            network=Network(model=model, learner=learner, numel=numel, participation=participation),
            phase=phases[0],
            total_steps=phases[-1].last_step,
            optim=self._optimization(learner, phases[0], batches.steps_per_epoch),
            inputs=Inputs(
                batches=batches,
                samples=self._samples(mapped.train_images, mapped.train_labels, dataset),
                validation=data.parts.validation,
                test=self._samples(mapped.test_images, mapped.test_labels, dataset),
            ),
            objective=Objective(label_smoothing=point.train.label_smoothing, device=self._device),
            notice=installed_notice(manifest),
        )

    def phase_runner(self, rank: Rank, data: LoadedData) -> PhaseRunner:
        """Runner of the training phases."""
        return PhaseRunner(rank, data, self._optimization)

    @functools.cached_property
    def context(self) -> ProcessContext:
        """The ranks of the run, with the process groups of their layout. A collective call the first time."""
        point, rank = self._manifest.point, self._identity.rank
        return ProcessContext(
            rank=rank, point=point, recorder=self._recorder, groups=group.axis_groups(point.layout, rank)
        )

    @property
    def _strategy(self) -> type[Strategy]:
        return catalog.load("strategy", self._manifest.point.strategy) if self._identity.size > 1 else SingleRank

    def _place(self) -> Place:
        layout, rank = self.context.layout, self._identity.rank
        return Place(
            manifest=self._manifest,
            folder=self._folder,
            rank=rank,
            layout=layout,
            data_index=layout.index(rank, DATA),
            data_size=self._manifest.point.data_size,
            host=self._identity.host,
            versions=self._versions,
        )

    def _synchronised(self, model: nn.Module) -> BatchNormParticipation | None:
        """Synchronise batch-norm along the data axis, if that has more than one index."""
        several = self._manifest.point.data_size > 1
        return synchronise(model, self._recorder, self.context.group(DATA)) if several else None

    def _optimization(self, learner: nn.Module, phase: Phase, steps_per_epoch: int) -> Optimization:
        """Optimizer, strategy, learning rate and average of one phase."""
        point, settings = replace(self._manifest.point, train=phase.settings), phase.settings
        context, length = replace(self.context, point=point), settings.average_epochs
        optimizer, adascale = build_optimizer(settings, learner.parameters()), adascale_of(point)
        return Optimization(
            optimizer=optimizer,
            strategy=self._strategy(learner, optimizer, context),
            lr_schedule=LrSchedule(
                settings,
                batch_global=point.batch_global,
                ranks=point.data_size,
                steps_per_epoch=steps_per_epoch,
                total_steps=phase.steps,
            ),
            average=Average(learner, epochs=length, steps_per_epoch=steps_per_epoch) if length else None,
            adascale=adascale,
            noise=gradient_noise(point, steps_per_epoch, every_step=adascale is not None),
        )

    def _samples(self, images: np.ndarray, labels: np.ndarray, dataset: Dataset) -> Samples:
        """Images, scaled for the model."""
        dtype = WEIGHT_DTYPES[self._manifest.point.train.precision]
        mean, std = scaling(dataset, pixels=self._wants_pixels)
        return Samples(images, labels, mean=mean, std=std, device=self._device, dtype=dtype)

    @property
    def _message_device(self) -> torch.device:
        """Device of messages: the CPU if there are servers, which have no GPU."""
        return torch.device("cpu") if self._manifest.point.servers else self._device

    def _done(self, **facts: Any) -> RankReport:
        report = self._report(status="done", **facts)
        self._recorder.beat("done")
        self._counters.close()
        self._recorder.close()
        return report

    def _leave(self) -> None:
        """Leave the process groups after a successful run."""
        self._counters.look()  # communication threads end with the group
        self._clock_at_end = allocation_check.clock_at_end(self._clocks, self._identity.rank)
        group.leave()

    def _report(self, **facts: Any) -> RankReport:
        identity = self._identity
        clock = self._clocks[identity.rank] if self._clocks else None
        return RankReport(
            rank=identity.rank,
            role=self._role,
            host=identity.host,
            pid=os.getpid(),
            device=str(self._device),
            backend=group.backend_name(self._message_device, identity.size),
            threads=torch.get_num_threads(),
            affinity=host.pinned(),
            versions=self._versions,
            ended_at_ns=self._recorder.clock_ns(),
            clock_offset_ns=clock.offset_ns if clock else 0,
            clock_error_ns=clock.error_ns if clock else None,
            clock_at_end=self._clock_at_end,
            **facts,
        )

    def _resume_note(self, written: CheckpointState) -> str | None:
        """Host and versions that differ from those of the checkpoint; None without a difference."""
        changed = [] if written.host == self._identity.host else [f"host {written.host} → {self._identity.host}"]
        changed += [
            f"{name} {written.versions.get(name, 'unknown')} → {now}"
            for name, now in self._versions.items()
            if written.versions.get(name) != now
        ]
        return ", ".join(changed) or None


def weights_sha256(model: nn.Module) -> str:
    """SHA-256 of all parameters and buffers: equal on ranks with bitwise equal weights."""
    digest = hashlib.sha256()
    for name, tensor in model.state_dict().items():
        digest.update(name.encode())
        digest.update(tensor_bytes(tensor))
    return digest.hexdigest()


def _make_deterministic(device: torch.device) -> None:
    """Make runs with equal settings, seed and machine bitwise equal; CPUs need no setting for it."""
    if device.type == "cuda":
        torch.backends.cudnn.benchmark = False
        torch.use_deterministic_algorithms(True, warn_only=True)
