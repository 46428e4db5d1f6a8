"""`paceline export DIR --format NAME`: a run's trace, or a study's runs, in a format that other programs read."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

from cyclopts import Parameter

from paceline.cli import completers
from paceline.cli.chosen_run import Folder, PointName, RunNumber, read_chosen
from paceline.cli.console import Console
from paceline.cli.options import Json
from paceline.errors import FolderError, RequestError
from paceline.units import bytes_text, counted

if TYPE_CHECKING:
    from paceline.records.anatomy import RunTrace

Format = Annotated[
    str,
    Parameter(
        name="--format",
        metavar="NAME",
        completer=completers.choices("chrome", "parquet", "csv", "chakra", "tensorboard", "mlflow"),
        help="chrome, parquet, csv, chakra, tensorboard or mlflow.",
    ),
]
Target = Annotated[
    Path | None,
    Parameter(
        name="--out",
        metavar="PATH",
        help="File to write, or folder to write into; a name that ends in .gz is compressed. Here where not given.",
    ),
]
Force = Annotated[bool, Parameter(negative="", show_default=False, help="Replace files that are there already.")]
Writer = Callable[[BinaryIO], None]


@dataclass(frozen=True, slots=True)
class _Format:
    """What a format's file is called, and how to open it."""

    name: str
    opening: str


FORMATS = {
    "chrome": _Format("trace.json.gz", "Open it with ui.perfetto.dev or chrome://tracing: nothing leaves the browser."),
    "parquet": _Format("spans.parquet", "Open it with: pyarrow.parquet.read_table(FILE), pandas, polars or DuckDB."),
    "csv": _Format("spans.csv", "Open it with any program that reads tables."),
    "chakra": _Format("chakra", "Give its files to a simulator that reads Chakra traces, such as ASTRA-sim."),
}


def export(
    folder: Folder,
    /,
    *,
    format: Format,
    out: Target = None,
    point: PointName = None,
    run: RunNumber = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Write the trace of one run, or the learning curves of all runs, in a format that other programs read.

    chrome is Trace Event JSON for Perfetto; parquet and csv are one table of every rank's spans; chakra is one
    MLCommons execution trace for each rank. All are on one time line. Of a study it is the median run of the point
    with the most ranks. tensorboard and mlflow take every finished run, with its settings and its curves. What is
    there already is kept, unless --force is given.

    For example:

        paceline export runs/digits --format chrome --out digits.json.gz
        paceline export runs/digits --format tensorboard --out logs
        paceline export runs/digits --format mlflow --force
    """
    from paceline.cli.tracking import TRACKERS, export_runs
    from paceline.records.codec import whole_file

    console = Console.standard()
    if format in TRACKERS:
        export_runs(folder, format, out, point, run, console, force=force, as_json=as_json)
        return
    if format not in FORMATS:
        raise _unknown(format)
    target = _target(format, out)
    read = read_chosen(folder, point, run, console.say)
    # As the readers of Chakra traces expect them: trace.0.et, trace.1.et, ...
    files = [target / f"trace.{each.rank}.et" for each in read.traces] if format == "chakra" else [target]
    if not force:
        _refuse_existing(files)
    for path, write in zip(files, _writers(format, read), strict=True):
        with whole_file(path) as file:
            _write(write, file, compressed=format in ("chrome", "csv") and path.suffix == ".gz")
    spans, size = sum(map(len, read.traces)), sum(path.stat().st_size for path in files)
    if as_json:
        names = [str(path) for path in files]
        console.json({"folder": read.name, "format": format, "files": names, "spans": spans, "problems": read.problems})
        return
    for problem in read.problems:
        console.status("WARN", problem)
    what = f"{counted(spans, 'span')} of {counted(len(read.traces), 'rank')}, {bytes_text(size)}"
    console.result(f"Wrote {target} ({what}).\n{FORMATS[format].opening}")


def _target(format: str, out: Path | None) -> Path:
    """The file to write, or the folder of a Chakra trace."""
    target = (out or Path(FORMATS[format].name)).expanduser()
    if format != "chakra":
        return target / FORMATS[format].name if target.is_dir() else target
    if target.exists() and not target.is_dir():
        raise FolderError(
            f"{target} is a file.",
            right="A Chakra trace is a folder of files, one for each rank.",
            next="Choose a folder with --out DIR.",
        )
    return target


def _writers(format: str, run: RunTrace) -> list[Writer]:
    """What writes each of the files."""
    from paceline.analyze.views.graph import graphs
    from paceline.analyze.views.tracks import tracks
    from paceline.report.export.chakra import write_chakra
    from paceline.report.export.chrome import write_chrome
    from paceline.report.export.tables import write_csv, write_parquet

    if format == "chakra":
        return [partial(write_chakra, run, graph) for graph in graphs(run)]
    if format == "chrome":
        return [partial(write_chrome, run, tracks(run))]
    return [partial(write_parquet if format == "parquet" else write_csv, tracks(run))]


def _write(write: Writer, file: BinaryIO, *, compressed: bool) -> None:
    if not compressed:
        write(file)
        return
    # Without a time in it the same trace is the same file.
    with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0, compresslevel=6) as packed:
        write(packed)  # pyright: ignore[reportArgumentType]


def _refuse_existing(files: list[Path]) -> None:
    there = [path for path in files if path.exists() or path.is_symlink()]
    if there:
        more = f" and {counted(len(there) - 1, 'other')}" if len(there) > 1 else ""
        raise FolderError(
            f"{there[0]}{more} is there already.",
            right="An export replaces nothing unless it is told to.",
            next="Choose another place with --out PATH, or replace it with --force.",
        )


def _unknown(format: str) -> RequestError:
    from paceline.catalog import nearest
    from paceline.cli.tracking import TRACKERS

    formats = [*FORMATS, *TRACKERS]
    near = nearest(format, formats)
    hint = f" Did you mean {near!r}?" if near else ""
    return RequestError(
        f"There is no format called {format!r}.{hint}",
        right=f"Formats: {', '.join(formats)}.",
        next="See: paceline export --help",
    )
