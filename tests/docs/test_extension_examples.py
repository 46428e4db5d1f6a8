"""The examples of the contributors' guides, as written: packages outside Paceline that take part in a real study."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
from doc_pages import ROOT, blocks

from light_ranks.light_launch import HOST, launch, light, manifest, point
from paceline import catalog
from paceline.errors import RankError, RequestError
from paceline.identity import PARENT_PID
from paceline.rebuild import rebuild
from paceline.records.run import RunResult
from paceline.reporting.html.report_page import render
from paceline.reporting.text.report_text import render as render_text
from paceline.storage.codec import read_record
from paceline.storage.folder import RunFolder
from paceline.storage.pulse import pulse
from paceline.storage.span_stream import read_spans
from paceline.studies.execute.budget import attempts
from testbeds.installed_packages import installed, write_package

STUDY = """
[study]
name = "outside"
[data]
dataset = "stripes"
[model]
name = "pooled"
width = 24
[train]
lr = 0.01
batch_global = 20
epochs = 4
checkpoint_every = 10
precision = "float64"
[run]
ranks = [1, 2]
repeats = 1
strategy = "each"
launcher = "nice"
"""
PAGES = (
    "adding-a-model.md",
    "adding-a-dataset.md",
    "adding-a-strategy.md",
    "adding-a-launcher.md",
    "contributing/adding-a-finding.md",
)
PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Killed:
    """A study that was killed while two ranks trained, and then continued."""

    folder: Path
    killed: RunFolder
    """The run that was under way."""
    under_way_s: float
    """From its first step to the kill."""
    after_kill: list[float]
    """Seconds that each attempt at it took, as the folder had it before the study went on."""
    output: dict[str, Any]
    """What the continued study printed."""


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("packages")
    for page in PAGES:
        write_example(folder, ROOT / "docs" / page)
    with installed(folder):
        yield folder


@pytest.fixture(scope="module")
def study(packages: Path, tmp_path_factory: pytest.TempPathFactory) -> Killed:
    place = tmp_path_factory.mktemp("study")
    (place / "outside.toml").write_text(STUDY)
    environment = {**os.environ, "PYTHONPATH": str(packages), "PACELINE_CACHE": str(place / "cache")}

    def start() -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "paceline", "study", "outside.toml", "--out", "out", "--json", "--budget", "1"],
            cwd=place,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    running = start()
    try:
        run = wait_for(lambda: training(place / "out", running), "two ranks that train")
        first_step_at = time.monotonic()
        wait_for(lambda: next(run.path.rglob("checkpoint*"), None), "a checkpoint")
        time.sleep(0.5)
        under_way_s = time.monotonic() - first_step_at
    finally:
        os.killpg(running.pid, signal.SIGKILL)
        running.communicate()
    wait_for(lambda: not ranks_of(running.pid), "the end of the ranks")
    assert not run.result.exists(), "it was over before it was killed"
    after_kill = [attempt.wall_s for attempt in attempts(run)]
    continued = start()
    out, err = continued.communicate(timeout=PATIENCE_S)
    assert continued.returncode == 0, err
    return Killed(
        folder=place / "out",
        killed=run,
        under_way_s=under_way_s,
        after_kill=after_kill,
        output=json.loads(out),
    )


def write_example(folder: Path, page: Path) -> None:
    """The package of a page: its one module, and the entry point of its pyproject.toml."""
    (registration,) = [block.text for block in blocks("ini") if block.page == page]
    groups = tomllib.loads(registration)["project"]["entry-points"]
    (module,) = {at.partition(":")[0] for entries in groups.values() for at in entries.values()}
    (code,) = [block.text for block in blocks("python") if block.page == page and block.file == f"{module}.py"]
    write_package(folder, module, code, groups)


def wait_for(found: Callable[[], Any], what: str) -> Any:
    deadline = time.monotonic() + PATIENCE_S
    while not (value := found()):
        assert time.monotonic() < deadline, f"no sign of {what}"
        time.sleep(0.02)
    return value


def training(folder: Path, running: subprocess.Popen[str]) -> RunFolder | None:
    """The run of two ranks, once both have finished a step."""
    assert running.poll() is None, running.communicate()[1]
    for path in folder.glob("points/*/runs/*"):
        steps = [found.step for rank in (0, 1) if (found := pulse(RunFolder(path).rank_pulse(rank)))]
        if len(steps) == 2 and min(steps) > 0:
            return RunFolder(path)
    return None


def ranks_of(pid: int) -> list[int]:
    """Live ranks that a process has started."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(PARENT_PID) == str(pid) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
        except (psutil.Error, OSError):
            continue
    return found


