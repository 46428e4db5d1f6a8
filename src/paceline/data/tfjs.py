"""Weights in the layout of TensorFlow.js, out of a tar archive: `model.json` lists tensors, numbered files hold them.

The files are cut every 4 MB, wherever that falls: laid end to end they are all tensors in the order of the list.
"""

from __future__ import annotations

import json
import math
import tarfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from paceline.data.sources import SourceFailure

_LIMIT_BYTES = 1 << 30


def tfjs_tensors(path: Path, folder: str) -> dict[str, np.ndarray]:
    """The tensors of a model in one folder of a tar archive, by the names that they have there."""
    try:
        with tarfile.open(path, "r:gz") as archive:
            (group,) = json.loads(_member(archive, f"{folder}/model.json"))["weightsManifest"]
            data = b"".join(_member(archive, f"{folder}/{name}") for name in group["paths"])
        return _cut(data, group["weights"])
    except (KeyError, ValueError, TypeError, tarfile.TarError, EOFError, zlib.error) as error:
        raise SourceFailure(f"{path.name} is not as expected: {error}") from error


def _member(archive: tarfile.TarFile, name: str) -> bytes:
    member = archive.getmember(name)
    file = archive.extractfile(member)
    if file is None or member.size > _LIMIT_BYTES:
        raise SourceFailure(f"{name} is no file, or declares {member.size:,} bytes")
    return file.read()


def _cut(data: bytes, listed: list[dict[str, Any]]) -> dict[str, np.ndarray]:
    tensors, start = {}, 0
    for entry in listed:
        if entry["dtype"] != "float32" or "quantization" in entry:
            raise ValueError(f"{entry['name']} is not of float32")
        count = math.prod(entry["shape"])
        tensors[entry["name"]] = np.frombuffer(data, "<f4", count, start).reshape(entry["shape"])
        start += 4 * count
    if start != len(data):
        raise ValueError(f"its tensors take {start:,} bytes, its files have {len(data):,}")
    return tensors
