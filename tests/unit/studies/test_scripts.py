"""Studies of a script of the user's own: what they may say, what makes a point, and what their runs come to."""

from dataclasses import replace
from pathlib import Path

import pytest

from paceline.app.results_view import Results, open_results
from paceline.errors import RequestError, StudyFileError
from paceline.records.settings import DataSettings, ModelSettings, ScriptSettings, TrainSettings
from paceline.records.study import Point, Study
from paceline.reporting.wording.settings_list import point_settings, study_settings
from paceline.studies.execute.events import DataReady
from paceline.studies.execute.execute import execute
from paceline.studies.execute.job import make_job
from paceline.studies.execute.preview import preview
from paceline.studies.folder.collect import collect
from paceline.studies.load import scripts
from paceline.studies.load.load import load_script, load_study
from paceline.studies.load.toml_text import study_toml
from samples.instant_script import STEPS, InstantScripts, SampleLess, StepLess, Uneven, written

FILE = """
[study]
name = "mine"
[script]
path = "train.py"
arguments = ["--epochs", "3"]
"""


def mistakes(folder: Path, text: str, *overrides: str) -> list[str]:
    """What is said about a study file with a script beside it, line by line."""
    written(folder)
    (folder / "s.toml").write_text(text)
    with pytest.raises(StudyFileError) as caught:
        load_study(folder / "s.toml", overrides)
    return [line.strip() for line in caught.value.what.splitlines()[1:]]


def from_file(folder: Path, *overrides: str) -> Study:
    written(folder)
    (folder / "s.toml").write_text(FILE)
    return load_study(folder / "s.toml", overrides).study


def points(folder: Path, *overrides: str, script: str = "train.py", arguments: tuple[str, ...] = ()):
    loaded = load_script(folder / script, arguments, overrides)
    return make_job(loaded, folder / "out", events=lambda event: None, launcher=InstantScripts()).points


def run(folder: Path, launcher: InstantScripts, *overrides: str) -> Results:
    events: list[object] = []
    loaded = load_script(written(folder), ["--rounds", "3"], ["run.ranks=1,2", "run.repeats=1", *overrides])
    done = execute(loaded, folder / "out", launcher=launcher, events=events.append)
    assert (done.failures, done.prepared) == ({}, None)
    assert not any(isinstance(event, DataReady) for event in events)
    return open_results(folder / "out")


def test_a_script_of_a_study_file_leaves_the_rest_to_the_script(tmp_path: Path) -> None:
    study = from_file(tmp_path)
    assert study.script == ScriptSettings(path="train.py", arguments=("--epochs", "3"))
    assert (study.run.strategy, study.run.pin, study.run.heartbeat_s, study.run.scaling) == (
        "script",
        False,
        1800.0,
        None,
    )
    assert (study.run.ranks, study.run.repeats) == ((1, 2), 5)


def test_what_a_study_says_of_its_ranks_wins_over_the_defaults(tmp_path: Path) -> None:
    study = from_file(tmp_path, "run.pin=true", "run.heartbeat_s=60", "run.scaling=weak", "run.threads=1,2")
    assert (study.run.pin, study.run.heartbeat_s, study.run.scaling) == (True, 60.0, "weak")
    assert study.vary == {"run.threads": (1, 2)}


