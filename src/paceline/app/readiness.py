"""`paceline.doctor`: checks of this machine, or of a site profile."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paceline.app.machine_checks import Check
from paceline.app.shown import NOTEBOOK_WIDTH, ShownText

_MARKS = {"ok": "OK", "warning": "WARN", "error": "FAIL"}
_NAME_WIDTH = 14


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Readiness(ShownText):
    """The results of all checks, in order."""

    checks: tuple[Check, ...]
    site: str | None
    """The name of the checked site profile; None for this machine."""

    @property
    def ready(self) -> bool:
        """Whether a study can run here; warnings do not count."""
        return not self.wrong

    @property
    def wrong(self) -> tuple[str, ...]:
        """Names of the failed checks, with which no study can run."""
        return tuple(check.name for check in self.checks if check.status == "error")

    def verdict(self) -> str:
        """The result in one sentence, and the next command."""
        at = f" --site {shlex.quote(self.site)}" if self.site else ""
        if self.ready:
            return f"{'The site' if self.site else 'This machine'} is ready: paceline study digits{at}"
        what = "No study can run at this site" if self.site else "A study cannot run here"
        return f"{what} until this is fixed: {', '.join(self.wrong)}.\nThen check again: paceline doctor{at}"

    @property
    def headline(self) -> str:
        return self.verdict().splitlines()[0]

    def text(self, *, width: int = NOTEBOOK_WIDTH, color: bool = False) -> str:
        """One paragraph per check, and the verdict, as text."""
        lines = []
        for check in self.checks:
            first, *others = check_lines(check)
            lines += [f"[{mark(check):^4}] {first}", *(f"{'':7}{line}" for line in others)]
        return "\n".join((*lines, "", self.verdict()))

    def to_dict(self) -> dict[str, Any]:
        """The object of `--json`."""
        from paceline import __version__
        from paceline.storage.codec import plain

        return {"version": __version__, "ready": self.ready, "checks": [plain(check) for check in self.checks]}


def mark(check: Check) -> str:
    """`OK`, `WARN` or `FAIL`."""
    return _MARKS[check.status]


def check_lines(check: Check) -> list[str]:
    """The lines of a check: name, result and remedy."""
    first, *others = [*check.found.split("\n"), *check.remedy.splitlines()]
    return [f"{check.name:<{_NAME_WIDTH}} {first}", *(f"{'':{_NAME_WIDTH + 1}}{line}" for line in others)]


def doctor(*, site: str | None = None, each: Callable[[Check], None] | None = None) -> Readiness:
    """Check cores, memory, network, folders, data sets, launchers, PyTorch, its backends and GPUs of this machine.

    With `site`, check this site profile instead, and start two ranks with its launcher that exchange a few numbers.
    `each` is called with every result immediately.
    """
    from paceline.app import machine_checks, site_checks

    runs, found = Path("runs"), []
    for check in machine_checks.checks(runs) if site is None else site_checks.checks(site, runs):
        found.append(check)
        if each is not None:
            each(check)
    return Readiness(checks=tuple(found), site=site)
