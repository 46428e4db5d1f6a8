"""Image folders: found, mixed by class, held out, decoded once into the cache, and decoded again when they change."""

import os
import shutil
import sys
import tarfile
import threading
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.data import decoding, named_folders, pictures
from paceline.data.arrays import digest
from paceline.data.cache import Dataset, open_dataset
from paceline.data.folders import Part, image_folder, interleaved
from paceline.data.sources import NoSourceError, SourceFailure
from paceline.data.store import cached, catalog_state, check, prepare, split
from paceline.errors import DataError
from paceline.records.settings import DataSettings
from paceline.storage.codec import read_record, write_record
from samples.image_files import image_bytes, noise, plain, write_folder

COUNTS = {"daisy": 12, "rose": 6, "tulip": 18}


def wanted(path, **given):
    return DataSettings(dataset=str(path), **{"image_size": 8, **given})


def prepared(tmp_path, path=None, **given):
    return prepare(wanted(path or tmp_path / "photos", **given), base=tmp_path, cache=tmp_path / "cache")


@pytest.fixture
def photos(tmp_path):
    return write_folder(tmp_path / "photos", COUNTS)


def test_a_folder_becomes_arrays_with_classes_by_name(tmp_path, photos):
    found = prepared(tmp_path)
    dataset = found.dataset
    assert (dataset.name, dataset.classes, dataset.class_names) == ("photos", 3, ("daisy", "rose", "tulip"))
    assert (dataset.train, dataset.test, dataset.shape, dataset.dtype) == (30, 6, (8, 8, 3), "uint8")
    assert (dataset.train_counts, dataset.test_counts) == ((10, 5, 15), (2, 1, 3))
    assert dataset.source == f"your files: {photos}"
    assert "6 of its 36 images were held out as one, by class" in (found.note or "")
    mapped = open_dataset(found.folder)
    for number, count in enumerate(dataset.train_counts):
        assert (mapped.train_labels == number).sum() == count
    assert check(wanted(photos), base=tmp_path, cache=tmp_path / "cache") == found
    assert sorted(path.name for path in (tmp_path / "cache").iterdir()) == [
        "index", found.folder.name,
    ]  # fmt: skip


def test_every_image_is_stored_once_under_its_own_label(tmp_path, photos):
    mapped = open_dataset(prepared(tmp_path).folder)
    stored = {}
    for images, labels in ((mapped.train_images, mapped.train_labels), (mapped.test_images, mapped.test_labels)):
        stored |= {image.tobytes(): int(label) for image, label in zip(images, labels, strict=True)}
    assert len(stored) == 36
    for number, label in enumerate(COUNTS):
        for path in (photos / label).iterdir():
            assert stored[pictures.pixels(path, 8).tobytes()] == number


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 40), min_size=2, max_size=6), st.data())
def test_any_stretch_of_the_order_has_the_balance_of_the_whole(counts, data):
    part = Part(folder="f", by_class={f"{n}": tuple(f"{i}" for i in range(c)) for n, c in enumerate(counts)})
    order = interleaved(part, tuple(part.by_class))
    assert sorted(order) == sorted((n, f"f/{n}/{i}") for n, c in enumerate(counts) for i in range(c))
    start = data.draw(st.integers(0, len(order)))
    end = data.draw(st.integers(start, len(order)))
    for number, count in enumerate(counts):
        expected = (end - start) * count / len(order)
        assert abs(sum(label == number for label, _ in order[start:end]) - expected) <= 2


def test_names_are_drawn_and_not_taken_in_turn():
    """Names often count the shots of one scene: a test set of the first of them would be of other scenes."""
    names = tuple(f"{number:03d}.png" for number in range(90))
    drawn = [int(path[-7:-4]) for _, path in interleaved(Part(folder="f", by_class={"a": names}), ("a",))]
    first = drawn[:30]
    assert sum(number < 30 for number in first) < 20
    assert abs(np.mean(first) - 44.5) < 15


