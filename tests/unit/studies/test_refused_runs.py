"""A run that its ranks refused, and spans of ranks whose clocks differ."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from study_help import FakeLauncher, loaded

from paceline.errors import RankError
from paceline.records.allocation import AllocationCheck, Clock, Complaint, ProcessFacts
from paceline.records.run import Machine, Manifest
from paceline.storage.codec import read_record, write_record
from paceline.storage.folder import RunFolder
from paceline.storage.span_stream import SpanWriter
from paceline.studies.execute.execute import execute
from paceline.studies.folder.collect import collect, traces


def roll(*complaints: Complaint, refused: bool = False) -> AllocationCheck:
    ranks = tuple(ProcessFacts(rank=rank, host="h", boot_id="b") for rank in range(2))
    clocks = tuple(Clock(rank=rank, offset_ns=0, error_ns=0, method="same") for rank in range(2))
    return AllocationCheck(refused=refused, ranks=ranks, complaints=complaints, clocks=clocks)


class Calling(FakeLauncher):
    """Ranks that checked the allocation, and then die or go on."""

    def __init__(self, said: AllocationCheck, *, dies: bool) -> None:
        super().__init__()
        self.said, self.dies = said, dies

    def run(self, folder: RunFolder, manifest: Manifest, **options):
        write_record(folder.allocation_check, self.said)
        if self.dies:
            raise RankError("Rank 0 failed while starting.")
        return super().run(folder, manifest, **options)


def attempt(tmp_path: Path, launcher: Calling) -> tuple[dict[str, str], RunFolder]:
    study = loaded(tmp_path, "run.ranks=2", "run.repeats=1")
    done = execute(study, tmp_path / "out", launcher=launcher, preflight=False, cache=tmp_path / "cache")
    (folder,) = (tmp_path / "out").glob("points/*/runs/1")
    return done.failures, RunFolder(folder)


FATAL = Complaint(name="fewer-hosts", severity="fatal", what="One host.", right="Three hosts.", next="Ask for more.")
WARNING = Complaint(name="uneven-spread", severity="warning", what="Uneven.", right="Even.", next="Spread.")


def test_a_refusal_is_told_in_its_own_words_and_kept(tmp_path) -> None:
    failures, folder = attempt(tmp_path, Calling(roll(FATAL, WARNING, refused=True), dies=True))
    (why,) = failures.values()
    assert why.splitlines() == [
        "One host.",
        "Three hosts.",
        "Ask for more. To measure all the same, with this on record: --force.",
    ]
    assert read_record(folder.machine, Machine).complaints == (FATAL, WARNING)


def test_a_rank_that_dies_after_a_good_allocation_check_is_told_as_before(tmp_path) -> None:
    failures, folder = attempt(tmp_path, Calling(roll(WARNING), dies=True))
    assert list(failures.values()) == ["Rank 0 failed while starting."]
    assert not folder.machine.exists()


def test_what_was_said_is_in_machine_json_and_in_the_result(tmp_path) -> None:
    crowd = replace(WARNING, name="more-threads-than-cores")
    failures, _ = attempt(tmp_path, Calling(roll(crowd, replace(WARNING, name="emulated-hosts")), dies=False))
    assert not failures
    (run,) = collect(tmp_path / "out").runs
    assert run.machine is not None and run.machine.complaints[0] == crowd
    assert run.result.oversubscribed and run.result.emulated


def test_spans_are_put_on_the_launchers_clock(tmp_path) -> None:
    attempt(tmp_path, Calling(roll(), dies=False))
    (run,) = collect(tmp_path / "out").runs
    for rank in range(2):
        writer = SpanWriter(run.folder.rank_spans(rank))
        message = (9, 1500, -1, 0, "allreduce_", 8, 0, "0", -1, -1, None)
        writer.write([(0, 1000, 2000, -1, None, -1, -1, None, -1, -1, None), message])
        writer.close()
    assert run.machine is not None
    clocks = (
        Clock(rank=0, offset_ns=0, error_ns=0, method="same"),
        Clock(rank=1, offset_ns=900, error_ns=1, method="exchange"),
    )
    write_record(run.folder.machine, replace(run.machine, clocks=clocks))
    same, shifted = traces(run).traces
    assert same.start_ns.tolist() == [1000, 1500] and same.end_ns.tolist() == [2000, -1]
    assert shifted.start_ns.tolist() == [100, 600] and shifted.end_ns.tolist() == [1100, -1]
