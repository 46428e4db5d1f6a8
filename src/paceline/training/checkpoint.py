"""Checkpoints: pickle-free, atomic, and complete or absent.

    checkpoints/step-000500/
        tensors.safetensors   model.<name>, average.<name>, optimizer.<parameter>.<slot>, progress
        state.json            step, finished epochs, host and versions
        complete              SHA-256 of both: written last

Rank 0 writes the whole network, which the strategy gathers from shards, and the sums of the unfinished epoch for each
index along the data axis. The folder is written under a temporary name, synced, and renamed: a kill at any moment
leaves the previous checkpoint intact. Random numbers follow from seed, data index and step (see `loop.py`), so no
generator state is stored.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import nn

from paceline.errors import StorageError
from paceline.records.run import CachedFeatures, Epoch, NoiseEpoch, PhaseEnd
from paceline.storage import codec

MAX_CHECKPOINTS = 2
"""The newest, and the one before it in case the disk fails."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointState:
    """State of a run without its tensors."""

    SCHEMA = "paceline.checkpoint/1"

    point_id: str
    seed: int
    layout: dict[str, int]
    """Size of each axis of the layout that wrote it."""
    step: int
    epochs: tuple[Epoch, ...]
    """Finished epochs."""
    epoch_elapsed_s: float
    """Time spent in the unfinished epoch."""
    host: str
    versions: dict[str, str]
    phase: str = "train"
    """Phase of the optimizer state."""
    phases: tuple[PhaseEnd, ...] = ()
    """Phases before it."""
    noise: tuple[NoiseEpoch, ...] = ()
    """Of the finished epochs, if measured."""
    features: CachedFeatures | None = None
    """Of the first phase: a run that resumes in the second does not compute them again."""


def write_checkpoint(folder: Path, standing: CheckpointState, tensors: Mapping[str, torch.Tensor]) -> Path:
    """Path of the checkpoint, which is on the disk when this returns."""
    final = folder / f"step-{standing.step:06d}"
    partial = folder / f".step-{standing.step:06d}.partial"
    try:
        codec.make_folder(folder)
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir()
        # Copies: tied weights share memory, which the format refuses.
        copies = {n: t.detach().clone(memory_format=torch.contiguous_format).cpu() for n, t in tensors.items()}
        data = save(copies)
        state = json.dumps({"schema": CheckpointState.SCHEMA, **codec.plain(standing)}).encode()
        _write_synced(partial / "tensors.safetensors", data)
        _write_synced(partial / "state.json", state)
        sums = {"tensors.safetensors": _sha256(data), "state.json": _sha256(state)}
        _write_synced(partial / "complete", json.dumps(sums).encode())
        codec.sync_folder(partial)
        if final.exists():
            shutil.rmtree(final)
        os.rename(partial, final)
        codec.sync_folder(folder)
    except OSError as error:
        raise codec.storage_error(final, error) from error
    for old in checkpoint_folders(folder)[MAX_CHECKPOINTS:]:
        shutil.rmtree(old, ignore_errors=True)
    return final


def checkpoint_folders(folder: Path) -> list[Path]:
    """All checkpoints, newest first."""
    found = [path for path in folder.glob("step-*") if re.fullmatch(r"step-\d+", path.name)]
    return sorted(found, key=lambda path: int(path.name.removeprefix("step-")), reverse=True)


def read_checkpoint(path: Path) -> tuple[CheckpointState, dict[str, torch.Tensor]]:
    """State and tensors of a valid checkpoint; StorageError for any other."""
    try:
        sums = json.loads((path / "complete").read_bytes())
        for name in ("tensors.safetensors", "state.json"):
            if _sha256((path / name).read_bytes()) != sums[name]:
                raise StorageError(f"{path / name} is damaged: its SHA-256 differs from the stored one.")
        return codec.read_record(path / "state.json", CheckpointState), load_file(path / "tensors.safetensors")
    except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
        raise StorageError(f"{path} is not a complete checkpoint: {error}.") from error


def newest_checkpoint(
    folder: Path, point_id: str, seed: int, layout: Mapping[str, int]
) -> tuple[Path, CheckpointState, dict[str, torch.Tensor]] | None:
    """Newest valid checkpoint of this run, or None. Damaged ones are skipped."""
    for path in checkpoint_folders(folder):
        try:
            standing, tensors = read_checkpoint(path)
        except StorageError:
            continue
        if (standing.point_id, standing.seed, standing.layout) == (point_id, seed, layout):
            return path, standing, tensors
    return None


def state_tensors(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, torch.Tensor]:
    """Everything the next step depends on, by name."""
    tensors = {f"model.{name}": tensor for name, tensor in model.state_dict().items()}
    for name, parameter in _optimized(model, optimizer):
        for slot, value in optimizer.state.get(parameter, {}).items():
            if isinstance(value, torch.Tensor):
                tensors[f"optimizer.{name}.{slot}"] = value
    return tensors


def restore(model: nn.Module, optimizer: torch.optim.Optimizer, tensors: Mapping[str, torch.Tensor]) -> None:
    """Copy saved tensors into model and optimizer, in their memory format."""
    fused = bool(optimizer.defaults.get("fused"))
    with torch.no_grad():
        for name, tensor in model.state_dict().items():
            tensor.copy_(tensors[f"model.{name}"])
        for name, parameter in _optimized(model, optimizer):
            prefix = f"optimizer.{name}."
            for key, saved in tensors.items():
                if key.startswith(prefix):
                    if saved.shape == parameter.shape and saved.dim() > 0:
                        place = torch.empty_like(parameter, dtype=saved.dtype)
                    else:
                        # A fused optimizer counts steps on the device of its parameters, any other on the CPU.
                        place = torch.empty_like(saved, device=parameter.device if fused else "cpu")
                    place.copy_(saved)
                    optimizer.state[parameter][key.removeprefix(prefix)] = place


def _optimized(model: nn.Module, optimizer: torch.optim.Optimizer) -> list[tuple[str, nn.Parameter]]:
    optimized = {id(p) for group in optimizer.param_groups for p in group["params"]}
    return [(name, p) for name, p in model.named_parameters() if id(p) in optimized]


def _write_synced(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
