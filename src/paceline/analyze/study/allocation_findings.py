"""Findings of the allocation check, which ranks run before the first step (`machine.json`)."""

from __future__ import annotations

from paceline.analyze.study.measured import Measured
from paceline.records.allocation import Complaint
from paceline.records.finding import Finding


def allocation_mismatch(measured: Measured) -> Finding | None:
    """Runs whose allocation differs from the request."""
    complaints: dict[str, list[Complaint]] = {}
    for machine in measured.machines:
        for name in dict.fromkeys(found.name for found in machine.complaints if found.severity != "info"):
            complaints.setdefault(name, []).append(next(found for found in machine.complaints if found.name == name))
    if not complaints:
        return None
    forced = any(found.severity == "fatal" for own in complaints.values() for found in own)
    concerned = sum(any(found.name in complaints for found in machine.complaints) for machine in measured.machines)
    return Finding(
        code="asked-for-against-given",
        severity="error" if forced else "warning",
        values={
            "found": concerned,
            "runs": len(measured.machines),
            "forced": forced,
            "complaints": tuple((own[0], len(own)) for own in complaints.values()),
        },
    )


def emulated_hosts(measured: Measured) -> Finding | None:
    """Points whose hosts are one machine with several names."""
    rows = [row for row in measured.rows if row.emulated]
    if not rows:
        return None
    complaint = next((c for m in measured.machines for c in m.complaints if c.name == "emulated-hosts"), None)
    return Finding(
        code="emulated-hosts",
        severity="info",
        values={"found": len(rows), "points": len(measured.rows), "complaint": complaint},
        points=tuple(row.point_id for row in rows),
    )
