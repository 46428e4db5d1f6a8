"""Which points make a line, and what each is measured against."""

from __future__ import annotations

from dataclasses import replace

import pytest

from paceline.analyze.points.series import baselines, series_factors, series_label, without_recipe_choices
from paceline.analyze.study.study_results import study_results
from paceline.records.results import StudyResults
from paceline.records.settings import DataSettings, RunSettings, TrainSettings
from paceline.records.study import Point, Study
from paceline.studies.expand.recipe import with_recipe
from samples.trace_samples import traces_of


def study(vary: dict, run: RunSettings | None = None) -> Study:
    return Study(name="by-hand", vary=vary, run=run or RunSettings(ranks=(1, 2)))


def results(study: Study, points: list[Point], runs: list, **changed) -> StudyResults:
    fields = {"traces": traces_of(()), "machine": None, "expected_runs": len(runs)}
    return study_results(study, "folder", points, runs, **(fields | changed))


def test_a_study_of_ranks_alone_is_one_series_without_a_name(point) -> None:
    assert series_factors(study({})) == ()
    assert series_label(point(4), ()) == ""


def test_a_series_is_named_by_what_is_varied(point) -> None:
    factors = series_factors(study({"run.strategy": ("ddp", "parameter-server"), "run.servers": (1, 2)}))
    assert series_label(point(4), factors) == "ddp"
    served = replace(point(4, "parameter-server"), options={"servers": 2})
    assert series_label(served, factors) == "parameter-server, 2 servers"
    hosts = series_factors(study({"run.strategy": ("ddp", "flat"), "run.hosts": (1, 2)}))
    assert series_label(replace(point(4), hosts=2), hosts) == "ddp on 2 hosts"
    assert series_label(replace(point(4), hosts=1), ("run.hosts",)) == "1 host"


def test_hosts_that_make_the_ranks_are_what_a_series_runs_over() -> None:
    by_hosts = RunSettings(ranks=(), ranks_per_host=2)
    assert series_factors(study({"run.hosts": (1, 2, 4)}, by_hosts)) == ()
    assert series_factors(study({"run.ranks_per_host": (1, 2)}, by_hosts)) == ()
    assert series_factors(study({"run.hosts": (1, 2), "run.ranks_per_host": (1, 2)}, by_hosts)) == ("run.hosts",)
    assert series_factors(study({"run.hosts": (1, 2)}, RunSettings(ranks=(4,)))) == ("run.hosts",)


@pytest.mark.parametrize(
    "changed",
    [
        {"strategy": "flat"},
        {"strategy": "local-sgd", "options": {"average_every": 8}},
        {"launcher": "torchrun"},
        {"hosts": 2},
        {"pin": False},
        {"site": {"partition": "long"}},
    ],
)
def test_one_baseline_for_all_that_differ_in_how_the_work_is_divided(point, changed) -> None:
    one, two = point(1), replace(point(2), **changed)
    timed = {one.point_id, two.point_id}
    assert baselines([one, two], timed) == {one.point_id: one, two.point_id: one}


@pytest.mark.parametrize(
    "changed",
    [
        {"train": TrainSettings(batch_global=256, epochs=3)},
        {"train": TrainSettings(batch_global=128, epochs=3, precision="float64")},
        {"data": DataSettings(read="whole")},
        {"threads": 2},
        {"device": "cuda"},
    ],
)
def test_what_changes_the_work_or_the_means_of_a_rank_has_its_own(point, changed) -> None:
    one, other = point(1), replace(point(2), **changed)
    timed = {one.point_id, other.point_id}
    assert baselines([one, other], timed)[other.point_id] == other


RECIPES = [
    {"recipe": "scale", "batch_per_rank": 64, "epochs": 10},  # a warm-up from two ranks on
    {"recipe": "scale", "batch_per_rank": 2048, "epochs": 10},  # LAMB from eight ranks on
    {"recipe": "scale", "batch_per_rank": 64, "epochs": 10, "epochs_rule": "divide-by-ranks"},  # a tenth of the rest
    {"recipe": "scale", "batch_global": 512, "epochs": 10, "epochs_rule": "divide-by-ranks"},
    {"recipe": "as-published", "batch_global": 512, "epochs": 10},  # the rate is meant for one rank's share
    {"recipe": "", "batch_global": 512, "epochs": 10, "epochs_rule": "divide-by-ranks"},
]


@pytest.fixture(params=RECIPES, ids=lambda said: "-".join(map(str, said.values())))
def given(request, point) -> list[Point]:
    """A study's points on 1, 2, 4 and 8 ranks, before their recipe chose anything."""
    return [replace(point(ranks), train=TrainSettings(**request.param)) for ranks in (1, 2, 4, 8)]


def test_what_a_recipe_chose_by_the_ranks_leaves_one_baseline(given) -> None:
    points = [with_recipe(each) for each in given]
    assert len({each.train for each in points}) > 1, "nothing was chosen by the ranks"
    found = baselines(points, {each.point_id for each in points})
    assert [found[each.point_id].ranks for each in points] == [1, 1, 1, 1]


