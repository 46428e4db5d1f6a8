"""Damaged and hostile data files: refused with a sentence, quickly, and without the memory they ask for;
processes killed while they write the cache, and several that write it at once."""

import contextlib
import gzip
import os
import random
import struct
import subprocess
import sys
import time
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from paceline.data import bounded_reads
from paceline.data.arrays import digest
from paceline.data.cache import open_dataset
from paceline.data.idx import read_idx, read_idx_folder
from paceline.data.npz import read_npz
from paceline.data.store import check, prepare
from paceline.errors import DataError
from paceline.records.settings import DataSettings
from samples.data_files import four_arrays, idx_bytes, write_idx_folder, write_npz

IMAGES = idx_bytes(four_arrays()[0])
BIG = 0x7FFFFFFF
KILLS = 8 * int(os.environ.get("FAULTS", "1"))


def header(*sizes, kind=8):
    return struct.pack(f">BBBB{len(sizes)}i", 0, 0, kind, len(sizes), *sizes)


HOSTILE_IDX = {
    "empty": (b"", "begins with nothing"),
    "three bytes": (b"\0\0\x08", "begins with 00 00 08"),
    "a picture": (b"\x89PNG\r\n\x1a\n" + bytes(50), "begins with 89 50 4e 47"),
    "an unknown type": (b"\0\0\x0a\x01" + bytes(8), "begins with 00 00 0a 01"),
    "no dimensions": (b"\0\0\x08\x00" + bytes(8), "begins with 00 00 08 00"),
    "255 dimensions": (b"\0\0\x08\xff" + bytes(1020), "begins with 00 00 08 ff"),
    "a cut header": (b"\0\0\x08\x03\0\0\0\x05", "breaks off in its header"),
    "cut values": (IMAGES[:-1], "declares 600 bytes of values, and 599 are there"),
    "values cut by half": (IMAGES[: len(IMAGES) // 2], "declares 600 B of values"),
    "one byte too many": (IMAGES + b"\0", "goes on after the 600 bytes"),
    "a negative size": (header(-1, 28, 28), "declares the sizes (-1, 28, 28)"),
    "sizes beyond any memory": (header(BIG, BIG, BIG) + bytes(64), "cannot hold more than"),
    "sizes whose product wraps to a small one": (header(1 << 30, 1 << 30, 16, 1) + bytes(64), "cannot hold more than"),
    "gzip cut short": (gzip.compress(IMAGES)[:-12], "is damaged"),
    "gzip with a wrong checksum": (gzip.compress(IMAGES)[:-8] + bytes(4) + gzip.compress(IMAGES)[-4:], "CRC check"),
    "gzip with a byte changed": (gzip.compress(IMAGES, 0)[:60] + b"!" + gzip.compress(IMAGES, 0)[61:], "CRC check"),
    "gzip of nothing": (gzip.compress(b""), "begins with nothing"),
    "gzip that declares more than it can hold": (gzip.compress(header(BIG, 28, 28)), "cannot hold more than"),
    "gzip that goes on for ever": (gzip.compress(IMAGES + bytes(1 << 24)), "goes on after the 600 bytes"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE_IDX)
def test_a_hostile_idx_file_is_refused(tmp_path, name):
    data, says = HOSTILE_IDX[name]
    path = tmp_path / "train-images-idx3-ubyte.gz"
    path.write_bytes(data)
    tracemalloc.start()
    try:
        with pytest.raises(DataError) as caught:
            read_idx(path)
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()
    assert says in caught.value.what
    assert str(path) in caught.value.what
    assert caught.value.right
    assert caught.value.next


def test_what_is_not_a_file_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.npz")
    os.mkfifo(tmp_path / "train-images-idx3-ubyte")
    with pytest.raises(DataError, match="is not a file"):
        read_npz(tmp_path / "pipe.npz")
    with pytest.raises(DataError, match="is not a file"):
        read_idx(tmp_path / "train-images-idx3-ubyte")
    with pytest.raises(DataError, match="has no train-images"):
        read_idx_folder(tmp_path)


def npy(shape, values=b"", dtype="|u1", magic=b"\x93NUMPY\x01\x00"):
    text = f"{{'descr': {dtype!r}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    return magic + struct.pack("<H", len(text)) + text + values


def archive(path, member, *, kind=zipfile.ZIP_DEFLATED):
    """An .npz whose x_train is `member` and whose other arrays are sound."""
    _, labels, test_images, test_labels = four_arrays()
    write_npz(path, (test_images, labels, test_images, test_labels))
    with zipfile.ZipFile(path) as sound:
        others = {name: sound.read(name) for name in sound.namelist() if name != "x_train.npy"}
    with zipfile.ZipFile(path, "w", kind) as written:
        written.writestr("x_train.npy", member)
        for name, data in others.items():
            written.writestr(name, data)
    return path


HOSTILE_MEMBERS = {
    "not npy": (b"hello", "x_train.npy in"),
    "empty": (b"", "x_train.npy in"),
    "another version": (npy((2, 2), bytes(4), magic=b"\x93NUMPY\x09\x00"), "is damaged"),
    "a header that is code": (npy("__import__('os').system('false')"), "is damaged"),
    "a deep header": (npy("(" * 3000 + ")" * 3000), "is damaged"),
    "objects": (npy((3,), b"cos\nsystem\n(S'false'\ntR.", dtype="|O"), "Python objects, which are never unpickled"),
    "text": (npy((3, 5, 4), bytes(240), dtype="<U1"), "values of type <U1"),
    "a negative size": (npy((-3, 5, 4), bytes(60)), "declares the sizes (-3, 5, 4)"),
    "sizes beyond any memory": (npy((1 << 62, 1 << 62), bytes(60)), "cannot hold more than"),
    "a size of 300 digits": (npy((10**300, 10**300), bytes(60)), "cannot hold more than"),
    "cut values": (npy((30, 5, 4), bytes(599)), "declares 600 bytes of values, and 599 are there"),
    "more values": (npy((30, 5, 4), bytes(700)), "goes on after the 600 bytes"),
    "no dimension": (npy((), bytes(1)), "no list of images"),
    "NaN": (npy((30, 5, 4), np.full(600, np.nan, "<f4").tobytes(), dtype="<f4"), "values that are not finite"),
    "other lengths": (npy((29, 5, 4), bytes(580)), "29 images and 30 labels"),
}


@pytest.mark.parametrize("name", HOSTILE_MEMBERS)
@pytest.mark.parametrize("kind", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_hostile_npz_is_refused(tmp_path, name, kind):
    member, says = HOSTILE_MEMBERS[name]
    path = archive(tmp_path / "a.npz", member, kind=kind)
    with pytest.raises(DataError) as caught:
        prepare(DataSettings(dataset=str(path)), base=tmp_path, cache=tmp_path / "cache")
    assert says in caught.value.what
    assert "a.npz" in caught.value.what
    assert caught.value.right
    assert caught.value.next


@pytest.mark.parametrize("kind", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_compression_without_a_bound_is_refused(tmp_path, kind):
    with pytest.raises(DataError, match="compressed in a way that NumPy does not use"):
        read_npz(archive(tmp_path / "a.npz", npy((30, 5, 4), bytes(600)), kind=kind))


def test_a_zip_bomb_is_refused_before_it_takes_memory(tmp_path, monkeypatch):
    bomb = 64 << 20
    path = archive(tmp_path / "a.npz", npy((1 << 16, 32, 32), bytes(bomb)))
    assert path.stat().st_size < 1 << 17
    monkeypatch.setattr(bounded_reads, "limit_bytes", lambda: 16 << 20)
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match=r"x_train\.npy in .* declares 67 MB of values"):
            read_npz(path)
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()


def test_a_zip_that_lies_about_its_sizes_is_refused(tmp_path):
    path = archive(tmp_path / "a.npz", npy((30, 1 << 20), bytes(600)))
    data = path.read_bytes()
    with zipfile.ZipFile(path) as read:
        true_size = read.getinfo("x_train.npy").file_size
    lie = data.replace(struct.pack("<I", true_size), struct.pack("<I", 0xF0000000))
    assert lie != data
    path.write_bytes(lie)
    with pytest.raises(DataError, match="cannot hold more than"):
        read_npz(path)


@pytest.mark.parametrize("keep", [0.0, 0.2, 0.7, 0.99])
def test_a_cut_npz_is_refused(tmp_path, keep):
    path = write_npz(tmp_path / "a.npz", four_arrays())
    os.truncate(path, int(path.stat().st_size * keep))
    with pytest.raises(DataError, match=r"a\.npz is not a whole \.npz file"):
        read_npz(path)


@pytest.mark.parametrize(
    "change",
    [(46, 0xFF), (8, 1)],
    ids=["a name that is not UTF-8", "encrypted, it says"],
)
def test_a_zip_that_zipfile_itself_stumbles_over_is_refused(tmp_path, change):
    path = write_npz(tmp_path / "a.npz", four_arrays())
    data = bytearray(path.read_bytes())
    start = data.index(b"PK\x01\x02")
    data[start + change[0]] = change[1]
    if change[0] == 46:
        data[start + 9] |= 0x08
    path.write_bytes(data)
    with pytest.raises(DataError, match=r"a\.npz is not a whole \.npz file"):
        read_npz(path)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), form=st.sampled_from(["npz", "npz-packed", "idx", "idx.gz"]))
def test_changed_bytes_give_arrays_or_a_sentence_never_anything_else(tmp_path, data, form):
    path = tmp_path / ("a.npz" if form.startswith("npz") else "train-images-idx3-ubyte")
    names = ("x_train", "y_train", "x_test", "y_test")
    if form == "npz":
        write_npz(path, four_arrays(6, 6))
    elif form == "npz-packed":
        np.savez_compressed(path, **dict(zip(names, four_arrays(6, 6), strict=True)))
    else:
        path.write_bytes(IMAGES if form == "idx" else gzip.compress(IMAGES, mtime=0))
    sound = bytearray(path.read_bytes())
    for place in data.draw(st.lists(st.integers(0, len(sound) - 1), min_size=1, max_size=4), label="places"):
        sound[place] = data.draw(st.integers(0, 255), label="byte")
    path.write_bytes(sound[: data.draw(st.integers(len(sound) - 3, len(sound)), label="length")])
    try:
        if form.startswith("npz"):
            prepare(DataSettings(dataset=str(path)), base=tmp_path, cache=tmp_path / "cache")
        else:
            read_idx(path)
    except DataError as error:
        assert path.name in error.what


WANTED = DataSettings(dataset="synthetic", shape=(32, 32, 3), samples=1200)
PREPARE = f"""
import sys
from pathlib import Path
from paceline.data.store import prepare
from paceline.records.settings import DataSettings
print("ready", flush=True)
for cache in sys.stdin:
    print(prepare({WANTED!r}, base=Path(), cache=Path(cache.strip())).folder, flush=True)
"""


@contextlib.contextmanager
def preparing(count):
    """Processes that prepare the same data set in each cache they are told of; ended at the latest on leaving."""
    command, pipe = [sys.executable, "-c", PREPARE], subprocess.PIPE
    processes = [subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) for _ in range(count)]
    try:
        for process in processes:
            assert process.stdout.readline() == "ready\n"
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def tell(process, cache):
    process.stdin.write(f"{cache}\n")
    process.stdin.flush()


def test_several_processes_at_once_make_one_folder(tmp_path):
    with preparing(4) as processes:
        for number in range(5):
            cache = tmp_path / str(number)
            for process in processes:
                tell(process, cache)
            folders = {process.stdout.readline().strip() for process in processes}
            assert len(folders) == 1
            assert sorted(path.name for path in cache.iterdir()) == sorted(["index", Path(*folders).name])


def test_a_kill_while_the_cache_is_written_leaves_a_whole_data_set_or_none(tmp_path):
    chance = random.Random(5)
    halfway = 0
    for number in range(KILLS):
        cache = tmp_path / str(number)
        with preparing(1) as (process,):
            tell(process, cache)
            while process.poll() is None and not list(cache.glob("*synthetic*")):
                time.sleep(0.0005)
            time.sleep(chance.uniform(0, 0.02))
            process.kill()
        halfway += bool(list(cache.glob(".making-*")))
        for folder in cache.glob("synthetic-*"):
            mapped = open_dataset(folder)
            assert digest(mapped.parts()) == mapped.dataset.digest
        assert prepare(WANTED, base=tmp_path, cache=cache).dataset.train == 1200
    assert halfway


def test_idx_files_that_do_not_fit_each_other_are_refused(tmp_path):
    images, labels, test_images, test_labels = four_arrays()
    for number, four in enumerate(
        [(images, labels[1:], test_images, test_labels), (images, labels, labels, test_labels), (labels, images)]
    ):
        folder = write_idx_folder(tmp_path / str(number), four)
        with pytest.raises(DataError, match=str(folder)):
            prepare(DataSettings(dataset=str(folder)), base=tmp_path, cache=tmp_path / "cache")
    assert not list(tmp_path.glob("cache/*-*"))
    with pytest.raises(DataError):
        check(str(tmp_path / "0"), base=tmp_path, cache=tmp_path / "cache")
