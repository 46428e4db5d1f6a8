"""Scaling laws: fits find what the points were made of, say how sure they are, and are refused where they must be."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import numpy as np
import pytest

from paceline.analyze.points.law_fit import fit, log_paces
from paceline.analyze.points.law_forms import AMDAHL, GUSTAFSON, USL, Form
from paceline.analyze.points.scaling_laws import scaling_laws
from paceline.analyze.stats.students_t import f_tail
from paceline.records.laws import Law, SeriesLaws
from paceline.records.results import StudyResults
from paceline.records.settings import ScriptSettings
from samples import law_samples as samples


def laws_of(results: StudyResults) -> SeriesLaws:
    (found,) = results.laws
    return found


def law(results: StudyResults, name: str) -> Law:
    return next(found for found in laws_of(results).laws if found.name == name)


def test_points_without_noise_give_back_what_they_were_made_of() -> None:
    found = law(samples.study(samples.usl(0.04, 0.002), noise=0.0), "usl")
    assert found.parameters["contention"].value == pytest.approx(0.04, rel=1e-6)
    assert found.parameters["coherency"].value == pytest.approx(0.002, rel=1e-6)
    assert found.peak and found.peak.value == pytest.approx(math.sqrt(0.96 / 0.002), rel=1e-5)
    serial = law(samples.study(samples.amdahl(0.04), noise=0.0), "amdahl")
    assert serial.parameters["serial"].value == pytest.approx(0.04, rel=1e-6)
    assert serial.limit and serial.limit.value == pytest.approx(25, rel=1e-6)
    weak = law(samples.study(samples.gustafson(0.04), noise=0.0, weak=True), "gustafson")
    assert weak.parameters["serial"].value == pytest.approx(0.04, rel=1e-6)


def share_covered(form: Form, pace: samples.Pace, truth: tuple[float, ...], studies: int, **of: float) -> list[float]:
    """In which share of generated studies the intervals contain what the throughputs were made of."""
    chance = random.Random(11)
    hits = np.zeros(len(truth))
    for _ in range(studies):
        measured = log_paces(samples.throughputs(pace, chance, noise=of.get("noise", 0.02)))
        assert measured is not None
        found = fit(form, measured)
        for index, value in enumerate(truth):
            figure = found.figure(lambda rows, index=index: rows[:, index])
            hits[index] += figure.low <= value <= figure.high
    return [float(hit) / studies for hit in hits]


# Of 150 studies 95 % is 142.5 ± 2.7; of 1,500 and more it was 95.5 % (both parameters of the USL) and 94.5 % (Amdahl).
def test_intervals_of_the_usl_cover_the_truth_as_often_as_they_say() -> None:
    shares = share_covered(USL, samples.usl(), (samples.CONTENTION, samples.COHERENCY), 150)
    assert all(0.91 <= share <= 0.985 for share in shares), shares


def test_intervals_of_the_simple_laws_cover_the_truth_as_often_as_they_say() -> None:
    for form, pace in ((AMDAHL, samples.amdahl()), (GUSTAFSON, samples.gustafson())):
        (share,) = share_covered(form, pace, (samples.CONTENTION,), 100)
        assert 0.91 <= share <= 0.99, (form.name, share)


def test_on_a_bound_intervals_cover_more_and_not_less() -> None:
    contention, coherency = share_covered(USL, samples.usl(0.0, 0.0), (0.0, 0.0), 60)
    assert contention >= 0.95 and coherency >= 0.95


def test_what_a_repeat_has_in_common_does_not_matter() -> None:
    paces = samples.throughputs(samples.usl(), random.Random(5))
    moved = {n: {run: pace * 1.3**run for run, pace in own.items()} for n, own in paces.items()}
    before, after = (log_paces(own) for own in (paces, moved))
    assert before and after
    assert fit(USL, after).best == pytest.approx(fit(USL, before).best, rel=1e-6)
    assert fit(USL, after).variance == pytest.approx(fit(USL, before).variance, rel=1e-6)


def test_missing_runs_cost_precision_and_nothing_else() -> None:
    paces = samples.throughputs(samples.amdahl(), random.Random(5))
    del paces[16][5], paces[1][2]
    measured = log_paces(paces)
    assert measured is not None and measured.runs == 23
    figure = fit(AMDAHL, measured).figure(lambda rows: rows[:, 0])
    assert figure.low <= samples.CONTENTION <= figure.high


def test_amdahls_law_is_kept_where_it_describes_the_points_and_given_up_where_not() -> None:
    simple, full = laws_of(samples.study(samples.amdahl())), laws_of(samples.study(samples.usl()))
    assert simple.preferred == "amdahl" and simple.coherency_p is not None and simple.coherency_p > 0.05
    assert full.preferred == "usl" and full.coherency_p is not None and full.coherency_p < 0.001
    assert law(samples.study(samples.usl()), "amdahl").misfit_p == pytest.approx(0, abs=1e-3)


def test_there_is_no_peak_where_coherency_cannot_be_told_from_none() -> None:
    found = law(samples.study(samples.amdahl()), "usl")
    assert found.parameters["coherency"].low == 0 and found.peak is None and found.peak_speedup is None
    peaked = law(samples.study(samples.usl()), "usl")
    truth = math.sqrt((1 - samples.CONTENTION) / samples.COHERENCY)
    assert peaked.peak and peaked.peak.low <= truth <= peaked.peak.high
    assert peaked.peak_speedup and peaked.peak_speedup.value == pytest.approx(samples.usl()(round(truth)), rel=0.03)


def test_points_faster_than_ideal_leave_nothing_serial_and_no_limit() -> None:
    found = law(samples.study(lambda n: n**1.05), "amdahl")
    assert found.parameters["serial"].value == 0 and found.limit and math.isinf(found.limit.high)
    assert found.misfit_p is not None and found.misfit_p < 0.05


def test_two_numbers_of_ranks_are_too_few_for_any_law() -> None:
    found = laws_of(samples.study(samples.usl(), ranks=(1, 2)))
    assert not found.laws and found.preferred is None
    assert (
        found.refusals["amdahl"]
        == found.refusals["usl"]
        == (
            "Amdahl's law and the Universal Scalability Law are not fitted: they need 3 and 4 numbers of ranks, "
            "and there are 2 (1, 2)."
        )
    )


def test_three_are_enough_for_amdahl_and_too_few_for_the_usl() -> None:
    found = laws_of(samples.study(samples.usl(), ranks=(1, 2, 4)))
    assert [one.name for one in found.laws] == ["amdahl"] and list(found.refusals) == ["usl"]
    assert found.refusals["usl"].startswith("The Universal Scalability Law is not fitted: it needs 4 numbers of ranks")


@pytest.mark.parametrize("flag", ["oversubscribed", "emulated"])
def test_points_that_say_little_about_scaling_are_kept_out(flag: str) -> None:
    found = laws_of(samples.study(samples.usl(), told=lambda point: {flag: point.ranks > 4}))
    assert found.ranks == (1, 2, 4) and found.left_out == (8, 16) and found.runs == 15
    assert found.refusals["usl"].endswith("there are 3 (1, 2, 4). Emulated points (8, 16 ranks) do not count.")
    assert found.laws == laws_of(samples.study(samples.usl(), ranks=(1, 2, 4), seed=3)).laws


def test_one_repeat_cannot_tell_noise_from_misfit() -> None:
    found = laws_of(samples.study(samples.usl(), repeats=1))
    assert not found.laws and all("two repeats or more" in why for why in found.refusals.values())


def test_one_number_of_ranks_is_no_question_for_a_law() -> None:
    assert samples.study(samples.usl(), ranks=(2,)).laws == ()


def test_weak_scaling_has_gustafsons_law_and_not_amdahls() -> None:
    found = laws_of(samples.study(samples.gustafson(), weak=True))
    assert found.scaling == "weak" and [one.name for one in found.laws] == ["gustafson", "usl"]
    assert found.coherency_p is None and found.preferred == "gustafson"
    assert law(samples.study(samples.gustafson(), weak=True), "gustafson").limit is None


def test_a_script_that_does_not_say_how_its_work_grows_gets_the_law_of_throughput_alone() -> None:
    results = samples.study(samples.usl())
    script = replace(results.study, script=ScriptSettings(path="train.py"))
    paces = {row.point_id: {run: float(run * row.point.ranks) for run in range(1, 6)} for row in results.points}
    (found,) = scaling_laws(replace(script, run=replace(script.run, scaling=None)), results.points, paces)
    assert [one.name for one in found.laws] == ["usl"] and "run.scaling" in found.refusals["amdahl"]
    (told,) = scaling_laws(replace(script, run=replace(script.run, scaling="weak")), results.points, paces)
    assert [one.name for one in told.laws] == ["gustafson", "usl"] and not told.refusals


def test_every_series_has_laws_of_its_own_from_the_baseline_on() -> None:
    first, second = samples.study({"ddp": samples.usl(), "flat": samples.amdahl(0.1)}).laws
    assert (first.series, second.series) == ("ddp", "flat")
    assert first.ranks == second.ranks == samples.RANKS
    assert (first.preferred, second.preferred) == ("usl", "amdahl")


def test_a_curve_goes_to_twice_what_was_measured_and_says_where_that_ended() -> None:
    curve = law(samples.study(samples.usl(), ranks=(2, 4, 8, 16)), "usl").curve
    assert (curve.ranks[0], curve.ranks[-1], curve.measured_to) == (pytest.approx(2), pytest.approx(32), 16)
    assert curve.speedup[0] == curve.low[0] == curve.high[0] == pytest.approx(1.0)
    widths = [high - low for low, high in zip(curve.low, curve.high, strict=True)]
    assert widths[-1] == max(widths)


@pytest.mark.parametrize(("f", "above", "below"), [(4.9646, 1, 10), (3.0984, 3, 20), (19.0, 2, 2), (161.448, 1, 1)])
def test_the_tail_of_f_is_that_of_the_tables(f: float, above: int, below: int) -> None:
    assert f_tail(f, above, below) == pytest.approx(0.05, rel=1e-3)
    assert f_tail(0.0, above, below) == 1.0 and f_tail(math.inf, above, below) == 0.0
