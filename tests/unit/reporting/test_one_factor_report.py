"""The table in per cent of the baseline, its sentences, and points that were not run."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

from paceline.reporting.export.json_view import json_object
from paceline.reporting.export.rows import csv_bytes
from paceline.reporting.figures.report_figures import figures, main_figure
from paceline.reporting.html.report_page import render
from paceline.reporting.model import report_model
from paceline.reporting.text.report_text import render as text_of
from paceline.reporting.wording.facts import meanings
from samples import report_samples, series_samples


def test_the_table_has_every_value_and_says_which_effects_are_real() -> None:
    table = report_model(series_samples.one_at_a_time()).effects
    assert table.columns == (
        *("factor", "value", "test loss (%)", "test accuracy (%)", "training time (%)", "real effect"),
    )
    rows = {(row[0].figure, row[1].figure): row for row in table.rows}
    assert list(rows) == [
        *(("neurons", "32"), ("neurons", "128"), ("layers", "1"), ("layers", "4"), ("threads", "1"), ("threads", "2")),
    ]
    assert rows["neurons", "128"][-1].figure == "loss, accuracy, time"
    assert rows["threads", "2"][-1].figure == "time" and rows["layers", "4"][-1].figure == "none shown"
    assert [cell.figure for cell in rows["layers", "1"][2:]] == ["100.0", "100.0", "100.0", "baseline"]
    assert rows["neurons", "128"][4].beside.startswith("[")
    assert table.footnotes == ("[ ] is an interval of the ratio within repeats that holds with 93.8 % confidence.",)


def test_columns_in_per_cent_have_meanings_of_their_own() -> None:
    model = report_model(series_samples.one_at_a_time())
    known = {meaning.term: meaning.text for meaning in meanings(model.effects.columns, model.definitions)}
    assert len(known) == len(model.effects.columns)
    shares = [text for term, text in known.items() if term.endswith("in % of the baseline")]
    assert len(shares) == 3 and all("in % of the baseline's" in text and "Median" in text for text in shares)
    (whole,) = meanings(("% of the baseline",), model.definitions)
    assert "ratios within each repeat" in whole.text and whole.formula == "median ÷ median of the baseline × 100"
    (absolute,) = meanings(("test accuracy",), model.definitions)
    assert "standard deviation" in absolute.text, "of the other tables"


def test_verdict_and_remarks_name_what_is_real_and_what_is_not() -> None:
    model = report_model(series_samples.one_at_a_time())
    assert model.verdict.startswith("Of 3 factors, threads changes training time most: 2 in place of 1 makes it 58")
    assert "neurons changes test accuracy most: 128 in place of 32 makes it 100.6 % (interval" in model.verdict
    neurons, layers, threads, *_ = model.remarks
    assert neurons.startswith("Neurons, 32 at the baseline: with 128 test loss is 79") and neurons.endswith("% of it.")
    assert layers == (
        "Layers, 1 at the baseline: no effect on test loss, test accuracy or training time is shown for 4."
    )
    assert threads.startswith("Threads, 1 at the baseline: with 2 training time is 5")
    assert threads.endswith("% of it; no effect on test loss or test accuracy is shown.")


def test_with_too_few_repeats_nothing_is_called_real() -> None:
    model = report_model(series_samples.one_at_a_time(repeats=2))
    assert model.verdict == "With 2 repeats no effect of 3 factors can be called real: a test takes five."
    assert all(row[-1].figure in ("baseline", "not tested") for row in model.effects.rows)
    assert "of it in these runs, and 2 repeats cannot call any of it real." in model.remarks[0]
    assert model.effects.footnotes[0].startswith("[ ] is the range")


def test_nothing_is_said_to_scale_where_no_ranks_vary() -> None:
    model = report_model(series_samples.one_at_a_time())
    assert not {"speed-up", "efficiency"} & set(model.figures.columns)
    assert "one factor at a time" in model.headline and "strong scaling" not in model.headline
    assert model.side_by_side == () and "--repeats 10" in model.next_step.command
    assert {"speed-up", "efficiency"} <= set(report_model(series_samples.batches()).figures.columns)


def test_html_json_and_csv_have_the_same_figures() -> None:
    results = series_samples.one_at_a_time()
    page = render(report_model(results))
    assert 'id="effects"' in page and "In % of the baseline" in page
    view = json_object(results, None)
    assert [(e["factor"], e["value"], e["is_baseline"]) for e in view["effects"]][:2] == [
        ("model.neurons", 32, True),
        ("model.neurons", 128, False),
    ]
    effect = view["effects"][1]["time_pct"]
    rows = list(csv.DictReader(io.StringIO(csv_bytes(results).decode())))
    row = next(row for row in rows if row["factor"] == "model.neurons")
    assert float(row["time_pct_median"]) == effect["interval"]["median"] and effect["real"]
    baseline = next(row for row in rows if not row["factor"])
    assert float(baseline["loss_pct_median"]) == 100.0
    others = csv.DictReader(io.StringIO(csv_bytes(report_samples.typical()).decode()))
    assert all(not row["time_pct_median"] and not row["factor"] for row in others)


def test_the_plot_shows_every_effect_and_what_is_not_real_is_hollow() -> None:
    drawn = figures(report_model(series_samples.one_at_a_time()))
    plot = drawn[main_figure(drawn)]
    assert plot.name == "effects" and [key.label for key in plot.keys] == [
        "test loss",
        "test accuracy",
        "training time",
    ]
    assert plot.layout["yaxis"]["ticktext"] == ["neurons 128", "layers 4", "threads 2"]
    times = plot.data[2]
    assert [round(x) for x in times["x"]] == [166, 99, 59]
    assert times["marker"]["color"] == ["var(--green)", "var(--surface)", "var(--green)"]
    assert plot.numbers is not None and len(plot.numbers.rows) == 9
    assert "effects" not in figures(report_model(series_samples.batches()))


def test_what_was_not_run_is_listed_with_its_reason_everywhere() -> None:
    results = series_samples.too_large()
    model = report_model(results)
    reason = "It has 16 ranks, and this machine 2 cores: more than twice as many are not run."
    assert [row[0].figure for row in model.not_run.rows] == ["8 ranks", "16 ranks"]
    assert reason in text_of(model, width=200) and reason in render(model)
    assert json_object(results, None)["not_run"][1] == {
        "label": "16 ranks",
        "settings": {"run.ranks": 16},
        "reason": reason,
    }
    assert model.remarks[-1].startswith("2 points were not run, the first of them 8 ranks: It has 8 ranks")
    one = replace(results, not_run=results.not_run[:1])
    assert report_model(one).remarks[-1].startswith("8 ranks was not run: It has 8 ranks")


def test_the_size_is_in_the_headline_and_the_full_one_comes_next() -> None:
    model = report_model(series_samples.too_large())
    assert "small size: 4 of 12 epochs, 12,000 of all samples; --size full runs it as written" in model.headline
    assert model.next_step.command.endswith("--size full --dry-run --out studies/mnist-scaling-full")


def test_ranks_beyond_the_cores_are_called_emulated() -> None:
    table = report_model(report_samples.oversubscribed()).figures
    assert table.rows[-1][0].figure == "4 *"
    assert "* emulated: more ranks or threads than cores. These points say little about scaling." in table.footnotes
