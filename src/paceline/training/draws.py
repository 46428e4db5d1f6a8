"""Random numbers that follow from what they are drawn for, and from nothing else.

    key      =  mix(mix(mix(seed + γ) + epoch + γ) + index)   one for every sample of every epoch
    draw k   =  mix(key + (k + 1) · γ), its upper 53 bits as a fraction of 1

`mix` is the finaliser of SplitMix64 (Steele, Lea, Flood 2014) and γ its increment, so the draws of a key are
the first numbers of a SplitMix64 that is seeded with it. There is no generator whose state moves: which rank draws,
in which order, and whether a run was resumed make no difference. Arithmetic is modulo 2⁶⁴, which int64 is, too.
"""

from __future__ import annotations

import torch

_GAMMA = 0x9E3779B97F4A7C15 - 2**64
_FIRST = 0xBF58476D1CE4E5B9 - 2**64
_SECOND = 0x94D049BB133111EB - 2**64


def sample_keys(seed: int, epoch: int, indices: torch.Tensor) -> torch.Tensor:
    """A key (int64) for each sample of an epoch; no two samples of it share one."""
    start = _mixed(_mixed(torch.tensor(seed) + _GAMMA) + epoch + _GAMMA)
    return _mixed(start.to(indices.device) + indices.to(torch.int64))


def uniform(keys: torch.Tensor, count: int) -> torch.Tensor:
    """`count` draws for each key, even over 0 to below 1: a tensor of float64, (count, N)."""
    steps = torch.arange(1, count + 1, device=keys.device) * _GAMMA
    return _shifted(_mixed(keys + steps[:, None]), 11).to(torch.float64) * 2.0**-53


def _mixed(value: torch.Tensor) -> torch.Tensor:
    """A one-to-one mapping of int64 that leaves no trace of order or nearness."""
    value = (value ^ _shifted(value, 30)) * _FIRST
    value = (value ^ _shifted(value, 27)) * _SECOND
    return value ^ _shifted(value, 31)


def _shifted(value: torch.Tensor, bits: int) -> torch.Tensor:
    """Shifted right with zeros coming in, where int64 would repeat its sign."""
    return (value >> bits) & ((1 << (64 - bits)) - 1)
