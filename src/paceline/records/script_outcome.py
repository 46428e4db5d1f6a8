"""The outcome of a user's script on one rank, and what the probe detected."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptOutcome:
    """`ranks/rank-0003.script.json`: how the script ended, and how many steps it took.

    A step is an update by the script's optimizers, after any number of forward and backward passes. The timed steps
    are all but the first, which is a warm-up.
    """

    SCHEMA = "paceline.script/1"

    script: str
    """Path of the file, or name of the module."""
    arguments: tuple[str, ...]
    rank: int
    size: int
    """Size of its process group; without one, the launcher's number of ranks."""
    host: str
    pid: int
    exit_code: int
    """As in a shell: 0 to 255; 130 if it was interrupted."""
    error: str | None
    """Type and message of its exception, or the argument of sys.exit; None on success."""
    traceback: str | None
    """Of the script, without frames of the probe; None without an exception."""
    steps: int
    samples: int | None
    """That went through the model in all steps on this rank; None if unknown for one of them."""
    timed_steps: int
    timed_samples: int | None
    timed_from_ns: int | None
    """When the first timed step began; None if there is none."""
    timed_to_ns: int | None
    """When the last timed step ended."""
    device: str
    """cpu or cuda: the device of the trained parameters; cpu if there are none."""
    backend: str
    """gloo, nccl, ...: the backend of its process group; none without a group."""
    found: tuple[str, ...] = ()
    """What the probe detected: DDP, DataLoader, 2 optimizers, ..."""
    notes: tuple[str, ...] = ()
    """What was not measured, and why: a sentence each."""
