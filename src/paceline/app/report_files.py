"""`paceline.reporting`: the tables and the report of a study from its folder, and files for a paper.

report.md   report.tex, report-body.tex   tables/NAME.csv   figures/NAME.svg and its caption, figures/NAME.txt
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from paceline.app.results_view import Results, open_results
from paceline.errors import FolderError, RequestError

if TYPE_CHECKING:
    from paceline.reporting.paper.content import Paper
    from paceline.storage.folder import StudyFolder

FORMATS = ("html", "md", "tex", "csv")
FIGURES = ("svg", "pdf", "png")
_INCLUDED = {"md": ("svg", "png"), "tex": ("pdf", "png")}
"""Figures that a format can show, the better first."""


def report(
    folder: str | Path,
    *,
    target: float | None = None,
    margin: float | None = None,
    format: str | Sequence[str] = "html",
    figures: str | Sequence[str] = (),
    width_mm: float = 85.0,
) -> Results:
    """Rebuild results.csv, results.parquet and report.html of a study folder, and write files for a paper.

    `target` is the validation accuracy that times are asked for, and accuracies that differ by less than `margin` may
    be called equal; both are fractions. `format` is html, md, tex or csv, or several; `figures` is svg, pdf or png, or
    several: the scaling plots, `width_mm` millimetres wide. A study that still runs is reported as far as it is.
    """
    formats, kinds = _names("--format", format, FORMATS), _names("--figures", figures, FIGURES)
    _check_width(width_mm)
    _check_accuracies(folder, target, margin)
    found = open_results(folder, target=target, margin=margin)
    files = _write(found, formats, kinds, width_mm)
    notes = found.notes
    if kinds and not any(path.parent.name == "figures" for path in files):
        notes = (*notes, "No figure was drawn: nothing was measured at two numbers of ranks.")
    return replace(found, files=tuple(files), notes=notes)


def _check_accuracies(folder: str | Path, target: float | None, margin: float | None) -> None:
    if target is not None and not 0 < target < 1:
        raise RequestError(
            f"A target of {target:g} cannot be reached, or asks for nothing.",
            right="It is an accuracy as a fraction, above 0 and below 1.",
            next=f"Say, for example: paceline report {folder} --target 0.98",
        )
    if margin is not None and not 0 < margin < 1:
        raise RequestError(
            f"A margin of {margin:g} calls nothing equal, or everything.",
            right="It is a difference of accuracies as a fraction, above 0 and below 1: 0.005 is half a point.",
            next=f"Say, for example: paceline report {folder} --margin 0.005",
        )


def _names(option: str, asked: str | Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    """The names of a list such as `md,tex`, each once; RequestError for any that is not known."""
    from paceline.catalog import nearest

    parts = asked.split(",") if isinstance(asked, str) else asked
    names = tuple(dict.fromkeys(part.strip() for part in parts))
    for name in names:
        if name not in known:
            near = nearest(name, list(known))
            hint = f" Did you mean {near!r}?" if near else ""
            raise RequestError(
                f"{option} cannot be {name!r}.{hint}",
                right=f"It is one of {', '.join(known)}, or several of them separated by commas.",
                next=f"For example: paceline report runs/digits {option} {','.join(known[1:])}",
            )
    return names


def _check_width(width_mm: float) -> None:
    """Raise RequestError for a width that no page or no text would have."""
    if not 60 <= width_mm <= 400:
        raise RequestError(
            f"A figure {width_mm:g} mm wide cannot be read, or fits on no page.",
            right="From 60 to 400 mm: a column has about 85, a page of text about 175.",
            next="Say, for example: --width 175",
        )


def _write(found: Results, formats: Sequence[str], figures: Sequence[str], width_mm: float) -> list[Path]:
    """Write what was asked for into the study's folder; comes back with the files, in the order of writing."""
    from paceline.analyze.points.step_time import step_times
    from paceline.reporting.paper.content import paper
    from paceline.storage.codec import write_atomically
    from paceline.storage.folder import StudyFolder

    made = paper(found.results, found.model, step_times(found.points))
    place = StudyFolder(found.folder)
    files = _figure_files(place, made, figures, width_mm)
    for format in formats:
        files |= _text_files(place, format, made, figures)
    for path, content in files.items():
        if path.parent.exists() and not path.parent.is_dir():
            raise FolderError(
                f"{path.parent} is a file.",
                right="It is where the files of a paper go.",
                next=f"Move it away, then again: {shlex.join(['paceline', 'report', str(found.folder)])}",
            )
        path.parent.mkdir(exist_ok=True)
        write_atomically(path, content)
    return list(files)


def _figure_files(place: StudyFolder, made: Paper, kinds: Sequence[str], width_mm: float) -> dict[Path, bytes]:
    from paceline.reporting.paper.drawing import drawn

    files: dict[Path, bytes] = {}
    for plot in made.plots if kinds else ():
        files |= {place.figures / f"{plot.name}.{kind}": drawn(plot, kind, width_mm) for kind in kinds}
        files[place.figures / f"{plot.name}.txt"] = f"{plot.caption}\n".encode()
    return files


def _text_files(place: StudyFolder, format: str, made: Paper, figures: Sequence[str]) -> dict[Path, bytes]:
    from paceline.reporting.paper import csv_tables, markdown, tex

    kind = next((kind for kind in _INCLUDED.get(format, ()) if kind in figures), None)
    names = {plot.name: f"{plot.name}.{kind}" for plot in made.plots} if kind else {}
    if format == "md":
        places = {name: f"{place.figures.name}/{file}" for name, file in names.items()}
        return {place.report_md: markdown.markdown(made, places).encode()}
    if format == "tex":
        return {place.report_tex: tex.document().encode(), place.report_body: tex.body(made, names).encode()}
    if format == "csv":
        tables = {"scaling": made.table, **dict(made.others)}
        return {place.tables / f"{name}.csv": csv_tables.table_csv(table) for name, table in tables.items()}
    return {}  # the page is rebuilt whenever results are read