def test_validation_keeps_the_balance_and_does_not_move_with_the_number_trained_on(tmp_path):
    write_folder(tmp_path / "photos", {"a": 60, "b": 30, "c": 12}, size=(4, 4))
    found = prepared(tmp_path, test=0.2)
    labels = open_dataset(found.folder).train_labels
    assert found.dataset.train_counts == (48, 24, 10)
    parts = split(found.dataset, DataSettings(validation=0.25, train_samples=40))
    assert len(parts.validation) == 20
    assert np.abs(np.bincount(labels[parts.validation]) - np.array([11.7, 5.9, 2.4])).max() <= 1
    assert np.abs(np.bincount(labels[parts.train]) - np.array([23.4, 11.7, 4.9])).max() <= 1
    assert not set(parts.train) & set(parts.validation)
    np.testing.assert_array_equal(split(found.dataset, DataSettings(validation=0.25)).validation, parts.validation)


def test_the_division_does_not_depend_on_where_the_folder_lies_or_when_files_were_written(tmp_path, photos):
    shutil.copytree(photos, tmp_path / "elsewhere" / "photos")
    one, other = prepared(tmp_path), prepared(tmp_path, tmp_path / "elsewhere" / "photos")
    assert one.folder == other.folder


def test_one_more_image_moves_few_of_the_others(tmp_path):
    write_folder(tmp_path / "photos", {"a": 60, "b": 60}, size=(8, 8))
    before = {image.tobytes() for image in open_dataset(prepared(tmp_path).folder).test_images}
    (tmp_path / "photos" / "a" / "new.png").write_bytes(image_bytes(noise(7777, (8, 8))))
    after = {image.tobytes() for image in open_dataset(prepared(tmp_path).folder).test_images}
    assert len(before & after) >= 18


@pytest.mark.parametrize(
    ("train", "validation", "test"),
    [("train", "val", "test"), ("Training", "Validation", "Test"), ("TRAIN", "valid", "testing")],
)
def test_separate_folders_are_used_as_they_are(tmp_path, train, validation, test):
    root = write_folder(
        tmp_path / "photos",
        {f"{train}/a": 9, f"{train}/b": 6, f"{validation}/a": 2, f"{validation}/b": 3, f"{test}/b": 4},
    )
    found = prepared(tmp_path)
    dataset = found.dataset
    assert (dataset.train, dataset.validation, dataset.test, found.note) == (20, 5, 4, None)
    assert dataset.test_counts == (0, 4)
    parts = split(dataset, DataSettings())
    mapped = open_dataset(found.folder)
    held = {mapped.train_images[index].tobytes() for index in parts.validation}
    assert held == {pictures.pixels(path, 8).tobytes() for path in (root / validation).rglob("*.png")}
    assert len(parts.train) == 15
    with pytest.raises(DataError, match=r"validation is 0\.1, and photos brings 5 samples to validate on"):
        split(dataset, DataSettings(validation=0.1))
    with pytest.raises(DataError, match=r"data.test is 0\.2, and .*photos has a test folder"):
        prepared(tmp_path, test=0.2)


def test_a_class_may_be_called_train(tmp_path):
    write_folder(tmp_path / "photos", {"car": 5, "plane": 5, "train": 5})
    assert prepared(tmp_path).dataset.class_names == ("car", "plane", "train")


def test_what_is_in_a_wrapping_folder_is_found(tmp_path):
    write_folder(tmp_path / "photos" / "wrapped" / "twice", COUNTS)
    assert prepared(tmp_path).dataset.class_names == tuple(COUNTS)


