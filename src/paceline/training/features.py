"""Features of a frozen base, computed once and reused: `train.cached_features` of a study file.

    CACHE/features-5d2ab0c19f3e7746/     train.npy test.npy features.json  one row per image, mapped by every rank

Every index along the data axis computes its share and writes it to the same files, in a folder with a temporary name.
The folder is renamed when all ranks are done: incomplete files of a killed run are never used. The name is a digest of
everything the features depend on: data and selected samples, model with options and preprocessing, weights, precision,
versions.

Rows of unused images stay zero; the files are sparse, so these rows take no space.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import nn

from paceline import units
from paceline.errors import DataError, StorageError
from paceline.identity import versions
from paceline.layout import DATA
from paceline.probe.recorder import Recorder
from paceline.records.run import CachedFeatures
from paceline.records.study import Point
from paceline.storage.codec import make_folder, read_record, storage_error, sync_folder, write_record
from paceline.training.batches import Samples, share
from paceline.training.evaluate import evaluation_batch
from paceline.training.models.weights import tensors_sha256
from paceline.training.parallel.strategy import Peers

_TOKEN_BYTES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureFiles:
    """`features.json`: written last, describes the arrays in its folder."""

    SCHEMA = "paceline.features/1"

    key: str
    """SHA-256 of everything they depend on."""
    size: int
    """Numbers per image."""
    dtype: str
    rows: dict[str, int]
    """Of each array."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureRequest:
    """Features of which model, on which data."""

    model: nn.Module
    """Frozen, with `features(inputs)`."""
    point: Point
    digest: str
    """Of the data set."""
    cache: Path
    sources: Mapping[str, tuple[Samples, np.ndarray]]
    """Images by the name of their file, and which of them are used, in order."""

    @property
    def key(self) -> str:
        """SHA-256 of everything the features depend on."""
        settings = self.point
        used = {name: hashlib.sha256(indices.astype("<i8").tobytes()) for name, (_, indices) in self.sources.items()}
        depends_on = {
            "data": self.digest,
            "used": {name: digest.hexdigest() for name, digest in used.items()},
            "model": [settings.model.name.replace("\\", "/").rsplit("/", 1)[-1], settings.model_digest],
            "options": settings.model.options,
            "weights": tensors_sha256(_base_tensors(self.model)),
            "pixels": bool(getattr(self.model, "wants_pixels", False)),
            "precision": settings.train.precision,
            "device": next(self.model.parameters()).device.type,
            "versions": {name: version for name, version in versions().items() if name in ("paceline", "torch")},
        }
        return hashlib.sha256(json.dumps(depends_on, sort_keys=True).encode()).hexdigest()


class FeatureSamples(Samples):
    """Features and labels of one set, mapped; inputs are the features unchanged."""

    def __init__(self, features: np.ndarray, images: Samples) -> None:
        self._images = torch.from_numpy(features)
        self.labels = images.labels
        self.device = images.device

    def gather(self, indices: torch.Tensor, change: object = None) -> tuple[torch.Tensor, torch.Tensor]:
        """Features (N×F) and labels at `indices`."""
        assert change is None, "features are of images without augmentation"
        inputs = self._images.index_select(0, indices).to(self.device)
        return inputs, self.labels.index_select(0, indices).to(self.device)


def cached_features(
    wanted: FeatureRequest, recorder: Recorder, everyone: Peers, rank: int
) -> tuple[dict[str, FeatureSamples], CachedFeatures]:
    """Features from the cache, or computed by all ranks together; and a record of it."""
    started_at_ns = recorder.clock_ns()
    with recorder.span("load", "features"):
        device = next(wanted.model.parameters()).device
        key = _from_rank_0(wanted.key, everyone, device)
        folder = wanted.cache / f"features-{key[:16]}"
        # Rank 0 decides for all: ranks must agree on whether to compute.
        found = _from_rank_0("1" if rank == 0 and _is_intact(folder, key) else "0", everyone, device) == "1"
        if not found:
            _compute(wanted, folder, key, recorder, everyone, rank)
        files, arrays = _opened(folder, key)
        everyone.barrier()
    made = {name: FeatureSamples(arrays[name], images) for name, (images, _) in wanted.sources.items()}
    return made, CachedFeatures(
        samples=sum(len(indices) for _, indices in wanted.sources.values()),
        size=files.size,
        ready_s=units.seconds(recorder.clock_ns() - started_at_ns),
        found=found,
    )


def _compute(wanted: FeatureRequest, folder: Path, key: str, recorder: Recorder, everyone: Peers, rank: int) -> None:
    """Compute the features, each rank its rows, and move the folder to its final name."""
    layout = wanted.point.layout
    token = _from_rank_0(secrets.token_hex(_TOKEN_BYTES), everyone, next(wanted.model.parameters()).device)
    making = folder.with_name(f".making-{folder.name}-{token}")
    with _storage_errors(folder):
        try:
            files = _created_files(making, wanted, key, first=rank == 0)
            everyone.barrier()
            for name, (images, indices) in wanted.sources.items():
                start, end = share(len(indices), layout.index(rank, DATA), wanted.point.data_size)
                own = indices[start:end]
                _write_rows(making / f"{name}.npy", wanted.model, images, own, recorder)
            everyone.barrier()  # all rows are on the disk
            if rank == 0:
                write_record(making / "features.json", files)
                _move_into_place(making, folder, key)
            everyone.barrier()
        finally:
            if rank == 0:
                shutil.rmtree(making, ignore_errors=True)


