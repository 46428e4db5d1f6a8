"""The data sets of the catalog: the right bytes, the same ones every time."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from checks.ci import in_ci
from paceline.data.arrays import Arrays, digest
from paceline.data.cache import open_dataset
from paceline.data.digits import FILE, digits, read_digits
from paceline.data.mnist import MNIST_SHA256, checked_arrays
from paceline.data.sources import NoSourceError
from paceline.data.store import check, prepare
from paceline.data.synthetic import synthetic
from paceline.errors import DataError
from paceline.records.settings import DataSettings

NOWHERE = Path("nowhere")


def quiet(line):
    pass


def made(**options):
    return synthetic(DataSettings(dataset="synthetic", **options), sources=NOWHERE, say=quiet)


def test_the_digits_have_their_published_sizes_and_classes():
    found = digits(DataSettings(dataset="digits"), sources=NOWHERE, say=quiet)
    assert found.train_images.shape == (1497, 8, 8, 1)
    assert found.test_images.shape == (300, 8, 8, 1)
    assert found.classes == 10
    images = np.concatenate([found.train_images, found.test_images])
    assert (images.min(), images.max()) == (0, 255)
    labels = np.concatenate([found.train_labels, found.test_labels])
    # Counts of the classes 0 to 9, as the data set's authors publish them for their test set.
    assert np.bincount(labels).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]


def test_the_digits_carry_their_licence_and_source():
    text = FILE.with_suffix(".txt").read_text(encoding="utf-8")
    assert "CC BY 4.0" in text and "Alpaydin" in text and "UCI" in text


def test_the_digits_never_change():
    found = digits(DataSettings(dataset="digits"), sources=NOWHERE, say=quiet)
    assert digest(found.parts()) == "d9f4cc3c381535f2f850b87c85b1caf785fd12f13551d37f47a65a60218bd0b4"


def test_the_digits_are_read_without_heavy_imports(tmp_path):
    program = (
        "import sys; from pathlib import Path; from paceline.data.store import prepare;"
        "from paceline.records.settings import DataSettings;"
        f"prepare(DataSettings(dataset='digits'), base=Path(), cache=Path({str(tmp_path)!r}));"
        "print([name for name in ('scipy', 'torch', 'pyarrow') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("change", ["a pixel", "a sample", "no labels", "objects", "half a file"])
def test_other_digits_are_refused(tmp_path, change):
    dots, labels = read_digits(FILE)
    path = tmp_path / "digits.npz"
    changed = {
        "a pixel": {"dots": np.where(dots == 13, 12, dots).astype(np.uint8), "labels": labels},
        "a sample": {"dots": dots[1:], "labels": labels[1:]},
        "no labels": {"dots": dots},
        "objects": {"dots": dots.astype(object), "labels": labels},
        "half a file": {"dots": dots, "labels": labels},
    }
    np.savez_compressed(path, **changed[change])
    if change == "half a file":
        path.write_bytes(path.read_bytes()[:20_000])
    with pytest.raises(DataError, match=r"digits\.npz"):
        read_digits(path)


def test_synthetic_data_never_change():
    expected = "3085824d0d80a41fa5250ff8537e9a805221cadc71e1d1f0f3ba7939ad6c7ac0"
    assert digest(made().parts()) == expected
    assert made().train_images.shape == (6000, 28, 28, 1)
    assert made().test_images.shape == (1000, 28, 28, 1)


@pytest.mark.parametrize(
    ("shape", "classes", "samples"), [((1, 7, 2), 4, 50), ((9, 9, 1), 2, 1), ((224, 8, 3), 100, 60)]
)
def test_synthetic_data_of_any_shape(shape, classes, samples):
    found = made(shape=shape, classes=classes, samples=samples)
    assert found.train_images.shape == (samples, *shape)
    assert found.classes == classes
    assert len(found.test_images) == max(1, samples // 6)


def test_synthetic_data_can_be_learned_and_are_not_given_away():
    found = made()
    train = found.train_images.reshape(6000, -1).astype(np.float64)
    means = np.stack([train[found.train_labels == label].mean(0) for label in range(10)])
    test = found.test_images.reshape(1000, -1).astype(np.float64)
    nearest = ((test[:, np.newaxis] - means) ** 2).sum(2).argmin(1)
    assert (nearest == found.test_labels).mean() > 0.95
    one_pixel = np.abs(test[:, :1] - means[np.newaxis, :, 0]).argmin(1)
    assert (one_pixel == found.test_labels).mean() < 0.3


@pytest.mark.parametrize(
    "options",
    [{"shape": (0, 4, 1)}, {"shape": (4,)}, {"classes": 1}, {"samples": 0}, {"shape": (1 << 20, 1 << 20, 3)}],
)
def test_synthetic_data_that_cannot_be_made_are_refused(options):
    with pytest.raises(DataError):
        made(**options)


@pytest.fixture(scope="session")
def real_mnist():
    """MNIST in the user's own cache, so that it is fetched once and not by every test run."""
    try:
        return prepare(DataSettings(dataset="mnist"), base=NOWHERE)
    except NoSourceError as error:
        if in_ci():
            raise
        pytest.skip(f"no source of MNIST can be reached: {'; '.join(error.failures)}")


def test_mnist_is_mnist(real_mnist):
    dataset = check("mnist", base=NOWHERE).dataset
    assert (dataset.train, dataset.test, dataset.shape, dataset.classes) == (60_000, 10_000, (28, 28, 1), 10)
    assert (round(dataset.mean[0], 4), round(dataset.std[0], 4)) == (0.1307, 0.3081)
    assert dataset.digest == "28ad49ff8c78ceb3a3d7454c16bd9c450d79dee0245d81a2befe4705886525de"
    labels = open_dataset(real_mnist.folder).train_labels
    assert labels[:10].tolist() == [5, 0, 4, 1, 9, 2, 1, 3, 1, 4]


def test_one_changed_pixel_is_not_mnist(real_mnist):
    copies = [array.copy() for array in open_dataset(real_mnist.folder).parts().values()]
    arrays = Arrays.of(copies, source="a copy")
    assert checked_arrays(arrays, MNIST_SHA256, "MNIST").classes == 10
    arrays.test_images[9_999, 27, 27, 0] ^= 1
    with pytest.raises(DataError, match="The test images of a copy are not those of MNIST"):
        checked_arrays(arrays, MNIST_SHA256, "MNIST")
