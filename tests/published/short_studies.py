"""Shipped studies of published ones, cut down to seconds: real ranks on a few made-up images.

    finished = run_short("mnist-mpi", place)        the command as a user gives it, in a process of its own
    finished.cells, finished.rows, finished.runs    what it left in its folder

Data are files of the same kind as the study's own, so that nothing is fetched.
"""

from __future__ import annotations

import csv
import functools
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from html import unescape
from pathlib import Path

import numpy as np
import psutil

from paceline.records.run import Manifest, RankReport, RunResult
from paceline.storage.codec import read_record
from paceline.storage.folder import RunFolder, StudyFolder
from paceline.storage.span_stream import read_spans
from samples.data_files import write_idx_folder, write_npz
from samples.image_files import write_folder

GREY, COLOUR, PHOTOS = "grey", "colour.npz", "photos"
PICKLED, ALLREDUCE = "mpi-reduce-broadcast-pickled", "mpi-allreduce"
LONGEST_S = 150


@dataclass(frozen=True, slots=True, kw_only=True)
class Short:
    """How a study is cut down, and what has to come out."""

    data: str
    """One of the above, with what stands before a path."""
    words: tuple[str, ...]
    points: int
    """That are run."""
    measured: tuple[str, ...]
    """Rows of the published table that have figures of ours, by their first keys; every other row has a reason."""
    reasons: Mapping[str, str]
    """First keys of a row, perhaps with a column after a bar -> why there is no figure; the first that fits."""
    answered: tuple[str, ...] = ()
    """Open questions that one repeat is enough for."""

    def reason(self, row: str, column: str) -> str | None:
        """Why a cell has no figure; empty where it has to have one, None where the row is not expected at all."""
        for keys, why in self.reasons.items():
            start, _, of = keys.partition("|")
            if begins(row, start) and of in ("", column):
                return why
        return "" if any(begins(row, start) for start in self.measured) else None


def begins(row: str, keys: str) -> bool:
    """Whether a row, such as `GPUs 2, kind T4`, has these first keys."""
    return f"{row},".startswith(f"{keys},")


def _no_point(what: str) -> str:
    return f"This study has no point with {what} at the size small."


_NOT_TOGETHER = "This study has no point with these settings together."
_NO_SECOND = "No second machine here (one cloud node): what ran in its place stands in the row of equal settings."
SHORT = {
    "mnist-mpi": Short(
        data=f"idx:{GREY}",
        words=("data.train_samples=256", "train.epochs=2", "run.ranks_per_host=1,2"),
        points=2,
        measured=("nodes 1, per node 1", "nodes 1, per node 2"),
        reasons={
            "nodes 1, per node 4": _NOT_TOGETHER,  # 4 ranks on 2 hosts there are
            "nodes 1, per node 8": _NOT_TOGETHER,
            "nodes 2, per node 4": _NOT_TOGETHER,
            "nodes 2": "It needs 2 hosts, and launch.machines names none.",
            "nodes 4": "It needs 4 hosts, and launch.machines names none.",
            "setup 2 nodes x 4 processes": _NOT_TOGETHER,
            "setup 1 GPU": "No GPU here.",
        },
        answered=("table-contradicts-itself",),
    ),
    "mnist-mpi-exchange": Short(
        data=f"idx:{GREY}",
        words=("data.train_samples=256", "train.epochs=2", f'run.strategy=["{PICKLED}", "{ALLREDUCE}"]'),
        points=3,
        measured=("nodes 1, per node 2",),
        reasons={
            "nodes 1, per node 1": _no_point("1 rank"),
            "nodes 1, per node 4": _no_point("4 ranks"),
            "nodes 1, per node 8": _no_point("8 ranks"),
            "nodes 2": _no_point("2 hosts"),
            "nodes 4": _no_point("4 hosts"),
            "setup 2 nodes x 4 processes": _no_point("2 hosts"),
            "setup 1 GPU": "No GPU here.",
        },
        answered=("table-contradicts-itself",),
    ),
    "fashion-parameters": Short(
        data=f"idx:{GREY}",
        words=("data.train_samples=256", "train.epochs=1,5", "model.layers=1", "model.neurons=32", "run.threads=1,2"),
        points=3,
        measured=(
            *("factor cores, value 1", "factor cores, value 2", "factor neurons, value 32"),
            *("factor hidden layers, value 1", "factor epochs, value 1", "factor epochs, value 5"),
        ),
        reasons={
            **{f"factor cores, value {count}": _no_point(f"{count} threads") for count in (3, 4)},
            **{f"factor neurons, value {count}": _no_point(f"{count} neurons") for count in (128, 256, 512)},
            **{f"factor hidden layers, value {count}": _no_point(f"{count} layers") for count in (4, 8)},
            **{f"factor epochs, value {count}": _no_point(f"{count} epochs") for count in (10, 20)},
        },
    ),
    "flowers-cloud": Short(
        data=f"images:{PHOTOS}",
        words=("data.train_samples=64", "data.image_size=32", "train.epochs=1", "run.ranks=1,2", "run.servers=1"),
        points=4,
        measured=("method laptop, epochs 1",),
        reasons={
            "method laptop, epochs 3": _no_point("3 epochs"),
            "method one cloud node": _NO_SECOND,
            "method distributed cloud, epochs 1": _no_point("6 ranks"),
            "method distributed cloud, epochs 3": _no_point("3 epochs"),
        },
    ),
    "cifar10-nodes": Short(
        data=COLOUR,
        words=("data.train_samples=128", "train.epochs=4", "train.batch_per_rank=32", "run.ranks=1,2"),
        points=2,
        measured=("model cnn",),
        reasons={
            "model cnn|test_accuracy_std": "One run alone has no spread.",
            "model cnn|time_3_nodes_s": _no_point("3 ranks"),
            "model efficientnet b0": "In another study: paceline study cifar10-nodes-efficientnet",
            "model resnet50": "In another study: paceline study cifar10-nodes-resnet50",
        },
        answered=("real-user-sys",),
    ),
    "fruits-gpus": Short(
        data=f"images:{PHOTOS}",
        words=(
            *("data.train_samples=64", "data.image_size=32", "train.epochs=2", "run.ranks=1,2"),
            *("model.image_size=32", "model.weights=none", "model.freeze=true"),  # as if pretrained
        ),
        points=2,
        measured=("GPUs 1", "GPUs 2"),
        reasons={"GPUs 4": _no_point("4 ranks")},
    ),
}


