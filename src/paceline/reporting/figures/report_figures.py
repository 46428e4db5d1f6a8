"""Every plot of a report as a plain dictionary in Plotly's form; plotly itself is never imported.

The palette is Okabe and Ito's, and colour never stands alone: lines have markers and dashes of
their own, bars have patterns.
"""

from __future__ import annotations

from collections.abc import Mapping

from paceline.metrics import metric
from paceline.reporting.figures.canvas import HEIGHT, Figure, plain
from paceline.reporting.figures.curve_plots import accuracy_figure, curve_figure
from paceline.reporting.figures.effect_plots import effects_figure
from paceline.reporting.figures.ledger_plots import ledger_figure
from paceline.reporting.figures.scaling_plots import ranking_figure, scaling_figure
from paceline.reporting.model import ReportModel

MAIN = ("test-accuracy", "effects", "speedup", "ranking", "accuracy", "loss")
"""Plots that can be the main one: the first that is drawn."""


def figures(model: ReportModel) -> dict[str, Figure]:
    """Every plot that the model has numbers for, by name; those that answer the question first."""
    tested = accuracy_figure("test-accuracy", model.accuracies_drawn)
    made = [
        *([tested] if model.asks == "accuracy" else []),
        effects_figure(model.effects_drawn),
        scaling_figure(
            "speedup",
            "How it scales",
            model.speedup,
            axis=metric("speed-up").heading,
            caption="Speed-up over ranks",
            hover="%{customdata[1]} times as fast",
            terms=("speed-up", "ideal", "efficiency", "baseline", "scaling"),
        ),
        ledger_figure(
            "ledger",
            "Where the time went",
            model.point_ledger,
            caption="Each point's median run from launch to end, mean over its ranks." + _chosen_few(model),
        ),
        ranking_figure("ranking", model.ranking),
        ledger_figure(
            "all-ledgers",
            "Where the time went at every point",
            model.all_ledgers,
            caption="Each point's median run from launch to end, mean over its ranks.",
        ),
        curve_figure("accuracy", "Accuracy", model.curves, axis="accuracy (%)", scale=100, few=_chosen_few(model)),
        curve_figure("loss", "Loss", model.curves, axis="loss", scale=1, few=_chosen_few(model)),
        *([] if model.asks == "accuracy" else [tested]),
        scaling_figure(
            "epoch",
            "Epoch time",
            model.epoch_time,
            axis=metric("epoch time").heading_in(model.epoch_time.unit),
            caption="Time of an epoch after warm-up",
            hover=f"%{{customdata[1]}} {plain(model.epoch_time.unit)} an epoch",
            terms=("epoch time", *(("speed-up of an epoch",) if model.strong_epoch else ())),
            more=model.strong_epoch,
        ),
        model.run_time
        and scaling_figure(
            "run",
            "Run time",
            model.run_time,
            axis=metric("run time").heading,
            caption="Time of a whole run, which all points train for as many epochs",
            hover="%{customdata[1]} s a run",
            terms=("run time",),
        ),
        scaling_figure(
            "throughput",
            "Throughput",
            model.throughput,
            axis=metric("samples/s").heading,
            caption="Training samples per second, all ranks together",
            hover="%{customdata[1]} samples/s",
            terms=("samples/s",),
        ),
        *(
            ledger_figure(f"ranks-{index}", ledger.title, ledger.series, caption=f"{ledger.table.caption}.")
            for index, ledger in enumerate(model.rank_ledgers)
            if ledger.drawn
        ),
    ]
    drawn = {figure.name: figure for figure in made if figure is not None}
    # These two stand beside each other on the first screen, and leave room for what comes next.
    pair = [drawn[name] for name in (main_figure(drawn), "ledger") if name in drawn]
    height = max((HEIGHT, *(figure.least or figure.layout["height"] for figure in pair)))
    for figure in pair:
        figure.layout["height"] = height
    return drawn


def main_figure(drawn: Mapping[str, Figure]) -> str:
    """The name of the plot that answers the question: the first that can; empty where none is drawn."""
    return next((name for name in drawn if name in MAIN), "")


def _chosen_few(model: ReportModel) -> str:
    """That a plot leaves points out, where it does."""
    whole, shown = len(model.all_ledgers.labels), len(model.point_ledger.labels)
    return f" {shown} of {whole} points: the baseline, and those with the most ranks." if whole else ""