def test_nested_folders_hidden_files_and_texts(tmp_path, photos):
    deep = photos / "rose" / "red" / "dark"
    deep.mkdir(parents=True)
    (deep / "1.png").write_bytes(image_bytes(noise(4711)))
    (photos / "rose" / ".DS_Store").write_bytes(b"x")
    (photos / "rose" / "._1.png").write_bytes(b"x")
    (photos / "__MACOSX").mkdir()
    (photos / "rose" / "notes.txt").write_text("roses are red")
    (photos / "tulip" / "photo").write_bytes(image_bytes(noise(4712), "JPEG"))
    (photos / "empty").mkdir()
    (photos / "cover.png").write_bytes(image_bytes(plain()))
    found = prepared(tmp_path)
    assert found.dataset.train + found.dataset.test == 38
    note = found.note or ""
    assert "1 class folder without an image left out: empty" in note
    assert "1 file left out as no images: notes.txt" in note
    assert "1 image beside the class folders left out: cover.png" in note


def test_links_are_followed_but_not_in_circles(tmp_path, photos):
    (photos / "rose" / "again").symlink_to(photos / "rose")
    (photos / "rose" / "other.png").symlink_to(photos / "tulip" / "0000.png")
    write_folder(tmp_path / "elsewhere", {"lily": 6}, seed=99)
    (photos / "lily").symlink_to(tmp_path / "elsewhere" / "lily")
    found = prepared(tmp_path)
    assert found.dataset.class_names == ("daisy", "lily", "rose", "tulip")
    assert found.dataset.train + found.dataset.test == 36 + 1 + 6


def test_names_that_no_terminal_should_see_are_spelled_out(tmp_path):
    names = ["a\x1b[31m", "b\u202egpj", os.fsdecode(b"c\xff"), "d\n$(reboot);'\""]
    write_folder(tmp_path / "photos", dict.fromkeys(names, 4))
    found = prepared(tmp_path).dataset
    assert found.class_names == ("a\\x1b[31m", "b\\u202egpj", "c\\udcff", "d\\n$(reboot);'\"")
    assert all(name.isprintable() and name.encode() for name in found.class_names)


@pytest.mark.parametrize(
    "change",
    ["contents", "a file more", "a file less", "another name", "size", "test", "damaged"],
)
def test_what_changes_the_answer_changes_the_key(tmp_path, photos, change):
    given = {"size": {"image_size": 9}, "test": {"test": 0.3}, "damaged": {"damaged": "skip"}}.get(change, {})
    prepared(tmp_path)
    path = photos / "rose" / "0000.png"
    stat = path.stat()
    if change == "contents":
        path.write_bytes(image_bytes(noise(31, (12, 10))))
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    elif change == "a file more":
        (photos / "rose" / "new.png").write_bytes(image_bytes(plain()))
    elif change == "a file less":
        path.unlink()
    elif change == "another name":
        (photos / "rose").rename(photos / "roses")
    assert cached(wanted(photos, **given), base=tmp_path, cache=tmp_path / "cache") is None


def test_what_is_cached_is_not_decoded_again(tmp_path, photos, monkeypatch):
    first = prepared(tmp_path)
    monkeypatch.setattr(decoding, "pixels", lambda *_: pytest.fail("decoded again"))
    assert prepared(tmp_path) == first


def test_classes_that_are_called_otherwise_are_another_data_set(tmp_path, photos):
    """The same bytes: but the names of the classes, which ranks read in the folder, are not."""
    first = prepared(tmp_path)
    (photos / "rose").rename(photos / "roses")
    second = prepared(tmp_path)
    assert first.folder != second.folder
    assert read_record(second.folder / "dataset.json", Dataset).class_names == ("daisy", "roses", "tulip")
    both = [open_dataset(found.folder).parts().values() for found in (first, second)]
    for one, other in zip(*both, strict=True):
        np.testing.assert_array_equal(one, other)


