"""IDX files: what is written is read, in every type, packed or not; the usual names in a folder."""

import gzip
import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from paceline.data.idx import read_idx, read_idx_file, read_idx_folder
from paceline.errors import DataError
from samples.data_files import IDX_NAMES, IDX_TYPES, four_arrays, idx_bytes, write_idx_folder


@given(
    array=st.sampled_from(sorted(IDX_TYPES)).flatmap(
        lambda name: hnp.arrays(np.dtype(name), hnp.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=6))
    ),
    packed=st.booleans(),
)
def test_what_is_written_is_read(array, packed):
    data = gzip.compress(idx_bytes(array)) if packed else idx_bytes(array)
    read = read_idx_file(io.BytesIO(data), "a file", len(data))
    assert read.dtype == array.dtype
    np.testing.assert_array_equal(read, array)


@pytest.mark.parametrize("packed", [False, True])
def test_a_folder_of_the_usual_four(tmp_path, packed):
    arrays = four_arrays()
    read = read_idx_folder(write_idx_folder(tmp_path, arrays, packed=packed))
    for found, written in zip(read.parts().values(), arrays, strict=True):
        np.testing.assert_array_equal(found, written)
    assert read.source == f"your files: {tmp_path}"
    assert read.note is None


def test_a_gz_that_a_browser_has_unpacked_is_read(tmp_path):
    images = four_arrays()[0]
    path = tmp_path / "train-images-idx3-ubyte.gz"
    path.write_bytes(idx_bytes(images))
    np.testing.assert_array_equal(read_idx(path), images)


def test_other_spellings_are_found(tmp_path):
    write_idx_folder(tmp_path / "raw", four_arrays())
    for name in IDX_NAMES:
        (tmp_path / "raw" / name).rename(tmp_path / "raw" / name.replace("-idx", ".idx"))
    assert len(read_idx_folder(tmp_path).train_images) == 30


def test_without_test_files_a_sixth_is_held_out(tmp_path):
    images, labels = four_arrays()[:2]
    read = read_idx_folder(write_idx_folder(tmp_path, (images, labels)))
    assert (len(read.train_images), len(read.test_images)) == (25, 5)
    assert "5 of its 30 samples were held out" in (read.note or "")
    both = np.concatenate([read.train_images, read.test_images])
    assert sorted(map(bytes, both)) == sorted(map(bytes, images))


def test_a_missing_file_is_named(tmp_path):
    write_idx_folder(tmp_path, four_arrays())
    (tmp_path / "t10k-labels-idx1-ubyte").unlink()
    with pytest.raises(DataError, match=r"has no t10k-labels-idx1-ubyte\."):
        read_idx_folder(tmp_path)
