"""Draws are compared with SplitMix64 in Python's whole numbers, and judged by tests of chance with room for chance."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from paceline.training.draws import sample_keys, uniform

MODULUS = 2**64
GAMMA = 0x9E3779B97F4A7C15


def mixed(value: int) -> int:
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) % MODULUS
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) % MODULUS
    return value ^ (value >> 31)


@given(seed=st.integers(0, 2**31), epoch=st.integers(0, 10_000), index=st.integers(0, 2**40), draw=st.integers(0, 20))
def test_draws_are_those_of_splitmix64_seeded_with_the_samples_key(seed, epoch, index, draw):
    key = mixed((mixed((mixed((seed + GAMMA) % MODULUS) + epoch + GAMMA) % MODULUS) + index) % MODULUS)
    keys = sample_keys(seed, epoch, torch.tensor([index]))
    assert keys.item() % MODULUS == key
    expected = mixed((key + (draw + 1) * GAMMA) % MODULUS) >> 11
    assert uniform(keys, draw + 1)[draw].item() == expected / 2**53


def test_a_known_sequence_of_splitmix64():
    """The first numbers of a SplitMix64 seeded with 1234567, as its public test vectors have them."""
    known = (6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431)
    drawn = uniform(torch.tensor([1234567]), 4)[:, 0].tolist()
    assert drawn == [(value >> 11) / 2**53 for value in known]


def test_no_two_samples_of_an_epoch_share_a_key():
    keys = sample_keys(0, 0, torch.arange(200_000))
    assert len(keys.unique()) == 200_000


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("neighbouring samples", lambda n: sample_keys(0, 0, torch.arange(n))),
        ("neighbouring epochs", lambda n: torch.cat([sample_keys(0, e, torch.tensor([7])) for e in range(n // 20)])),
        ("neighbouring seeds", lambda n: torch.cat([sample_keys(s, 1, torch.tensor([7])) for s in range(n // 20)])),
    ],
)
def test_draws_are_even_and_independent(name, keys):
    """Chi-squared over 64 boxes, and the correlation of every pair of draws and of neighbours, within 5 sigma."""
    drawn = uniform(keys(40_000), 12)
    count = drawn.shape[1]
    assert drawn.min() >= 0 and drawn.max() < 1
    for row in drawn:
        found = torch.bincount((row * 64).long(), minlength=64)
        chi_squared = ((found - count / 64) ** 2 / (count / 64)).sum().item()
        assert abs(chi_squared - 63) < 5 * math.sqrt(2 * 63), name
    near = 5 / math.sqrt(count)
    correlation = torch.corrcoef(torch.cat((drawn[:, :-1], drawn[:, 1:])))
    assert (correlation - torch.eye(24, dtype=torch.float64)).abs().max() < near, name


def test_draws_depend_on_seed_epoch_and_sample():
    base = uniform(sample_keys(3, 5, torch.tensor([7])), 12)
    for other in ((4, 5, 7), (3, 6, 7), (3, 5, 8)):
        assert not (uniform(sample_keys(*other[:2], torch.tensor(other[2:])), 12) == base).any()
