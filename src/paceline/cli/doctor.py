"""`paceline doctor`: this machine, and what is wrong with it."""

from __future__ import annotations

from pathlib import Path

from paceline.cli.console import Console
from paceline.cli.options import Json

_MARKS = {"ok": "OK", "warning": "WARN", "error": "FAIL"}


def doctor(*, as_json: Json = False) -> int:
    """Show what this machine has for training, and what is wrong with any of it, with a remedy.

    Cores, memory, network, folders, data sets, launchers, PyTorch, its backends and GPUs. Ends with
    exit code 1 where a study cannot run here.

    For example:

        paceline doctor
        paceline doctor --json
    """
    from paceline import __version__
    from paceline.cli.health import checks
    from paceline.records.codec import plain

    console = Console.standard()
    found = []
    for check in checks(Path("runs")):
        found.append(check)
        if not as_json:
            console.status(_MARKS[check.status], f"{check.name:<14} {check.found}", result=True)
            if check.remedy:
                console.result(f"{'':22}{check.remedy}")
    wrong = [check.name for check in found if check.status == "error"]
    if as_json:
        console.json({"version": __version__, "ready": not wrong, "checks": [plain(check) for check in found]})
    elif wrong:
        console.result(f"\nA study cannot run here before this is put right: {', '.join(wrong)}.")
    else:
        console.result("\nThis machine is ready: paceline study digits")
    return 1 if wrong else 0
