"""`paceline report DIR`: the results of a study, from its folder alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from paceline.cli import completers
from paceline.cli.console import Console
from paceline.cli.options import Json
from paceline.cli.paper import FIGURES, FORMATS, checked_width, chosen, write_paper
from paceline.errors import RequestError

if TYPE_CHECKING:
    from paceline.api import Results


def report(
    folder: Annotated[
        Path,
        Parameter(
            name="DIR", completer=completers.study_folders, help="The folder of a study, such as runs/mnist-scaling."
        ),
    ],
    /,
    *,
    target: Annotated[
        float | None, Parameter(help="The validation accuracy that times are asked for: a fraction, such as 0.98.")
    ] = None,
    margin: Annotated[
        float | None, Parameter(help="Accuracies closer than this are called equal: a fraction, 0.005 by default.")
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
            help="Draw the scaling plots for print: svg, pdf or png, or several separated by commas.",
        ),
    ] = None,
    width: Annotated[
        float, Parameter(metavar="MM", help="Width of these figures in millimetres; a column has 85, a page 175.")
    ] = 85,
    as_json: Json = False,
) -> None:
    """Rebuild the tables and the report of a study from its folder, and show the results.

    Writes results.csv, results.parquet and report.html there. A study that is still running, or was
    stopped, is reported as far as it got. For a proposal or a paper: report.md, report.tex or tables/,
    and the scaling plots in figures/, each with a caption that states the protocol.

    For example:

        paceline report runs/mnist-scaling
        paceline report runs/mnist-scaling --target 0.98 --json
        paceline report runs/mnist-scaling --format md,tex --figures pdf,svg
    """
    from paceline.api import open_results

    formats, kinds = chosen("--format", format, FORMATS), chosen("--figures", figures, FIGURES) if figures else ()
    width_mm = checked_width(width)
    if target is not None and not 0 < target < 1:
        raise RequestError(
            f"A target of {target:g} cannot be reached, or asks for nothing.",
            right="It is an accuracy as a fraction, above 0 and below 1.",
            next=f"Say, for example: paceline report {folder} --target 0.98",
        )
    if margin is not None and not 0 < margin < 1:
        raise RequestError(
            f"A margin of {margin:g} calls nothing equal, or everything.",
            right="It is a difference of accuracies as a fraction, above 0 and below 1: 0.005 is half a point.",
            next=f"Say, for example: paceline report {folder} --margin 0.005",
        )
    found = open_results(folder.expanduser(), target=target, margin=margin)
    files = write_paper(found, formats, kinds, width_mm)
    console = Console.standard()
    if kinds and not any(path.parent.name == "figures" for path in files):
        console.status("WARN", "No figure was drawn: nothing was measured at two numbers of ranks.")
    show(found, console, as_json=as_json, files=files)


def show(results: Results, console: Console, *, as_json: bool, files: Sequence[Path] = ()) -> None:
    """Print the closing block: table, verdict, findings, the report's path, other files and the next command."""
    from paceline.report.text import render

    for note in results.notes:
        console.status("WARN", note)
    if as_json:
        view = results.to_dict()
        console.json({**view, "files": [str(path) for path in files]} if files else view)
        return
    console.result(render(results.model, width=console.width, color=console.color))
    step = results.model.next_step
    written = "".join(f"\nWrote   {path}" for path in files)
    console.result(f"\nReport  {results.report or 'not written'}{written}\nNext    {step.text}\n        {step.command}")