def test_damaged_images_are_refused_by_name_or_skipped_and_said(tmp_path, photos):
    (photos / "rose" / "0001.png").write_bytes(b"")
    (photos / "tulip" / "broken.jpg").write_bytes(b"no image")
    with pytest.raises(DataError) as caught:
        prepared(tmp_path)
    assert caught.value.what.startswith("2 damaged images in 37: ")
    assert "rose/0001.png is empty" in caught.value.what
    assert "tulip/broken.jpg is not an image" in caught.value.what
    assert 'data.damaged = "skip"' in caught.value.next
    assert not list((tmp_path / "cache").glob(".making*"))
    found = prepared(tmp_path, damaged="skip")
    assert found.dataset.train + found.dataset.test == 35
    assert "2 damaged images left out: " in (found.note or "")
    mapped = open_dataset(found.folder)
    stored = {
        image.tobytes(): int(label) for image, label in zip(mapped.train_images, mapped.train_labels, strict=True)
    }
    for number, label in enumerate(COUNTS):
        for path in (photos / label).glob("*.png"):
            if path.stat().st_size:
                assert stored.get(pictures.pixels(path, 8).tobytes(), number) == number


def test_every_damaged_image_is_listed_where_they_are_too_many_for_a_sentence(tmp_path):
    """Also where the arrays are in the cache already, made of the same images beside fewer damaged ones."""
    root = write_folder(tmp_path / "photos", {"train/a": 3, "train/b": 3, "test/b": 2})
    names, lists, folders = [f"test/b/broken-{number}.jpg" for number in range(5)], {}, set()
    for number, name in enumerate(("test/b/one.jpg", "test/b/tw\no.jpg"), start=6):
        names.append(name)
        for path in names:
            (root / path).write_bytes(b"")
        found = prepared(tmp_path, damaged="skip")
        said, _, file = (found.note or "").partition(", all of them listed in ")
        assert said.startswith(f"{number} damaged images left out: ") and said.endswith(f"; and {number - 5} more")
        lists[file] = [path.replace("\n", r"\n") for path in names]
        folders.add(found.folder)
    assert (len(lists), len(folders)) == (2, 1)
    for file, listed in lists.items():
        assert Path(file).read_text().splitlines() == listed


def test_a_validation_set_is_smaller_by_its_damaged_images(tmp_path):
    root = write_folder(tmp_path / "photos", {"train/a": 6, "train/b": 6, "val/a": 3, "val/b": 3, "test/a": 2})
    (root / "val" / "a" / "0000.png").write_bytes(b"")
    (root / "train" / "a" / "0000.png").write_bytes(b"")
    found = prepared(tmp_path, damaged="skip")
    assert (found.dataset.validation, found.dataset.train) == (5, 16)
    held = open_dataset(found.folder).train_images[:5]
    assert {image.tobytes() for image in held} == {
        pictures.pixels(path, 8).tobytes() for path in (root / "val").rglob("*.png") if path.stat().st_size
    }


def test_a_folder_full_of_junk_is_given_up_on(tmp_path, photos, monkeypatch):
    monkeypatch.setattr(decoding, "_MAX_DAMAGED", 5)
    for path in photos.rglob("*.png"):
        path.write_bytes(b"")
    with pytest.raises(DataError, match=r"damaged images in the first \d+ of 36"):
        prepared(tmp_path)
    with pytest.raises(DataError, match="No image of the train set"):
        prepared(tmp_path, damaged="skip")
    assert not list((tmp_path / "cache").glob(".making*"))


@pytest.mark.parametrize(
    ("counts", "says"),
    [
        ({"a": 4}, "has only one class, a"),
        ({"a": 0, "b": 0}, "has no class folder with an image in it"),
        ({"a": 4, "b": 0}, "has only one class, a"),
        ({"train/a": 4, "train/b": 4, "test/c": 4}, "has classes that the training set has not: c"),
        ({"train/a": 4, "train/b": 4, "val/c": 4}, "validation set of"),
        ({"train/a": 4, "train/b": 4, "training/a": 4}, "two folders for one set: train and training"),
        ({"train/a": 4}, "has only one class, a"),
        ({"a": 1, "b": 0, "c": 0}, "has only one class, a"),
    ],
)
def test_folders_that_cannot_be_learned_from_are_refused(tmp_path, counts, says):
    write_folder(tmp_path / "photos", counts)
    with pytest.raises(DataError) as caught:
        prepared(tmp_path)
    assert says in caught.value.what
    assert caught.value.right
    assert caught.value.next
    assert not (tmp_path / "cache").exists()


