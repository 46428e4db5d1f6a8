"""`paceline.export`: the trace of a run, or the runs of a study, for other programs."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from paceline.app.run_choice import read_chosen
from paceline.app.shown import NOTEBOOK_WIDTH, ShownText
from paceline.app.tracker_export import TRACKERS, TrackedExport, export_runs
from paceline.errors import FolderError, RequestError
from paceline.units import bytes_text, counted

if TYPE_CHECKING:
    from paceline.records.trace_summary import RunTrace

Writer = Callable[[BinaryIO], None]


# format -> name of its file, and how to open it
FORMATS = {
    "chrome": (
        "trace.json.gz",
        "Open it with ui.perfetto.dev or chrome://tracing; the file stays on this machine.",
    ),
    "parquet": ("spans.parquet", "Open it with: pyarrow.parquet.read_table(FILE), pandas, polars or DuckDB."),
    "csv": ("spans.csv", "Open it with any program that reads tables."),
    "chakra": ("chakra", "Use its files with a simulator that reads Chakra traces, such as ASTRA-sim."),
}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class TraceExport(ShownText):
    """The files of one run's trace."""

    folder: str
    """The run folder."""
    format: str
    target: Path
    files: tuple[Path, ...]
    spans: int
    ranks: int
    problems: tuple[str, ...]
    """Unreadable parts of the trace, as sentences."""
    chosen: str
    """The selected run and the reason; empty if it was named."""

    @property
    def headline(self) -> str:
        return f"{self.format}, {self.target}"

    def text(self, *, width: int = NOTEBOOK_WIDTH, color: bool = False) -> str:
        """The written file, and how to open it, as text."""
        size = sum(path.stat().st_size for path in self.files)
        what = f"{counted(self.spans, 'span')} of {counted(self.ranks, 'rank')}, {bytes_text(size)}"
        return f"Wrote {self.target} ({what}).\n{FORMATS[self.format][1]}"

    def to_dict(self) -> dict[str, Any]:
        """The object of `--json`."""
        names = [str(path) for path in self.files]
        return {
            "folder": self.folder,
            "format": self.format,
            "files": names,
            "spans": self.spans,
            "problems": self.problems,
        }


def export(
    folder: str | Path,
    format: str,
    *,
    out: str | Path | None = None,
    point: str | None = None,
    run: int | None = None,
    force: bool = False,
) -> TraceExport | TrackedExport:
    """Write the trace of one run, or every finished run, for other programs.

    `format` is chrome, parquet, csv or chakra for a trace, tensorboard or mlflow for runs. `out` is the file or folder
    to write. `point` and `run` select a run of a study. Existing files are replaced only with `force`.
    """
    from paceline.storage.codec import whole_file

    target = None if out is None else Path(out).expanduser()
    if format in TRACKERS:
        return export_runs(Path(folder).expanduser(), format, target, point, run, force=force)
    if format not in FORMATS:
        raise _unknown(format)
    target = _target(format, target)
    read, chosen = read_chosen(Path(folder), point, run)
    # File names that readers of Chakra traces expect: trace.0.et, trace.1.et, ...
    files = [target / f"trace.{each.rank}.et" for each in read.traces] if format == "chakra" else [target]
    if not force:
        _refuse_existing(files)
    for path, write in zip(files, _writers(format, read), strict=True):
        with whole_file(path) as file:
            _write(write, file, compressed=format in ("chrome", "csv") and path.suffix == ".gz")
    return TraceExport(
        folder=read.name,
        format=format,
        target=target,
        files=tuple(files),
        spans=sum(map(len, read.traces)),
        ranks=len(read.traces),
        problems=tuple(read.problems),
        chosen=chosen,
    )


def _target(format: str, out: Path | None) -> Path:
    """The file to write, or the folder of a Chakra trace."""
    name, _ = FORMATS[format]
    target = out or Path(name)
    if format != "chakra":
        return target / name if target.is_dir() else target
    if target.exists() and not target.is_dir():
        raise FolderError(
            f"{target} is a file.",
            right="A Chakra trace is a folder with a file for each rank.",
            next="Use a folder as output, with --out DIR.",
        )
    return target


def _writers(format: str, run: RunTrace) -> list[Writer]:
    """A writer for each file."""
    from paceline.analyze.views.graph import graphs
    from paceline.analyze.views.tracks import tracks
    from paceline.reporting.export.chakra import write_chakra
    from paceline.reporting.export.chrome import write_chrome
    from paceline.reporting.export.table_export import write_csv, write_parquet

    if format == "chakra":
        return [partial(write_chakra, run, graph) for graph in graphs(run)]
    if format == "chrome":
        return [partial(write_chrome, run, tracks(run))]
    return [partial(write_parquet if format == "parquet" else write_csv, tracks(run))]


def _write(write: Writer, file: BinaryIO, *, compressed: bool) -> None:
    if not compressed:
        write(file)
        return
    # Without a time stamp, equal traces give equal files.
    with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0, compresslevel=6) as packed:
        write(packed)  # pyright: ignore[reportArgumentType]


def _refuse_existing(files: list[Path]) -> None:
    there = [path for path in files if path.exists() or path.is_symlink()]
    if there:
        more = f" and {counted(len(there) - 1, 'other')}" if len(there) > 1 else ""
        raise FolderError(
            f"{there[0]}{more} already exists.",
            right="An export does not replace files unless it is forced.",
            next="Use another path (--out PATH), or replace it (--force; in Python: force=True).",
        )


def _unknown(format: str) -> RequestError:
    from paceline.catalog import nearest

    formats = [*FORMATS, *TRACKERS]
    near = nearest(format, formats)
    hint = f" Did you mean {near!r}?" if near else ""
    return RequestError(
        f"There is no format called {format!r}.{hint}",
        right=f"Formats: {', '.join(formats)}.",
        next="See: paceline export --help",
    )
