"""Observer: what all hooks share. Whether to look at all, spans that are not opened twice, what was found.

    if observer.sees("backward"):
        with observer.span("backward"):
            ...

Only the main thread is seen, because only its spans nest; and nothing is seen in a forked child, which shares the
recorder's memory with this process but not its file.
"""

from __future__ import annotations

import functools
import os
import threading
import weakref
from collections.abc import Callable
from types import TracebackType
from typing import Any

from torch.compiler import is_compiling

from paceline.errors import StorageError
from paceline.probe.recorder import Recorder
from paceline.units import counted

# A kind is not opened inside one of these: an inner module's forward is part of the outer one's, and a forward within
# backward is activation checkpointing, which recomputes.
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
    """The main thread of one rank, as the hooks see it."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.found: dict[str, None] = {}
        self.notes: dict[str, None] = {}
        self._main = threading.get_ident()
        self._open: list[str] = []
        self._silent = False
        # Cannot be taken back: a weak reference, so that it keeps nothing alive.
        own: weakref.ref[Observer] = weakref.ref(self)
        os.register_at_fork(after_in_child=lambda: _forked(own))

    @property
    def silent(self) -> bool:
        return self._silent

    def sees(self, kind: str) -> bool:
        """Whether a span of this kind would begin now."""
        if self._silent or threading.get_ident() != self._main:
            return False
        return not self._open or not any(each in self._open for each in _WITHIN[kind])

    def within(self, kind: str) -> bool:
        """Whether a span of this kind is open."""
        return kind in self._open

    def span(self, kind: str, operation: str | None = None) -> ObservedSpan:
        """A context manager that records one span; only where `sees` says so."""
        return ObservedSpan(self, kind, operation)

    def recognise(self, what: str) -> None:
        """Remember something that the script uses, in words."""
        self.found[what] = None

    def note(self, sentence: str) -> None:
        """Remember what its reader has to know."""
        self.notes[sentence] = None

    def end_step(self, steps: int) -> None:
        """Count a step; a trace that cannot be written any more ends, the script does not."""
        try:
            self.recorder.end_step(steps)
        except StorageError as error:
            self.note(f"The trace breaks off after {counted(steps, 'step')}: {error.what}")
            self.silence()

    def silence(self) -> None:
        """See nothing from now on."""
        self._silent = True


class ObservedSpan:
    """One open span of the main thread; made by `Observer.span`."""

    __slots__ = ("_depth", "_kind", "_observer", "_span")

    def __init__(self, observer: Observer, kind: str, operation: str | None) -> None:
        self._observer = observer
        self._kind = kind
        self._span = observer.recorder.span(kind, operation)

    def __enter__(self) -> None:
        self._depth = len(self._observer._open)
        self._observer._open.append(self._kind)
        self._span.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Together with what was left open inside by an error that the script has caught.
        del self._observer._open[self._depth :]
        if not self._observer.silent:
            self._span.__exit__(kind, error, trace)


def with_span(
    observer: Observer, kind: str, original: Callable[..., Any], operation: str | None = None
) -> Callable[..., Any]:
    """The same function, with a span of `kind` around each call that is not inside another."""

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        # The first question, because a compiler that traces this answers it once and for all: nothing of it is left.
        if is_compiling() or not observer.sees(kind):
            return original(*args, **kwargs)
        with observer.span(kind, operation):
            return original(*args, **kwargs)

    return call


def _forked(own: weakref.ref[Observer]) -> None:
    """In a child that shares this process's memory: a worker of a DataLoader, for instance."""
    observer = own()
    if observer is None:
        return
    observer.silence()
    recorder: Any = observer.recorder
    recorder.message = lambda *args, **kwargs: 0
    recorder.completed = lambda number: None
