"""Damaged and hostile images, archives and folders: named and refused or left out, quickly, and without the memory or
the disk they ask for; what is sound beside them is decoded all the same."""

import io
import os
import struct
import tarfile
import tracemalloc
import zipfile
import zlib

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from paceline.data import unpacking
from paceline.data.cache import open_dataset
from paceline.data.pictures import Damaged, pixels, without_warnings
from paceline.data.store import prepare
from paceline.data.unpacking import unpack
from paceline.errors import DataError
from paceline.records.settings import DataSettings
from samples.image_files import image_bytes, noise, plain, write_folder

PNG = image_bytes(noise(1, (40, 30)))
JPEG = image_bytes(noise(1, (40, 30)), "JPEG")


def chunk(kind, data=b""):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width, height, depth=8, colour=2, data=b"", *extra):
    """A PNG that declares a size, whatever it holds."""
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + b"".join(extra) + chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND")


def bmp(width, height):
    header = struct.pack("<IiiHHIIiiII", 40, width, height, 1, 24, 0, 0, 0, 0, 0, 0)
    return b"BM" + struct.pack("<IHHI", 54, 0, 0, 54) + header + bytes(64)


def gif(width, height):
    return b"GIF89a" + struct.pack("<HHBBB", width, height, 0x80, 0, 0) + bytes(6) + b"," + bytes(8) + b"\x02\x00;"


def changed(data, place, value):
    return data[:place] + value + data[place + len(value) :]


