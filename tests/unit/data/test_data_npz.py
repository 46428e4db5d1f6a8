"""NumPy archives: the usual names, one set alone, odd but harmless forms."""

import numpy as np
import pytest

from paceline.data.npz import read_npz
from paceline.errors import DataError
from samples.data_files import four_arrays, write_npz


@pytest.mark.parametrize(
    "names",
    [
        ("x_train", "y_train", "x_test", "y_test"),
        ("X_train", "Y_train", "X_test", "Y_test"),
        ("train_images", "train_labels", "test_images", "test_labels"),
        ("train_x", "train_y", "test_x", "test_y"),
    ],
)
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_the_usual_names(tmp_path, names, save):
    arrays = four_arrays()
    save(tmp_path / "a.npz", **dict(zip(names, arrays, strict=True)), val_images=arrays[0])
    read = read_npz(tmp_path / "a.npz")
    for found, written in zip(read.parts().values(), arrays, strict=True):
        np.testing.assert_array_equal(found, written)


@pytest.mark.parametrize("names", [("x", "y"), ("images", "labels"), ("x_train", "y_train")])
def test_one_set_alone_gives_a_sixth_to_the_test(tmp_path, names):
    images, labels = four_arrays()[:2]
    np.savez(tmp_path / "a.npz", **dict(zip(names, (images, labels), strict=True)))
    read, again = read_npz(tmp_path / "a.npz"), read_npz(tmp_path / "a.npz")
    assert (len(read.train_labels), len(read.test_labels)) == (25, 5)
    assert "has no test set: 5 of its 30 samples were held out" in (read.note or "")
    np.testing.assert_array_equal(read.test_images, again.test_images)


def test_arrays_stored_by_column_come_back_in_their_own_order(tmp_path):
    arrays = four_arrays()
    write_npz(tmp_path / "a.npz", (np.asfortranarray(arrays[0]), *arrays[1:]))
    np.testing.assert_array_equal(read_npz(tmp_path / "a.npz").train_images, arrays[0])


def test_other_names_are_listed(tmp_path):
    np.savez(tmp_path / "a.npz", features=np.zeros(3), outcome=np.zeros(3))
    with pytest.raises(DataError, match=r"a\.npz holds features\.npy, outcome\.npy") as caught:
        read_npz(tmp_path / "a.npz")
    assert "x_train, y_train, x_test and y_test" in caught.value.right
