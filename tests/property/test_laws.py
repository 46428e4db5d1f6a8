"""What holds for scaling laws fitted to any throughputs."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.analyze.points.law_fit import _misfits, fit, log_paces
from paceline.analyze.points.law_forms import AMDAHL, GUSTAFSON, USL, Form
from paceline.analyze.points.scaling_laws import _curve

thorough = settings(max_examples=30, deadline=None)
paces = st.floats(0.01, 1e6)
forms = st.sampled_from([AMDAHL, GUSTAFSON, USL])


@st.composite
def throughputs(draw: st.DrawFn) -> dict[int, dict[int, float]]:
    """Whatever runs might show: faster than ideal, slower with every rank, wild."""
    ranks = sorted(draw(st.sets(st.integers(1, 512), min_size=4, max_size=7)))
    repeats = draw(st.integers(2, 5))
    return {n: {run: draw(paces) for run in range(1, repeats + 1)} for n in ranks}


@thorough
@given(throughputs(), forms)
def test_parameters_stay_within_their_bounds_and_in_their_intervals(found, form: Form) -> None:
    measured = log_paces(found)
    assert measured is not None
    fitted = fit(form, measured)
    for index, most in enumerate(form.most):
        figure = fitted.figure(lambda rows, index=index: rows[:, index])
        assert 0 <= figure.low <= figure.value <= figure.high <= most


@thorough
@given(throughputs(), forms)
def test_no_law_is_faster_than_ideal_and_its_band_contains_it(found, form: Form) -> None:
    measured = log_paces(found)
    assert measured is not None
    ranks = sorted(found)
    curve = _curve(fit(form, measured), ranks[0], ranks)
    for n, speedup, low, high in zip(curve.ranks, curve.speedup, curve.low, curve.high, strict=True):
        assert 0 < low <= speedup <= high <= n / ranks[0] * (1 + 1e-9)
    if form is not USL:  # the USL alone has a peak
        assert all(after >= before * (1 - 1e-9) for before, after in pairwise(curve.speedup))


@thorough
@given(throughputs(), forms)
def test_no_other_parameters_fit_better(found, form: Form) -> None:
    measured = log_paces(found)
    assert measured is not None
    fitted = fit(form, measured)
    assert _misfits(form, measured, fitted.region).min() >= fitted.misfit * (1 - 1e-9) - 1e-12


@thorough
@given(throughputs(), forms, st.floats(0.01, 100.0))
def test_a_faster_machine_changes_no_law(found, form: Form, factor: float) -> None:
    faster = {n: {run: pace * factor for run, pace in own.items()} for n, own in found.items()}
    before, after = log_paces(found), log_paces(faster)
    assert before is not None and after is not None
    assert fit(form, after).misfit == pytest.approx(fit(form, before).misfit, rel=1e-6, abs=1e-9)
