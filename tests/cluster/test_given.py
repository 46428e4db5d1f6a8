"""What ranks are given that they did not ask for, provoked for real: refused before the first step, or told."""

from __future__ import annotations

import json
import os
import shutil
import socket
from dataclasses import replace
from pathlib import Path

import pytest

import paceline
from paceline.launch.launcher import Outcome, Placement
from paceline.launch.local import LocalLauncher
from paceline.launch.mpi_launcher import MpiLauncher
from paceline.launch.wrapper.wrapped_ranks import Program, run_wrapped, wrapper_command
from paceline.records.run import Machine, Manifest, RankReport
from paceline.records.study import Point
from paceline.reporting.wording.finding_words import finding_words
from paceline.storage.codec import read_record, write_record
from paceline.storage.folder import RunFolder, StudyFolder
from paceline.studies.execute.execute import execute
from paceline.studies.folder.collect import collect, traces
from paceline.studies.load.load import LoadedStudy, load_study
from paceline.units import nanoseconds, seconds

HERE = socket.gethostname()
STUDY = """
[study]
name = "given"
[data]
dataset = "synthetic"
shape = [4, 4, 1]
samples = 64
[model]
name = "mlp"
[train]
batch_global = 16
epochs = 2
[run]
ranks = [2]
repeats = 1
heartbeat_s = 60
"""


class Wrapped:
    """A launcher of ranks that each get a command in front of theirs, and a run folder of their own."""

    name = "wrapped"

    def __init__(self, before: dict[int, tuple[str, ...]], folders: dict[int, Path] | None = None) -> None:
        self._before = before
        self._folders = folders or {}

    def placement(self, point: Point) -> Placement:
        return Placement(cores=None, text="as the test has it", oversubscribed=False)

    def check(self, point: Point) -> None:
        """Everything can be tried."""

    def pending(self, folder: RunFolder) -> None:
        """No rank outlives this launcher."""

    def run(
        self, folder: RunFolder, manifest: Manifest, *, heartbeat_s: float, progress=lambda progress: None
    ) -> Outcome:
        size = manifest.point.processes
        programs = []
        for rank in range(size):
            place = ("env", f"RANK={rank}", f"WORLD_SIZE={size}", f"LOCAL_RANK={rank}", f"LOCAL_WORLD_SIZE={size}")
            command = wrapper_command(RunFolder(self._folders.get(rank, folder.path)))
            programs.append(Program(command=(*place, *self._before.get(rank, ()), *command), ranks=(rank,), host=HERE))
        return run_wrapped(programs, folder, manifest, heartbeat_s=heartbeat_s, progress=progress)


def study(folder: Path, *overrides: str) -> LoadedStudy:
    path = folder / "given.toml"
    path.write_text(STUDY)
    return load_study(path, overrides)


def attempt(folder: Path, loaded: LoadedStudy, launcher, **options) -> tuple[str, Machine]:
    """Execute the study's only run: why it failed, where it did, and its machine.json."""
    done = execute(loaded, folder / "out", launcher=launcher, preflight=False, cache=folder / "cache", **options)
    (run,) = StudyFolder(folder / "out").path.glob("points/*/runs/1")
    why = "\n".join(done.failures.values())
    assert RunFolder(run).machine.exists(), why
    return why, read_record(RunFolder(run).machine, Machine)


def names(machine: Machine, severity: str) -> set[str]:
    return {complaint.name for complaint in machine.complaints if complaint.severity == severity}


def test_three_hosts_that_are_one(tmp_path) -> None:
    """One machine under three of its names, as a careless list of hosts has it."""
    loaded = study(
        tmp_path,
        "run.ranks=3",
        "run.hosts=3",
        "run.launcher=mpi",
        f"launch.machines=['localhost', '127.0.0.1', '{HERE}']",
        "launch.interface=lo",
    )
    why, machine = attempt(tmp_path, loaded, MpiLauncher(None, loaded.study.launch))
    assert why.startswith(f"The run has 1 host instead of 3: all 3 processes on {HERE}.")
    assert "--force" in why and "Traceback" not in why and "File " not in why
    assert names(machine, "fatal") == {"fewer-hosts"}
    assert [given.rank for given in machine.ranks] == [0, 1, 2] and not machine.links


