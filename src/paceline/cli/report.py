"""`paceline report DIR`: the results of a study, from its folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from paceline.app.report_files import FIGURES, FORMATS
from paceline.cli import completers
from paceline.cli.console import Console
from paceline.cli.options import Json

if TYPE_CHECKING:
    from paceline.app import Results


def report(
    folder: Annotated[
        Path,
        Parameter(
            name="DIR", completer=completers.study_folders, help="Folder of a study, such as runs/mnist-scaling."
        ),
    ],
    /,
    *,
    target: Annotated[
        float | None, Parameter(help="Report the time to this validation accuracy: a fraction, such as 0.98.")
    ] = None,
    margin: Annotated[
        float | None, Parameter(help="Accuracies that differ by less are equal: a fraction; default: 0.005.")
    ] = None,
    format: Annotated[
        str,
        Parameter(
            metavar="NAMES",
            completer=completers.choices(*FORMATS),
            help="html, md, tex or csv, or several separated by commas.",
        ),
    ] = "html",
    figures: Annotated[
        str | None,
        Parameter(
            metavar="NAMES",
            completer=completers.choices(*FIGURES),
            help="Write the scaling plots as svg, pdf or png, or several separated by commas.",
        ),
    ] = None,
    width: Annotated[
        float, Parameter(metavar="MM", help="Width of these figures in mm; a column is 85 mm wide, a page 175 mm.")
    ] = 85,
    as_json: Json = False,
) -> None:
    """Rebuild the tables and the report of a study from its folder, and show the results.

    Writes results.csv, results.parquet and report.html into the folder. For a study that is running or was stopped,
    the finished runs are reported. For a proposal or a paper, --format and --figures write report.md, report.tex,
    tables/ and figures/, with captions that state the protocol.

    For example:

        paceline report runs/mnist-scaling
        paceline report runs/mnist-scaling --target 0.98 --json
        paceline report runs/mnist-scaling --format md,tex --figures pdf,svg
    """
    from paceline import app

    found = app.report(folder, target=target, margin=margin, format=format, figures=figures or (), width_mm=width)
    show(found, Console.standard(), as_json=as_json)


def show(results: Results, console: Console, *, as_json: bool) -> None:
    """Print table, verdict, findings, paths of the written files and the next command."""
    from paceline.reporting.text.report_text import render

    for note in results.notes:
        console.status("WARN", note)
    if as_json:
        console.json(results.to_dict())
        return
    console.result(render(results.model, width=console.width, color=console.color))
    step = results.model.next_step
    written = "".join(f"\nWrote   {path}" for path in results.files)
    console.result(f"\nReport  {results.report or 'not written'}{written}\nNext    {step.text}\n        {step.command}")
