"""`paceline doctor`: checks of this machine, or of a site profile."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from paceline.cli import completers
from paceline.cli.console import Console
from paceline.cli.options import Json

if TYPE_CHECKING:
    from paceline.app.machine_checks import Check


def doctor(
    *,
    site: Annotated[
        str | None,
        Parameter(
            name="--site",
            metavar="NAME",
            completer=completers.sites,
            help="Check this site profile and start two ranks with its launcher.",
        ),
    ] = None,
    as_json: Json = False,
) -> int:
    """Check what this machine has for training; every problem is shown with a remedy.

    Checks cores, memory, network, folders, data sets, launchers, PyTorch, its backends and GPUs. The exit code is 1
    if a study cannot run here. With --site, the settings of a site profile are checked, and two ranks are started
    with its launcher and exchange a few numbers.

    For example:

        paceline doctor
        paceline doctor --site my-cluster
        paceline doctor --json
    """
    from paceline import app

    console = Console.standard()
    found = app.doctor(site=site, each=None if as_json else partial(_show, console))
    if as_json:
        console.json(found.to_dict())
    else:
        console.result(f"\n{found.verdict()}")
    return 0 if found.ready else 1


def _show(console: Console, check: Check) -> None:
    from paceline.app.readiness import check_lines, mark

    console.status(mark(check), "\n".join(check_lines(check)), result=True)
