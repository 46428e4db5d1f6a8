"""What a recipe chose for a point: the setting, its value, and the reason as a code with the values it rests on."""

from __future__ import annotations

from dataclasses import dataclass, field

HIGHEST_LR = "highest_lr"
"""The path of the one choice that is no setting: the highest learning rate, which follows from the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One value that a recipe chose."""

    path: str
    """Of the setting, such as train.lr_rule."""
    value: str | int | float
    reason: str
    """A code, such as usual-batch; reporting/wording/choice_words.py has its sentence."""
    facts: dict[str, str | int | float] = field(default_factory=dict)
    """The values that the reason's sentence shows."""