def test_a_folder_without_folders_is_one_of_idx_files(tmp_path):
    (tmp_path / "photos").mkdir()
    with pytest.raises(DataError, match="has no train-images-idx3-ubyte"):
        prepare(DataSettings(dataset="photos"), base=tmp_path, cache=tmp_path / "cache")
    with pytest.raises(DataError, match="has no class folder with an image"):
        prepare(DataSettings(dataset="images:photos"), base=tmp_path, cache=tmp_path / "cache")


@pytest.mark.parametrize("key", ["image_size", "test", "damaged"])
def test_settings_of_images_are_refused_for_arrays(tmp_path, key):
    given = {"image_size": 32, "test": 0.2, "damaged": "skip"}
    with pytest.raises(DataError, match=f"{key} is given for the data set 'digits'"):
        prepare(DataSettings(dataset="digits", **{key: given[key]}), base=tmp_path, cache=tmp_path)


def test_decoding_is_said_in_tenths(tmp_path, photos, monkeypatch):
    monkeypatch.setattr(decoding, "_REPORT_FROM", 30)
    said = []
    prepare(wanted(photos), base=tmp_path, cache=tmp_path / "cache", say=said.append)
    assert len(said) == 10
    assert said[-1] == "photos: 36 of 36 images decoded"


def test_memory_holds_a_few_images_and_not_all(tmp_path, photos, monkeypatch):
    """At most so many are decoded and not yet written as threads may be ahead."""
    waiting, most = [0], [0]
    true_pixels = decoding.pixels

    def watched(name, side):
        waiting[0] += 1
        most[0] = max(most[0], waiting[0])
        return true_pixels(name, side)

    monkeypatch.setattr(decoding, "pixels", watched)
    monkeypatch.setattr(decoding, "_THREADS", 1)
    files = [(0, str(path)) for path in sorted(photos.rglob("*.png"))]
    for _ in decoding._in_order(files, 8):
        waiting[0] -= 1
    assert 1 <= most[0] <= decoding._QUEUE_PER_THREAD + 2


def test_images_are_decoded_in_parallel(photos, monkeypatch):
    """Each waits for another that is being decoded at the same time."""
    both, true_pixels = threading.Barrier(2, timeout=5), decoding.pixels

    def together(name, side):
        both.wait()
        return true_pixels(name, side)

    monkeypatch.setattr(decoding, "pixels", together)
    monkeypatch.setattr(decoding.os, "sched_getaffinity", lambda _: {0, 1}, raising=False)
    files = [(0, str(path)) for path in sorted(photos.rglob("*.png"))]
    for (_, name), found in zip(files, decoding._in_order(files, 8), strict=True):
        np.testing.assert_array_equal(found, true_pixels(name, 8))


def test_images_that_do_not_fit_the_disk_are_refused_before_they_are_decoded(tmp_path, photos, monkeypatch):
    monkeypatch.setattr(decoding.shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10, 9, 1))
    monkeypatch.setattr(decoding, "pixels", lambda *_: pytest.fail("decoded"))
    with pytest.raises(DataError, match=r"The images of photos take 6\.9 kB decoded, and .* has 1\.00 B"):
        prepared(tmp_path)


