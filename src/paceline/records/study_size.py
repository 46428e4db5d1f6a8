"""The size of a study in words: what is smaller than in its file, and how to run the full size."""

from __future__ import annotations

import tomllib

from paceline.records.study import Study
from paceline.units import count_text

_COUNTED = {
    "data.train_samples": "samples",
    "data.test_samples": "test samples",
    "data.samples": "samples",
    "train.epochs": "epochs",
    "train.steps": "steps",
    "finetune.epochs": "epochs of fine-tuning",
    "run.repeats": "repeats",
}
_RIVALS = {"train.steps": "train.epochs", "train.epochs": "train.steps"}


def size_text(study: Study) -> str:
    """`small size: 12,000 of 60,000 samples, 2 of 12 epochs; --size full runs it as written`; empty with one size."""
    if study.size == "full":
        return "full size, as it is written"
    if study.size != "small":
        return ""
    parts = [text for path in study.full if (text := _part(study, path))]
    changed = f": {', '.join(parts)}" if parts else ""
    return f"small size{changed}; --size full runs it as written"


def _part(study: Study, path: str) -> str:
    """How a setting differs from the file; empty if another setting replaces it."""
    here, there = _here(study, path), _there(study, path)
    if here is None:
        return ""
    noun = _COUNTED.get(path)
    if noun is None or not isinstance(here, int):
        name = path.split(".", 1)[1].replace("_", " ")
        return f"{name} {_value_text(here)}" + (f" in place of {_value_text(there)}" if there is not None else "")
    if isinstance(there, int):
        more = f"{count_text(here)} {noun} in place of {count_text(there)}"
        return f"{count_text(here)} of {count_text(there)} {noun}" if here <= there else more
    rival = _RIVALS.get(path)
    replaced = _there(study, rival) if rival in study.full else None
    if rival is not None and isinstance(replaced, int):
        return f"{count_text(here)} {noun} in place of {count_text(replaced)} {_COUNTED[rival]}"
    return f"{count_text(here)} of all {noun}" if noun.endswith("samples") else f"{count_text(here)} {noun}"


def _here(study: Study, path: str) -> object:
    section, key = path.split(".", 1)
    settings = getattr(study, section)
    options = getattr(settings, "options", {})
    return study.vary.get(path, options[key] if key in options else getattr(settings, key, None))


def _there(study: Study, path: str) -> object:
    text = study.full.get(path)
    return tomllib.loads(f"value = {text}")["value"] if text else None


def _value_text(value: object) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(_value_text, value))
    return count_text(value) if type(value) is int else str(value)
