"""Findings from what the ranks were given, as they said it before the first step (`machine.json`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paceline.records.finding import Finding
from paceline.records.given import Complaint
from paceline.units import counted

if TYPE_CHECKING:
    from paceline.analyze.study.findings import Measured


def asked_for_against_given(measured: Measured) -> Finding | None:
    """Runs that were given something else than what was asked for."""
    told: dict[str, list[Complaint]] = {}
    for machine in measured.machines:
        for name in dict.fromkeys(found.name for found in machine.complaints if found.severity != "info"):
            told.setdefault(name, []).append(next(found for found in machine.complaints if found.name == name))
    if not told:
        return None
    forced = any(found.severity == "fatal" for own in told.values() for found in own)
    concerned = sum(any(found.name in told for found in machine.complaints) for machine in measured.machines)
    first = [own[0] for own in told.values()]
    shown = " ".join(f"{found.what} ({counted(len(told[found.name]), 'run')})" for found in first)
    gravity = "It makes these figures meaningless, and the study was told to go on all the same. " if forced else ""
    return Finding(
        name="asked-for-against-given",
        severity="error" if forced else "warning",
        summary=f"{concerned} of {counted(len(measured.machines), 'run')} did not get what was asked for. {shown}",
        cause=f"{gravity}Right would be: {' '.join(dict.fromkeys(found.right for found in first))}",
        remedy=" ".join(dict.fromkeys(found.next for found in first)),
    )


def emulated_hosts(measured: Measured) -> Finding | None:
    """Points whose hosts were one machine under several names."""
    rows = [row for row in measured.rows if row.emulated]
    if not rows:
        return None
    said = next((c for m in measured.machines for c in m.complaints if c.name == "emulated-hosts"), None)
    return Finding(
        name="emulated-hosts",
        severity="info",
        summary=f"Hosts of {len(rows)} of {counted(len(measured.rows), 'point')} are namespaces of one machine."
        + (f" {said.what}" if said else ""),
        cause="Ranks on such hosts share cores and kernel: they show that a run works across hosts, not how fast.",
        remedy="Leave these points out of any claim about scaling over hosts; measure them on hosts of their own.",
        points=tuple(row.point_id for row in rows),
    )
