"""`paceline report DIR`: the results of a study, from its folder alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from paceline.cli.console import Console
from paceline.cli.options import Json
from paceline.errors import RequestError

if TYPE_CHECKING:
    from paceline.api import Results


def report(
    folder: Annotated[Path, Parameter(name="DIR", help="The folder of a study, such as runs/mnist-scaling.")],
    /,
    *,
    target: Annotated[
        float | None, Parameter(help="The validation accuracy that times are asked for: a fraction, such as 0.98.")
    ] = None,
    margin: Annotated[
        float | None, Parameter(help="Points of accuracy within which two are called equal: 0.5 unless told.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Rebuild the tables and the report of a study from its folder, and show the results.

    Writes results.csv, results.parquet and report.html there. A study that is still running, or was
    stopped, is reported as far as it got.

    For example:

        paceline report runs/mnist-scaling
        paceline report runs/mnist-scaling --target 0.98
        paceline report runs/mnist-scaling --json
    """
    from paceline.api import open_results

    if target is not None and not 0 < target < 1:
        raise RequestError(
            f"A target of {target:g} cannot be reached, or asks for nothing.",
            right="It is an accuracy as a fraction, above 0 and below 1.",
            next=f"Say, for example: paceline report {folder} --target 0.98",
        )
    if margin is not None and not 0 < margin <= 100:
        raise RequestError(
            f"A margin of {margin:g} points calls nothing equal, or everything.",
            right="It is a number of points of accuracy, above 0 and up to 100.",
            next=f"Say, for example: paceline report {folder} --margin 0.5",
        )
    found = open_results(folder.expanduser(), target=target, margin=None if margin is None else margin / 100)
    show(found, Console.standard(), as_json=as_json)


def show(results: Results, console: Console, *, as_json: bool) -> None:
    """Print the closing block: table, verdict, findings, the report's path and the next command."""
    from paceline.report.text import render

    for note in results.notes:
        console.status("WARN", note)
    if as_json:
        console.json(results.to_dict())
        return
    console.result(render(results.model, width=console.width, color=console.color))
    step = results.model.next_step
    console.result(f"\nReport  {results.report or 'not written'}\nNext    {step.text}\n        {step.command}")
