"""A run that its own ranks refused before the first step: what they were given, and the sentence for it."""

from __future__ import annotations

from paceline.errors import RunError
from paceline.launch import machine
from paceline.records.allocation import PreflightCheck
from paceline.storage.codec import write_record
from paceline.storage.folder import RunFolder


def refused(folder: RunFolder) -> RunError | None:
    """The error of a run that the roll call refused, with `machine.json` written; None where it did not refuse it."""
    roll = machine.preflight_record(folder)
    if roll is None or not roll.refused:
        return None
    write_record(folder.machine, machine.machine((), roll))
    return refusal(roll)


def refusal(roll: PreflightCheck) -> RunError:
    """All that makes the measurement meaningless, in one error."""
    fatal = [complaint for complaint in roll.complaints if complaint.severity == "fatal"]
    right, remedies = (dict.fromkeys(texts) for texts in zip(*((f.right, f.next) for f in fatal), strict=True))
    return RunError(
        "\n".join(complaint.what for complaint in fatal),
        right=" ".join(right),
        next=" ".join(remedies) + " To measure all the same, with this on record: --force.",
    )


def crowded(roll: PreflightCheck | None) -> bool:
    """Whether threads turned out to share cores: such figures are kept out of fits, as those that were known to."""
    return _complains(roll, "more-threads-than-cores", "threads-beyond-affinity", "ranks-share-cores")


def emulated(roll: PreflightCheck | None) -> bool:
    """Whether hosts turned out to be one machine."""
    return _complains(roll, "emulated-hosts")


def _complains(roll: PreflightCheck | None, *names: str) -> bool:
    return roll is not None and any(complaint.name in names for complaint in roll.complaints)
