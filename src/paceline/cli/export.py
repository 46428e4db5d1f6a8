"""`paceline export DIR --format NAME`: a run's trace, or a study's runs, in a format that other programs read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from paceline.cli import completers
from paceline.cli.console import Console
from paceline.cli.options import Json, PointName, RunNumber, RunOrStudy

Format = Annotated[
    str,
    Parameter(
        name="--format",
        metavar="NAME",
        completer=completers.choices("chrome", "parquet", "csv", "chakra", "tensorboard", "mlflow"),
        help="chrome, parquet, csv, chakra, tensorboard or mlflow.",
    ),
]
Target = Annotated[
    Path | None,
    Parameter(
        name="--out",
        metavar="PATH",
        help="File to write, or folder to write into; a name that ends in .gz is compressed. Here where not given.",
    ),
]
Force = Annotated[bool, Parameter(negative="", show_default=False, help="Replace files that are there already.")]


def export(
    folder: RunOrStudy,
    /,
    *,
    format: Format,
    out: Target = None,
    point: PointName = None,
    run: RunNumber = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Write the trace of one run, or the learning curves of all runs, in a format that other programs read.

    chrome is Trace Event JSON for Perfetto; parquet and csv are one table of every rank's spans; chakra is one
    MLCommons execution trace for each rank. All are on one time line. Of a study it is the median run of the point
    with the most ranks. tensorboard and mlflow take every finished run, with its settings and its curves. What is
    there already is kept, unless --force is given.

    For example:

        paceline export runs/digits --format chrome --out digits.json.gz
        paceline export runs/digits --format tensorboard --out logs
        paceline export runs/digits --format mlflow --force
    """
    from paceline import app

    console = Console.standard()
    written = app.export(folder, format, out=out, point=point, run=run, force=force)
    if written.chosen:
        console.say(written.chosen)
    if as_json:
        console.json(written.to_dict())
        return
    for problem in written.problems:
        console.status("WARN", problem)
    console.result(written.text())
