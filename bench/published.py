"""The published studies at their small size, run and kept: python -m bench.published [NAME ...] [--write]

Each is run by its own command into runs/NAME, or goes on there; a finished one is only read. With --write, what came of
it is docs/results/NAME.md: the published figures beside ours, and the open questions. Nothing else may run meanwhile.
The time is that from the first launch to the last end, by what the runs noted, and the date theirs.
"""

from __future__ import annotations

import argparse
import datetime
import shlex
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import paceline
from paceline.published.section.published_section import ShownAnswer
from paceline.records.run import RunResult
from paceline.reporting.paper.markdown import escaped, table_text
from paceline.reporting.tables.point_tables import Table
from paceline.studies.folder.collect import collect
from paceline.studies.load.load import load_study, shipped_studies
from paceline.units import duration_text

ROOT = Path(__file__).parents[1]


def published() -> tuple[str, ...]:
    """The shipped studies that repeat a published one: those that have a small size."""
    loaded = (load_study(shipped.name).study for shipped in shipped_studies())
    return tuple(study.name for study in loaded if study.published and study.size)


def run(name: str, overrides: list[str]) -> Path:
    """The folder of a study that is run to its end."""
    folder = Path("runs") / name
    words = ["paceline", "study", name, "--out", str(folder), *_set(overrides)]
    subprocess.run([sys.executable, "-m", *words], cwd=ROOT, check=True)
    return ROOT / folder


def page(name: str, folder: Path, overrides: list[str]) -> str:
    """What came of a study, as Markdown."""
    command = shlex.join(["paceline", "study", name, *_set(overrides)])
    return "\n\n".join(_parts(name, folder, command)) + "\n"


def _set(overrides: list[str]) -> list[str]:
    return [word for override in overrides for word in ("--set", override)]


def _parts(name: str, folder: Path, command: str) -> Iterator[str]:
    found = paceline.open_results(folder)
    report, shown = found.model, found.model.published
    runs = [run.result for run in collect(folder).runs]
    of = found.results.study.published
    yield f"# Results of {name}"
    yield (
        f"Made by `{command}` {made(runs)}. Written by `python -m bench.published`; "
        f"what was published, and what it left open: [{of}](../published/{of}.md)."
    )
    yield f"*{escaped(report.question)}* **{escaped(report.verdict)}**"
    if report.remarks:
        yield escaped(" ".join(report.remarks))
    yield from _tables(shown.tables)
    if shown.disagreements:
        yield "## What disagrees in print"
        yield "\n".join(f"- {escaped(text)}" for text in shown.disagreements)
    yield "## Open questions"
    yield "\n\n".join(map(_answer, shown.answers))
    others = (report.figures, report.effects, report.extras, report.phases, report.accuracies, report.learning)
    yield from _tables((*others, report.resources))
    if report.findings:
        yield "## Findings"
        yield "\n".join(f"- **{each.severity}:** {escaped(each.summary)}" for each in report.findings)
    yield "## Machine and protocol"
    facts = (*shown.about, *report.machine, *report.protocol)
    yield "\n".join(f"- **{escaped(fact.label)}:** {escaped(fact.text)}" for fact in facts)


def made(runs: Sequence[RunResult]) -> str:
    """When runs were made, and how long that took: from the first launch to the last end, all between them included."""
    starts = [datetime.datetime.fromisoformat(run.launched_at) for run in runs]
    ends = [
        start + datetime.timedelta(seconds=(run.queue_s or 0) + run.wall_s)
        for start, run in zip(starts, runs, strict=True)
    ]
    first, last = min(starts), max(ends)
    day, end = first.date().isoformat(), last.date().isoformat()
    days = f"on {day}" if day == end else f"from {day} to {end}"
    return f"{days}, in {duration_text((last - first).total_seconds())}"


def _tables(tables: Iterable[Table]) -> Iterator[str]:
    for table in tables:
        if table.rows:
            yield f"## {escaped(table.caption)}"
            yield table_text(table)


def _answer(answer: ShownAnswer) -> str:
    return f"**{answer.name}.** {escaped(answer.question)} {escaped(answer.verdict)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="all of them unless told")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="for every study that is named")
    parser.add_argument("--write", action="store_true", help="write docs/results/NAME.md")
    given = parser.parse_args()
    for name in given.names or published():
        text = page(name, run(name, given.set), given.set)
        if given.write:
            (ROOT / "docs" / "results" / f"{name}.md").write_text(text, encoding="utf-8")
        else:
            print(text)


if __name__ == "__main__":
    main()
