"""`paceline models`: the list of models, or the layers of one."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from paceline.cli import completers
from paceline.cli.console import Console, grid
from paceline.cli.options import Count, Json, whole_numbers
from paceline.units import bytes_text, count_text

if TYPE_CHECKING:
    from paceline.training.models.summary import ModelSummary


def models(
    name: Annotated[
        str | None,
        Parameter(
            completer=completers.names("model"),
            help="Name of a model, or your own: my_file.py:build; default: list all models.",
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
    from paceline.app.model_layers import model_descriptions, model_summary

    console = Console.standard()
    if name is None:
        known = model_descriptions()
        if as_json:
            console.json({"models": [{"name": model, "description": text} for model, text in known.items()]})
        else:
            console.result(grid(["Model", "Description"], list(known.items())))
            console.result(f"\nShow the layers of one: paceline models {next(iter(known))}")
            console.result("Show your own model:    paceline models my_file.py:build")
        return
    found = model_summary(name, shape=whole_numbers("--shape", shape), classes=classes, options=options or [])
    if as_json:
        from paceline.storage.codec import plain

        console.json(plain(found))
    else:
        following = shlex.join(["paceline", "train", "my-study.toml", "--set", f"model.name={name}"])
        console.result(f"{_layers_text(found).rstrip()}\n\nNext    Train it: {following}")


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
    """The counts by the rules of Keras; empty if they do not differ."""
    if not found.keras.why:
        return ""
    fixed = found.keras.total - found.keras.trainable
    return (
        f"Counted as in Keras: {count_text(found.keras.total)}, {count_text(found.keras.trainable)} of them "
        f"trainable and {count_text(fixed)} not: with {found.keras.why}.\n"
    )


def _facts_text(found: ModelSummary) -> str:
    facts = {key: text for key, text in found.facts.items() if key in ("base", "preprocessing")}
    return "".join(f"{f'{key.capitalize()}:':<15}{text}\n" for key, text in facts.items())
