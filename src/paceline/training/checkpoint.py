"""Checkpoints: pickle-free, atomic, and complete or not there at all.

    checkpoints/step-000500/
        tensors.safetensors   model.<name>, average.<name>, optimizer.<parameter>.<slot>, progress
        state.json            step, epochs so far, where and with what it was written
        complete              SHA-256 of the two: written last

Rank 0 writes for all: the whole network, which a strategy gathers where its ranks hold shards of it, and the sums of
the unfinished epoch for each index along the data axis. The folder is filled under another
name, synced, and renamed: a kill at any moment leaves the previous checkpoint untouched. Random
numbers follow from seed, data index and step (see `loop.py`), so no generator's state is needed.
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
"""How many checkpoints stay: the newest, and the one before it should the disk lie."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointState:
    """Where a run stands, beside its weights."""

    SCHEMA = "paceline.checkpoint/1"

    point_id: str
    seed: int
    layout: dict[str, int]
    """The size of each axis of the mesh of ranks that wrote it."""
    step: int
    epochs: tuple[Epoch, ...]
    """Those that are finished."""
    epoch_elapsed_s: float
    """Time spent so far in the epoch that is not."""
    host: str
    versions: dict[str, str]
    phase: str = "train"
    """The one that it was written in: the optimizer's state is that phase's."""
    phases: tuple[PhaseEnd, ...] = ()
    """Those before it."""
    noise: tuple[NoiseEpoch, ...] = ()
    """Of the finished epochs, where it was measured."""
    features: CachedFeatures | None = None
    """Those that the first phase was trained on: a run that resumes in the second does not make them again."""


def write_checkpoint(folder: Path, standing: CheckpointState, tensors: Mapping[str, torch.Tensor]) -> Path:
    """Write a checkpoint; when this returns it is on the disk and will be found."""
    final = folder / f"step-{standing.step:06d}"
    partial = folder / f".step-{standing.step:06d}.partial"
    try:
        codec.make_folder(folder)
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir()
        # Copies: weights that are tied share memory, which the format refuses.
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
    """All checkpoints, the newest first."""
    found = [path for path in folder.glob("step-*") if re.fullmatch(r"step-\d+", path.name)]
    return sorted(found, key=lambda path: int(path.name.removeprefix("step-")), reverse=True)


def read_checkpoint(path: Path) -> tuple[CheckpointState, dict[str, torch.Tensor]]:
    """A checkpoint whose sums agree; StorageError for any other."""
    try:
        sums = json.loads((path / "complete").read_bytes())
        for name in ("tensors.safetensors", "state.json"):
            if _sha256((path / name).read_bytes()) != sums[name]:
                raise StorageError(f"{path / name} is damaged: its SHA-256 is not the one it was written with.")
        return codec.read_record(path / "state.json", CheckpointState), load_file(path / "tensors.safetensors")
    except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
        raise StorageError(f"{path} is not a whole checkpoint: {error}.") from error


def newest_checkpoint(
    folder: Path, point_id: str, seed: int, layout: Mapping[str, int]
) -> tuple[Path, CheckpointState, dict[str, torch.Tensor]] | None:
    """The newest whole checkpoint of this very run, or None. Damaged ones are passed over."""
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
    """Put saved tensors back where they were, in the memory layout that the model has here."""
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
                        # A fused optimizer counts its steps where its parameters are, any other on the CPU.
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
