"""Colours as people with different cones see them, and how far apart two of them look.

Machado, Oliveira and Fernandes (2009), full severity, on linear light; distances in OKLab (Ottosson, 2020), in which
two hundredths are about the smallest difference that is seen side by side.
"""

from __future__ import annotations

import re

import numpy as np

SIGHTS = {
    "all cones": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}
_CONES = np.array(
    [[0.4122214708, 0.5363325363, 0.0514459929], [0.2119034982, 0.6806995451, 0.1073969566],
     [0.0883024619, 0.2817188376, 0.6299787005]]
)  # fmt: skip
_LAB = np.array(
    [[0.2104542553, 0.7936177850, -0.0040720468], [1.9779984951, -2.4285922050, 0.4505937099],
     [0.0259040371, 0.7827717662, -0.8086757660]]
)  # fmt: skip


def palette(style: str) -> dict[str, str]:
    """The colours of a style sheet, by name."""
    return dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6});", style))


def seen(colour: str, sight: str) -> np.ndarray:
    """A colour as lightness, green to red and blue to yellow."""
    linear = np.clip(SIGHTS[sight] @ light(colour), 0, 1)
    return _LAB @ np.cbrt(_CONES @ linear)


def distance(first: str, second: str, sight: str) -> float:
    """How different two colours look."""
    return float(np.linalg.norm(seen(first, sight) - seen(second, sight)))


def contrast(first: str, second: str) -> float:
    """The ratio of two colours' luminances, from 1 to 21, as WCAG has it."""
    weights = np.array([0.2126, 0.7152, 0.0722])
    low, high = sorted(float(weights @ light(colour)) for colour in (first, second))
    return (high + 0.05) / (low + 0.05)


def light(colour: str) -> np.ndarray:
    """Red, green and blue in proportion to their light."""
    parts = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
