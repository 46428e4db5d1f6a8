from __future__ import annotations

from dataclasses import replace

import pytest

import report_samples as samples
from paceline.analyze.losses import lost_shares


def test_lost_shares_sum_to_what_the_loop_lost() -> None:
    base, point = samples.two_points().points
    shares = lost_shares(base, point)
    # The samples lose six per cent of the loop, two thirds of it to waiting.
    assert sum(shares.values()) == pytest.approx(0.06)
    assert max(shares, key=shares.__getitem__) == "comm-wait"
    assert shares["comm-transfer"] == pytest.approx(0.06 * 0.35)


def test_lost_shares_know_when_the_work_grows_with_the_ranks() -> None:
    """Steps are counted and the batch is per rank: a rank's ideal time is the baseline's own."""
    base, point = samples.two_points().points
    train = replace(base.point.train, batch_global=None, batch_per_rank=64, epochs=None, steps=100)
    weak = [replace(p, point=replace(p.point, train=train)) for p in (base, point)]
    same = replace(weak[1], ledger_s=base.ledger_s)
    assert sum(lost_shares(weak[0], same).values()) == pytest.approx(0)


def test_without_a_whole_ledger_nothing_is_claimed() -> None:
    base, point = samples.two_points().points
    assert lost_shares(base, replace(point, ledger_s=None)) == {}
    assert lost_shares(base, replace(point, ledger_s={**point.ledger_s, "comm-wait": None})) == {}
