"""Runs a script as `__main__`, as `python train.py` and `python -m package.module` do, in the current process."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import io
import os
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, ModuleType, TracebackType
from typing import Any

from paceline.errors import RequestError

INTERRUPTED = 130
_PROBE = str(Path(__file__).parent) + os.sep


@dataclass(frozen=True, slots=True)
class ScriptExit:
    """How a script ended."""

    exit_code: int
    """As in a shell."""
    error: str | None = None
    traceback: str | None = None


def prepared_script(script: Path | str, arguments: Sequence[str]) -> tuple[CodeType, ModuleType]:
    """The code of a file, or of a module by name, and an empty `__main__` for it; sets sys.argv and sys.path."""
    return _file(script, arguments) if isinstance(script, Path) else _module(script, arguments)


def run_as_main(code: CodeType, main: ModuleType) -> ScriptExit:
    """Run code until it ends, in any way. `__main__` is not restored: threads and exit handlers may need it."""
    sys.modules["__main__"] = main
    try:
        exec(code, vars(main))
    except SystemExit as error:
        return _exit(error.code)
    except KeyboardInterrupt as error:
        return ScriptExit(INTERRUPTED, "KeyboardInterrupt", _printed_traceback(error))
    except BaseException as error:  # noqa: BLE001 - any exception of a script ends the script, not the probe
        return ScriptExit(1, f"{type(error).__name__}: {error}", _printed_traceback(error))
    return ScriptExit(0)


def _file(script: Path, arguments: Sequence[str]) -> tuple[CodeType, ModuleType]:
    path = script.absolute()
    try:
        with io.open_code(str(path)) as file:
            source = file.read()
    except OSError as error:
        raise RequestError(
            f"The script {script} cannot be read: {error.strerror}.",
            right="The probe runs a Python file, or with -m a module.",
            next="python -m paceline.probe train.py --its --arguments",
        ) from error
    main = _empty_main()
    main.__file__ = str(path)
    main.__loader__ = importlib.machinery.SourceFileLoader("__main__", str(path))
    sys.argv = [str(script), *arguments]
    if not sys.flags.safe_path:  # the first entry comes from how this process was started
        sys.path[0] = str(path.parent)
    return _compiled(source, path), main


def _module(name: str, arguments: Sequence[str]) -> tuple[CodeType, ModuleType]:
    spec = _spec(name)
    if spec is not None and spec.submodule_search_locations is not None:
        name = f"{name}.__main__"
        spec = _spec(name)
    get_code: Any = getattr(spec and spec.loader, "get_code", None)
    code = get_code(name) if get_code else None
    if spec is None or code is None:
        raise RequestError(
            f"There is no module {name!r} that can be run.",
            right="-m takes a module that `python -m` finds from this folder.",
            next=f"python -m {name}",
        )
    main = _empty_main()
    main.__file__, main.__spec__, main.__loader__, main.__package__ = spec.origin, spec, spec.loader, spec.parent
    sys.argv = [spec.origin or name, *arguments]
    return code, main


def _spec(name: str) -> importlib.machinery.ModuleSpec | None:
    try:
        return importlib.util.find_spec(name)
    except ModuleNotFoundError:
        return None


def _empty_main() -> ModuleType:
    main = ModuleType("__main__")
    vars(main)["__builtins__"] = __builtins__
    # Without a spec a spawned child runs the file under another name, as with `python train.py`.
    main.__spec__ = None
    return main


def _compiled(source: bytes, path: Path) -> CodeType:
    try:
        return compile(source, str(path), "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        raise RequestError(
            f"{path} is not valid Python: {error}.",
            right="The probe runs a Python file, or with -m a module.",
            next=f"python {path}",
        ) from error


def _exit(code: object) -> ScriptExit:
    """The exit for an argument of sys.exit, as in the interpreter."""
    if code is None:
        return ScriptExit(0)
    if isinstance(code, int):
        return ScriptExit(code & 0xFF)
    sys.stderr.write(f"{code}\n")
    return ScriptExit(1, str(code))


def _printed_traceback(error: BaseException) -> str:
    """Print the exception of a script as the interpreter would, and return its traceback."""
    _strip(error)
    sys.excepthook(type(error), error, error.__traceback__)
    return "".join(traceback.format_exception(error))


def _strip(error: BaseException) -> None:
    """Remove frames of the probe from the tracebacks of an error, its causes and contexts."""
    waiting, stripped = [error], set[int]()
    while waiting:
        each = waiting.pop()
        if id(each) not in stripped:
            stripped.add(id(each))
            each.__traceback__ = _without_probe(each.__traceback__)
            waiting += [origin for origin in (each.__cause__, each.__context__) if origin is not None]


def _without_probe(trace: TracebackType | None) -> TracebackType | None:
    entries = []
    while trace is not None:
        if not trace.tb_frame.f_code.co_filename.startswith(_PROBE):
            entries.append(trace)
        trace = trace.tb_next
    stripped = None
    for entry in reversed(entries):
        stripped = TracebackType(stripped, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return stripped
