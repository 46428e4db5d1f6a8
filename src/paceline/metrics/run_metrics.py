"""Figures of one run, of a phase, or of a pair of points: those that are no column of results.csv."""

from __future__ import annotations

from paceline.metrics.metric import Metric

RUN_METRICS = (
    Metric(
        name="messages per step",
        definition="Messages with a payload that a rank takes part in, per step in the timed epochs.",
        formula="messages of the timed epochs ÷ their steps, mean over ranks",
        page="metrics/messages.md",
    ),
    Metric(
        name="messages per epoch",
        definition="Messages with a payload that a rank takes part in, per epoch.",
        formula="messages per step × steps of an epoch",
        page="metrics/messages.md",
    ),
    Metric(
        name="payload per epoch",
        unit="B",
        definition="Payload of the messages that a rank takes part in, per epoch.",
        formula="payload per step × steps of an epoch",
        page="metrics/payload.md",
    ),
    Metric(
        name="memory of a rank",
        unit="B",
        definition="The most resident memory of any process of the run, servers included.",
        formula="max over processes (peak resident memory)",
        page="metrics/memory.md",
    ),
    Metric(
        name="GPU memory of a rank",
        unit="B",
        definition="The most memory that torch ever reserved on the GPUs of a rank, of the rank with the most.",
        formula="max over processes (peak reserved memory, summed over its GPUs)",
        page="metrics/memory.md",
    ),
    Metric(
        name="real",
        unit="s",
        definition="Time from the launch of the run to its end.",
        page="metrics/cpu-time.md",
    ),
    Metric(
        name="user",
        unit="s",
        definition="CPU time of all threads of all processes in their own code; above real where several cores work.",
        page="metrics/cpu-time.md",
    ),
    Metric(
        name="sys",
        unit="s",
        definition="CPU time of the kernel on behalf of these processes: memory, files, messages.",
        page="metrics/cpu-time.md",
    ),
    Metric(
        name="energy",
        unit="J",
        definition="What the meters of the hosts counted during the run, of all that ran there: processors, GPUs, and "
        "memory with a meter of its own.",
        formula="Σ over hosts (processor packages + memory + GPUs), last sample − first sample",
        page="metrics/energy.md",
    ),
    Metric(
        name="size",
        unit="B",
        definition="Payload of one message at one rank.",
        page="trace.md",
    ),
    Metric(
        name="hidden",
        definition="The part of all transfer time in which the rank computes.",
        formula="transfer time with computation ÷ transfer time",
        page="metrics/exposed.md",
    ),
    Metric(
        name="algbw",
        definition="Algorithm bandwidth, as in nccl-tests: payload per second of transfer.",
        formula="payload ÷ median transfer",
        page="metrics/bandwidth.md",
    ),
    Metric(
        name="busbw",
        definition="Bus bandwidth, as in nccl-tests: comparable with the speed of a link.",
        formula="algbw × nccl-tests' factor for the operation",
        page="metrics/bandwidth.md",
    ),
    Metric(
        name="speed-up of an epoch",
        definition="How many times as fast an epoch of the same samples is as at the baseline.",
        formula="epoch time of the baseline ÷ epoch time",
        page="metrics/speed-up.md",
    ),
    Metric(
        name="ideal",
        definition="A speed-up equal to the ratio of ranks and servers to those of the baseline.",
        formula="(ranks + servers) ÷ (ranks + servers) of the baseline",
        page="metrics/speed-up.md",
    ),
    Metric(
        name="whole run",
        definition="From the launch of the run to the end of its last rank.",
        formula="startup + load + input-wait + forward + backward + … + other",
        page="metrics/run-time.md",
    ),
    Metric(
        name="global",
        definition="The part of the timed steps that a mean rank spends on useful work, against the baseline.",
        formula="computation scaling × load balance × serialisation × transfer",
        page="metrics/efficiency.md",
    ),
    Metric(
        name="difference",
        unit="points",
        definition="Test accuracy minus that of the point that it is compared with, in points of a hundred.",
        page="metrics/accuracy.md",
    ),
    Metric(
        name="gain",
        unit="points",
        definition="Test accuracy of this phase minus that of the phase before it, in points of a hundred, within "
        "each repeat.",
        formula="mean over repeats (test accuracy after the phase − before it)",
        page="metrics/gain.md",
    ),
    Metric(
        name="epochs to the target",
        unit="epochs",
        definition="Epochs until validation accuracy reaches the target, interpolated linearly within the last.",
        page="metrics/time-to-accuracy.md",
    ),
    Metric(
        name="noise scale",
        unit="samples",
        definition="The batch at which the noise of its mean gradient is as large as the gradient itself.",
        formula="tr(Σ) ÷ |G|²",
        page="metrics/noise-scale.md",
    ),
    Metric(
        name="sample efficiency",
        unit="fraction",
        definition="Progress per sample against that of a tiny batch.",
        formula="1 ÷ (1 + batch ÷ noise scale)",
        page="metrics/noise-scale.md",
    ),
    Metric(
        name="% of the baseline",
        definition="The median over repeats against that of the point with the first value of every factor; its "
        "interval is that of the ratios within each repeat.",
        formula="median ÷ median of the baseline × 100",
        page="glossary.md",
    ),
    Metric(
        name="training time",
        unit="s",
        definition="Time of all epochs of a run, without evaluation; of a script, time of the whole run.",
        page="measuring.md#one-factor-at-a-time",
    ),
    Metric(
        name="noise floor",
        definition="How far the ratio of a thing to itself is from 1 on a machine: no smaller difference can be seen "
        "there.",
        formula="median of (time of a block ÷ time of the next block of the same)",
        page="metrics/noise-floor.md",
    ),
)
