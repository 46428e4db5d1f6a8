"""The sentences of findings about learning and gradient noise."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from paceline.records.finding import FindingWords
from paceline.records.learning import AccuracyCheck
from paceline.reporting.wording.note_words import note_text
from paceline.units import counted, number_text, percent_text

Values = Mapping[str, Any]

_ADVICE = {
    "train.recipe=scale": "lets it follow the batch, with a warm-up where that raises it.",
    "train.clip_norm=1": "bounds single steps.",
}


def _diverged(values: Values) -> FindingWords:
    advice = [f"--set {override} {_ADVICE[override]}" for override in values["advice"]]
    return FindingWords(
        summary=f"{counted(values['found'], 'run')} of {values['runs']} diverged. {_first(values)}.",
        cause="Steps were too large for the loss to fall; times of such a run are real, its accuracy is not.",
        remedy=" ".join(("Lower the learning rate: --set train.lr=..., or find one with paceline tune lr.", *advice)),
    )


def _dead_network(values: Values) -> FindingWords:
    return FindingWords(
        summary=f"{counted(values['found'], 'run')} of {values['runs']} learned nothing. {_first(values)}.",
        cause="The output no longer depends on the input: units that a rate too high has switched off, inputs on "
        "another scale than the network expects, a frozen base without its own preprocessing, or labels that belong "
        "to other images.",
        remedy="Find a rate that works: paceline tune lr. For a pretrained network, see that its own preprocessing and "
        "image size are used.",
    )


def _first(values: Values) -> str:
    fault = values["first"]
    return f"Run {fault.run} with {values['label']}: {note_text(fault.why)}"


def _accuracy_falls(values: Values) -> FindingWords:
    check: AccuracyCheck = values["check"]
    assert check.low is not None and check.high is not None
    around = f"interval {_points(-check.high)} to {_points(-check.low)}, {check.n} repeats"
    cause, remedy = _WHY[values["why"]](values)
    return FindingWords(
        summary=f"Test accuracy is lower at {of_points(values)}: most with {values['worst']}, by "
        f"{_points(-check.difference)} points ({around}) against {values['against']}.",
        cause=cause,
        remedy=remedy,
    )


def _fewer_epochs(values: Values) -> tuple[str, str]:
    cause = "It trains for fewer epochs, because they are divided by the ranks."
    besides = f" {_larger(values)} besides." if values["batch_ratio"] else ""
    return cause + besides, "Keep the epochs first: --set train.epochs_rule=none."


def _larger_batch(values: Values) -> tuple[str, str]:
    cause = f"{_larger(values)}: fewer steps in the same epochs, each with less noise."
    if values["same_rate"]:
        cause += " The learning rate is the same for both."
    if values["scaled"]:
        return cause, "Train for more epochs, or look for a better rate with paceline tune lr."
    return cause, "Let the rate follow the batch: --set train.recipe=scale."


def _larger(values: Values) -> str:
    return f"Its global batch is {number_text(values['batch_ratio'])} times as large"


def _strategy(values: Values) -> tuple[str, str]:
    own, other = values["strategies"]
    return (
        f"The batch is the same, the strategy is not: {own} against {other}.",
        "Strategies that average seldom or lose digits change what is learned: compare with ddp.",
    )


def _more_ranks(values: Values) -> tuple[str, str]:
    return (
        "Batch and recipe are the same, so sums of gradients differ in rounding alone: the remaining cause is what "
        "each rank computes alone, such as batch-norm over a smaller share of the batch.",
        "For a model with batch-norm: --set train.sync_batchnorm=true.",
    )


def _settings(values: Values) -> tuple[str, str]:
    return "The two points differ in what is trained or how.", "Vary one setting at a time to see which it is."


_WHY: dict[str, Callable[[Values], tuple[str, str]]] = {
    "fewer-epochs": _fewer_epochs,
    "larger-batch": _larger_batch,
    "strategy": _strategy,
    "more-ranks": _more_ranks,
    "settings": _settings,
}


def _overfitting(values: Values) -> FindingWords:
    turn = values["turn"]
    return FindingWords(
        summary=f"Validation loss turns at {of_points(values)}: most with {values['worst']}, where it rises by "
        f"{number_text(turn.rise)} after about epoch {turn.epoch} while training loss falls by "
        f"{number_text(turn.fall)}; both are more than noise.",
        cause="From there on the network learns its training samples by heart.",
        remedy="Stop earlier, vary the images ([augment]), or add dropout or weight decay.",
    )


def _batch_beyond_noise(values: Values) -> FindingWords:
    noise = values["noise"]
    return FindingWords(
        summary=f"The global batch is beyond the noise scale at {of_points(values)}: most with {values['worst']}, "
        f"where it is {values['batch']:,} and the noise scale {number_text(noise.samples)} samples, "
        f"{number_text(noise.low)} to {number_text(noise.high)}.",
        cause="The mean gradient of so many samples is hardly better than that of fewer: a sample of it brings "
        f"{percent_text(noise.efficiency, 0)} of what one of a very small batch would.",
        remedy="Use the ranks for a smaller batch each, or for more runs; a larger batch takes almost as many steps.",
    )


def _schedule_unfinished(values: Values) -> FindingWords:
    progress = values["progress"]
    return FindingWords(
        summary=f"AdaScale did not reach the end of its schedule at {of_points(values)}: least far with "
        f"{values['worst']}, to {percent_text(progress, 0)} of it.",
        cause="The schedule goes by what steps are worth, and those of a larger batch are worth less than its size: as "
        "much training as with the smaller batch takes more epochs.",
        remedy=f"Train {number_text(1 / progress, 2)} times as long with a constant rate or one that falls in steps; "
        "cosine and one-cycle are laid over the epochs of the run, however many: take lr_rule = linear for them.",
    )


def of_points(values: Values) -> str:
    """`1 of 4 points`."""
    return f"{values['found']} of {counted(values['points'], 'point')}"


def _points(fraction: float) -> str:
    """A difference of accuracies in points, hundredths of which are the last that a test set of 10,000 has."""
    return f"{100 * fraction:.2f}"


LEARNING_WORDS: dict[str, Callable[[Values], FindingWords]] = {
    "diverged": _diverged,
    "dead-network": _dead_network,
    "accuracy-falls": _accuracy_falls,
    "overfitting": _overfitting,
    "batch-beyond-noise": _batch_beyond_noise,
    "schedule-unfinished": _schedule_unfinished,
}
