"""Pages of published studies: what they quote is on the pages that they name, and every open question has its place."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from doc_pages import ROOT, table

sys.path.append(str(ROOT))  # the benchmarks are no part of the package

from bench.published import made

from paceline.records.run import RunResult

PUBLISHED, RESULTS = ROOT / "docs" / "published", ROOT / "docs" / "results"
TABLES = ROOT / "src" / "paceline" / "published" / "tables"
STUDIES = sorted(path.stem for path in TABLES.glob("*.toml"))
REPORTS = (
    ("cifar10-nodes",),
    ("mnist-batch-size",),
    ("fashion-sequential", "fashion-parameters", "flowers-sequential", "flowers-cloud"),
    ("fruits-gpus", "caltech256-gpus"),
    ("mnist-mpi",),
)
"""The published studies of each of the five reports, in the order of the page of questions."""
QUESTION = re.compile(r"^\*\*([\w-]+)\.\*\* ", re.MULTILINE)
OPEN = "<!-- open -->"

_NUMBER = r"[+−-]?\d[\d,]*(?:\.\d+)?"
_UNIT = r"(?: (?:%|s|ms|points))?"
_QUOTED = re.compile(rf"({_NUMBER}){_UNIT} (?:\[({_NUMBER}), ({_NUMBER})\]|± ({_NUMBER}))")


@dataclass(frozen=True, slots=True)
class Quoted:
    """A figure with what stands around it: the ends of an interval, or a standard deviation."""

    text: str
    numbers: tuple[str, ...]

    def is_in(self, others: set[tuple[float, ...]]) -> bool:
        """Whether one of the others is the same to the digits of this."""
        own = [_value(number) for number in self.numbers]
        room = [0.5001 * 10.0 ** -len(number.partition(".")[2]) for number in self.numbers]
        return any(
            len(other) == len(own) and all(abs(a - b) <= r for a, b, r in zip(own, other, room, strict=True))
            for other in others
        )


def quotes(text: str) -> Iterator[Quoted]:
    for found in _QUOTED.finditer(text.replace("\\", "")):
        yield Quoted(found[0], tuple(filter(None, found.groups())))


def _value(number: str) -> float:
    return float(number.replace("−", "-").replace(",", ""))


def measured(text: str) -> set[tuple[float, ...]]:
    """Every such figure of the results and benchmarks that a text links to; fractions as per cent, too."""
    names = set(re.findall(r"\.\./((?:results/|benchmarks-)[\w-]+\.md)", text))
    pages = [(PUBLISHED.parent / name).read_text(encoding="utf-8") for name in names]
    found = {tuple(map(_value, quote.numbers)) for page in pages for quote in quotes(page)}
    return found | {tuple(100 * value for value in each) for each in found}


def results_block(study: str) -> str:
    found = re.search(r"<!-- results -->(.+)<!-- /results -->", (PUBLISHED / f"{study}.md").read_text(), re.DOTALL)
    assert found
    return found[1]


def questions(study: str) -> list[dict[str, str | list[str]]]:
    return tomllib.loads((TABLES / f"{study}.toml").read_text(encoding="utf-8"))["questions"]


@pytest.mark.parametrize("study", STUDIES)
def test_figures_that_a_page_quotes_are_on_the_results_pages_that_it_names(study: str) -> None:
    block = results_block(study)
    known = measured(block)
    wrong = [quote.text for quote in quotes(block) if not quote.is_in(known)]
    assert known and not wrong


def test_a_figure_that_is_elsewhere_otherwise_is_found() -> None:
    known = {(17.0, 16.4, 17.4), (0.5764, 0.0089)}
    (right,), (rounded,), (other,) = (
        tuple(quotes(text)) for text in ("17.0 s [16.4, 17.4]", "17 [16, 17]", "16.5 [16.4, 17.4]")
    )
    assert right.is_in(known) and rounded.is_in(known) and not other.is_in(known)


@pytest.mark.parametrize("study", STUDIES)
def test_times_that_a_page_gives_are_those_of_the_results(study: str) -> None:
    block = " ".join(results_block(study).split())
    given = re.findall(r"`paceline study ([\w-]+)[^`]*`(?:, [^;.`]*?)? in (\d+) min(?: (\d+) s)?", block)
    for name, minutes, seconds in given:
        page = (RESULTS / f"{name}.md").read_text(encoding="utf-8")
        took = re.search(r", in (?:(\d+) min )?([\d.]+) s\b", page)
        assert took
        took_s = 60 * int(took[1] or 0) + float(took[2])
        told_s = 60 * int(minutes) + int(seconds or 0)
        assert abs(told_s - took_s) <= (0.5 if seconds else 30), name
    assert given or study == "fashion-sequential"


@pytest.mark.parametrize("study", STUDIES)
def test_pages_name_the_studies_that_answer(study: str) -> None:
    text = (PUBLISHED / f"{study}.md").read_text(encoding="utf-8")
    told = {row[0].strip("*"): re.findall(r"`([\w-]+)`", row[2]) for row in table(text) if row[0].startswith("**")}
    assert told == {question["name"]: question["studies"] for question in questions(study)}


def reports() -> list[str]:
    """The sections of the page of questions."""
    text = (PUBLISHED / "questions.md").read_text(encoding="utf-8")
    _, *sections = re.split(r"^## ", text, flags=re.MULTILINE)
    return sections


def test_every_question_of_every_report_is_on_the_page_once() -> None:
    assert sorted(study for report in REPORTS for study in report) == STUDIES
    for section, report in zip(reports(), REPORTS, strict=True):
        asked = {question["name"] for study in report for question in questions(study)}
        assert sorted(QUESTION.findall(section)) == sorted(asked)
        assert all(f"({study}.md)" in section for study in report)


@pytest.mark.parametrize("number", range(len(REPORTS)))
def test_every_question_has_its_study_its_figure_and_a_short_verdict(number: int) -> None:
    _, *parts = QUESTION.split(reports()[number])
    answers = {question["name"]: question["studies"] for study in REPORTS[number] for question in questions(study)}
    for name, text in zip(parts[::2], parts[1::2], strict=True):
        linked = re.findall(r"\[`([\w-]+)`\]\(\.\./results/", text)
        assert set(linked) <= set(answers[name]) and bool(linked) == bool(answers[name]), name
        known = measured(text)
        assert [quote.text for quote in quotes(text) if not quote.is_in(known)] == []
        if OPEN in text:
            continue
        (verdict,) = re.findall(r"(?<!\*)\*([^*]+)\*(?!\*)", text)
        assert len(re.findall(r"[.?](?= |\n|$)", " ".join(verdict.split()))) <= 2, name
        assert linked or verdict.startswith("Not answered yet: "), name


def run(launched_at: str, wall_s: float, queue_s: float | None = None) -> RunResult:
    return RunResult(
        point_id="p",
        run=1,
        seed=1,
        ranks=1,
        attempt=1,
        launched_at=launched_at,
        launched_at_ns=0,
        total_s=wall_s,
        wall_s=wall_s,
        epochs=(),
        test_loss=None,
        test_accuracy=None,
        parameters=1,
        load_s=0.0,
        steps=1,
        weights_sha256="w",
        oversubscribed=False,
        queue_s=queue_s,
    )


def test_the_time_of_a_page_is_from_the_first_launch_to_the_last_end() -> None:
    runs = [run("2030-01-01T10:00:00+00:00", 50), run("2030-01-01T10:01:30+00:00", 20)]
    assert made(runs) == made(runs[::-1]) == "on 2030-01-01, in 1 min 50 s"
    queued = [run("2030-01-01T23:59:00+00:00", 30), run("2030-01-02T00:00:00+00:00", 30, queue_s=60)]
    assert made(queued) == "from 2030-01-01 to 2030-01-02, in 2 min 30 s"
