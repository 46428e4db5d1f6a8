"""`paceline export DIR --format NAME`: the trace of a run, or the runs of a study, for other programs."""

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
        help="File or folder to write; a name that ends in .gz is compressed. Default: the current folder.",
    ),
]
Force = Annotated[bool, Parameter(negative="", show_default=False, help="Replace existing files.")]


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
    """Write the trace of one run, or the learning curves of all runs, for other programs.

    Formats of a trace: chrome (Trace Event JSON for Perfetto), parquet and csv (one table with the spans of all
    ranks), chakra (one MLCommons execution trace per rank). All ranks share one time line. In a study folder, the
    median run of the point with the most ranks is exported. tensorboard and mlflow get every finished run with its
    settings and curves. Existing files are replaced only with --force.

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
