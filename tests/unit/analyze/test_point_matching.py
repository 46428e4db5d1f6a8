"""Which points of two studies belong together, and what is said to differ."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from paceline.analyze.compare.point_matching import commits_apart, machines_apart, matching, settings
from paceline.records.settings import DataSettings, ModelSettings, ScriptSettings, TrainSettings
from paceline.records.study import Point


def by_hand(ranks: int, strategy: str) -> Point:
    train = TrainSettings(batch_global=128, epochs=3)
    return Point(
        data=DataSettings(),
        data_digest="d",
        model=ModelSettings(),
        model_digest="",
        train=train,
        ranks=ranks,
        strategy=strategy,
    )


def names(found) -> dict[str, tuple[str | None, str | None]]:
    return {each.name: (each.a, each.b) for each in found}


def ranks_of(pairs) -> list[tuple[int, int]]:
    return [(a.ranks, b.ranks) for a, b in pairs]


def test_points_are_put_together_by_ranks_and_the_rest_is_left_over(point) -> None:
    found = matching([point(n) for n in (4, 1, 2)], [point(n, "flat") for n in (1, 2, 8)])
    assert ranks_of(found.pairs) == [(1, 1), (2, 2)]
    assert names(found.apart) == {"run.strategy": ("ddp", "flat")}
    assert [p.ranks for p in found.only_a] == [4]
    assert [p.ranks for p in found.only_b] == [8]


def test_a_factor_that_both_vary_is_matched_and_not_a_difference(point) -> None:
    both = [point(n, strategy) for n in (1, 2) for strategy in ("ddp", "flat")]
    other = [replace(each, threads=2) for each in reversed(both)]
    found = matching(both, other)
    assert len(found.pairs) == 4 and not found.only_a and not found.only_b
    assert all((a.ranks, a.strategy) == (b.ranks, b.strategy) for a, b in found.pairs)
    assert names(found.apart) == {"run.threads": ("1", "2")}


def test_a_value_that_only_one_of_them_has_is_left_over(point) -> None:
    found = matching([point(2, "ddp"), point(2, "flat")], [point(2, "ddp")])
    assert [(a.strategy, b.strategy) for a, b in found.pairs] == [("ddp", "ddp")]
    assert [p.strategy for p in found.only_a] == ["flat"]
    assert found.apart == ()


def test_where_several_could_be_meant_none_is_taken(point) -> None:
    found = matching([point(2, "ddp"), point(2, "flat")], [point(2, "mpi-allreduce")])
    assert found.pairs == ()
    assert len(found.only_a) == 2 and len(found.only_b) == 1
    assert names(found.apart) == {"run.strategy": ("ddp, flat", "mpi-allreduce")}


def test_ranks_never_set_studies_apart(point) -> None:
    found = matching([point(1)], [point(2)])
    assert found.pairs == () and found.apart == ()


def test_a_file_is_known_by_what_is_in_it_and_not_by_where_it_lies(point) -> None:
    def with_model(path: str, digest: str) -> Point:
        return replace(point(), model=ModelSettings(name=path, options={"layers": 2}), model_digest=digest)

    here, there = with_model("/a/net.py:build", "5" * 64), with_model("b/net.py:build", "5" * 64)
    assert matching([here], [there]).apart == ()
    changed = matching([here], [with_model("/a/net.py:build", "6" * 64)])
    assert names(changed.apart) == {"model.digest": ("5" * 12, "6" * 12)}
    assert len(changed.pairs) == 1
    assert settings(here)["model.layers"] == 2


def test_options_of_a_strategy_are_settings_of_the_run(point) -> None:
    two, one = (replace(point(2), options={"servers": n}) for n in (2, 1))
    assert names(matching([two], [one]).apart) == {"run.servers": ("2", "1")}
    assert names(matching([two], [point(2)]).apart) == {"run.servers": ("2", None)}


def test_of_a_script_only_what_it_is_given_counts(point) -> None:
    def script(digest: str, *arguments: str) -> Point:
        own = ScriptSettings(path="/some/train.py", arguments=arguments)
        return replace(point(2, "script"), script=own, script_digest=digest, data_digest=digest)

    assert matching([script("5" * 64)], [script("5" * 64)]).apart == ()
    found = matching([script("5" * 64, "--lr", "1")], [script("6" * 64, "--lr", "2")])
    assert names(found.apart) == {
        "script.arguments": ("--lr 1", "--lr 2"),
        "script.digest": ("5" * 12, "6" * 12),
    }
    assert not any(name.startswith(("data.", "model.", "train.")) for name in settings(script("5" * 64)))
    assert not any(name.startswith("script") or name == "run.script" for name in settings(point(2)))


@given(st.permutations(range(6)), st.permutations(range(6)))
def test_the_order_of_points_does_not_matter(first, second) -> None:
    a = [by_hand(1 + n % 3, ("ddp", "flat")[n // 3]) for n in first]
    b = [replace(by_hand(1 + n % 3, ("ddp", "flat")[n // 3]), threads=2) for n in second]
    found = matching(a, b)
    assert {(p.ranks, p.strategy, q.ranks, q.strategy) for p, q in found.pairs} == {
        (ranks, strategy, ranks, strategy) for ranks in (1, 2, 3) for strategy in ("ddp", "flat")
    }
    assert [p.ranks for p, _ in found.pairs] == [1, 1, 2, 2, 3, 3]


def test_machines_versions_and_commits(machine) -> None:
    one = machine()
    other = machine(cpu="another", memory_bytes=16_000_000_000, versions={"torch": "2.14", "numpy": "2.0"})
    assert machines_apart(one, one) == ()
    found = machines_apart(one, other)
    assert names(found) == {
        "cpu": ("a processor", "another"),
        "memory_bytes": ("8.0 GB", "16 GB"),
        "torch": ("2.13", "2.14"),
        "paceline": ("0.1.0", None),
        "numpy": (None, "2.0"),
    }
    assert {each.section for each in found} == {"machine", "version"}
    assert names(machines_apart(one, None)) == {"machine": ("a processor", None)}
    assert machines_apart(None, None) == ()
    assert commits_apart("a", "a") == commits_apart(None, None) == ()
    assert names(commits_apart("a", None)) == {"commit": ("a", None)}
