"""What a rank holds of a data set. Reading through MPI is in tests/cluster: it takes a real mpiexec."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from light_ranks.light_launch import point
from paceline.data.store import prepare
from paceline.records.settings import AugmentSettings, DataSettings
from paceline.training.batches import Samples
from paceline.training.reading import data_share, load_data, make_batches, read_bytes


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    cache = tmp_path_factory.mktemp("cache")
    return prepare(DataSettings(dataset="digits"), base=cache, cache=cache).folder


def held(folder, read, ranks=2, rank=0):
    settings = DataSettings(dataset="digits", read=read, validation=100)
    return load_data(folder, replace(point(ranks), data=settings), rank)


def test_every_rank_that_reads_the_whole_has_what_is_mapped(folder):
    mapped, whole = held(folder, "mapped"), held(folder, "whole")
    assert np.array_equal(mapped.train_images, whole.train_images)
    assert np.array_equal(mapped.mapped.test_labels, whole.mapped.test_labels)
    assert np.array_equal(mapped.parts.validation, whole.parts.validation)


def test_the_bytes_that_were_read_are_counted(folder):
    def count(read):
        before = read_bytes()
        held(folder, read)
        return read_bytes() - before

    if read_bytes() is None:
        pytest.skip("this system does not count them")
    everything = sum(path.stat().st_size for path in folder.glob("*.npy"))
    assert count("whole") >= everything > 3 * count("mapped")


def test_nothing_is_counted_where_the_system_does_not(tmp_path):
    assert read_bytes(tmp_path / "none") is None
    strange = tmp_path / "io"
    strange.write_text("rchar: many\n")
    assert read_bytes(strange) is None


def test_a_single_rank_needs_no_mpi(folder):
    alone = held(folder, "mpi-io", ranks=1)
    assert len(alone.train_images) == len(alone.mapped.train_images)


def test_shares_are_neighbours_and_cover_everything_once():
    indices = np.array([0, 1, 4, 5, 6, 9, 11])
    shares = [data_share(indices, rank, 3) for rank in range(3)]
    assert [len(own) for own in shares] == [3, 2, 2]
    assert np.array_equal(np.concatenate(shares), indices)


def test_batches_are_augmented_as_the_point_says_and_a_cutout_has_the_mean_of_the_data_set(folder):
    having = held(folder, "mapped", ranks=1)
    dataset = having.mapped.dataset
    samples = Samples(
        having.train_images,
        having.train_labels,
        mean=dataset.mean,
        std=dataset.std,
        device=torch.device("cpu"),
        dtype=torch.float32,
    )
    takes = {}
    for name, augment in (("plain", AugmentSettings()), ("cut", AugmentSettings(cutout=3))):
        batches = make_batches(samples, having.parts, replace(point(1), augment=augment), 0, 0, dataset.mean)
        takes[name] = batches.take(batches.order(0), 0).inputs
    changed = takes["cut"] != takes["plain"]
    assert changed.any() and changed.float().mean() < 9 / 64
    # Standardised, the mean is zero, but for rounding to a whole number of 255.
    assert takes["cut"][changed].abs().max() < 0.5 / 255 / dataset.std[0] + 1e-6
