from dataclasses import replace
from pathlib import Path

import pytest
from study_help import changed, loaded, report

from paceline.errors import RankError
from paceline.launch.launcher import Outcome, Placement
from paceline.records.run import CachedFeatures, PhaseEnd
from paceline.records.study import Run
from paceline.studies.execute import compose
from paceline.studies.execute.compose import new_manifest, run_result
from paceline.studies.expand.expand import expand


@pytest.fixture
def manifest(tmp_path: Path):
    study = loaded(tmp_path).study
    point = expand(study, data_digest="d", model_digest="")[1]
    placement = Placement(cores=((0,), (1,)), text="beside one another", oversubscribed=False)
    return new_manifest(
        Run(point=point, number=3),
        study=study,
        data_folder=Path("cache"),
        model_file=None,
        placement=placement,
        attempt=2,
    )


def outcome(manifest, reports) -> Outcome:
    ended_at_ns = manifest.launched_at_ns + 5_000_000_000
    return Outcome(started_at_ns=manifest.launched_at_ns, ended_at_ns=ended_at_ns, reports=tuple(reports))


def test_a_manifest_says_everything(manifest) -> None:
    assert (manifest.run, manifest.seed, manifest.attempt, manifest.point.ranks) == (3, 12, 2, 2)
    assert manifest.point_id == manifest.point.point_id
    assert (manifest.cores, manifest.placement) == (((0,), (1,)), "beside one another")
    assert Path(manifest.data_folder).is_absolute()
    assert set(manifest.versions) == {"python", "torch", "numpy", "paceline"}
    assert "unknown" not in manifest.versions.values()


def test_the_commit_is_that_of_this_checkout() -> None:
    found = compose.commit()
    root = Path(__file__).parents[3]
    assert (found is None) == (not (root / ".git").exists())
    if found is not None:
        assert len(found.removesuffix("-dirty")) == 40


def test_a_result_has_the_times_of_the_slowest_and_the_losses_of_rank_0(manifest) -> None:
    result = run_result(manifest, outcome(manifest, [report(1), report(0)]), oversubscribed=True)
    assert [(line.epoch_s, line.evaluate_s, line.train_loss) for line in result.epochs] == [(2, 0.2, 1), (2, 0.2, 0.5)]
    assert (result.load_s, result.total_s, result.wall_s) == (0.2, 5.0, 5.0)
    assert (result.point_id, result.run, result.seed, result.ranks) == (manifest.point_id, 3, 12, 2)
    assert (result.steps, result.parameters, result.attempt, result.oversubscribed) == (16, 170, 2, True)


def test_a_result_has_the_phases_and_the_features_of_the_rank_that_waited_longest(manifest) -> None:
    ends = tuple(PhaseEnd(name=name, steps=8, test_loss=0.1, test_accuracy=0.9) for name in ("train", "finetune"))
    made = CachedFeatures(samples=100, size=8, ready_s=1.0, found=False)
    reports = [changed(report(n), phases=ends, features=replace(made, ready_s=1.0 + n)) for n in (0, 1)]
    result = run_result(manifest, outcome(manifest, reports), oversubscribed=False)
    assert result.phases == ends
    assert result.features == replace(made, ready_s=2.0)
    assert run_result(manifest, outcome(manifest, [report(0), report(1)]), oversubscribed=False).features is None


def test_a_resumed_run_has_no_total(manifest) -> None:
    reports = [changed(report(rank), resumed_from_step=8, resume_note="another host") for rank in (0, 1)]
    result = run_result(manifest, outcome(manifest, reports), oversubscribed=False)
    assert (result.total_s, result.wall_s) == (None, 5.0)
    assert (result.resumed_from_step, result.resume_note) == (8, "another host")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"weights_sha256": "f" * 64}, "Rank 1 ended with other weights than rank 0."),
        ({"steps": 15}, "Rank 1 took 15 steps, rank 0 took 16."),
        ({"test_loss": None}, "Rank 1 ended without a complete report."),
        ({"status": "failed"}, "Rank 1 ended without a complete report."),
        ({"rank": 2}, "2 ranks were started, but reports came from: 0, 2."),
    ],
)
def test_ranks_that_contradict_one_another_make_no_result(manifest, change, said: str) -> None:
    with pytest.raises(RankError) as caught:
        run_result(manifest, outcome(manifest, [report(0), changed(report(1), **change)]), oversubscribed=False)
    assert said in caught.value.what and manifest.point_id in caught.value.what
