"""A budget holds: exactly where runs take what was expected, else but for what one run takes more."""

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import example, given, settings
from hypothesis import strategies as st

from paceline.records.run import Manifest
from paceline.records.settings import DataSettings, ModelSettings, TrainSettings
from paceline.records.study import Point
from paceline.storage.folder import StudyFolder
from paceline.studies.execute.budget import Budget
from paceline.studies.folder.estimates import Estimates, counted_processes

HOUR_S = 3600


class Known(Estimates):
    """Says of every point what was expected of it."""

    def __init__(self, expected_s: dict[int, float]) -> None:
        super().__init__()
        self.expected_s = expected_s

    def wall_s(self, point: Point) -> float | None:
        return self.expected_s[point.ranks]


def point(ranks: int, servers: int) -> Point:
    return Point(
        data=DataSettings(),
        data_digest="",
        model=ModelSettings(),
        model_digest="",
        train=TrainSettings(batch_global=64, epochs=1),
        ranks=ranks,
        strategy="parameter-server" if servers else "ddp",
        options={"servers": servers} if servers else {},
    )


def manifest(number: int, of: Point) -> Manifest:
    return Manifest(
        study="s",
        point_id=of.point_id,
        point=of,
        run=number,
        seed=0,
        data_folder="",
        model_file=None,
        cores=None,
        placement="",
        launched_at_ns=0,
        launched_at=f"attempt {number}",
    )


HOURS = st.floats(0.001, 50)


@settings(max_examples=100, deadline=None)
@given(
    limit_h=st.floats(0.01, 200),
    expected_h=st.fixed_dictionaries({ranks: HOURS for ranks in (1, 2, 4)}),
    runs=st.lists(st.tuples(st.sampled_from((1, 2, 4)), st.integers(0, 2), st.floats(0.5, 2)), max_size=30),
    exact=st.booleans(),
)
@example(
    limit_h=19.045645344854766,
    expected_h=dict.fromkeys((1, 2, 4), 19.045645344854766),
    runs=[(1, 0, 1.0)],
    exact=True,
)
def test_never_more_is_overspent_than_one_run_takes_more_than_expected(limit_h, expected_h, runs, exact) -> None:
    with TemporaryDirectory() as place:
        folder = StudyFolder(Path(place))
        budget = Budget(limit_h, folder, Known({ranks: h * HOUR_S for ranks, h in expected_h.items()}))
        error_h = 0.0
        for number, (ranks, servers, factor) in enumerate(runs):
            of = point(ranks, servers)
            if budget.refusal(of) is not None:
                assert budget.spent_h + counted_processes(of) * expected_h[ranks] > limit_h or budget.spent_h >= limit_h
                break
            wall_s = expected_h[ranks] * HOUR_S * (1 if exact else factor)
            error_h = max(0.0, counted_processes(of) * (wall_s / HOUR_S - expected_h[ranks]))
            budget.spend(folder.run(of.point_id, number), manifest(number, of), wall_s)
            assert budget.spent_h <= (limit_h + error_h) * (1 + 1e-9)
    if exact:
        assert budget.spent_h <= limit_h * (1 + 1e-9)
