"""Every way in which what was given can differ from what was asked for: told where it does, and only there."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from light_ranks.light_launch import manifest, point
from paceline.preflight.allocation_checks import CHECKS, complaints, wall_offsets_ns
from paceline.records.allocation import SEVERITIES, Clock, Complaint, ProcessFacts
from paceline.records.run import Manifest

SECOND = 1_000_000_000


def asked(ranks: int = 4, hosts: int = 2, **changed: object) -> Manifest:
    settings = {name: changed.pop(name) for name in ("threads", "pin", "device", "options") if name in changed}
    told = manifest(replace(point(ranks), hosts=hosts, **settings))
    return replace(told, **changed)  # pyright: ignore[reportArgumentType]


def gave(ranks: int = 4, hosts: int = 2, **changed: object) -> list[ProcessFacts]:
    """Ranks as they should be: spread equally, one core each of hosts with two, everything the same."""
    share = ranks // hosts
    return [
        replace(
            ProcessFacts(
                rank=rank,
                host=f"h{rank // share + 1}",
                boot_id=f"boot-{rank // share + 1}",
                time_namespace="time:[1]",
                local_rank=rank % share,
                local_size=share,
                cores=2,
                physical_cores=2,
                affinity=(rank % share % 2,),
                versions={"python": "3.11.7", "torch": "2.13.0"},
                code_sha256="c" * 64,
                settings_sha256="5" * 64,
                wall_ns=50 * SECOND,
                monotonic_ns=10 * SECOND,
            ),
            **changed,  # pyright: ignore[reportArgumentType]
        )
        for rank in range(ranks)
    ]


def told(told_manifest: Manifest, ranks: list[ProcessFacts], clocks: tuple[Clock, ...] = ()) -> dict[str, Complaint]:
    found = complaints(told_manifest, ranks, clocks)
    for complaint in found:
        assert complaint.severity in SEVERITIES
        assert all((complaint.what, complaint.right, complaint.next))
        assert complaint.what[0].isupper() and complaint.what.endswith(".")
    return {complaint.name: complaint for complaint in reversed(found)}  # of several of a name, the first


def changed(ranks: list[ProcessFacts], rank: int, **fields: object) -> list[ProcessFacts]:
    return [replace(given, **fields) if given.rank == rank else given for given in ranks]  # pyright: ignore


@pytest.mark.parametrize(("ranks", "hosts"), [(1, 1), (2, 1), (4, 2), (6, 3)])
def test_what_is_as_asked_for_is_not_complained_of(ranks, hosts) -> None:
    assert told(asked(ranks, hosts), gave(ranks, hosts)) == {}


CASES = {
    "all on one host": (
        asked(3, 3),
        gave(3, 1, affinity=(0, 1, 2), cores=4),
        ("fewer-hosts", "fatal", "1 host instead of 3: all 3 processes on h1"),
    ),
    "fewer hosts": (
        asked(6, 3),
        gave(6, 2, cores=4, affinity=(0, 1, 2, 3)),
        ("fewer-hosts", "fatal", "2 hosts instead of 3: 3 processes on h1, 3 processes on h2"),
    ),
    "more hosts": (asked(4, 1), gave(4, 2), ("more-hosts", "fatal", "2 hosts instead of 1")),
    "unevenly spread": (
        asked(4, 2),
        changed(gave(cores=4, affinity=(0, 1, 2)), 2, host="h1", boot_id="boot-1"),
        ("uneven-spread", "warning", r"run 3 \+ 1 processes instead of 2 \+ 2"),
    ),
    "two ranks on one core": (
        asked(),
        changed(gave(), 1, affinity=(0,)),
        ("ranks-share-cores", "fatal", "Ranks 0 and 1 share core 0 of h1, with 2 threads"),
    ),
    "the same without pinning": (
        asked(pin=False),
        changed(gave(), 1, affinity=(0,)),
        ("ranks-share-cores", "warning", "core 0"),
    ),
    "the same, known beforehand": (
        asked(oversubscribed=True),
        changed(gave(), 1, affinity=(0,)),
        ("ranks-share-cores", "info", "core 0"),
    ),
    "threads beyond the affinity": (
        asked(threads=2),
        gave(threads=2, threads_asked=2, cores=8),
        ("threads-beyond-affinity", "fatal", "rank 0 on h1 has 2 threads and may use only core 0"),
    ),
    "more threads than cores": (
        asked(threads=2),
        gave(threads=2, threads_asked=2, affinity=(0, 1)),
        ("more-threads-than-cores", "warning", "Ranks 0 and 1 have 4 threads on h1, which has 2 cores"),
    ),
    "the same, known": (
        asked(threads=2, oversubscribed=True),
        gave(threads=2, threads_asked=2, affinity=(0, 1)),
        ("more-threads-than-cores", "info", "4 threads"),
    ),
    "a quota": (
        asked(),
        gave(cpu_quota=1.5, cores=8, affinity=tuple(range(8))),
        ("more-threads-than-cores", "warning", "which has 1 core"),
    ),
    "other threads": (
        asked(),
        changed(gave(cores=8, affinity=tuple(range(8))), 3, threads=3),
        ("threads-not-as-asked", "warning", "Rank 3 uses another number of threads than requested: rank 3 has 3"),
    ),
    "no GPU": (
        asked(device="cuda"),
        gave(),
        ("no-gpu", "fatal", "Ranks 0, 1, 2 and 3 have no GPU: rank 0 sees 0 GPUs"),
    ),
    "too few GPUs": (
        asked(device="auto"),
        changed(gave(gpus=("A100",), device="cuda:0"), 1, device="cpu"),
        ("no-gpu", "fatal", "Rank 1 has no GPU: rank 1 sees 1 GPU on h1, for 2 processes there"),
    ),
    "other code": (
        asked(),
        changed(gave(), 2, code_sha256="d" * 64),
        (
            "code-differs",
            "fatal",
            "Rank 2 has other code of Paceline on h2 than ranks 0, 1 and 3 .*: dddddddddd instead",
        ),
    ),
    "another model": (
        asked(),
        changed(gave(), 2, model_sha256="missing"),
        ("model-differs", "fatal", "missing instead"),
    ),
    "other settings": (asked(), changed(gave(), 3, settings_sha256="6" * 64), ("settings-differ", "fatal", "manifest")),
    "another patch version": (
        asked(),
        changed(gave(), 2, versions={"python": "3.11.9", "torch": "2.13.0"}),
        (
            "versions-differ",
            "warning",
            r"same python: 3.11.7 on h1 and h2 \(ranks 0, 1 and 3\); 3.11.9 on h2 \(rank 2\)",
        ),
    ),
    "another version": (
        asked(),
        changed(gave(), 2, versions={"python": "3.11.7", "torch": "2.14.0"}),
        ("versions-differ", "fatal", "same torch"),
    ),
    "wall clocks apart": (
        asked(),
        changed(gave(), 3, wall_ns=53 * SECOND),
        ("clocks-apart", "warning", r"3.00 s apart: that of h2 \(rank 3\) is ahead of that of h1 \(rank 0\)"),
    ),
    "emulated hosts": (
        asked(2, 2),
        changed(gave(2, 2, boot_id="boot"), 1, affinity=(1,)),
        ("emulated-hosts", "info", "The hosts h1 and h2 are one machine: 2 of them share its 2 cores"),
    ),
    "nodes of a scheduler on one machine": (
        asked(2, 2),
        changed(changed(gave(2, 1), 0, node="n1"), 1, node="n2"),
        ("emulated-hosts", "info", "n1 and n2 are one machine"),
    ),
    "emulated hosts on one core": (
        asked(2, 2),
        gave(2, 2, boot_id="boot"),
        ("ranks-share-cores", "warning", "share core 0 of h1 and h2"),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_not_as_asked_for_is_told(case) -> None:
    ask, ranks, (name, severity, words) = CASES[case]
    found = told(ask, ranks)
    assert name in found, found
    assert found[name].severity == severity
    assert re.search(words, found[name].what), found[name].what
    others = set(found) - {name, "emulated-hosts"}
    assert not others, f"{others} besides"


def test_two_machines_that_share_a_name_are_two_hosts() -> None:
    assert told(asked(), gave(host="localhost")) == {}


def test_the_gravest_come_first_and_every_check_is_tried() -> None:
    ranks = changed(gave(4, 1, affinity=(0, 1)), 1, code_sha256="d", wall_ns=0)
    found = complaints(asked(4, 2), ranks, ())
    order = [SEVERITIES.index(complaint.severity) for complaint in found]
    assert order == sorted(order) and found[0].severity == "fatal"
    tried = {name for _, _, (name, *_) in CASES.values()}
    seen = {complaint.name for ask, ranks, _ in CASES.values() for complaint in complaints(ask, ranks, ())}
    assert seen == tried and len(CHECKS) == 11


def test_a_coordinator_needs_no_core() -> None:
    ranks = changed(gave(3, 1, affinity=(0, 1)), 2, role="coordinator")
    assert told(asked(1, 1, options={"servers": 1}), ranks) == {}


@given(st.lists(st.tuples(st.integers(-(10**6), 10**6), st.integers(-(10**6), 10**6)), min_size=1, max_size=6))
def test_wall_clocks_are_compared_at_the_same_instant(offsets) -> None:
    """A rank's monotonic clock is off by the first, its wall clock by the second; each read them at another time."""
    offsets = [(0, 0), *offsets]
    ranks, clocks = [], []
    for rank, (mono_s, wall_s) in enumerate(offsets):
        at_ns = rank * 7 * SECOND
        ranks.append(
            ProcessFacts(
                rank=rank,
                host="h",
                wall_ns=at_ns + wall_s * SECOND,
                monotonic_ns=at_ns + mono_s * SECOND,
            )
        )
        clocks.append(Clock(rank=rank, offset_ns=mono_s * SECOND, error_ns=0, method="exchange"))
    assert wall_offsets_ns(ranks, clocks) == {rank: wall_s * SECOND for rank, (_, wall_s) in enumerate(offsets)}


@given(st.data())
def test_whatever_was_given_is_told_in_sentences(data) -> None:
    ranks = data.draw(st.integers(1, 6))
    hosts = data.draw(st.integers(1, ranks))
    names = st.sampled_from(["a", "b", "c"])
    given_ = [
        ProcessFacts(
            rank=rank,
            host=data.draw(names),
            boot_id=data.draw(st.sampled_from(["", "x", "y"])),
            cores=data.draw(st.integers(1, 4)),
            affinity=tuple(sorted(data.draw(st.sets(st.integers(0, 3), max_size=4)))),
            threads=data.draw(st.integers(1, 3)),
            device=data.draw(st.sampled_from(["cpu", "cuda:0"])),
            gpus=data.draw(st.sampled_from([(), ("A100",)])),
            versions=data.draw(st.sampled_from([{}, {"torch": "2.13.0"}, {"torch": "unknown"}])),
            code_sha256=data.draw(names),
            wall_ns=data.draw(st.integers(0, 10**18)),
        )
        for rank in range(ranks)
    ]
    told(asked(ranks, hosts, device=data.draw(st.sampled_from(["cpu", "auto", "cuda"]))), given_)