def test_without_its_choices_a_point_is_as_the_study_gave_it(given) -> None:
    for each in given:
        divided = each.train.epochs_rule != "none"
        assert without_recipe_choices(with_recipe(each)) == replace(
            each, train=replace(each.train, epochs=None if divided else 10)
        )


def test_what_the_study_says_beside_a_recipe_has_its_own_baseline(point) -> None:
    said = {"recipe": "scale", "batch_per_rank": 64, "epochs": 10}
    one = with_recipe(replace(point(1), train=TrainSettings(**said)))
    for other in ({"recipe": ""}, {"schedule": "one-cycle"}, {"warmup_epochs": 2.0}, {"optimizer": "sgd"}):
        two = with_recipe(replace(point(2), train=TrainSettings(**(said | other))))
        assert baselines([one, two], {one.point_id, two.point_id})[two.point_id] == two, other


def test_the_baseline_has_the_fewest_ranks_and_servers_and_is_the_first_of_equals(point) -> None:
    served = replace(point(1, "parameter-server"), options={"servers": 2})
    flat, ddp = point(2, "flat"), point(2)
    points = [served, flat, ddp]
    assert baselines(points, {p.point_id for p in points})[served.point_id] == flat
    assert baselines(points, {served.point_id, ddp.point_id})[flat.point_id] == ddp
    assert baselines(points, set()) == {}


def test_servers_count_as_ranks_in_the_efficiency(point, run) -> None:
    one, served = point(1), replace(point(2, "parameter-server"), options={"servers": 1, "server_threads": 1})
    varied = study({"run.strategy": ("ddp", "parameter-server")})
    runs = [run(one, n, 4.0) for n in range(1, 6)] + [run(served, n, 2.0) for n in range(1, 6)]
    row = results(varied, [one, served], runs).points[1]
    assert row.speedup and row.speedup.median == 2.0
    assert row.efficiency and row.efficiency.median == pytest.approx(2 / 3)


def test_series_without_their_own_single_rank_are_measured_against_the_common_one(point, run) -> None:
    varied = study({"run.strategy": ("ddp", "flat")})
    one, ddp, flat = point(1), point(2), point(2, "flat")
    runs = [run(p, n, s) for p, s in ((one, 4.0), (ddp, 2.0), (flat, 2.5)) for n in range(1, 6)]
    found = results(varied, [one, ddp, flat], runs)
    assert [row.baseline for row in found.points] == [one.point_id] * 3 and found.baseline == one.point_id
    assert [row.series for row in found.points] == ["ddp", "ddp", "flat"]
    assert [row.label for row in found.points] == ["1 rank, ddp", "2 ranks, ddp", "2 ranks, flat"]
    assert [row.speedup.median for row in found.points if row.speedup] == pytest.approx([1.0, 2.0, 1.6])


def test_batch_sizes_are_each_measured_against_their_own(point, run) -> None:
    varied = study({"train.batch_global": (128, 512)})
    large = TrainSettings(batch_global=512, epochs=3)
    points = [point(1), point(2), replace(point(1), train=large), replace(point(2), train=large)]
    runs = [run(p, n, s) for p, s in zip(points, (4.0, 2.0, 3.0, 1.2), strict=True) for n in range(1, 6)]
    rows = {(row.point.ranks, row.point.batch_global): row for row in results(varied, points, runs).points}
    assert rows[2, 128].speedup and rows[2, 128].speedup.median == 2.0
    assert rows[2, 512].speedup and rows[2, 512].speedup.median == 2.5
    assert rows[2, 512].baseline == rows[1, 512].point_id


def test_a_missing_baseline_is_told_by_the_name_of_its_point(point, run) -> None:
    varied = study({"run.strategy": ("ddp", "flat")})
    one, two = point(1), point(2, "flat")
    found = results(varied, [one, two], [run(two, n) for n in range(1, 6)], expected_runs=10)
    told = next(finding for finding in found.findings if finding.code == "baseline-missing")
    assert told.values == {"used": "2 ranks, flat", "wanted": "1 rank, ddp"}


def test_what_runs_say_besides_times_is_gathered(point, run) -> None:
    runs = [
        run(point(), n, read_bytes=1000 + n, queue_s=10.0 * n, staleness_max=n % 3, emulated=n == 2)
        for n in range(1, 6)
    ]
    row = results(study({}), [point()], runs).points[0]
    assert (row.read_bytes, row.staleness_max, row.emulated, row.fair) == (1005, 2, True, False)
    assert row.queue_s and (row.queue_s.median, row.queue_s.low, row.queue_s.high) == (30.0, 10.0, 50.0)
    silent = results(study({}), [point()], [run(point())]).points[0]
    assert (silent.read_bytes, silent.queue_s, silent.staleness_max, silent.fair) == (None, None, None, True)
