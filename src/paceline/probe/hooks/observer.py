"""Observer, shared by all hooks: whether to record, spans without inner duplicates, detected features and notes.

    if observer.sees("backward"):
        with observer.span("backward"):
            ...

Only the main thread is observed, because only its spans nest. A forked child is not observed: it has a copy of the
recorder, but not its file.
"""

from __future__ import annotations

import functools
import os
import threading
import weakref
from collections.abc import Callable
from typing import Any

from torch.compiler import is_compiling

from paceline.errors import StorageError
from paceline.probe.recorder import Recorder
from paceline.units import counted

# kind -> kinds inside which it is not recorded: the forward pass of an inner module is part of the outer one, and a
# forward pass within backward is recomputation by activation checkpointing.
_WITHIN = {
    "forward": ("forward", "evaluate", "backward"),
    "evaluate": ("forward", "evaluate", "backward"),
    "backward": ("backward",),
    "input-wait": ("input-wait",),
    "optimizer": ("optimizer",),
    "checkpoint": ("checkpoint",),
    "communicate": ("communicate",),
    "startup": ("startup",),
}


class Observer:
    """Observes the main thread of one rank."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.found: dict[str, None] = {}
        self.notes: dict[str, None] = {}
        self._main = threading.get_ident()
        self._open: list[str] = []
        self._silent = False
        # Fork handlers cannot be unregistered: a weak reference keeps nothing alive.
        own: weakref.ref[Observer] = weakref.ref(self)
        os.register_at_fork(after_in_child=lambda: _forked(own))

    @property
    def silent(self) -> bool:
        return self._silent

    def sees(self, kind: str) -> bool:
        """Whether a span of this kind would be recorded now."""
        if self._silent or threading.get_ident() != self._main:
            return False
        return not self._open or not any(each in self._open for each in _WITHIN[kind])

    def within(self, kind: str) -> bool:
        """Whether a span of this kind is open."""
        return kind in self._open

    def span(self, kind: str, operation: str | None = None) -> ObservedSpan:
        """A context manager that records one span; only if `sees` is true."""
        return ObservedSpan(self, kind, operation)

    def recognise(self, what: str) -> None:
        """Remember a feature that the script uses."""
        self.found[what] = None

    def note(self, sentence: str) -> None:
        """Remember a sentence for the reader of the trace."""
        self.notes[sentence] = None

    def end_step(self, steps: int) -> None:
        """Count a step; if the trace cannot be written any more, recording ends and the script continues."""
        try:
            self.recorder.end_step(steps)
        except StorageError as error:
            self.note(f"The trace ends after {counted(steps, 'step')}: {error.what}")
            self.silence()

    def silence(self) -> None:
        """Record nothing from now on."""
        self._silent = True


class ObservedSpan:
    """One open span of the main thread, from `Observer.span`."""

    __slots__ = ("_depth", "_kind", "_observer", "_span")

    def __init__(self, observer: Observer, kind: str, operation: str | None) -> None:
        self._observer = observer
        self._kind = kind
        self._span = observer.recorder.span(kind, operation)

    def __enter__(self) -> None:
        self._depth = len(self._observer._open)
        self._observer._open.append(self._kind)
        self._span.__enter__()

    def __exit__(self, *_: object) -> None:
        # Inner spans may still be open after an error that the script has caught.
        del self._observer._open[self._depth :]
        if not self._observer.silent:
            self._span.__exit__()


def with_span(
    observer: Observer, kind: str, original: Callable[..., Any], operation: str | None = None
) -> Callable[..., Any]:
    """A wrapper of `original` that records a span of `kind` for each call that is not inside another."""

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        # `is_compiling` first: a compiler evaluates it at trace time, and removes the rest from the graph.
        if is_compiling() or not observer.sees(kind):
            return original(*args, **kwargs)
        with observer.span(kind, operation):
            return original(*args, **kwargs)

    return call


def _forked(own: weakref.ref[Observer]) -> None:
    """Stop recording in a forked child, a worker of a DataLoader for instance."""
    observer = own()
    if observer is None:
        return
    observer.silence()
    recorder: Any = observer.recorder
    recorder.message = lambda *args, **kwargs: 0
    recorder.completed = lambda number: None