@pytest.mark.parametrize(
    ("kind", "name"), [("model", "pooled"), ("dataset", "stripes"), ("strategy", "each"), ("launcher", "nice")]
)
def test_the_catalog_has_what_a_package_registers(packages: Path, kind: str, name: str) -> None:
    assert catalog.names(kind)[-1] == name and catalog.known(kind, name)
    assert catalog.description(kind, name) and callable(catalog.load(kind, name))


def test_a_killed_study_of_the_examples_goes_on_to_complete_results(study: Killed) -> None:
    results, *_ = rebuild(study.folder)
    assert [row.point.ranks for row in results.points] == [1, 2]
    for row in results.points:
        chosen = (row.point.data.dataset, row.point.model.name, row.point.strategy, row.point.launcher)
        assert chosen == ("stripes", "pooled", "each", "nice")
    one, two = results.points
    assert one.test_accuracy and one.test_accuracy.mean > 0.9, "nothing was learned, so nothing was compared"
    assert one.test_loss and two.test_loss
    assert two.test_loss.mean == pytest.approx(one.test_loss.mean, rel=1e-9)


def test_the_killed_run_goes_on_from_its_checkpoint(study: Killed) -> None:
    result = read_record(study.killed.result, RunResult)
    assert (result.attempt, result.ranks, result.steps) == (2, 2, 400)
    assert result.resumed_from_step


def test_the_messages_of_the_example_strategy_are_recorded(study: Killed) -> None:
    """One for each of the four parameters in every step since the checkpoint."""
    result = read_record(study.killed.result, RunResult)
    operations = list(read_spans(study.killed.rank_spans(0), 0).operation)
    assert operations.count("allreduce_") >= 4 * (400 - (result.resumed_from_step or 0))


def test_the_time_of_the_killed_attempt_is_in_the_budget(study: Killed) -> None:
    (killed_s,) = study.after_kill
    assert killed_s > 0.8 * study.under_way_s
    first, second = attempts(study.killed)
    assert first.wall_s == pytest.approx(killed_s, abs=0.01) and second.wall_s > 0


def test_the_example_finding_is_in_the_results_and_in_the_report(study: Killed) -> None:
    results, model = rebuild(study.folder)
    (found,) = [finding for finding in results.findings if finding.code == "few-samples"]
    assert (found.severity, found.points) == ("info", (results.points[1].point_id,))
    assert found.values == {"found": 1, "points": 2, "limit": 16}
    (view,) = [view for view in study.output["findings"] if view["name"] == "few-samples"]
    for text in (render(model), " ".join(render_text(model, width=200).split())):
        assert all(view[part] in text for part in ("summary", "cause", "remedy"))


def test_a_finding_registered_under_another_name_than_its_code_is_refused(study: Killed, tmp_path: Path) -> None:
    write_package(tmp_path, "other", "from few_samples import *", {"paceline.findings": {"other": "other"}})
    with installed(tmp_path), pytest.raises(RequestError, match="registered as other has the code few-samples"):
        rebuild(study.folder)


def test_the_example_launcher_brings_the_reports_of_its_ranks(packages: Path, tmp_path: Path) -> None:
    where = point(2)
    launcher = catalog.load("launcher", "nice")(light("--steps", 20))
    assert launcher.placement(where).cores is None
    outcome = launch(tmp_path / "run", manifest(where), launcher)
    assert [(report.rank, report.status, report.steps) for report in outcome.reports] == [
        (0, "done", 20),
        (1, "done", 20),
    ]


def test_the_example_launcher_names_a_rank_that_fails(packages: Path, tmp_path: Path) -> None:
    nice = catalog.load("launcher", "nice")(light("--who", 1, "--what", "raise"))
    with pytest.raises(RankError, match=f"^Rank 1 of 3 on {HOST} failed after step 5 of 20 .*ValueError: told to fail"):
        launch(tmp_path / "run", manifest(point(3)), nice)
