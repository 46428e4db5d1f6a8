"""The page of a comparison: every side and every test on it, and no name of a folder or point that runs."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html import unescape

import pytest
import test_changes_text as samples

from paceline.records.changes import Changes, Compared, Comparison, Difference, SideFigures
from paceline.reporting.figures.compare_plots import compare_figures
from paceline.reporting.html.compare_page import render
from paceline.reporting.tables.side_tables import all_differences_table, sides_table
from samples import report_samples


def figures(letter: str, label: str, point: str, pace: float, **more: object) -> SideFigures:
    made = SideFigures(
        letter=letter,
        point=point,
        label=label,
        runs=5,
        epoch_s=samples.interval(pace, pace * 0.9, pace * 1.1),
        samples_per_s=samples.interval(1000 / pace, 900 / pace, 1100 / pace),
        test_accuracy=samples.interval(0.95, 0.94, 0.96),
        ledger_s={"forward": 0.006 * pace, "comm-wait": 0.004 * pace},
        unit="step",
        shared_cores=False,
    )
    return replace(made, **more)


def comparison(text: str = "", sides: int = 3) -> Comparison:
    """Three sides: B differs at 4 ranks, C has too few runs, D nothing in common; `text` stands in every name."""
    changed = replace(
        samples.SLOWER, label=f"4 ranks{text}", notes=(f"Note {text}.",), gap=f"Gap {text}." if text else None
    )
    alike = replace(samples.ALIKE, label=f"1 rank{text}", a="1-rank-ddp-1")
    few = replace(samples.UNTESTED, label=f"1 rank{text}", a="1-rank-ddp-1")
    names = [
        Compared(name=f"runs/{letter}{text}", what="study", runs=10, first_at=None, last_at=None) for letter in "abcd"
    ]
    difference = Difference(section="setting", name=f"run.strategy{text}", a=f"ddp{text}", b=f"flat{text}")
    against = (
        Changes(
            a=names[0],
            b=names[1],
            letter="B",
            differences=(difference,),
            changes=(alike, changed),
            only_a=(f"16 ranks{text}",),
        ),
        Changes(a=names[0], b=names[2], letter="C", differences=(), changes=(few,)),
        Changes(
            a=names[0],
            b=names[3],
            letter="D",
            differences=(),
            changes=(),
            notes=(f"They have no point in common{text}.",),
        ),
    )
    found = [
        figures("A", f"1 rank{text}", "1-rank-ddp-1", 2.0),
        figures("B", f"1 rank{text}", "1-rank-ddp-1", 2.0),
        figures("C", f"1 rank{text}", "1-rank-ddp-1", 2.1),
        figures("A", f"4 ranks{text}", "4-ranks-ddp-1", 0.5),
        figures("B", f"4 ranks{text}", "4-ranks-ddp-1", 0.6),
    ]
    return Comparison(
        against=against[:sides], figures=tuple(each for each in found if each.letter in "ABCD"[: sides + 1])
    )


def words(page: str) -> str:
    """What stands on a page, without its scripts and styles."""
    body = re.sub(r"<(script|style)[^>]*>.*?</\1>", " ", page, flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", body)).replace("\u00a0", " ").split())


def test_every_side_is_on_the_page_with_its_answer() -> None:
    text = words(render(comparison()))
    for part in (
        "b, c and d against a",
        "B is 18 % [15, 21] slower than A with 4 ranks; C has too few runs to tell; D could not be compared with it.",
        "A runs/a: a study of 10 finished runs",
        "D runs/d: a study of 10 finished runs",
        "run.strategy",
        "With 1 rank C takes",
        "Where it comes from with 4 ranks",
        "Only in A: 16 ranks.",
        "They have no point in common.",
        "Mann and Whitney",
    ):
        assert part in text, part


def test_two_sides_have_their_answer_in_the_sentence_of_the_terminal() -> None:
    text = words(render(comparison(sides=1)))
    assert "B is 18 % [15, 21] slower per step with 4 ranks: +12 points comm-wait" in text
    assert "b against a" in text


def test_the_table_has_a_column_for_each_side_and_dashes_where_nothing_was_compared() -> None:
    table = sides_table(comparison())
    assert table.columns == ("", "figure", "A", "B", "C", "D")
    rows = {(row[0].figure, row[1].figure): [cell.figure for cell in row[2:]] for row in table.rows}
    assert rows["4 ranks", "time per step (ms)"] == ["10.0", "11.8", "–", "–"]
    assert rows["4 ranks", "verdict"] == ["–", "slower", "–", "–"]
    assert rows["1 rank", "verdict"] == ["–", "undecided", "not tested", "–"]
    assert rows["1 rank", "epoch time (s)"] == ["2.00", "2.00", "2.10", "–"]
    assert "p is corrected for 2 tests" in table.footnotes[0] and "range of all pairs" in table.footnotes[0]


def test_a_side_that_does_not_differ_is_as_a_is() -> None:
    (row,) = all_differences_table(comparison()).rows
    assert [cell.figure for cell in row] == ["run.strategy", "ddp", "flat", "ddp", "ddp"]


def test_plots_have_a_mark_for_every_figure_and_its_interval() -> None:
    drawn = {figure.name: figure for figure in compare_figures(comparison())}
    assert list(drawn) == ["ratio", "ledger", "throughput", "epoch", "accuracy"]
    bars = {trace["name"]: trace for trace in drawn["throughput"].data}
    assert bars["B"]["y"] == [500, 1666.7] and bars["C"]["x"] == ["1 rank"]
    assert bars["B"]["error_y"]["array"][0] == pytest.approx(50)
    ratio = {trace["name"]: trace for trace in drawn["ratio"].data}
    assert ratio["B"]["marker"]["color"] == ["var(--surface)", "var(--vermillion)"], "hollow where not real"
    low, high = drawn["ratio"].layout["xaxis"]["range"]
    assert low < 0.9 and high > 1.21
    kinds = {trace["name"]: trace["x"] for trace in drawn["ledger"].data}
    assert kinds["forward"] == [12, 12, 12.6, 3, 3.6]
    patterns = [trace["marker"]["pattern"]["shape"] for trace in drawn["throughput"].data]
    assert len(set(patterns)) == len(patterns), "never colour alone"


def test_what_was_not_measured_has_no_plot() -> None:
    bare = comparison()
    bare = replace(
        bare,
        figures=tuple(
            replace(each, epoch_s=None, samples_per_s=None, test_accuracy=None, ledger_s={}) for each in bare.figures
        ),
    )
    assert [figure.name for figure in compare_figures(bare)] == ["ratio"]
    render(bare)
    nothing = replace(bare, figures=(), against=bare.against[2:])
    assert compare_figures(nothing) == [] and "no time that could be compared" in render(nothing)


def test_many_points_are_drawn_in_part_and_said_to_be() -> None:
    many = tuple(figures(letter, f"{n} ranks", str(n), 1.0) for n in range(40) for letter in "AB")
    drawn = {figure.name: figure for figure in compare_figures(replace(comparison(sides=1), figures=many))}
    assert len(drawn["epoch"].data[0]["x"]) == 16 and "16 of 40 points" in drawn["epoch"].caption


def test_points_of_one_label_are_kept_apart() -> None:
    twins = tuple(
        figures(letter, "2 ranks", point, 1.0)
        for point in ("2-ranks-aaaaaaaaaa", "2-ranks-bbbbbbbbbb")
        for letter in "AB"
    )
    drawn = {figure.name: figure for figure in compare_figures(replace(comparison(sides=1), figures=twins))}
    assert drawn["epoch"].data[0]["x"] == ["2 ranks (aaaaaaaaaa)", "2 ranks (bbbbbbbbbb)"]
    assert len(set(drawn["ledger"].data[0]["y"])) == 4


@pytest.mark.parametrize("text", report_samples.HOSTILE)
def test_no_name_can_end_an_element_or_a_script(text: str) -> None:
    page = render(comparison(text))
    plain = render(comparison())
    for mark in ("<script", "<img", "<svg", "<iframe", "<link", "<meta", "<a "):
        assert page.lower().count(mark) == plain.lower().count(mark), mark
    found = re.search(r'<script type="application/json" id="figures">(.*?)</script>', page, re.DOTALL)
    assert found and set(json.loads(found[1])) == {"ratio", "ledger", "throughput", "epoch", "accuracy"}
