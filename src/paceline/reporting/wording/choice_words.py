"""What recipes chose, in sentences: `train.lr_batch = 128: lr is taken for one that is meant for a batch of 128`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import Any

from paceline.records.recipe_choice import HIGHEST_LR, Choice
from paceline.units import counted


def _divided_epochs(epochs: int, ranks: int) -> str:
    return f"{epochs} ÷ {counted(ranks, 'rank')}, rounded up, as train.epochs_rule says"


def _large_batch(largest_batch: int, weight_decay: float | None = None) -> str:
    why = f"above a batch of {largest_batch:,} LAMB was seen to hold what Adam loses (You et al. 2020)"
    return why if weight_decay is None else f"{why}; its own weight decay, {weight_decay:g}, comes with it"


def _warm_up(most_epochs: float) -> str:
    most = f"a tenth of the epochs, {most_epochs:g} at most"
    return f"{most}, because early steps at a high rate go astray (Goyal et al. 2017)"


REASONS: dict[str, Callable[..., str]] = {
    "epochs-divided-by-ranks": _divided_epochs,
    "large-batch": _large_batch,
    "steps-grow-with-samples": lambda: "steps grow with the samples they stand for (Goyal et al. 2017)",
    "noise-falls-with-root-of-batch": lambda: (
        "an adaptive optimizer's noise falls with the root of the batch (Malladi et al. 2022)"
    ),
    "usual-batch": lambda batch: f"lr is taken for one that is meant for a batch of {batch}",
    "rate-ends-near-zero": lambda: "a rate that ends near 0 averages out what a high one leaves (He et al. 2019)",
    "warm-up-of-high-rate": _warm_up,
    "rate-times-ranks": lambda ranks: f"lr × {counted(ranks, 'rank')}, as the reports did",
    "batch-of-one-rank": lambda: "one rank's share of the batch, which lr is for",
    "keras-initialiser": lambda: "the reports trained with Keras, whose kernels start larger than PyTorch's",
    "keras-default": lambda optimizer: f"Keras's own for {optimizer}",
    "rate-times-factor": lambda lr, factor: f"train.lr = {lr:g} × {factor:.4g}",
}
"""The sentence of every reason, made of the facts of its choice."""


def choice_sentence(choice: Choice) -> str:
    """A choice with its reason."""
    shown = f"{choice.value:.4g}" if isinstance(choice.value, float) else choice.value
    what = f"highest learning rate {shown}" if choice.path == HIGHEST_LR else f"{choice.path} = {shown}"
    return f"{what}: {REASONS[choice.reason](**choice.facts)}"


def choice_object(choice: Choice) -> dict[str, Any]:
    """A choice as `--json` shows it: its values, and its sentence."""
    return {**asdict(choice), "sentence": choice_sentence(choice)}


def choice_lines(points: Iterable[tuple[str, Iterable[Choice]]]) -> tuple[str, ...]:
    """Labels of points with their choices -> a line for each choice, naming its points where it is not that of all."""
    labels: dict[str, list[str]] = {}
    num_points = 0
    for label, choices in points:
        num_points += 1
        for choice in choices:
            labels.setdefault(choice_sentence(choice), []).append(label)
    return tuple(
        choice if len(where) == num_points else f"{choice} ({'; '.join(where)})" for choice, where in labels.items()
    )
