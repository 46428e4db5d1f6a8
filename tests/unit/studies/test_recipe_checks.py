"""Settings of learning that are wrong, that do nothing, or that a strategy cannot do: each refused by a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest
from study_help import loaded

from paceline.errors import RequestError


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (["train.recipe=fast"], 'train.recipe = "fast": must be "" or "scale" or "as-published".'),
        (["train.lr_rule=cubic"], 'train.lr_rule = "cubic": must be "none" or "linear"'),
        (["train.schedule=linear"], 'train.schedule = "linear": must be "constant" or "step"'),
        (["train.epochs_rule=half"], 'train.epochs_rule = "half": must be "none" or "divide-by-ranks".'),
        (["train.initialiser=jax"], 'train.initialiser = "jax": must be "" or "keras".'),
        (["train.warmup_epochs=-1"], "train.warmup_epochs = -1.0: must be finite, 0 or more."),
        (["train.average_epochs=nan"], "train.average_epochs = nan: must be finite, 0 or more."),
        (["train.clip_norm=inf"], "train.clip_norm = inf: must be finite, 0 or more."),
        (["train.epsilon=0"], "train.epsilon = 0.0: must be a finite number above 0."),
        (["train.lr_batch=0", "train.lr_rule=sqrt"], "train.lr_batch = 0: must be 1 or more."),
        (["train.accumulate=0"], "train.accumulate = 0: must be 1 or more."),
        (["train.label_smoothing=1"], "train.label_smoothing = 1.0: must be from 0 to below 1."),
        (["train.schedule=step", "train.step_epochs=1", "train.step_factor=1"], "must be above 0 and below 1"),
        (["train.lr_batch=64"], "train.lr_batch = 64: says what train.lr is for, and no rule asks for it."),
        (["train.warmup_epochs=1"], "train.warmup_epochs = 1.0: leads from train.lr to what a rule makes of it"),
        (
            ["train.warmup_epochs=1", "train.lr_rule=adascale", "train.optimizer=sgd"],
            "raises the rate by what it measures",
        ),
        (["train.warmup_epochs=1", "train.lr_rule=linear", "train.schedule=one-cycle"], "has a rise of its own"),
        (["train.warmup_epochs=3", "train.lr_rule=linear"], "is longer than the 2 epochs of the run"),
        (
            ["train.warmup_epochs=2", "train.lr_rule=linear", "train.epochs_rule=divide-by-ranks"],
            "is longer than the 1 epochs of the run",
        ),
        (["train.schedule=step"], 'train.schedule = "step": needs train.step_epochs'),
        (["train.step_epochs=1"], 'train.step_epochs = 1.0: only schedule = "step" takes it.'),
        (["train.step_factor=0.5"], 'train.step_factor = 0.5: only schedule = "step" takes it.'),
        (["train.epsilon=1e-7", "train.optimizer=sgd"], 'take it, not "sgd"'),
        (["train.rho=0.9"], 'train.rho = 0.9: only adadelta takes it, not "adam".'),
        (["train.rho=1", "train.optimizer=adadelta"], "train.rho = 1.0: must be above 0 and below 1."),
        (["train.rho=nan", "train.optimizer=adadelta"], "train.rho = nan: must be above 0 and below 1."),
        (["train.recipe=scale", "train.lr_rule=none", "train.lr_batch=4"], "and no rule asks for it"),
        (["train.recipe=scale", "train.lr_rule=none", "train.warmup_epochs=1"], "and there is no rule"),
        (["train.optimizer=lamb", "train.momentum=0.9"], 'only sgd and lars take it, not "lamb"'),
        (["train.optimizer=lars", "run.strategy=parameter-server"], "a server may hold a part of one"),
        (["train.clip_norm=1", "run.strategy=parameter-server"], "every server sees its own part of the gradient"),
        (["train.average_epochs=1", "run.strategy=local-sgd"], "there is no one average"),
        (["train.accumulate=5"], "train.accumulate = 5: is more than the 4 samples that a rank has in a step"),
        (["train.accumulate=2", "train.sync_batchnorm=true"], "would wait for one another in train.sync_batchnorm"),
        (["train.epochs_rule=divide-by-ranks", "train.steps=5"], "divides epochs, and train.steps is given"),
        (["train.epochs_rule=divide-by-ranks", "train.epochs=2,4"], "so it cannot be varied"),
    ],
)
def test_what_cannot_be_right_is_refused(tmp_path: Path, overrides: list[str], said: str) -> None:
    with pytest.raises(RequestError) as refused:
        loaded(tmp_path, *overrides)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    "overrides",
    [
        ["train.recipe=scale", "train.lr_batch=4", "train.warmup_epochs=1"],
        ["train.recipe=as-published", "train.epochs_rule=divide-by-ranks"],
        ["train.lr_rule=sqrt", "train.schedule=cosine", "train.warmup_epochs=0.5", "run.strategy=parameter-server"],
        ["train.schedule=step", "train.step_epochs=1", "train.step_factor=0.5"],
        ["train.optimizer=lars", "train.momentum=0.9", "train.epsilon=1e-8"],
        ["train.average_epochs=1", "train.clip_norm=1", "train.accumulate=4", "train.label_smoothing=0.1"],
        ["train.average_epochs=1", "run.strategy=parameter-server"],
        ["train.optimizer=adadelta", "train.rho=0.95", "train.epsilon=1e-7"],
        ["train.lr_rule=none,linear", "train.lr_batch=4", "train.warmup_epochs=1"],
        ["train.recipe=,scale", "train.lr_batch=4"],
        ["train.schedule=step,cosine", "train.step_epochs=1"],
        ["train.step_epochs=1", "train.step_factor=0.5", "finetune.epochs=1", "finetune.schedule=step"],
    ],
)
def test_what_goes_together_is_taken(tmp_path: Path, overrides: list[str]) -> None:
    loaded(tmp_path, *overrides)