def test_a_study_without_a_script_has_none(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text('[study]\nname = "s"\n[train]\nbatch_global = 8\nepochs = 1\n')
    study = load_study(tmp_path / "s.toml").study
    assert (study.script, study.run.strategy, study.run.pin, study.run.heartbeat_s) == (None, "ddp", True, 30.0)


def test_a_script_on_the_command_line_is_a_study_named_after_it(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path, "fine tune!.py")
    study = load_script("fine tune!.py", ["--name", "a b"], ["run.ranks=4"]).study
    assert (study.name, study.title) == ("fine-tune", "'fine tune!.py' --name 'a b'")
    assert study.script == ScriptSettings(path=str(tmp_path / "fine tune!.py"), arguments=("--name", "a b"))
    assert study.run.ranks == (4,)


@pytest.mark.parametrize("overrides", [(), ("run.threads=1,2", "run.launcher=mpi")])
def test_the_resolved_study_file_reads_back_to_the_same_study(tmp_path: Path, overrides: tuple[str, ...]) -> None:
    script, arguments = written(tmp_path), ["--quote", 'a "b" \\ \n c', "--", "-n", "4"]
    study = load_script(script, arguments, overrides).study
    (tmp_path / "again.toml").write_text(study_toml(study))
    assert load_study(tmp_path / "again.toml").study == study
    assert "[train]" not in study_toml(study) and 'strategy = "script"' in study_toml(study)


def test_what_would_mean_nothing_beside_a_script_is_refused(tmp_path: Path) -> None:
    said = mistakes(
        tmp_path,
        FILE + '[data]\ndataset = "digits"\n[model]\nname = "mlp"\n[train]\nlr = 0.1\n'
        '[run]\nstrategy = "flat"\nservers = 2\n',
    )
    assert [line.split(":")[0] for line in said] == [
        "[data]",
        "[model]",
        "[train]",
        'run.strategy = "flat"',
        "run.servers = 2",
    ]
    assert all("script" in line for line in said)


def test_an_override_of_the_training_is_refused_too(tmp_path: Path) -> None:
    (said,) = mistakes(tmp_path, FILE, "train.lr=0.1,0.2")
    assert said.startswith("[train]: does not go with [script]")


def test_the_word_script_is_no_strategy_by_itself(tmp_path: Path) -> None:
    text = '[study]\nname = "s"\n[train]\nbatch_global = 8\nepochs = 1\n[run]\nstrategy = "script"\n'
    (said,) = mistakes(tmp_path, text)
    assert said.startswith('run.strategy = "script": there is no such strategy.')


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("", "script.path is missing: name a Python file"),
        ('path = "none.py"', 'script.path = "none.py": does not exist.'),
        ('path = "."', 'script.path = ".": is a folder.'),
        ('path = "train.py"\nargument = "x"', "script.argument: there is no such key. Did you mean script.arguments?"),
        ('path = ["train.py"]', 'script.path = ["train.py"]: must be text in quotes.'),
    ],
)
def test_a_wrong_script_section_is_told_in_words(tmp_path: Path, lines: str, said: str) -> None:
    (found,) = mistakes(tmp_path, f'[study]\nname = "s"\n[script]\n{lines}\n')
    assert found.startswith(said)


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        (b"print('fine')\n", ""),
        (b"# -*- coding: latin-1 -*-\nx = '\xe9'\n", ""),
        (b"if True print(1)\n", "is not a Python script, line 1: "),
        (b"#!/bin/sh\necho $HOME\n", "is not a Python script, line 2: "),
        (b"\x7fELF\x02\x01\x00\x00\xff\xfe", "is not a Python script"),
        (b"x = 1\x00\n", "is not a Python script"),
    ],
)
def test_what_is_no_python_is_found_before_a_rank_starts(tmp_path: Path, source: bytes, fault: str) -> None:
    path = tmp_path / "script"
    path.write_bytes(source)
    found = scripts.script_fault(path)
    assert found.startswith(fault) and bool(found) == bool(fault)


def test_a_script_that_is_not_there_is_a_wrong_request(tmp_path: Path) -> None:
    with pytest.raises(RequestError) as caught:
        load_script(tmp_path / "none.py")
    assert caught.value.exit_code == 2 and "does not exist" in caught.value.what
    assert caught.value.right and caught.value.next


class TestPoints:
    def test_names_of_points_are_stable(self) -> None:
        """Finished runs are found by the names of their points, so an upgrade must not rename them."""
        before = Point(
            data=DataSettings(),
            data_digest="d",
            model=ModelSettings(),
            model_digest="m",
            train=TrainSettings(batch_global=128, epochs=2, seed=5),
            ranks=2,
        )
        assert before.point_id == "2-ranks-ddp-4a297d559c"
        options = {"options": {"servers": 1}, "site": {"partition": "x"}, "data": DataSettings(read="whole")}
        assert replace(before, ranks=4, **options).point_id == "4-ranks-ddp-9cf4d8c673"

    def test_a_changed_script_or_argument_is_another_point(self, tmp_path: Path) -> None:
        written(tmp_path)
        (first, _) = points(tmp_path)
        (given, _) = points(tmp_path, arguments=("--lr", "1"))
        written(tmp_path, text="print(2)\n")
        (changed, _) = points(tmp_path)
        assert len({first.point_id, given.point_id, changed.point_id}) == 3
        assert first.point_id.startswith("1-rank-script-")

    def test_a_script_that_was_moved_is_the_same_point(self, tmp_path: Path) -> None:
        (tmp_path / "there").mkdir()
        written(tmp_path)
        written(tmp_path / "there")
        assert points(tmp_path)[0].point_id == points(tmp_path, script="there/train.py")[0].point_id

    def test_what_a_script_never_reads_makes_no_other_point(self, tmp_path: Path) -> None:
        written(tmp_path)
        (point, _) = points(tmp_path)
        assert replace(point, train=TrainSettings(lr=1.0), data_digest="x").point_id == point.point_id

    def test_settings_that_mean_nothing_are_not_shown(self, tmp_path: Path) -> None:
        written(tmp_path)
        study = load_script(tmp_path / "train.py").study
        for shown in (point_settings(points(tmp_path)[0]), study_settings(study)):
            assert {name.split(".")[0] for name in shown} == {"script", "run"}


