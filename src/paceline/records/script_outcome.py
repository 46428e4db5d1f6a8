"""What became of a script of the user's on one rank, and what the probe found in it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptOutcome:
    """`ranks/rank-0003.script.json`: how the script ended, and how many steps it took.

    A step is an update by the script's optimizers, however many forward and backward passes led to it. The timed steps
    are all but the first, which warms up.
    """

    SCHEMA = "paceline.script/1"

    script: str
    """Path of the file, or name of the module, as given."""
    arguments: tuple[str, ...]
    rank: int
    size: int
    """Ranks of its process group; where it made none, as the launcher said."""
    host: str
    pid: int
    exit_code: int
    """As a shell sees it: 0 to 255; 130 where it was interrupted."""
    error: str | None
    """Kind and message of what ended it, or what sys.exit was given; None if it ended well."""
    traceback: str | None
    """Of the script alone, without the probe's own frames; None if nothing was raised."""
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
    """cpu or cuda: where the parameters are that its optimizers train; cpu where there are none."""
    backend: str
    """gloo, nccl, ...: what the script's process group talks through; none where it made no group."""
    found: tuple[str, ...] = ()
    """What the probe recognised: DDP, DataLoader, 2 optimizers, ..."""
    notes: tuple[str, ...] = ()
    """What was not measured, and why: a sentence each."""
