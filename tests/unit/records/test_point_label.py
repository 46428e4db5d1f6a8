import pytest

from paceline.records.settings import DataSettings, ModelSettings, TrainSettings
from paceline.records.study import Point, factor_value, point_label

POINT = Point(
    data=DataSettings(train_samples=12_000, read="whole"),
    data_digest="",
    model=ModelSettings(),
    model_digest="",
    train=TrainSettings(batch_global=64, lr=0.1),
    ranks=4,
    hosts=2,
    threads=3,
    strategy="parameter-server",
    launcher="mpi",
    options={"servers": 2, "server_threads": 1},
)


@pytest.mark.parametrize(
    ("vary", "label"),
    [
        ((), "4 ranks"),
        (("run.hosts",), "4 ranks on 2 hosts"),
        (("run.ranks_per_host",), "4 ranks"),
        (("run.hosts", "run.strategy", "run.servers"), "4 ranks on 2 hosts, parameter-server, 2 servers"),
        (("run.launcher", "run.threads", "run.pin"), "4 ranks, mpi, 3 threads, pinned"),
        (("run.server_threads", "run.staleness"), "4 ranks, 1 server thread"),
        (("train.batch_global", "train.lr"), "4 ranks, batch global 64, lr 0.1"),
        (("data.train_samples", "data.read"), "4 ranks, 12,000 samples, read whole"),
    ],
)
def test_a_point_is_named_by_its_ranks_and_what_varies(vary: tuple[str, ...], label: str) -> None:
    assert point_label(POINT, vary) == label


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("run.strategy", "parameter-server"),
        ("run.servers", 2),
        ("run.staleness", None),
        ("run.ranks_per_host", 2),
        ("train.lr", 0.1),
        ("data.read", "whole"),
    ],
)
def test_the_value_of_a_factor(path: str, value: object) -> None:
    assert factor_value(POINT, path) == value