class TestRuns:
    def test_throughput_is_that_of_the_timed_steps(self, tmp_path: Path) -> None:
        launcher = InstantScripts()
        results = run(tmp_path, launcher)
        one, two = results.points
        assert one.samples_per_s is not None and two.samples_per_s is not None and two.efficiency is not None
        assert one.samples_per_s.median == pytest.approx(1000 / 0.010)
        assert two.samples_per_s.median == pytest.approx(2000 / 0.011)  # of all ranks, over the slowest's time
        assert two.efficiency.median == pytest.approx(0.010 / 0.011)
        assert (one.epoch_s, one.test_accuracy, one.parameters, one.load_s) == (None, None, None, None)
        result = collect(tmp_path / "out").runs[1].result
        assert (result.steps, result.script.samples, result.script.found) == (
            STEPS,
            2000,
            ("DDP", "1 optimizers", "2 optimizers"),
        )
        assert {told.data_folder for told in launcher.told} == {""}
        assert {told.model_file for told in launcher.told} == {str(tmp_path / "train.py")}

    def test_the_loop_is_looked_at_from_the_second_step_on(self, tmp_path: Path) -> None:
        two = run(tmp_path, InstantScripts()).points[1]
        assert two.ledger_s is not None and two.efficiencies is not None and two.anatomy is not None
        assert two.ledger_s["forward"] == pytest.approx(0.0005 * STEPS)
        assert two.efficiencies.computation_scaling == pytest.approx(1.0)

    def test_a_report_says_nothing_of_epochs_and_accuracy(self, tmp_path: Path) -> None:
        results = run(tmp_path, InstantScripts())
        assert results.model.figures.columns == ("ranks", "run time (s)", "samples/s", "speed-up", "efficiency")
        assert "2 ranks process samples 1.82 times as fast as 1" in results.model.verdict
        words = [fact.text for fact in (*results.model.settings, *results.model.protocol, *results.model.definitions)]
        assert not [text for text in words if "mnist" in text or "epoch" in text.lower() or "test set" in text]
        assert (tmp_path / "out" / "report.html").stat().st_size > 10_000
        row = (tmp_path / "out" / "results.csv").read_text().splitlines()[1]
        assert f"{tmp_path}/train.py --rounds 3" in row and "mnist" not in row

    def test_without_samples_there_is_no_throughput_and_no_speed_up(self, tmp_path: Path) -> None:
        one, two = run(tmp_path, SampleLess()).points
        assert (one.samples_per_s, two.samples_per_s, two.speedup, two.efficiency) == (None, None, None, None)
        assert two.ledger_s is not None and two.total_s is not None

    def test_without_steps_there_is_still_a_ledger(self, tmp_path: Path) -> None:
        results = run(tmp_path, StepLess())
        assert all(point.ledger_s is not None and point.samples_per_s is None for point in results.points)
        (first, _) = collect(tmp_path / "out").runs
        assert (first.result.steps, first.result.script.timed_s) == (0, None)
        assert first.result.script.notes == ("No torch.optim optimizer took a step.",)

    def test_ranks_that_take_different_numbers_of_steps_are_told_of(self, tmp_path: Path) -> None:
        run(tmp_path, Uneven())
        result = collect(tmp_path / "out").runs[1].result
        assert result.steps == 9
        assert result.script.notes == ("Ranks took different numbers of steps, 9 to 11: the fewest are counted.",)

    def test_a_finished_run_is_kept_until_the_script_changes(self, tmp_path: Path) -> None:
        run(tmp_path, InstantScripts())
        again = InstantScripts()
        run(tmp_path, again)
        assert again.told == []
        loaded = load_script(
            written(tmp_path, text="print(2)\n"), ["--rounds", "3"], ["run.ranks=1,2", "run.repeats=1"]
        )
        execute(loaded, tmp_path / "out", launcher=again)
        assert len(again.told) == 2

    def test_a_preview_fetches_and_checks_nothing_but_the_script(self, tmp_path: Path) -> None:
        loaded = load_script(written(tmp_path), (), ["run.repeats=1"])
        shown = preview(loaded, tmp_path / "out", launcher=InstantScripts(), cache=tmp_path / "cache")
        assert (shown.runs, shown.finished, shown.dataset, shown.rank_h) == (2, 0, None, None)
        assert [(point.ranks, point.batch_global, point.steps_per_epoch) for point in shown.points] == [
            (1, None, None),
            (2, None, None),
        ]
        execute(loaded, tmp_path / "out", launcher=InstantScripts())
        shown = preview(loaded, tmp_path / "out", launcher=InstantScripts(), cache=tmp_path / "cache")
        assert shown.finished == 2 and shown.rank_h == 0
        assert not (tmp_path / "cache").exists()
