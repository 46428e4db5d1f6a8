"""`paceline models`: the models there are, or the layers of one."""

from __future__ import annotations

import contextlib
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from paceline.cli import completers
from paceline.cli.console import Console, grid
from paceline.cli.options import Count, Json, whole_numbers
from paceline.errors import RequestError
from paceline.units import bytes_text, count_text

if TYPE_CHECKING:
    from paceline.training.models.summary import ModelSummary


def models(
    name: Annotated[
        str | None,
        Parameter(
            completer=completers.names("model"),
            help="A model of the list, or your own: my_file.py:build; without it, the list is shown.",
        ),
    ] = None,
    /,
    *,
    shape: Annotated[str, Parameter(metavar="H,W,C", help="Height, width and channels of an image.")] = "28,28,1",
    classes: Annotated[Count, Parameter(help="Number of classes.")] = 10,
    options: Annotated[
        list[str] | None,
        Parameter(
            name="--set", metavar="KEY=VALUE", negative="", help="An option of the model, such as layers=3; repeatable."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """List the models, or show the layers of one with their output shapes and parameters.

    For example:

        paceline models cnn-690k
        paceline models mlp --shape 32,32,3 --set layers=3 --set neurons=128
        paceline models resnet50 --shape 32,32,3 --set head=[20]
        paceline models my_file.py:build --classes 4
    """
    from paceline import catalog

    console = Console.standard()
    if name is None:
        known = {model: catalog.description("model", model) for model in catalog.names("model")}
        known |= {f"{first}:NAME": entry.text for first, entry in catalog.FAMILIES.items()}
        if as_json:
            console.json({"models": [{"name": model, "description": text} for model, text in known.items()]})
        else:
            console.result(grid(["Model", "What it is"], list(known.items())))
            console.result(f"\nThe layers of one: paceline models {next(iter(known))}")
            console.result("Of your own:       paceline models my_file.py:build")
        return
    found = _summary(name, _image_shape(shape), classes, options or [])
    if as_json:
        from paceline.storage.codec import plain

        console.json(plain(found))
    else:
        following = shlex.join(["paceline", "train", "my-study.toml", "--set", f"model.name={name}"])
        console.result(f"{_layers_text(found).rstrip()}\n\nNext    Train it: {following}")


def _summary(name: str, shape: tuple[int, int, int], classes: int, options: list[str]) -> ModelSummary:
    if classes < 1:
        raise RequestError(
            f"--classes {classes} is impossible.",
            right="A model tells at least 1 class.",
            next="See: paceline models --help",
        )
    given = dict(_option(text) for text in options)
    file = _model_file(name)
    from paceline.training.models.summary import summary  # imports torch: after all that can be refused without it

    with contextlib.redirect_stdout(sys.stderr):  # a model of one's own may print
        return summary(name, shape, classes, given, model_file=file)


def _model_file(name: str) -> Path | None:
    """The file of a model of one's own, found from here; None for a model of the list."""
    from paceline.studies.load.checks import model_fault
    from paceline.studies.load.files import model_path

    fault = model_fault(name, Path.cwd())
    if fault:
        raise RequestError(f"{name}: {fault}", next="See: paceline models")
    return model_path(name, Path.cwd())


def _image_shape(text: str) -> tuple[int, int, int]:
    sizes = whole_numbers("--shape", text)
    if len(sizes) != 3 or min(sizes) < 1:
        raise RequestError(
            f"--shape {text!r} is not the shape of an image.",
            right="Height, width and channels, each at least 1: --shape 28,28,1",
            next="See: paceline models --help",
        )
    return (sizes[0], sizes[1], sizes[2])


def _option(text: str) -> tuple[str, Any]:
    """An option and its value."""
    from paceline.studies.load.overrides import toml_or_text

    key, found, value = text.partition("=")
    if not found or not key.strip():
        raise RequestError(
            f"--set {text!r} is not KEY=VALUE.",
            right="For example: --set layers=3",
            next="See: paceline models --help",
        )
    return key.strip(), toml_or_text(value)


def _layers_text(found: ModelSummary) -> str:
    rows = [
        (f"{layer.kind} ({layer.name})", "×".join(map(str, layer.output_shape)), count_text(layer.parameters))
        for layer in found.layers
    ]
    table = grid(["Layer", "Output shape", "Parameters"], rows, right=(2,))
    return (
        f"Model {found.name}\n\n{table}\n\n"
        f"Parameters:    {count_text(found.parameters)} ({bytes_text(found.parameters * 4)} in float32)\n"
        f"Trainable:     {count_text(found.trainable)}\n"
        f"Not trainable: {count_text(found.parameters - found.trainable)}\n"
        f"{_keras_text(found)}{_facts_text(found)}"
        "Output shapes are channels, height, width, without the batch."
    )


def _keras_text(found: ModelSummary) -> str:
    """The counts as Keras gives them, where they differ; empty otherwise."""
    if not found.keras.why:
        return ""
    fixed = found.keras.total - found.keras.trainable
    return (
        f"In Keras's way of counting {count_text(found.keras.total)}, {count_text(found.keras.trainable)} of them "
        f"trainable and {count_text(fixed)} not: with {found.keras.why}.\n"
    )


def _facts_text(found: ModelSummary) -> str:
    facts = {key: text for key, text in found.facts.items() if key in ("base", "preprocessing")}
    return "".join(f"{f'{key.capitalize()}:':<15}{text}\n" for key, text in facts.items())
