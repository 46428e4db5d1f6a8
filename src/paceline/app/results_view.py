"""`paceline.open_results`: the results of a study folder, displayed in notebooks.

    folder ─ collect, analyze ─▶ StudyResults ─ report ─▶ results.csv, report.html

>>> results = paceline.open_results("runs/digits")      # doctest: +SKIP
>>> print(results.table())                              # doctest: +SKIP
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paceline.errors import RequestError

if TYPE_CHECKING:
    from paceline.records.results import PointResult, StudyResults
    from paceline.reporting.html.notebook import ShownPlot, ShownTable
    from paceline.reporting.model import ReportModel


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """The results of a study, which can be rebuilt from its folder."""

    results: StudyResults
    model: ReportModel = field(repr=False)
    """The sentences, tables and series of the report."""
    folder: Path
    notes: tuple[str, ...] = ()
    """Problems, as sentences."""
    stopped: str | None = None
    """Why the study stopped before its last run; None if it did not."""
    files: tuple[Path, ...] = ()
    """Files that `paceline.report` wrote in addition to the report and its tables."""

    @property
    def points(self) -> tuple[PointResult, ...]:
        """One row per point, in order of ranks."""
        return self.results.points

    @property
    def report(self) -> Path | None:
        """The path of the report; None if it was never written."""
        from paceline.storage.folder import StudyFolder

        path = StudyFolder(self.folder).report
        return path if path.is_file() else None

    @property
    def failures(self) -> dict[str, str]:
        """The reason of the failure of each failed point, by point id."""
        return {point.point_id: point.failure for point in self.points if point.failure}

    def table(self, name: str = "figures") -> ShownTable:
        """A table for text and notebooks: figures (one row per point), ledger, laws, learning, ..."""
        from paceline.reporting.html.notebook import shown_table

        return shown_table(self.model, name)

    def plot(self, name: str | None = None) -> ShownPlot:
        """A plot of the report: speedup, ledger, accuracy, loss, epoch, throughput, ...; the main plot if None.

        A notebook displays it; its `svg` is the drawing as text, its `save` writes it to a file.
        """
        from paceline.reporting.html.notebook import shown_plot

        return shown_plot(self.model, name)

    def to_pandas(self) -> Any:
        """The rows of results.csv as a pandas.DataFrame, one per point; needs pandas."""
        from paceline.reporting.export.rows import columns, rows

        try:
            import pandas  # pyright: ignore[reportMissingImports]
        except ImportError:
            raise RequestError(
                "A DataFrame needs pandas, which is not installed.",
                right=f"The same rows are in {self.folder / 'results.csv'}.",
                next="Install it: pip install pandas",
            ) from None
        return pandas.DataFrame(rows(self.results), columns=list(columns()))

    def to_dict(self) -> dict[str, Any]:
        """The object of `--json`."""
        from paceline.reporting.export.json_view import json_object

        view = json_object(self.results, str(self.report) if self.report else None, self.model.published.as_json)
        if self.stopped is not None:
            view["stopped"] = self.stopped
        if self.files:
            view["files"] = [str(path) for path in self.files]
        return view

    def __str__(self) -> str:
        return str(self.table())

    def __repr__(self) -> str:
        runs = sum(point.runs for point in self.points)
        return f"<Results of {self.results.study.name!r}: {runs} of {self.results.expected_runs} runs in {self.folder}>"

    def _repr_html_(self) -> str:
        """HTML for notebooks: verdict, figures and main plot, about ten kilobytes and without scripts."""
        from paceline.reporting.html.notebook import results_html

        notes = (*self.notes, *([self.stopped] if self.stopped else []))
        return results_html(self.model, report=self.report, notes=notes)


def open_results(folder: str | Path, *, target: float | None = None, margin: float | None = None) -> Results:
    """The results of a study folder; its tables and report are rebuilt.

    `target` is the validation accuracy of the time to accuracy, instead of that of the study. Accuracies that differ
    by less than `margin` are equal. Both are fractions.
    """
    from paceline.rebuild import rebuild

    notes: list[str] = []
    folder = Path(folder).expanduser()
    results, model = rebuild(folder, say=notes.append, target=target, margin=margin)
    if target is not None and not any(point.learning and point.learning.target for point in results.points):
        notes.append("No run has a validation accuracy to compare with the target: the study needs data.validation.")
    return Results(results=results, model=model, folder=folder, notes=tuple(notes))
