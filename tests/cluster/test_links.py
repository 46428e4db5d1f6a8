"""Links between hosts, measured: within 15 % of what they are shaped to."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

RANK = Path(__file__).with_name("link_rank.py")
PORT = 29407


@pytest.fixture(scope="module")
def measure(net_hosts) -> Iterator[Callable[[], dict]]:
    """Measures the link from h1 to h2, by two ranks that live as long as the module's tests."""
    ranks = []
    try:
        for rank, host in enumerate(("h1", "h2")):
            words = ["env", "GLOO_SOCKET_IFNAME=eth0", "OMP_NUM_THREADS=1", sys.executable, str(RANK)]
            words += [str(rank), "2", net_hosts.address("h1"), str(PORT)]
            ranks.append(
                net_hosts.start(host, words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
            )

        def measured() -> dict:
            for process in ranks:
                process.stdin.write("\n")
            return json.loads(ranks[0].stdout.readline())

        yield measured
    finally:
        for process in ranks:
            process.stdin.close()
        for process in ranks:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            process.stdout.close()


@pytest.mark.parametrize(("rate", "bits_per_s"), [("1gbit", 1e9), ("100mbit", 1e8)])
def test_bandwidth_is_that_of_the_link(net_hosts, measure, rate, bits_per_s) -> None:
    rates = []
    with net_hosts.shaped(rate):
        for _ in range(5):  # a busy machine can make a link look slower, not faster
            found = measure()
            assert found["took_s"] < 20
            (link,) = found["links"]
            rates.append(link["bandwidth"] * 8 / bits_per_s)
            if rates[-1] > 0.85:
                break
    assert 0.85 < rates[-1] < 1.15, rates
    assert link["bandwidth_low"] <= link["bandwidth"] <= link["bandwidth_high"]
    assert link["kind"] == "between" and link["sizes"][-1] >= 1 << 20 and link["repeats"] >= 3


def test_a_faster_link_is_found_faster(net_hosts, measure) -> None:
    with net_hosts.shaped("100mbit"):
        slow = measure()["links"][0]
    fast = measure()["links"][0]
    assert fast["bandwidth"] > 2 * slow["bandwidth"]
    assert 0 < fast["latency_low_s"] <= fast["latency_s"] <= fast["latency_high_s"] < 0.1
