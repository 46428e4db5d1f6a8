"""`paceline report DIR`: the results of a study, from its folder alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from paceline.cli.console import Console
from paceline.cli.options import Json

if TYPE_CHECKING:
    from paceline.api import Results


def report(
    folder: Annotated[Path, Parameter(name="DIR", help="The folder of a study, such as runs/mnist-scaling.")],
    /,
    *,
    as_json: Json = False,
) -> None:
    """Rebuild the tables and the report of a study from its folder, and show the results.

    Writes results.csv, results.parquet and report.html there. A study that is still running, or was
    stopped, is reported as far as it got.

    For example:

        paceline report runs/mnist-scaling
        paceline report runs/mnist-scaling --json
    """
    from paceline.api import open_results

    show(open_results(folder.expanduser()), Console.standard(), as_json=as_json)


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