HOSTILE_IMAGES = {
    "empty": (b"", "is empty"),
    "one byte": (b"\xff", "is not an image"),
    "text": (b"hello, I am no image\n" * 9, "is not an image"),
    "a web page": (b"<!DOCTYPE html><html></html>", "is not an image"),
    "zeros": (bytes(10_000), "is not an image"),
    "a jpeg cut by half": (JPEG[: len(JPEG) // 2], "truncated"),
    "a jpeg cut in its header": (JPEG[:30], ""),
    "the start of a jpeg": (JPEG[:3], "is not an image"),
    "a jpeg of no pixels": (changed(JPEG, JPEG.index(b"\xff\xc0") + 5, bytes(4)), ""),
    "a png cut by half": (PNG[: len(PNG) // 2], "truncated"),
    "a png cut in its header": (PNG[:20], ""),
    "the signature of a png": (PNG[:8], ""),
    "a png with a broken checksum": (changed(PNG, 29, b"\0\0\0\0"), ""),
    "a png whose data are no deflate": (changed(PNG, PNG.index(b"IDAT") + 4, b"\0" * 8), ""),
    "a png without pixels": (png(0, 0), ""),
    "a png without height": (png(8, 0), ""),
    "a png that declares 65536 × 65536": (png(65_536, 65_536), "million pixels"),
    "a png that declares 2 billion × 2 billion": (png(2**31 - 1, 2**31 - 1), "million pixels"),
    "a png of 70 million pixels": (png(70_000, 1000, 1, 0, bytes(8751 * 1000)), "more than 64 million"),
    "a png of 100 million pixels": (png(10_000, 10_000, 1, 0, bytes(1251 * 10_000)), "more than 64 million"),
    "a png with a bomb of text": (
        png(4, 4, 8, 2, bytes(52), chunk(b"zTXt", b"k\0\0" + zlib.compress(bytes(1 << 26)))), "",
    ),
    "a png of an unknown colour type": (png(4, 4, 8, 5, bytes(99)), ""),
    "a bmp of a negative width": (bmp(-5, 5), ""),
    "a bmp that declares 60000 × 60000": (bmp(60_000, 60_000), "million pixels"),
    "a bmp with too few rows": (bmp(500, 500), "truncated"),
    "a gif of 65535 × 65535": (gif(65_535, 65_535), "million"),
    "a gif cut short": (image_bytes(plain(), "GIF")[:-20], ""),
    "a webp cut short": (image_bytes(noise(2), "WEBP")[:60], ""),
    "a tiff whose directory lies outside": (b"II*\0" + struct.pack("<I", 2**31) + bytes(64), ""),
    "a tiff without entries": (b"II*\0" + struct.pack("<IH", 8, 0) + bytes(8), ""),
    "a tiff that refers to itself": (b"MM\0*" + struct.pack(">IHI", 8, 0, 8) + bytes(8), ""),
    "a tiff cut short": (image_bytes(noise(2), "TIFF")[:-700], ""),
    "a tiff of floats": (image_bytes(Image.new("F", (4, 4), 0.5), "TIFF"), "floating-point"),
    "a pnm that declares a million rows": (b"P6 1000000 1000000 255\n" + bytes(100), "million pixels"),
    "a pnm with letters for sizes": (b"P6 a b 255\n" + bytes(100), ""),
    "a pnm cut short": (b"P6 40 40 255\n" + bytes(100), "truncated"),
    "postscript, which would be run": (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "is not an image"),
    "a vector graphic": (b'<svg xmlns="http://www.w3.org/2000/svg"/>', "is not an image"),
    "an icon": (b"\0\0\x01\0\x01\0" + bytes(60), "is not an image"),
    "a pickle": (b"\x80\x04cos\nsystem\n.", "is not an image"),
    "a zip": (b"PK\x03\x04" + bytes(60), "is not an image"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE_IMAGES)
def test_a_hostile_image_is_told_in_a_few_words(tmp_path, name):
    data, says = HOSTILE_IMAGES[name]
    path = tmp_path / "a.jpg"
    path.write_bytes(data)
    tracemalloc.start()
    try:
        with without_warnings(), pytest.raises(Damaged) as caught:
            pixels(path, 16)
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 150


def test_a_folder_with_all_of_them_is_refused_or_gives_the_sound_ones(tmp_path):
    root = write_folder(tmp_path / "photos", {"good": 6, "bad": 6}, size=(8, 8))
    for number, (data, _) in enumerate(HOSTILE_IMAGES.values()):
        (root / "bad" / f"hostile-{number:02d}.jpg").write_bytes(data)
    (root / "bad" / "nothing.jpg").symlink_to(tmp_path / "nowhere")
    (root / "bad" / "itself.jpg").symlink_to(root / "bad" / "itself.jpg")
    os.mkfifo(root / "bad" / "pipe.jpg")
    (root / "bad" / "device.png").symlink_to("/dev/zero")
    (root / "bad" / "folder.jpg").mkdir()
    asked = DataSettings(dataset="photos", image_size=8)
    total = len(HOSTILE_IMAGES) + 4
    says = rf"^{total} damaged images in {total + 12}: .*; and {total - 5} more\."
    with pytest.raises(DataError, match=says) as caught:
        prepare(asked, base=tmp_path, cache=tmp_path / "cache")
    assert "\n" not in caught.value.what
    skipping = DataSettings(dataset="photos", image_size=8, damaged="skip")
    found = prepare(skipping, base=tmp_path, cache=tmp_path / "cache")
    assert found.dataset.train + found.dataset.test == 12
    assert f"{total} damaged images left out" in (found.note or "")
    counts = np.array(found.dataset.train_counts) + np.array(found.dataset.test_counts)
    assert counts.tolist() == [6, 6]
    open_dataset(found.folder)


def test_what_is_no_plain_file_is_not_opened(tmp_path):
    os.mkfifo(tmp_path / "pipe.jpg")
    for path in (tmp_path / "pipe.jpg", "/dev/zero", tmp_path):
        with pytest.raises(Damaged, match="is not a file"):
            pixels(path, 8)


def test_what_cannot_be_read_is_damaged_and_a_folder_that_cannot_is_refused(tmp_path):
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    root = write_folder(tmp_path / "photos", {"a": 6, "b": 6}, size=(8, 8))
    (root / "a" / "0000.png").chmod(0)
    with pytest.raises(DataError, match=r"a/0000\.png cannot be decoded: Permission denied"):
        prepare(DataSettings(dataset="photos"), base=tmp_path, cache=tmp_path / "cache")
    (root / "b").chmod(0)
    with pytest.raises(DataError, match="b cannot be read: Permission denied"):
        prepare(DataSettings(dataset="photos"), base=tmp_path, cache=tmp_path / "cache")
    (root / "b").chmod(0o700)


FORMS = ("PNG", "JPEG", "GIF", "BMP", "WEBP", "TIFF", "PPM")
SOUND = {form: image_bytes(noise(5, (20, 16)), form) for form in FORMS}


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), form=st.sampled_from(FORMS))
def test_changed_bytes_give_pixels_or_a_reason_never_anything_else(tmp_path, data, form):
    sound = bytearray(SOUND[form])
    # Most of an image is pixels, which any byte may be: headers are where decoders stumble.
    reach = data.draw(st.sampled_from([16, 64, len(sound)]), label="reach")
    places = st.lists(st.integers(0, min(reach, len(sound)) - 1), min_size=1, max_size=6)
    for place in data.draw(places, label="places"):
        sound[place] = data.draw(st.integers(0, 255), label="byte")
    path = tmp_path / "a.png"
    path.write_bytes(sound[: data.draw(st.integers(len(sound) - 30, len(sound)), label="length")])
    try:
        with without_warnings():
            found = pixels(path, 8)
    except Damaged as damage:
        assert str(damage)
    else:
        assert (found.shape, found.dtype) == ((8, 8, 3), np.uint8)


def tar_with(*members, mode="w"):
    """A tar archive of (name, contents, kind) or TarInfo members."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode=mode) as archive:
        for member in members:
            info = tarfile.TarInfo(member[0])
            info.type = member[2] if len(member) > 2 else tarfile.REGTYPE
            info.linkname = "/etc/passwd" if info.type in (tarfile.SYMTYPE, tarfile.LNKTYPE) else ""
            info.size = len(member[1]) if info.isreg() else 0
            archive.addfile(info, io.BytesIO(member[1]))
    return stream.getvalue()


def zip_with(*members):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data, *mode in members:
            info = zipfile.ZipInfo(name)
            info.external_attr = (mode[0] if mode else 0o100644) << 16
            archive.writestr(info, data)
    return stream.getvalue()


SOUND_TAR = tar_with(("a/1.png", PNG), ("b/1.png", PNG))
SOUND_ZIP = zip_with(("a/1.png", PNG), ("b/1.png", PNG))
HOSTILE_ARCHIVES = {
    "an absolute name": (tar_with(("/tmp/paceline-was-here", b"x")), "would lie outside of it"),
    "a name that climbs": (tar_with(("a/../../x", b"x")), "would lie outside of it"),
    "a name that climbs at once": (tar_with(("../x", b"x")), "would lie outside of it"),
    "a name that climbs in Windows' way": (zip_with(("a\\..\\..\\x", b"x")), "would lie outside of it"),
    "a symbolic link": (tar_with(("a/1.png", b"", tarfile.SYMTYPE)), "is a link"),
    "a hard link": (tar_with(("a/1.png", b"", tarfile.LNKTYPE)), "is a link"),
    "a folder that is a link": (tar_with(("a", b"", tarfile.SYMTYPE), ("a/1.png", PNG)), "is a link"),
    "a device": (tar_with(("a/1.png", b"", tarfile.CHRTYPE)), "is no file"),
    "a pipe": (tar_with(("a/1.png", b"", tarfile.FIFOTYPE)), "is no file"),
    "the same name twice": (tar_with(("a/1.png", PNG), ("a/1.png", b"x")), "File exists"),
    "a file that is a folder, too": (tar_with(("a", b"x"), ("a/1.png", PNG)), "cannot be unpacked"),
    "an absolute name in a zip": (zip_with(("/x", b"x")), "would lie outside of it"),
    "a name that climbs in a zip": (zip_with(("a/../../x", b"x")), "would lie outside of it"),
    "a link in a zip": (zip_with(("a/1.png", b"/etc/passwd", 0o120777)), "is a link"),
    "a name of 5000 letters": (tar_with(("a" * 5000, b"x")), "would lie outside of it"),
    "a name of 300 letters": (tar_with(("a" * 300, b"x")), "File name too long"),
    "empty": (b"", "cannot be unpacked"),
    "text": (b"hello" * 300, "cannot be unpacked"),
    "a tar cut short": (SOUND_TAR[: len(SOUND_TAR) // 2 - 600], "cannot be unpacked"),
    "a gzip cut short": (tar_with(("a/1.png", PNG * 9), mode="w:gz")[:2000], "cannot be unpacked"),
    "an xz cut short": (tar_with(("a/1.png", PNG * 9), mode="w:xz")[:2000], "cannot be unpacked"),
    "a gzip of no tar": (zlib.compress(b"x" * 999, wbits=31), "cannot be unpacked"),
    "a zip cut short": (SOUND_ZIP[:-40], "cannot be unpacked"),
    "a zip with changed contents": (SOUND_ZIP.replace(PNG[60:64], b"....", 1), "cannot be unpacked"),
    "a zip that says it is encrypted": (SOUND_ZIP.replace(b"PK\1\2\x14\3\x14\0\0", b"PK\1\2\x14\3\x14\0\1"), "cannot"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE_ARCHIVES)
def test_a_hostile_archive_writes_nothing_outside_and_is_refused(tmp_path, name):
    data, says = HOSTILE_ARCHIVES[name]
    path = tmp_path / "photos.tar"
    path.write_bytes(data)
    with pytest.raises(DataError) as caught:
        prepare(DataSettings(dataset=str(path)), base=tmp_path, cache=tmp_path / "cache")
    assert says in caught.value.what
    assert str(path) in caught.value.what
    assert "\n" not in caught.value.what
    assert caught.value.right
    assert caught.value.next
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["cache", "photos.tar"]
    assert list((tmp_path / "cache").iterdir()) == []
    assert not os.path.exists("/tmp/paceline-was-here")


@pytest.mark.parametrize("data", [SOUND_TAR, SOUND_ZIP], ids=["tar", "zip"])
def test_an_archive_that_holds_more_than_the_disk_is_refused(tmp_path, data, monkeypatch):
    (tmp_path / "a.tar").write_bytes(data)
    free = unpacking._MIN_FREE_BYTES + len(PNG) + 10
    monkeypatch.setattr(unpacking.shutil, "disk_usage", lambda path: type("", (), {"free": free}))
    (tmp_path / "out").mkdir()
    with pytest.raises(DataError, match="holds more than the disk of the cache has space for"):
        unpack(tmp_path / "a.tar", tmp_path / "out")
    assert not (tmp_path / "out" / "b" / "1.png").exists(), "what a member declares is looked at before it is written"


def test_bytes_are_counted_as_they_come_out(tmp_path):
    """Whatever the member before them declared."""
    (tmp_path / "a.tar").touch()
    with pytest.raises(DataError, match="holds more than the disk"):
        unpacking._write(tmp_path / "a.tar", io.BytesIO(bytes(11)), tmp_path / "out" / "x", left=10, declared=1)
    assert (tmp_path / "out" / "x").stat().st_size <= 10


def test_a_zip_that_lies_about_a_size_is_stopped_at_what_comes_out(tmp_path, monkeypatch):
    bomb = zip_with(("a/1.png", bytes(8 << 20)))
    lie = bomb.replace(struct.pack("<I", 8 << 20), struct.pack("<I", 100))
    assert lie != bomb
    (tmp_path / "a.zip").write_bytes(lie)
    free = unpacking._MIN_FREE_BYTES + (1 << 20)
    monkeypatch.setattr(unpacking.shutil, "disk_usage", lambda path: type("", (), {"free": free}))
    (tmp_path / "out").mkdir()
    with pytest.raises(DataError):
        unpack(tmp_path / "a.zip", tmp_path / "out")
    assert sum(path.stat().st_size for path in (tmp_path / "out").rglob("*") if path.is_file()) <= 1 << 20


def test_an_archive_of_too_many_files_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(unpacking, "MAX_FILES", 1)
    (tmp_path / "out").mkdir()
    for number, data in enumerate((SOUND_TAR, SOUND_ZIP)):
        (tmp_path / "a.tar").write_bytes(data)
        (tmp_path / f"out{number}").mkdir()
        with pytest.raises(DataError, match="holds more than 1 files"):
            unpack(tmp_path / "a.tar", tmp_path / f"out{number}")


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), form=st.sampled_from(["tar", "zip", "tgz"]))
def test_changed_bytes_of_an_archive_give_files_below_or_a_sentence(tmp_path, data, form):
    sound = {"tar": SOUND_TAR, "zip": SOUND_ZIP, "tgz": tar_with(("a/1.png", PNG), mode="w:gz")}[form]
    hostile = bytearray(sound)
    for place in data.draw(st.lists(st.integers(0, len(sound) - 1), min_size=1, max_size=5), label="places"):
        hostile[place] = data.draw(st.integers(0, 255), label="byte")
    path = tmp_path / "a.tar"
    path.write_bytes(hostile)
    with unpacking.contextlib.suppress(DataError), unpacking.unpacked(path, tmp_path / "cache") as folder:
        for found in folder.rglob("*"):
            assert found.resolve().is_relative_to(folder.resolve())
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["a.tar", "cache"]
    assert list((tmp_path / "cache").iterdir()) == []
