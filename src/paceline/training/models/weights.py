"""Weights from a file into a network: read without running code, and refused if they do not fit.

    .safetensors          numbers and names
    .pth .pt .bin         PyTorch's files, read with weights_only: a pickle that may only build tensors and containers

A file may have the whole network, or the part before the last layer; it may be a checkpoint of a script (`module.`
before every name, weights under `state_dict`) or of Paceline (`model.base.`). The last layer is never used: a transfer
has a new one.
"""

from __future__ import annotations

import hashlib
import pickle
import struct
import warnings
import zipfile
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import nn

from paceline.catalog import TORCH_WEIGHTS_ENDINGS
from paceline.errors import ModelError

# Usual keys of the weights in a script's checkpoint.
_INSIDE = ("state_dict", "model_state_dict", "model")
# Prefixes of Paceline's checkpoints, DDP and torch.compile.
_PREFIXES = ("model.base.", "base.", "module.", "_orig_mod.", "model.")

# A truncated or crafted pickle fails anywhere in its reader.
_READ_ERRORS = (pickle.UnpicklingError, zipfile.BadZipFile, struct.error, RuntimeError, EOFError, ValueError, TypeError)
_READ_ERRORS += (KeyError, AttributeError, IndexError, ImportError, OverflowError, MemoryError, AssertionError)


def read_weights(path: Path) -> dict[str, torch.Tensor]:
    """Tensors of a file by name, on the CPU."""
    if path.suffix not in TORCH_WEIGHTS_ENDINGS:
        endings = ", ".join(TORCH_WEIGHTS_ENDINGS)
        raise ModelError(f"{path} is not a file of weights.", right=f"Its name ends in one of: {endings}.")
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        with warnings.catch_warnings(action="ignore"):  # about files that it refuses
            found = torch.load(path, map_location="cpu", weights_only=True)
    except OSError as error:
        raise ModelError(f"The weights {path} cannot be read: {error.strerror or error}.") from error
    except SafetensorError as error:
        raise ModelError(f"{path} is not a whole safetensors file: {error}.") from error
    except _READ_ERRORS as error:
        raise _unreadable(path, error) from error
    return _tensors(found, path)


def _unreadable(path: Path, error: BaseException) -> ModelError:
    return ModelError(
        f"{path} was not read: it is damaged, or holds more than weights ({type(error).__name__}).",
        right="A PyTorch file is read with weights_only, which runs no code: it must contain tensors by name.",
        next="Save it anew with `torch.save(model.state_dict(), path)`, or better as .safetensors.",
    )


def _tensors(found: Any, path: Path) -> dict[str, torch.Tensor]:
    """Tensors of a PyTorch file or checkpoint by name."""
    for key in _INSIDE:
        if isinstance(found, Mapping) and isinstance(found.get(key), Mapping):
            found = found[key]
    if not isinstance(found, Mapping) or not found:
        raise ModelError(f"{path} holds no weights by name.", right="Save `model.state_dict()`.")
    strange = [key for key, value in found.items() if not isinstance(value, torch.Tensor)]
    if strange:
        raise ModelError(
            f"{path} holds {strange[0]!r}, which is a {type(found[strange[0]]).__name__}.",
            right="A file of weights contains only tensors by name.",
            next="Save `model.state_dict()` alone.",
        )
    return {str(key): value for key, value in found.items()}


def load_into(network: nn.Module, tensors: Mapping[str, torch.Tensor], *, spare: Collection[str], where: str) -> None:
    """Load tensors into a network; `spare` are prefixes of names that a file may have and the network has not."""
    own = network.state_dict()
    found = _without_prefix(tensors, own)
    missing = [name for name in own if name not in found and not name.endswith("num_batches_tracked")]
    if missing:
        raise ModelError(
            f"{where} lacks {len(missing)} of the {len(own)} tensors of this network, {missing[0]!r} first.",
            right=f"It holds {len(found)}, such as {next(iter(found), 'none')!r}.",
            next="Name the network that the weights belong to in model.name.",
        )
    strange = [name for name in found if name not in own and not name.startswith(tuple(spare))]
    if strange:
        raise ModelError(
            f"{where} holds {len(strange)} tensors that this network does not have, {strange[0]!r} first.",
            next="Name the network that the weights belong to in model.name.",
        )
    for name, place in own.items():
        if name in found and found[name].shape != place.shape:
            raise ModelError(
                f"{where} has {name!r} in the shape {tuple(found[name].shape)}.",
                right=f"This network has it in {tuple(place.shape)}.",
                next="Name the network that the weights belong to in model.name.",
            )
    broken = [name for name in own if name in found and not bool(torch.isfinite(found[name].double()).all())]
    if broken:
        raise ModelError(f"{where} has values in {broken[0]!r} that are not finite.", right="Weights are numbers.")
    network.load_state_dict({name: found[name] for name in own if name in found}, strict=False)


def _without_prefix(tensors: Mapping[str, torch.Tensor], own: Collection[str]) -> dict[str, torch.Tensor]:
    """Tensors under the names of the network, after removing a common prefix."""
    found = dict(tensors)
    for prefix in _PREFIXES:
        inside = {name.removeprefix(prefix): value for name, value in found.items() if name.startswith(prefix)}
        if len(inside.keys() & own) > len(found.keys() & own):
            found = inside
    return found


def tensors_sha256(tensors: Mapping[str, torch.Tensor]) -> str:
    """SHA-256 over names, shapes and values in order of the names: independent of the file."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        digest.update(f"{name} {tensors[name].dtype} {tuple(tensors[name].shape)}\n".encode())
        digest.update(tensor_bytes(tensors[name]))
    return digest.hexdigest()


def tensor_bytes(tensor: torch.Tensor) -> bytes:
    """Values of a tensor in row-major order, for any device and memory format."""
    return tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
