"""What the traces and counters of a point's runs show: ledger, messages, efficiency tree, reading, staleness."""

from __future__ import annotations

from paceline.metrics.metric import Place, PointMetric

_LEDGER = {
    "startup": "Process, interpreter, imports, joining the other ranks, building model, strategy and optimizer, "
    "reading a checkpoint.",
    "load": "Mapping the data set and splitting it.",
    "input-wait": "Waiting for the next batch: gathering, augmenting and scaling it.",
    "forward": "The forward pass and the loss.",
    "backward": "The backward pass, with the communication that it hides.",
    "comm-wait": "Exposed communication before the last rank issues the same collective: waiting for the slowest.",
    "comm-transfer": "Exposed communication after that: moving and adding numbers; all of a message with a server.",
    "optimizer": "The update of the parameters, clearing the gradients, adding up loss and accuracy.",
    "evaluate": "Validation and test.",
    "checkpoint": "Writing checkpoints, which rank 0 does for all; other ranks wait in their next collective.",
    "other": "All else: shuffling, warm-up pass, the strategy's bookkeeping, the end of the process.",
}
_LEDGER_PAGES = ("input-wait", "comm-wait", "comm-transfer")
"""Kinds of the ledger with a page of their own."""


def _ledger(kind: str, definition: str) -> PointMetric:
    return PointMetric(
        name=kind,
        key=f"ledger_{kind.replace('-', '_')}_s",
        unit="s",
        source=f"ledger_s.{kind}",
        definition=definition,
        page=f"metrics/{kind if kind in _LEDGER_PAGES else 'ledger'}.md",
    )


MEDIAN_RUN = (
    PointMetric(
        name="median run",
        key="median_run",
        type=int,
        definition="Of the runs that were traced from launch to end, the one with the median time per sample.",
        page="glossary.md",
    ),
    *(_ledger(kind, definition) for kind, definition in _LEDGER.items()),
    PointMetric(
        name="payload per step",
        key="message_bytes",
        unit="B",
        definition="Payload of the messages that a rank takes part in, per step in the timed epochs of the median run.",
        formula="payload of the timed epochs ÷ their steps, mean over ranks",
        page="metrics/payload.md",
    ),
    PointMetric(
        name="exposed",
        key="exposed_share",
        unit="fraction",
        definition="The part of the timed epochs in which a rank communicates and computes nothing, mean over ranks.",
        formula="time of communication without computation ÷ time of the timed epochs",
        page="metrics/exposed.md",
    ),
    PointMetric(
        name="computation scaling",
        key="computation_scaling",
        source="efficiencies.computation_scaling",
        definition="How much computing a sample costs here against the baseline.",
        formula="useful rank-seconds per sample, baseline ÷ here",
        page="metrics/computation-scaling.md",
    ),
    PointMetric(
        name="load balance",
        key="load_balance",
        source="efficiencies.load_balance",
        definition="How equally the work is divided over the ranks.",
        formula="useful time of the mean rank ÷ useful time of the busiest",
        page="metrics/load-balance.md",
    ),
    PointMetric(
        name="serialisation",
        key="serialisation",
        source="efficiencies.serialisation",
        definition="What is lost because ranks work in turn, each waiting for another.",
        formula="useful time of the busiest rank ÷ time of a replay with instant messages",
        page="metrics/serialisation.md",
    ),
    PointMetric(
        name="transfer",
        key="transfer",
        source="efficiencies.transfer",
        definition="Of the efficiency tree: what messages cost. Of a message: its time after the last rank "
        "has issued it.",
        formula="time of a replay with instant messages ÷ measured time",
        page="metrics/transfer.md",
    ),
    PointMetric(
        name="read per rank",
        key="read_bytes",
        unit="B",
        type=int,
        place=Place("extras", "loading", before="queue_s"),
        definition="Bytes of the data set that a rank read, the most of any rank and run.",
        formula="bytes through read calls while the data set is loaded, max over ranks and runs",
        page="metrics/load-time.md",
    ),
    PointMetric(
        name="staleness",
        key="staleness_max",
        unit="steps",
        type=int,
        place=Place("extras"),
        definition="Steps of the slowest rank that were missing from the parameters behind a gradient, at most.",
        page="metrics/staleness.md",
    ),
)
