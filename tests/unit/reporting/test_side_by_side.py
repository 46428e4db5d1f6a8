"""Several series: the verdict about all of them, which is fastest, and what is not claimed."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from paceline.records.results import Interval, StudyResults
from paceline.reporting.export.json_view import json_object
from paceline.reporting.export.rows import columns, rows
from paceline.reporting.figures.report_figures import figures
from paceline.reporting.model import report_model
from paceline.reporting.wording.choice import MOST_DRAWN, drawn_points, main_comparison
from paceline.reporting.wording.next_commands import next_step
from paceline.reporting.wording.phrases import joined, labels_text, listed
from paceline.reporting.wording.side_by_side import comparison_sentence
from paceline.reporting.wording.verdict_words import remarks, verdict
from samples import report_samples as samples
from samples import series_samples


def sentence(results: StudyResults) -> str:
    comparison = main_comparison(results)
    assert comparison is not None
    return comparison_sentence(results, comparison)


def with_ratio(low: float, median: float, high: float, *, undecided: bool, n: int = 5) -> StudyResults:
    """Rivals of which the second has this ratio to the first, and the third is gone."""
    results = series_samples.rivals()
    (comparison,) = results.comparisons
    first, second, _ = comparison.points
    ratio = Interval(median=median, low=low, high=high, n=n, coverage=0.9375 if n >= 5 else None)
    changed = replace(
        comparison,
        points=(first, second),
        ratios={first: comparison.ratios[first], second: ratio},
        undecided=(second,) if undecided else (),
    )
    return replace(results, comparisons=(changed,))


def test_the_verdict_says_how_far_every_series_gets() -> None:
    assert verdict(series_samples.stale()) == (
        "20 of 25 runs are finished; so far, with 4 ranks parameter-server-async trains 2.90 times as fast as 1 rank "
        "(interval 2.87 to 2.96): 58 % of the ideal."
    )
    told = verdict(series_samples.strategies())
    assert told.startswith(
        "With 4 ranks ddp on 1 host trains 3.53 times as fast as 1 rank (interval 3.46 to 3.57): 88 %"
    )
    assert "; flat on 1 host 3.42 times, ddp on 2 hosts 3.24 times" in told and told.endswith(", and 1 more.")


def test_baselines_that_differ_are_owned_up_to() -> None:
    results = series_samples.batches()
    fair = replace(results, points=tuple(replace(point, oversubscribed=False) for point in results.points))
    assert verdict(fair).endswith("; batch global 128 1.89 times, each against its own baseline.")


def test_a_difference_is_claimed_only_where_the_repeats_show_it() -> None:
    assert sentence(with_ratio(0.9, 0.92, 0.94, undecided=False)) == (
        "With 2 ranks ddp is the fastest: flat reaches 0.920 times its throughput (interval 0.900 to 0.940)."
    )
    assert sentence(with_ratio(0.97, 0.99, 1.01, undecided=True)) == "With 2 ranks ddp and flat cannot be told apart."
    assert sentence(with_ratio(0.5, 0.6, 0.7, undecided=True, n=3)) == (
        "With 2 ranks ddp and flat cannot be told apart with 3 repeats."
    )


def test_some_are_told_apart_and_some_are_not() -> None:
    assert sentence(series_samples.rivals()) == (
        "With 2 ranks ddp and flat cannot be told apart; local-sgd reaches 0.851 times the throughput of ddp "
        "(interval 0.847 to 0.857)."
    )


def test_where_nothing_was_scaled_the_comparison_is_the_verdict() -> None:
    results = series_samples.rivals()
    assert verdict(results) == sentence(results)
    assert not any("told apart" in remark or "lost" in remark for remark in remarks(results))
    assert "speedup" not in figures(report_model(results)) and "ranking" in figures(report_model(results))


def test_points_that_say_little_are_not_called_fastest() -> None:
    results = series_samples.batches()
    by_ranks = {comparison.ranks: comparison_sentence(results, comparison) for comparison in results.comparisons}
    assert by_ranks[2] == "" and by_ranks[1].startswith("With 1 rank batch global 512 is the fastest")
    crowded = replace(results, points=tuple(replace(point, oversubscribed=True) for point in results.points))
    assert sentence(crowded).endswith("; but some of them did not have cores or hosts of their own.")
    assert "batch global 512" not in verdict(results)
    assert "Runs with 2 ranks, batch global 512 had to share cores; the verdict leaves them out." in remarks(results)


def test_hosts_that_are_one_machine_are_left_out_and_marked() -> None:
    results = series_samples.reads()
    assert "on 2 hosts" not in verdict(results)
    assert any(remark.startswith("Hosts of runs with 2 ranks on 2 hosts, read mapped;") for remark in remarks(results))
    table = report_model(results).figures
    assert [row[0].figure for row in table.rows].count("2 †") == 3
    assert table.footnotes[-1].startswith("† emulated: hosts that are one machine")
    alone = replace(results, points=tuple(replace(point, emulated=True) for point in results.points))
    assert "but its hosts are one machine" in verdict(alone)


def test_tables_have_a_column_for_each_factor() -> None:
    table = report_model(series_samples.strategies()).figures
    assert table.columns[:3] == ("ranks", "strategy", "hosts") and table.keys == 3 and table.words == ("strategy",)
    assert [cell.figure for cell in table.rows[-1][:3]] == ["4", "parameter-server", "2"]
    assert "Servers count as ranks in the efficiency." in table.footnotes
    one = report_model(samples.typical()).figures
    assert one.columns[0] == "ranks" and one.keys == 1 and one.words == ()


def test_series_side_by_side_have_their_messages_beside_their_pace() -> None:
    two, four = report_model(series_samples.strategies()).side_by_side
    assert (two.title, four.title) == ("2 ranks", "4 ranks")
    cells = dict(zip(four.table.columns, four.table.rows[0], strict=True))
    assert cells["strategy, hosts"].text == "ddp on 1 host" and cells["of the fastest"].text == "1.00"
    assert cells["payload per step"].text == "2.8 MB" and cells["exposed"].text == "12 %"
    assert four.table.rows[-1][0].figure == "parameter-server on 2 hosts"
    assert report_model(samples.typical()).side_by_side == ()


def test_loading_queues_and_staleness_are_shown_where_they_were_measured() -> None:
    extras = report_model(series_samples.reads()).extras
    cells = dict(zip(extras.columns, extras.rows[1], strict=True))
    assert cells["read per rank"].text == "55 MB" and cells["load time (s)"].figure == "0.322"
    assert cells["time in the queue (s)"].text == "20.0 [17.0, 23.0]"
    stale = report_model(series_samples.stale()).extras
    assert stale.columns == ("ranks", "strategy", "staleness")
    assert [row[-1].figure for row in stale.rows] == ["–", "–", "3", "–", "3"]
    assert report_model(samples.typical()).extras.rows == ()


def test_every_series_is_a_line_that_begins_at_its_baseline() -> None:
    scaling = report_model(series_samples.strategies()).speedup
    assert [line.name for line in scaling.lines][:2] == ["ddp on 1 host", "ddp on 2 hosts"]
    served = next(line for line in scaling.lines if line.name == "parameter-server on 1 host")
    assert served.ranks == (1, 4, 6) and served.points[0] == "1 rank on 1 host, ddp"
    assert scaling.servers and scaling.ideal == (1.0, 2.0, 4.0, 6.0)


def test_lines_differ_in_more_than_colour() -> None:
    figure = figures(report_model(series_samples.strategies()))["speedup"]
    lines = [trace for trace in figure.data if trace["mode"] == "lines+markers"]
    styles = [(trace["marker"]["symbol"], trace["line"]["dash"]) for trace in lines]
    assert len(lines) == 6 and len(set(styles)) == 6
    names = [trace["name"] for trace in lines]
    assert [key.label for key in figure.keys if not key.off] == [*names, "ideal"]
    assert [key.label for key in figure.keys if key.off] == [f"{name}: Amdahl's law" for name in names]
    assert figure.layout["xaxis"]["title"]["text"] == "ranks and servers"
    # Side by side at their ranks, in order and close by.
    starts = [trace["x"][0] for trace in lines]
    assert starts == sorted(set(starts)) and all(abs(start - 1) < 0.2 for start in starts)


@pytest.mark.parametrize("num", [8, 15, 21])
def test_more_lines_than_markers_get_dashes(num: int) -> None:
    results = series_samples.strategies()
    scaling = report_model(results).speedup
    many = replace(scaling, lines=tuple(replace(scaling.lines[0], name=f"series {n}") for n in range(num)))
    figure = figures(replace(report_model(results), speedup=many))["speedup"]
    assert len({(key.marker, key.dash) for key in figure.keys if not key.off}) == num + 1


def test_series_without_a_common_baseline_have_an_ideal_for_the_speed_up_alone() -> None:
    model = report_model(series_samples.batches())
    assert model.speedup.ideal == (1.0, 2.0)
    assert model.throughput.ideal == model.epoch_time.ideal == (None, None)
    assert "ideal" not in [key.label for key in figures(model)["throughput"].keys]


def test_many_points_are_drawn_by_what_the_verdict_is_about() -> None:
    results = series_samples.strategies()
    drawn = drawn_points(results)
    assert len(results.points) > MOST_DRAWN >= len(drawn)
    assert [point.point.ranks for point in drawn] == [1, 4, 4, 4, 4, 4, 4]
    model = report_model(results)
    assert len(model.ledger.rows) == 13 and len(model.brief_ledger.rows) == 7
    assert "7 of 13 points" in figures(model)["ledger"].caption and "all-ledgers" in figures(model)
    assert drawn_points(samples.many_points()) == samples.many_points().points


def test_rows_and_json_say_what_was_varied() -> None:
    results = series_samples.strategies()
    last = rows(results)[-1]
    assert set(last) == set(columns())
    assert (last["strategy"], last["hosts"], last["servers"], last["server_threads"]) == ("parameter-server", 2, 2, 1)
    assert last["series"] == "parameter-server on 2 hosts" and last["baseline"] == results.baseline
    assert rows(results)[0]["servers"] is None
    view = json.loads(json.dumps(json_object(results, None), allow_nan=False))
    assert view["points"][-1]["servers"] == 2 and view["points"][-1]["settings"]["run.servers"] == 2
    assert [comparison["ranks"] for comparison in view["comparisons"]] == [2, 4]
    assert set(view["comparisons"][0]["ratios"]) == set(view["comparisons"][0]["points"])


def test_settings_show_every_value_of_a_factor() -> None:
    settings = {fact.label: fact.text for fact in report_model(series_samples.strategies()).settings}
    assert settings["run.strategy"] == "ddp, flat, parameter-server" and settings["run.hosts"] == "1, 2"


def test_what_is_new_is_defined() -> None:
    defined = {fact.label for fact in report_model(series_samples.strategies()).definitions}
    assert {"series", "common baseline", "of the fastest", "cannot be told apart", "servers", "exposed"} <= defined
    assert "series" not in {fact.label for fact in report_model(samples.typical()).definitions}


def test_the_next_strategy_is_one_that_was_not_tried_and_can_be_carried() -> None:
    results = series_samples.rivals()
    assert results.machine is not None
    small = replace(results, machine=replace(results.machine, cores=2))
    assert "--ranks 1,2" in next_step(small).command
    scaled = samples.two_points()
    tried = replace(scaled, study=replace(scaled.study, run=replace(scaled.study.run, strategy="flat")))
    command = next_step(tried).command
    assert "run.strategy=" in command and not any(name in command for name in ("=ddp ", "=flat ", "=mpi-"))


def test_names_in_a_row() -> None:
    assert listed(["a"]) == "a" and listed(["a", "b"]) == "a and b" and listed(["a", "b, c", "d"]) == "a; b, c and d"
    assert joined(["a 1", "b 2"]) == "a 1, b 2" and joined(["a, x 1", "b 2"]) == "a, x 1; b 2"
    assert labels_text(["1 rank", "2 ranks"]) == "1 rank, 2 ranks"
    assert labels_text(["1 rank, ddp", "2 ranks, ddp"]) == "1 rank, ddp; 2 ranks, ddp"
    assert labels_text([f"{n} ranks, ddp" for n in range(5)]) == "5 points"