def test_one_core_other_code_and_other_settings_are_refused_in_one_breath(tmp_path) -> None:
    copied = tmp_path / "elsewhere" / "paceline"
    shutil.copytree(Path(paceline.__file__).parent, copied, ignore=shutil.ignore_patterns("__pycache__"))
    with (copied / "units.py").open("a") as file:
        file.write("# changed\n")
    loaded = study(tmp_path)
    other = tmp_path / "other-settings"
    other.mkdir()

    class Astray(Wrapped):
        """Rank 1 reads a manifest that says something else, as from a file system that lags behind."""

        def run(self, folder: RunFolder, manifest: Manifest, **options) -> Outcome:
            for name in ("ranks", "spans", "logs"):
                (folder.path / name).mkdir(parents=True, exist_ok=True)
                (other / name).symlink_to(folder.path / name)
            write_record(RunFolder(other).manifest, replace(manifest, seed=manifest.seed + 1))
            return super().run(folder, manifest, **options)

    one_core = ("taskset", "-c", "0")
    launcher = Astray({0: one_core, 1: (*one_core, "env", f"PYTHONPATH={copied.parent}")}, {1: other})
    why, machine = attempt(tmp_path, loaded, launcher)
    wanted = {"code-differs", "settings-differ"}
    wanted |= {"ranks-share-cores"} if len(os.sched_getaffinity(0)) > 1 else set()
    assert names(machine, "fatal") == wanted
    assert "Rank 1 has other code of Paceline" in why
    assert "Rank 1 has other settings (manifest.json)" in why
    assert "Ranks 0 and 1 share core 0" in why or "ranks-share-cores" not in wanted
    (run,) = (tmp_path / "out").glob("points/*/runs/1")
    reports = [json.loads(RunFolder(run).rank_report(rank).read_text()) for rank in range(2)]
    assert [(report["status"], report["error_kind"]) for report in reports] == [("failed", "own"), ("failed", "peer")]


@pytest.fixture
def no_gpus() -> None:
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")


def test_a_rank_alone_is_refused_where_it_has_no_gpu(tmp_path, no_gpus) -> None:
    why, machine = attempt(tmp_path, study(tmp_path, "run.ranks=1", "run.device=cuda"), LocalLauncher())
    assert why.startswith(f"Rank 0 has no GPU: rank 0 sees 0 GPUs on {HERE}, for 1 process there.")
    assert names(machine, "fatal") == {"no-gpu"} and len(machine.ranks) == len(machine.clocks) == 1


def test_what_was_forced_is_on_record(tmp_path, no_gpus) -> None:
    threads = len(os.sched_getaffinity(0)) + 1
    loaded = study(tmp_path, "run.device=cuda", f"run.threads={threads}")
    why, machine = attempt(tmp_path, loaded, Wrapped({}), force=True)
    assert not why and names(machine, "fatal") == {"no-gpu", "threads-beyond-affinity"}
    assert names(machine, "warning") == {"more-threads-than-cores"}
    assert [link.kind for link in machine.links] == ["inside"]
    results = paceline.open_results(tmp_path / "out")
    (finding,) = [found for found in results.results.findings if found.code == "asked-for-against-given"]
    assert finding.severity == "error" and "Ranks 0 and 1 have no GPU" in finding_words(finding).summary
    assert f"has {threads} threads and may use" in finding_words(finding).summary
    assert results.points[0].oversubscribed


def test_hosts_whose_clocks_are_apart_are_put_on_one_time_line(net_hosts, tmp_path) -> None:
    loaded = study(
        tmp_path,
        "run.hosts=2",
        "run.launcher=torchrun",
        "run.pin=false",
        f"launch.machines={json.dumps(net_hosts.settings.machines)}",
        f"launch.agent={json.dumps(net_hosts.settings.agent)}",
        "launch.interface=eth0",
    )
    with net_hosts.clock_off("h2", 1000):
        why, machine = attempt(tmp_path, loaded, net_hosts.launcher("torchrun"))
    assert not why
    assert machine.hosts == ("h1", "h2") and names(machine, "info") == {"emulated-hosts"}
    assert [given.addresses[0] for given in machine.ranks] == ["10.77.0.1", "10.77.0.2"]
    assert [(link.kind, link.source_host, link.target_host) for link in machine.links] == [("between", "h1", "h2")]
    same, off = machine.clocks
    assert (same.offset_ns, same.error_ns, same.method) == (0, 0, "same")
    assert off.method == "exchange" and off.error_ns is not None and 0 < seconds(off.error_ns) < 0.5
    assert abs(off.offset_ns - nanoseconds(1000)) <= off.error_ns

    (at_end,) = machine.clocks_at_end
    assert at_end.rank == 1 and at_end.at_ns > off.at_ns and at_end.error_ns is not None
    assert abs(at_end.offset_ns - nanoseconds(1000)) <= at_end.error_ns

    (run,) = collect(tmp_path / "out").runs
    report = read_record(run.folder.rank_report(1), RankReport)
    assert (report.clock_offset_ns, report.clock_error_ns) == (off.offset_ns, off.error_ns)
    for trace in traces(run).traces:
        began_s = seconds(int(trace.start_ns.min()) - run.result.launched_at_ns)
        assert 0 < began_s < run.result.wall_s, "spans lie in the run's window"
    point = paceline.open_results(tmp_path / "out").points[0]
    assert point.emulated
    for ledger in point.rank_ledgers_s:
        assert sum(value or 0 for value in ledger.values()) == pytest.approx(run.result.wall_s)
        assert (ledger["forward"] or 0) > 0, "a rank whose clock was not aligned would have done nothing in the window"
