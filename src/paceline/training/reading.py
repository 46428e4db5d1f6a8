"""How a rank reads its training samples: `data.read` of a study file.

    mapped   the decoded cache is memory-mapped: a page is read on first access, and shared by all ranks of a host
    whole    every rank reads the whole data set into its memory, as most programs do
    mpi-io   every rank reads only its share of the records from one file, through an MPI file view

The operating system counts bytes of read calls. A mapped cache has few: its pages are read during the input-wait of
the first epoch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from paceline.data.arrays import PARTS
from paceline.data.cache import MappedDataset, open_dataset
from paceline.data.store import Split, split
from paceline.errors import DataError
from paceline.layout import DATA
from paceline.records.settings import AugmentSettings
from paceline.records.study import Point
from paceline.training import mpi_session
from paceline.training.augment import Augmentation
from paceline.training.batches import Batches, Samples, ShareBatches, share

_COUNTERS = Path("/proc/self/io")


def read_bytes(counters: Path = _COUNTERS) -> int | None:
    """Bytes that this process has read through read calls; None if the system does not count them."""
    try:
        for line in counters.read_text().splitlines():
            name, _, value = line.partition(":")
            if name == "rchar":
                return int(value)
    except (OSError, ValueError):
        pass
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedData:
    """The data set, as one rank has loaded it."""

    mapped: MappedDataset
    """The whole data set. A rank accesses only its share of validation and test samples."""
    parts: Split
    train_images: np.ndarray
    """All training images, or with mpi-io the share of this rank, in the order of the file."""
    train_labels: np.ndarray


def load_data(folder: Path, point: Point, rank: int) -> LoadedData:
    """The data set of a point, loaded for one rank as `data.read` says."""
    mapped = open_dataset(folder)
    parts = split(mapped.dataset, point.data)
    if point.data.read == "whole":
        own = {part.replace("-", "_"): np.load(folder / f"{part}.npy", allow_pickle=False) for part in PARTS}
        mapped = replace(mapped, **own)
    images, labels = mapped.train_images, mapped.train_labels
    if reads_shares(point):
        chosen = data_share(parts.train, point.layout.index(rank, DATA), point.data_size)
        mpi_session.world(rank, point.processes)
        images = _through_mpi(folder / "train-images.npy", images, chosen)
        labels = _through_mpi(folder / "train-labels.npy", labels, chosen)
    return LoadedData(mapped=mapped, parts=parts, train_images=images, train_labels=labels)


def data_share(indices: np.ndarray, index: int, size: int) -> np.ndarray:
    """Samples of one index along the data axis: contiguous in the file."""
    start, end = share(len(indices), index, size)
    return indices[start:end]


def make_batches(
    samples: Samples, parts: Split, point: Point, seed: int, rank: int, mean: Sequence[float]
) -> Batches | ShareBatches:
    """Training batches of one rank; `mean` is that of the data set, by channel."""
    changed, blank = point.augment != AugmentSettings(), [value * samples.unit for value in mean]
    common: dict[str, Any] = {
        "batch_global": point.batch_global,
        "seed": seed,
        "index": point.layout.index(rank, DATA),
        "augmentation": Augmentation(point.augment, samples.shape, blank) if changed else None,
    }
    if reads_shares(point):
        counts = [len(data_share(parts.train, index, point.data_size)) for index in range(point.data_size)]
        return ShareBatches(samples, counts, **common)
    return Batches(samples, parts.train, size=point.data_size, **common)


def reads_shares(point: Point) -> bool:
    """Whether every rank loads only its share of the samples."""
    return point.data.read == "mpi-io" and point.ranks > 1


def _through_mpi(path: Path, mapped: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """The chosen records of an array file, read through an MPI file view of only these."""
    from mpi4py import MPI  # after mpi_session has initialised MPI

    record = mapped[0].nbytes
    start = path.stat().st_size - mapped.nbytes  # header of the array
    own = np.empty((len(chosen), *mapped.shape[1:]), mapped.dtype)
    unit = MPI.BYTE.Create_contiguous(record).Commit()
    starts = np.flatnonzero(np.diff(chosen, prepend=chosen[0] - 2) > 1)  # of runs of consecutive records
    lengths = np.diff(starts, append=len(chosen))
    view = unit.Create_indexed(lengths.tolist(), chosen[starts].tolist()).Commit()
    try:
        # Independent reads: shares are contiguous, so a collective read gains nothing, and servers need not take part.
        file = MPI.File.Open(MPI.COMM_SELF, str(path), MPI.MODE_RDONLY)
        try:
            file.Set_view(start, unit, view)
            file.Read([own, len(chosen), unit])
        finally:
            file.Close()
    except MPI.Exception as error:
        raise DataError(
            f"{path} cannot be read through MPI: {error.Get_error_string()}.",
            right="Every host must see the cache under the same path.",
            next="Use `--set data.read=mapped`, or put PACELINE_CACHE on a shared file system.",
        ) from error
    finally:
        view.Free()
        unit.Free()
    return own
