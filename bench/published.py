"""The published studies at their small size, run and kept: python -m bench.published [NAME ...] [--write]

Each is run by its own command into runs/NAME, or goes on there; a finished one is only read. With --write, what came of
it is docs/results/NAME.md: the published figures beside ours, and the open questions. Nothing else may run meanwhile.
"""

from __future__ import annotations

import argparse
import datetime
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from paceline import api
from paceline.report.paper.markdown import escaped, table_text
from paceline.report.published import ShownAnswer
from paceline.studies.collect import collect
from paceline.studies.load import load_study, shipped_studies
from paceline.units import duration_text

ROOT = Path(__file__).parents[1]


def published() -> tuple[str, ...]:
    """The shipped studies that name a published one."""
    return tuple(study.name for study in shipped_studies() if load_study(study.name).study.published)


def run(name: str, overrides: list[str]) -> Path:
    """The folder of a study that is run to its end."""
    folder = Path("runs") / name
    words = [word for override in overrides for word in ("--set", override)]
    subprocess.run(
        [sys.executable, "-m", "paceline", "study", name, "--out", str(folder), *words], cwd=ROOT, check=True
    )
    return ROOT / folder


def page(name: str, folder: Path) -> str:
    """What came of a study, as Markdown."""
    return "\n\n".join(_parts(name, folder)) + "\n"


def _parts(name: str, folder: Path) -> Iterator[str]:
    found = api.open_results(folder)
    report, shown = found.model, found.model.published
    runs = [run.result for run in collect(folder).runs]
    of = found.results.study.published
    yield f"# Results of {name}"
    yield (
        f"Made by `paceline study {name}` on {datetime.date.today().isoformat()}, in "
        f"{duration_text(sum(run.wall_s for run in runs))}. Written by `python -m bench.published`; "
        f"what was published, and what it left open: [{of}](../published/{of}.md)."
    )
    yield f"*{escaped(report.question)}* **{escaped(report.verdict)}**"
    if report.remarks:
        yield escaped(" ".join(report.remarks))
    for table in shown.tables:
        yield f"## {escaped(table.caption)}"
        yield table_text(table)
    if shown.disagreements:
        yield "## What disagrees in print"
        yield "\n".join(f"- {escaped(text)}" for text in shown.disagreements)
    yield "## Open questions"
    yield "\n\n".join(map(_answer, shown.answers))
    for table in (report.figures, report.effects, report.extras, report.phases, report.accuracies, report.learning):
        if table.rows:
            yield f"## {escaped(table.caption)}"
            yield table_text(table)
    if report.findings:
        yield "## Findings"
        yield "\n".join(f"- **{each.severity}:** {escaped(each.summary)}" for each in report.findings)
    yield "## Machine and protocol"
    facts = (*shown.about, *report.machine, *report.protocol)
    yield "\n".join(f"- **{escaped(fact.label)}:** {escaped(fact.text)}" for fact in facts)


def _answer(answer: ShownAnswer) -> str:
    return f"**{answer.name}.** {escaped(answer.question)} {escaped(answer.verdict)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="all of them unless told")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="for every study that is named")
    parser.add_argument("--write", action="store_true", help="write docs/results/NAME.md")
    given = parser.parse_args()
    for name in given.names or published():
        text = page(name, run(name, given.set))
        if given.write:
            (ROOT / "docs" / "results" / f"{name}.md").write_text(text, encoding="utf-8")
        else:
            print(text)


if __name__ == "__main__":
    main()