def _created_files(making: Path, wanted: FeatureRequest, key: str, *, first: bool) -> FeatureFiles:
    """Description of the files; the first rank creates them, empty."""
    images, indices = next(iter(wanted.sources.values()))
    sample = _features(wanted.model, images, torch.from_numpy(indices[:1]))
    files = FeatureFiles(
        key=key,
        size=sample.shape[1],
        dtype=sample.numpy().dtype.name,
        rows={name: len(images) for name, (images, _) in wanted.sources.items()},
    )
    if first:
        make_folder(making)
        for name, rows in files.rows.items():
            path = making / f"{name}.npy"
            np.lib.format.open_memmap(path, mode="w+", dtype=files.dtype, shape=(rows, files.size)).flush()
    return files


def _write_rows(path: Path, model: nn.Module, images: Samples, indices: np.ndarray, recorder: Recorder) -> None:
    """Compute rows and write each with its own call: hosts may share the file."""
    mapped = np.lib.format.open_memmap(path, mode="r")
    start, row_bytes = mapped.offset, mapped.strides[0]
    with path.open("r+b", buffering=0) as file:
        for part in torch.from_numpy(indices).split(evaluation_batch(model, images)) if len(indices) else ():
            rows = _features(model, images, part).numpy()
            for index, row in zip(part.tolist(), rows, strict=True):
                _write_all(file.fileno(), row.tobytes(), start + index * row_bytes)
            recorder.beat()
        os.fsync(file.fileno())


def _write_all(handle: int, data: bytes, offset: int) -> None:
    while data:
        written = os.pwrite(handle, data, offset)
        data, offset = data[written:], offset + written


@torch.no_grad()
def _features(model: nn.Module, images: Samples, indices: torch.Tensor) -> torch.Tensor:
    training = model.training
    model.eval()
    inputs, _ = images.gather(indices)
    found = model.features(inputs)  # pyright: ignore[reportCallIssue]  checked when it was built
    model.train(training)
    return found.cpu()


def _opened(folder: Path, key: str) -> tuple[FeatureFiles, dict[str, np.ndarray]]:
    try:
        return _mapped(folder, key)
    except (StorageError, OSError, ValueError) as error:
        reason = getattr(error, "what", str(error)).rstrip(".")
        raise DataError(
            f"The features in {folder} cannot be used: {reason}.",
            right="All ranks map the same files, under the same path on every host.",
            next="Put PACELINE_CACHE on a shared file system, or remove train.cached_features.",
        ) from error


def _mapped(folder: Path, key: str) -> tuple[FeatureFiles, dict[str, np.ndarray]]:
    """Arrays of a complete folder; ValueError if they are not as described."""
    files = read_record(folder / "features.json", FeatureFiles)
    if files.key != key:
        raise ValueError("it has the key of other features")
    arrays = {}
    for name, rows in files.rows.items():
        path = folder / f"{name}.npy"
        mapped = np.lib.format.open_memmap(path, mode="c")
        if mapped.shape != (rows, files.size) or mapped.dtype.name != files.dtype:
            raise ValueError(f"{path.name} holds {mapped.dtype.name} {mapped.shape}")
        if path.stat().st_size != mapped.offset + mapped.nbytes:
            raise ValueError(f"{path.name} has {path.stat().st_size:,} bytes")
        arrays[name] = mapped.view(np.ndarray)
    return files, arrays


def _is_intact(folder: Path, key: str) -> bool:
    try:
        _mapped(folder, key)
    except (StorageError, OSError, ValueError):
        return False
    return True


def _move_into_place(making: Path, folder: Path, key: str) -> None:
    """Rename; a valid folder of a faster run is used instead, and a damaged one is moved away."""
    try:
        os.rename(making, folder)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
            raise
        if _is_intact(folder, key):
            return
        os.rename(folder, folder.with_name(f".making-damaged-{secrets.token_hex(_TOKEN_BYTES)}"))
        os.rename(making, folder)
    sync_folder(folder.parent)


def _from_rank_0(text: str, everyone: Peers, device: torch.device) -> str:
    """The text of rank 0, on every rank; all texts have equal length."""
    message = torch.tensor(list(text.encode()), dtype=torch.uint8, device=device)
    everyone.broadcast(message)
    return bytes(message.tolist()).decode()


def _base_tensors(model: nn.Module) -> dict[str, torch.Tensor]:
    """All parameters and buffers except those of the head, which is trained on the features."""
    return {name: tensor for name, tensor in model.state_dict().items() if not name.startswith("head.")}


@contextmanager
def _storage_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise storage_error(folder, error) from error
