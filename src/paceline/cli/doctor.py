"""`paceline doctor`: this machine, or a site, and what is wrong with it."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from paceline.cli import completers
from paceline.cli.console import Console
from paceline.cli.options import Json

if TYPE_CHECKING:
    from paceline.cli.health import Check

_MARKS = {"ok": "OK", "warning": "WARN", "error": "FAIL"}
_INDENT = 15
"""Of a check's text behind its mark: the width of its name."""


def doctor(
    *,
    site: Annotated[
        str | None,
        Parameter(
            name="--site",
            metavar="NAME",
            completer=completers.sites,
            help="Check this site profile, and start two ranks under it.",
        ),
    ] = None,
    as_json: Json = False,
) -> int:
    """Show what this machine has for training, and what is wrong with any of it, with a remedy.

    Cores, memory, network, folders, data sets, launchers, PyTorch, its backends and GPUs. Ends with
    exit code 1 where a study cannot run here. With --site, a site's profile: what it says is looked at, and
    two ranks are started under its launcher, meet and exchange a few numbers.

    For example:

        paceline doctor
        paceline doctor --site my-cluster
        paceline doctor --json
    """
    from paceline import __version__
    from paceline.cli import health
    from paceline.records.codec import plain

    console = Console.standard()
    runs = Path("runs")
    if site is None:
        checks, good = health.checks(runs), "\nThis machine is ready: paceline study digits"
        bad = "\nA study cannot run here before this is put right: "
    else:
        from paceline.cli import site as profile

        checks, good = profile.checks(site, runs), f"\nThe site is ready: paceline study digits --site {site}"
        bad = "\nNo study can run at this site before this is put right: "
    found = []
    for check in checks:
        found.append(check)
        if not as_json:
            _show(console, check)
    wrong = [check.name for check in found if check.status == "error"]
    if as_json:
        console.json({"version": __version__, "ready": not wrong, "checks": [plain(check) for check in found]})
    else:
        again = f"paceline doctor{f' --site {shlex.quote(site)}' if site else ''}"
        console.result(f"{bad}{', '.join(wrong)}.\nThen look again: {again}" if wrong else good)
    return 1 if wrong else 0


def _show(console: Console, check: Check) -> None:
    text = check.found.replace("\n", "\n" + " " * _INDENT)
    console.status(_MARKS[check.status], f"{check.name:<{_INDENT - 1}} {text}", result=True)
    for line in check.remedy.splitlines():
        console.result(f"{'':{_INDENT + 7}}{line}")
