"""Size, times, throughput, speed-up and accuracy of a point."""

from __future__ import annotations

from paceline.metrics.metric import INTERVAL, SPREAD, Place, PointMetric

SCALING = (
    PointMetric(
        name="parameters",
        key="parameters",
        type=int,
        definition="Numbers that the model learns.",
        page="glossary.md",
    ),
    PointMetric(
        name="runs",
        key="runs",
        type=int,
        definition="Finished runs of those that the study asks for.",
        page="glossary.md",
    ),
    PointMetric(
        name="epoch time",
        key="epoch_s",
        unit="s",
        unit_if_short="ms",
        parts=INTERVAL,
        place=Place("results", "training"),
        definition="From the start of an epoch's first step to the end of its last step, on the slowest rank, without "
        "evaluation.",
        formula="median over repeats of (last step's end − first step's start)",
        page="metrics/epoch-time.md",
    ),
    PointMetric(
        name="run time",
        key="total_s",
        unit="s",
        parts=INTERVAL,
        place=Place("results", "script"),
        definition="From the launch of a run to the end of its last rank.",
        formula="end of the last rank − launch of the first rank, median over runs",
        page="metrics/run-time.md",
    ),
    PointMetric(
        name="samples/s",
        key="samples_per_s",
        unit="samples/s",
        parts=INTERVAL,
        digits=4,
        place=Place("results", "always"),
        definition="Training samples per second, all ranks together.",
        formula="training samples of an epoch ÷ epoch time",
        page="metrics/throughput.md",
    ),
    PointMetric(
        name="speed-up",
        key="speedup",
        parts=INTERVAL,
        place=Place("results", "scaled"),
        definition="How many times as many samples per second as at the baseline; its interval is that of the ratios "
        "within each repeat.",
        formula="samples/s ÷ samples/s of the baseline",
        page="metrics/speed-up.md",
    ),
    PointMetric(
        name="efficiency",
        key="efficiency",
        unit="fraction",
        parts=INTERVAL,
        place=Place("results", "scaled"),
        definition="The part of the ideal speed-up that was reached.",
        formula="speed-up ÷ ideal",
        page="metrics/efficiency.md",
    ),
    PointMetric(
        name="load time",
        key="load_s",
        unit="s",
        parts=INTERVAL,
        place=Place("extras", "loading"),
        definition="Time until the data set was mapped or read, and split, on the slowest rank.",
        formula="max over ranks (data set ready − ranks have joined), median over runs",
        page="metrics/load-time.md",
    ),
    PointMetric(
        name="time in the queue",
        key="queue_s",
        unit="s",
        parts=INTERVAL,
        place=Place("extras"),
        definition="From the submission of a run's job to the scheduler to its start.",
        formula="start of the job − its submission, as the scheduler reports them, median over runs",
        page="metrics/queue-time.md",
    ),
    PointMetric(
        name="test accuracy",
        key="test_accuracy",
        unit="fraction",
        parts=SPREAD,
        place=Place("results", "training"),
        definition="The part of the test set that is classified correctly after the last epoch: mean and standard "
        "deviation over repeats.",
        page="metrics/accuracy.md",
    ),
    PointMetric(
        name="test loss",
        key="test_loss",
        parts=SPREAD,
        definition="The mean cross-entropy over the test set after the last epoch, mean over repeats.",
        page="metrics/test-loss.md",
    ),
)
