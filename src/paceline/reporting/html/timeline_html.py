"""The timeline of a run for the page: what assets/timeline.js draws, and what stands around it.

The columns of a Picture travel as differences from one part to the next, deflated: a fifth of their bytes, and less.
"""

from __future__ import annotations

import base64
import zlib
from dataclasses import dataclass, replace
from typing import Any

from paceline.records.run_picture import PICTURE_KINDS, MessageLabel, Picture
from paceline.reporting.figures.legend import KIND_STYLES, Key, kind_key
from paceline.units import bytes_text, count_text, duration_text, seconds

_COLUMNS = ("start", "kind", "step", "ref", "bundles", "issued", "gathered", "completed", "label", "steps_at", "steps")
_LABELS = {"message": "message, wait not known"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """A run as a picture that a reader can go into."""

    title: str
    caption: str
    keys: tuple[Key, ...]
    labels: tuple[str, ...]
    """What the messages of the picture are, by number."""
    picture: Picture


def timeline(title: str, picture: Picture) -> Timeline | None:
    """The timeline of a run; None where its picture is empty."""
    if not picture.lanes or not picture.window:
        return None
    present = set(picture.kind.tobytes())
    kinds = [kind for code, kind in enumerate(PICTURE_KINDS) if code in present and kind in KIND_STYLES]
    return Timeline(
        title=title,
        caption=_caption(picture),
        keys=tuple(replace(kind_key(kind), label=_LABELS.get(kind, kind)) for kind in kinds),
        labels=tuple(_label_text(label) for label in picture.labels),
        picture=picture,
    )


def timeline_object(timeline: Timeline) -> dict[str, Any]:
    """The timeline as a JSON object for the page's script."""
    picture = timeline.picture
    columns = [getattr(picture, name) for name in _COLUMNS]
    # Differences of unsigned numbers wrap around, here and in the sums that the script makes of them.
    changes = (part for column in columns for part in (column[:1].tobytes(), (column[1:] - column[:-1]).tobytes()))
    kinds = [(kind, *KIND_STYLES.get(kind, ("", ""))) for kind in PICTURE_KINDS]
    return {
        "packed": base64.b64encode(zlib.compress(b"".join(changes), 9)).decode(),
        "counts": {name: len(column) for name, column in zip(_COLUMNS, columns, strict=True)},
        "tick": picture.tick_ns,
        "window": picture.window,
        "loop": list(picture.loop),
        "in_full": [list(stretch) for stretch in picture.in_full],
        "clock_error": picture.clock_error_ns,
        "merged_below": picture.merged_below_ns,
        "lanes": [[lane.rank, lane.row, lane.first, lane.count] for lane in picture.lanes],
        "hosts": list(picture.hosts),
        "labels": list(timeline.labels),
        "kinds": [{"name": name, "color": color, "pattern": pattern} for name, color, pattern in kinds],
    }


def _caption(picture: Picture) -> str:
    drawn = len({lane.rank for lane in picture.lanes})
    parts = ["What each rank's main thread did, and below it the messages that it had under way."]
    if drawn < picture.ranks:
        parts.append(f"{count_text(drawn)} of {count_text(picture.ranks)} ranks.")
    if picture.merged_below_ns:
        below = duration_text(seconds(picture.merged_below_ns))
        parts.append(
            f"{count_text(picture.shown)} of {count_text(picture.parts)} parts are shown one by one; those shorter "
            f"than {below} are merged: there a lane shows the share of each kind, not their order. "
            f"{len(picture.in_full)} stretches are in full, marked below the overview."
        )
    if picture.clock_error_ns:
        error = duration_text(seconds(picture.clock_error_ns))
        parts.append(f"Instants of different ranks may be misplaced against each other by up to {error}.")
    return " ".join(parts)


def _label_text(label: MessageLabel) -> str:
    """`allreduce_, 2.8 MB of float32, group 0`."""
    carried = "" if label.payload_bytes is None else bytes_text(label.payload_bytes)
    payload = f"{carried} of {label.dtype}" if carried and label.dtype else carried
    peer = "" if label.peer is None else f"peer {label.peer}"
    group = f"group {label.group}" if label.group else ""
    return ", ".join(filter(None, (label.operation, payload, peer, group)))
