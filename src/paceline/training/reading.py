"""How a rank comes to its training samples: `data.read` of a study file.

    mapped   the decoded cache is mapped: a page is read when first touched, and shared by all ranks of a host
    whole    every rank reads everything into memory of its own, as programs do that load a data set and go
    mpi-io   every rank reads its own records, and no others, out of the one file, through an MPI file view

What was read is counted by the operating system, as bytes that went through read calls: so little for a mapped
cache, whose pages come in later, behind the input-wait of the first epoch.
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
    """Bytes that this process has read so far through read calls; None where the system does not count them."""
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
    """What a rank has of a data set."""

    mapped: MappedDataset
    """All of it. Of what is only evaluated, a rank touches its own share and no more."""
    parts: Split
    train_images: np.ndarray
    """What it trains on: all training images, or with mpi-io its own share of them in the file's order."""
    train_labels: np.ndarray


def load_data(folder: Path, point: Point, rank: int) -> LoadedData:
    """The data set of a point as one of its ranks holds it under `data.read`."""
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
    """The samples of one index along the data axis: neighbours in the file, so that a rank reads one part of it."""
    start, end = share(len(indices), index, size)
    return indices[start:end]


def make_batches(
    samples: Samples, parts: Split, point: Point, seed: int, rank: int, mean: Sequence[float]
) -> Batches | ShareBatches:
    """The training batches of one rank, out of all samples or out of its own; `mean` is the data set's, by channel."""
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
    """Whether every rank holds its own share of the samples alone."""
    return point.data.read == "mpi-io" and point.ranks > 1


def _through_mpi(path: Path, mapped: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """The chosen records of an array's file, through a view in which there is nothing else."""
    from mpi4py import MPI  # not before MPI was started as a rank wants it

    record = mapped[0].nbytes
    start = path.stat().st_size - mapped.nbytes  # what stands before the records: the array's header
    own = np.empty((len(chosen), *mapped.shape[1:]), mapped.dtype)
    unit = MPI.BYTE.Create_contiguous(record).Commit()
    starts = np.flatnonzero(np.diff(chosen, prepend=chosen[0] - 2) > 1)  # of the runs of neighbours among them
    lengths = np.diff(starts, append=len(chosen))
    view = unit.Create_indexed(lengths.tolist(), chosen[starts].tolist()).Commit()
    try:
        # By each rank for itself: shares are whole parts of the file, so nothing is gained by reading together, and
        # servers, which read nothing, need not take part.
        file = MPI.File.Open(MPI.COMM_SELF, str(path), MPI.MODE_RDONLY)
        try:
            file.Set_view(start, unit, view)
            file.Read([own, len(chosen), unit])
        finally:
            file.Close()
    except MPI.Exception as error:
        raise DataError(
            f"{path} cannot be read through MPI: {error.Get_error_string()}.",
            right="Every host has to see the cache under the same path.",
            next="Use `--set data.read=mapped`, or put PACELINE_CACHE on a file system that all hosts share.",
        ) from error
    finally:
        view.Free()
        unit.Free()
    return own
