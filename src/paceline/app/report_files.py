"""`paceline.report`: the tables and the report of a study from its folder, and files for a paper.

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
"""Figure formats that a text format can include, preferred ones first."""


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

    `target` is the validation accuracy of the time to accuracy; accuracies that differ by less than `margin` are equal.
    Both are fractions. `format` is html, md, tex or csv, or several. `figures` is svg, pdf or png, or several, for the
    scaling plots, which are `width_mm` millimetres wide. For a running study, the finished runs are reported.
    """
    formats, kinds = _names("format", format, FORMATS), _names("figures", figures, FIGURES)
    _check_width(width_mm)
    _check_accuracies(folder, target, margin)
    found = open_results(folder, target=target, margin=margin)
    files = _write(found, formats, kinds, width_mm)
    notes = found.notes
    if kinds and not any(path.parent.name == "figures" for path in files):
        notes = (*notes, "No figure was drawn: scaling plots need results for at least two numbers of ranks.")
    return replace(found, files=tuple(files), notes=notes)


def _check_accuracies(folder: str | Path, target: float | None, margin: float | None) -> None:
    if target is not None and not 0 < target < 1:
        raise RequestError(
            f"A target of {target:g} is impossible.",
            right="The target is an accuracy as a fraction, above 0 and below 1.",
            next=f"For example: paceline report {folder} --target 0.98",
        )
    if margin is not None and not 0 < margin < 1:
        raise RequestError(
            f"A margin of {margin:g} is impossible.",
            right="The margin is a difference of accuracies, above 0 and below 1: 0.005 is half a percentage point.",
            next=f"For example: paceline report {folder} --margin 0.005",
        )


def _names(option: str, wanted: str | Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    """The names of a list such as `md,tex`, without repetitions; RequestError for an unknown name."""
    from paceline.catalog import nearest

    parts = wanted.split(",") if isinstance(wanted, str) else wanted
    names = tuple(dict.fromkeys(part.strip() for part in parts))
    for name in names:
        if name not in known:
            near = nearest(name, list(known))
            hint = f" Did you mean {near!r}?" if near else ""
            raise RequestError(
                f"Unknown {option}: {name!r}.{hint}",
                right=f"Use one or several of {', '.join(known)}.",
                next=f"For example: paceline report runs/digits --{option} {','.join(known[1:])}",
            )
    return names


def _check_width(width_mm: float) -> None:
    """Raise RequestError for a width that does not fit a page, or is too small for text."""
    if not 60 <= width_mm <= 400:
        raise RequestError(
            f"A figure cannot be {width_mm:g} mm wide.",
            right="From 60 to 400 mm: a column is about 85 mm wide, a page about 175 mm.",
            next="For example: --width 175, or width_mm=175 in Python.",
        )


def _write(found: Results, formats: Sequence[str], figures: Sequence[str], width_mm: float) -> list[Path]:
    """Write the files into the study folder; their paths, in order."""
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
                right="It must be a folder for the files of a paper.",
                next=f"Move it away, then run again: {shlex.join(['paceline', 'report', str(found.folder)])}",
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
    return {}  # report.html is rebuilt by open_results
