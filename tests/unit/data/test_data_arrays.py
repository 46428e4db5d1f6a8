"""Arrays brought to one form, measured and hashed; what cannot be brought to it is refused."""

import numpy as np
import pytest

from paceline.data.arrays import Arrays, channel_statistics, digest, normalised, order
from paceline.errors import DataError
from samples.data_files import four_arrays


def arrays(train_images=None, train_labels=None, test_images=None, test_labels=None):
    given = (train_images, train_labels, test_images, test_labels)
    four = [usual if one is None else np.asarray(one) for one, usual in zip(given, four_arrays(), strict=True)]
    return Arrays.of(four, source="here")


def both(images=None, labels=None):
    """The same change made to the training and the test set."""
    x, y, x_test, y_test = four_arrays()
    if images:
        x, x_test = images(x), images(x_test)
    if labels:
        y, y_test = labels(y), labels(y_test)
    return Arrays.of((x, y, x_test, y_test), source="here")


def test_greyscale_gets_a_channel_and_labels_are_int64():
    found = normalised(arrays(), "a.npz")
    assert found.train_images.shape == (30, 5, 4, 1)
    assert (found.train_images.dtype, found.train_labels.dtype) == (np.uint8, np.int64)
    assert (found.classes, found.note) == (3, None)


@pytest.mark.parametrize("dtype", ["int16", "int64", "uint32"])
def test_whole_numbers_of_other_types_become_bytes(dtype):
    found = normalised(both(lambda x: x.astype(dtype)), "a.npz")
    assert found.train_images.dtype == np.uint8
    np.testing.assert_array_equal(found.train_images[..., 0], four_arrays()[0])


@pytest.mark.parametrize("dtype", ["float16", "float32", ">f4", "float64"])
def test_floats_become_float32(dtype):
    found = normalised(both(lambda x: (x / 255).astype(dtype)), "a.npz")
    assert found.train_images.dtype == np.dtype("<f4")
    np.testing.assert_allclose(found.train_images[..., 0], four_arrays()[0] / 255, atol=1e-3)


def test_channels_first_are_moved_last_and_said():
    found = normalised(both(lambda x: np.zeros((len(x), 3, 8, 9), np.uint8)), "a.npz")
    assert found.train_images.shape == (30, 8, 9, 3)
    assert "channels first" in (found.note or "")


def test_labels_in_a_column_and_whole_floats_are_taken():
    found = normalised(both(labels=lambda y: y.astype(np.float64)[:, np.newaxis]), "a.npz")
    np.testing.assert_array_equal(found.train_labels, four_arrays()[1])


def test_a_class_without_training_samples_is_said():
    found = normalised(arrays(train_labels=np.arange(30) % 2), "a.npz")
    assert found.note == "1 of 3 classes have no training sample"


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (arrays(train_labels=np.zeros(29, int)), "training set of a.npz has 30 images and 29 labels"),
        (arrays(test_images=np.zeros((0, 5, 4), np.uint8), test_labels=[]), "test set of a.npz is empty"),
        (arrays(train_labels=np.int64(3)), "30 images and no list of labels"),
        (both(lambda x: x.reshape(len(x), -1)), "training images of a.npz have the shape 30×20"),
        (both(lambda x: x[:, :0]), "shape 30×0×4×1"),
        (arrays(test_images=np.zeros((6, 4, 4), np.uint8)), "are 5×4×1 uint8, its test images 4×4×1 uint8"),
        (arrays(test_images=np.zeros((6, 5, 4), np.float32)), "5×4×1 uint8, its test images 5×4×1 float32"),
        (both(lambda x: x.astype(int) + 1), "whole numbers from"),
        (both(lambda x: x.astype(int) - 1), "whole numbers from -1 to"),
        (both(lambda x: np.where(x > 200, np.nan, x)), "values that are not finite"),
        (both(lambda x: np.where(x > 200, 1e300, x)), "values that are not finite"),
        (both(lambda x: x.astype(complex)), "are of type complex128"),
        (both(lambda x: x.astype("U3")), "are of type <U3"),
        (both(labels=lambda y: y.astype(int) - 1), "training labels of a.npz hold values from -1 to 1"),
        (both(labels=lambda y: y + 0.5), "hold values from 0.5 to 2.5"),
        (both(labels=lambda y: np.where(y > 1, np.nan, y)), "hold values from nan to nan"),
        (both(labels=lambda y: y.astype(int) + 2**40), "hold values from 1099511627776"),
        (both(labels=lambda y: np.eye(3)[y]), "training labels of a.npz have the shape 30×3"),
        (both(labels=lambda y: y.astype("U1")), "are of type <U1"),
        (both(labels=lambda y: y * 0), "Every label of a.npz is 0"),
        (arrays(test_labels=[0, 1, 2, 0, 1, 60_000]), "A label of a.npz is 60000"),
    ],
)
def test_what_does_not_fit_is_refused_with_a_sentence(bad, says):
    with pytest.raises(DataError) as caught:
        normalised(bad, "a.npz")
    assert says in caught.value.what
    assert caught.value.right
    assert caught.value.next


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_channel_statistics_are_those_of_numpy(dtype):
    images = np.random.default_rng(1).integers(0, 256, (50, 6, 7, 3)).astype(dtype)
    images[..., 2] = 7
    mean, std = channel_statistics(images)
    scaled = images.astype(np.float64) / (255 if dtype == np.uint8 else 1)
    np.testing.assert_allclose(mean, scaled.mean((0, 1, 2)), rtol=1e-12)
    np.testing.assert_allclose(std[:2], scaled.std((0, 1, 2))[:2], rtol=1e-12)
    assert std[2] == 1.0


def test_the_digest_changes_with_any_byte_shape_or_type():
    usual = normalised(arrays(), "a").parts()
    digests = {digest(usual), digest({name: array.copy() for name, array in usual.items()})}
    assert len(digests) == 1
    for name, array in usual.items():
        changed = array.copy()
        changed.flat[-1] += 1
        digests.add(digest({**usual, name: changed}))
    digests.add(digest({**usual, "train-images": usual["train-images"].reshape(30, 4, 5, 1)}))
    digests.add(digest({**usual, "train-images": usual["train-images"].view(np.int8)}))
    assert len(digests) == 7


def test_the_order_never_changes():
    assert order(10, 7).tolist() == [6, 3, 4, 9, 0, 2, 8, 7, 5, 1]
    assert order(0, 7).tolist() == []
