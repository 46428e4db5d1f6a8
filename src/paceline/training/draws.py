"""Counter-based random numbers: each follows from its key only.

    key      =  mix(mix(mix(seed + γ) + epoch + γ) + index)   one for every sample of every epoch
    draw k   =  mix(key + (k + 1) · γ), its upper 53 bits as a fraction of 1

`mix` is the finaliser of SplitMix64 (Steele, Lea, Flood 2014) and γ its increment, so the draws of a key are
the first numbers of a SplitMix64 with that seed. There is no generator state: the result does not depend on the rank,
the order of draws or a resume. Arithmetic is modulo 2⁶⁴, like int64.
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
    """Bijective hash of int64."""
    value = (value ^ _shifted(value, 30)) * _FIRST
    value = (value ^ _shifted(value, 27)) * _SECOND
    return value ^ _shifted(value, 31)


def _shifted(value: torch.Tensor, bits: int) -> torch.Tensor:
    """Logical shift to the right; `>>` on int64 would repeat the sign."""
    return (value >> bits) & ((1 << (64 - bits)) - 1)