def test_without_pillow_the_sentence_says_what_to_install(tmp_path, photos, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(DataError) as caught:
        prepared(tmp_path)
    assert "pip install 'paceline[vision]'" in caught.value.next


def test_check_finds_a_changed_name(tmp_path, photos):
    found = prepared(tmp_path)
    dataset = read_record(found.folder / "dataset.json", Dataset)
    assert digest(open_dataset(found.folder).parts(), dataset.facts) == dataset.digest
    write_record(found.folder / "dataset.json", replace(dataset, class_names=("daisy", "weed", "tulip")))
    with pytest.raises(DataError, match="do not have the SHA-256"):
        check(wanted(photos), base=tmp_path, cache=tmp_path / "cache")


@pytest.mark.parametrize("form", ["folder", "tar in it", "zip in it", "tgz beside"])
def test_a_named_set_is_found_among_the_users_files(tmp_path, photos, form, monkeypatch):
    monkeypatch.setattr(named_folders, "download_file", lambda *_, **__: pytest.fail("fetched"))
    sources = tmp_path / "cache" / "sources"
    folder = sources / "flowers"
    if form == "folder":
        shutil.copytree(photos, folder)
    elif form == "tgz beside":
        sources.mkdir(parents=True)
        with tarfile.open(sources / "flowers.tgz", "w:gz") as archive:
            archive.add(photos, "flower_photos")
    elif form == "tar in it":
        folder.mkdir(parents=True)
        with tarfile.open(folder / "any.tar", "w") as archive:
            archive.add(photos, "flower_photos")
    else:
        folder.mkdir(parents=True)
        with zipfile.ZipFile(folder / "any.zip", "w") as archive:
            for path in photos.rglob("*.png"):
                archive.write(path, path.relative_to(photos))
    asked = DataSettings(dataset="flowers", image_size=8)
    found = prepare(asked, base=tmp_path, cache=tmp_path / "cache")
    assert (found.dataset.name, found.dataset.class_names) == ("flowers", tuple(COUNTS))
    assert cached(asked, base=tmp_path, cache=tmp_path / "cache") == found
    # Names within the cache, but none of what was unpacked there for a while.
    assert ".making" not in f"{found.note} {found.dataset.source}"
    usual = prepare(DataSettings(dataset="flowers"), base=tmp_path, cache=tmp_path / "cache").dataset
    assert usual.shape == (224, 224, 3)
    assert {s.name for s in catalog_state(tmp_path / "cache") if s.cached} == {"flowers"}
    assert not list((tmp_path / "cache").glob(".making*"))


def test_a_named_set_is_fetched_once_and_kept_for_other_sizes(tmp_path, photos, monkeypatch):
    fetched = []

    def download(url, path, *, say, md5):
        fetched.append(url)
        path.parent.mkdir(parents=True, exist_ok=True)
        with tarfile.open(path, "w") as archive:
            archive.add(photos, "256_ObjectCategories")

    monkeypatch.setattr(named_folders, "download_file", download)
    for side in (8, 10, 8):
        asked = DataSettings(dataset="caltech256", image_size=side)
        assert prepare(asked, base=tmp_path, cache=tmp_path / "cache").dataset.shape == (side, side, 3)
    assert fetched == [named_folders.CALTECH256.url]


def test_without_a_source_it_is_said_what_to_get_and_what_would_stand_in(tmp_path, monkeypatch):
    def fail(*_, **__):
        raise SourceFailure("no network")

    monkeypatch.setattr(named_folders, "download_file", fail)
    with pytest.raises(NoSourceError) as caught:
        prepare(DataSettings(dataset="fruits"), base=tmp_path, cache=tmp_path / "cache")
    assert "official download: no network" in caught.value.what
    folder = str(tmp_path / "cache" / "sources" / "fruits")
    for part in ("fruits-360-100x100.zip", "https://github.com/fruits-360", folder, "cifar10"):
        assert part in caught.value.next


def test_own_files_that_are_no_image_folder_do_not_break_the_list(tmp_path):
    write_folder(tmp_path / "sources" / "flowers", {"one": 2})
    assert not any(state.cached for state in catalog_state(tmp_path))
    with pytest.raises(DataError, match="only one class"):
        prepare(DataSettings(dataset="flowers"), base=tmp_path, cache=tmp_path)


def test_the_files_of_a_folder_are_listed_without_being_read(tmp_path, photos, monkeypatch):
    monkeypatch.setattr("builtins.open", lambda *_, **__: pytest.fail("read"))
    assert image_folder(photos).classes == tuple(COUNTS)