@dataclass(frozen=True, slots=True)
class ShortRun:
    """What one run left in its folder."""

    folder: RunFolder

    @property
    def manifest(self) -> Manifest:
        return read_record(self.folder.manifest, Manifest)

    @property
    def result(self) -> RunResult:
        return read_record(self.folder.result, RunResult)

    @property
    def roles(self) -> list[str]:
        """What every process said that it was."""
        reports = sorted(self.folder.ranks.glob("rank-*.json"))
        return [read_record(path, RankReport).role for path in reports]

    def operations(self, process: int) -> set[str]:
        """Messages that a process exchanged, by name."""
        trace = read_spans(self.folder.rank_spans(process), process)
        return {name for name, size in zip(trace.operation, trace.bytes, strict=True) if name and size > 0}


@dataclass(frozen=True)
class Finished:
    """A study that has come to its end."""

    name: str
    code: int
    out: str
    err: str
    folder: StudyFolder
    left: tuple[str, ...]
    """Processes that outlived it."""

    @functools.cached_property
    def said(self) -> str:
        """Its report in one line: where a terminal breaks sentences does not matter."""
        return " ".join(self.out.split())

    @functools.cached_property
    def page(self) -> str:
        return self.folder.report.read_text(encoding="utf-8")

    @functools.cached_property
    def page_words(self) -> str:
        """The page as it is read: its tags are left in."""
        return unescape(self.page).replace("\u00a0", " ")

    @functools.cached_property
    def cells(self) -> list[dict[str, str]]:
        return _lines(self.folder.published_csv)

    @functools.cached_property
    def rows(self) -> list[dict[str, str]]:
        return _lines(self.folder.results_csv)

    @functools.cached_property
    def runs(self) -> list[ShortRun]:
        """Fewest ranks first, then by strategy."""
        found = [ShortRun(RunFolder(path)) for path in self.folder.path.glob("points/*/runs/*")]
        return sorted(found, key=lambda run: (run.manifest.point.ranks, run.manifest.point.strategy))


def _lines(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


def write_data(place: Path) -> None:
    """Images with a bright band where their class has it: 28×28 in grey, 32×32 in colour; and photos of three kinds."""
    random, grey, colour = np.random.default_rng(0), [], []
    for count in (256, 64):
        labels = (np.arange(count) % 10).astype(np.uint8)
        for parts, shape in ((grey, (28, 28)), (colour, (32, 32, 3))):
            images = random.integers(0, 60, (count, *shape), dtype=np.uint8)
            for image, label in zip(images, labels, strict=True):
                image[2 * label : 2 * label + 4] += 150
            parts += [images, labels]
    write_idx_folder(place / GREY, tuple(grey))
    write_npz(place / COLOUR, tuple(colour))
    kinds = ("daisy", "roses", "tulips")
    counts = {**{f"train/{kind}": 40 for kind in kinds}, **{f"test/{kind}": 8 for kind in kinds}}
    write_folder(place / PHOTOS, counts, size=(32, 32))


def run_short(name: str, place: Path) -> Finished:
    """Run a study to its end, in a place with data as above; nothing of this machine but its cores is used."""
    kind, _, file = SHORT[name].data.rpartition(":")
    data = f"data.dataset={kind}{':' if kind else ''}{place / file}"
    words = [word for setting in (data, *SHORT[name].words) for word in ("--set", setting)]
    out = place / "runs" / name
    command = [sys.executable, "-m", "paceline", "study", name, *words, "--repeats", "1", "--out", str(out)]
    nowhere = "http://127.0.0.1:9"  # whatever would be fetched fails at once
    own = {
        "PACELINE_CACHE": str(place / "cache"),
        "XDG_CONFIG_HOME": str(place / "config"),
        "CUDA_VISIBLE_DEVICES": "",
        "COLUMNS": "100",
        "PIP_NO_INDEX": "1",
        **dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), nowhere),
    }
    try:
        done = subprocess.run(
            command, env=os.environ | own, cwd=place, capture_output=True, text=True, timeout=LONGEST_S, check=False
        )
    finally:
        left = _end_those_of(own["PACELINE_CACHE"])
    return Finished(name, done.returncode, done.stdout, done.stderr, StudyFolder(out), left)


def _end_those_of(cache: str) -> tuple[str, ...]:
    """End the processes that were given this cache and are still there; how they were called."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("PACELINE_CACHE") == cache:
                found.append((process, " ".join(process.cmdline())))
        except (psutil.Error, OSError):
            continue
    _, alive = psutil.wait_procs([process for process, _ in found], timeout=10)
    for process in alive:
        process.kill()
    return tuple(command for process, command in found if process in alive)
