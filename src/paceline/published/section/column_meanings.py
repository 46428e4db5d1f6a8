"""Meanings of the columns of published tables, in the publication and here.

Headings are as published: `epoch` is a time in one table and a number in another. Meanings are therefore looked up by
measure, and those of key columns by heading, never in the report's glossary.
"""

from __future__ import annotations

from paceline.published.records import PublishedColumn, PublishedTable
from paceline.reporting.wording.facts import Fact
from paceline.units import counted

_KEYS = {
    "nodes": "Machines that the processes were on; here hosts.",
    "per node": "Processes on each of these machines.",
    "processes": "Processes that train, on all machines together; here ranks.",
    "setup": "What the curve was taken on: nodes and processes, or a GPU.",
    "epoch": "Number of the epoch, from 0 on as published.",
    "GPUs": "GPUs that train, one process for each; here ranks.",
    "kind": "Which GPUs they were. What stands in for them here is noted at the row.",
    "batch": "Samples of a step. The publication does not say whether of one rank or of all; here of all.",
    "phase": "An epoch of the training, or the test after the last one.",
    "factor": "The one setting that is changed; all others are at the baseline.",
    "value": "What the factor is set to; its first value is the baseline's.",
    "method": "What it ran on: a laptop, one node of a cloud, or workers and parameter servers of a cloud.",
    "epochs": "How often the training goes through the training samples.",
    "workers": "Processes that train; here ranks.",
    "servers": "Processes that hold the parameters, beside the workers.",
    "model": "The network. What stands in for it here is noted at the row.",
}
_MEASURES = {
    "load_s": "Time until a process has the data set, mapped or read: here the most of any rank, median over repeats.",
    "update_s": "Here comm-wait, comm-transfer and optimizer within a run's steps ÷ their number, median over repeats; "
    "the publication does not say what is in an update.",
    "epoch_s": "Time of an epoch: here the median over timed epochs and repeats, the first epoch left out.",
    "one_epoch_s": "Time of this epoch: here the median over repeats.",
    "total_s": "Time of the whole job: here from the launch of a run to its end, median over repeats.",
    "phase_s": "Time of this epoch, or of the test after the last: here the median over repeats.",
    "test_accuracy": "Share of the test set that is put into the right class: here mean over repeats ± standard "
    "deviation.",
    "first_accuracy": "Share of the test set that is put into the right class, before any fine-tuning: here mean over "
    "repeats ± standard deviation.",
    "first_accuracy_std": "Standard deviation of the test accuracy over runs; as published a ± that is taken for one.",
    "test_loss": "Loss on the test set after the last epoch: here mean over repeats ± standard deviation.",
    "phase_test_accuracy": "Test accuracy, which here is measured once, after the last epoch.",
    "train_accuracy": "Training accuracy of this epoch: here mean over repeats ± standard deviation.",
    "train_loss": "Training loss of this epoch: here mean over repeats ± standard deviation.",
    "final_training": "Training accuracy of the last epoch: here mean over repeats ± standard deviation.",
    "final_validation": "Validation accuracy after the last epoch: here mean over repeats ± standard deviation.",
    "epochs_to_stable": "Epochs until validation is stable: here the first from which it stays within its noise of its "
    "plateau, as published read by eye.",
    "parameters": "Parameters of the network as PyTorch counts them; Keras counts running statistics, too.",
    "trainable": "Parameters that the training changes while the base of a pretrained network is frozen.",
    "loss_percent": "Loss in % of the baseline's: here on the test set.",
    "accuracy_percent": "Accuracy in % of the baseline's: here on the test set.",
    "time_percent": "Time in % of the baseline's: here the training time of all epochs, in the same repeat.",
    "setting:batch_per_rank": "Samples of a step that one GPU, here one rank, computes.",
    "setting:train.epochs": "How often the training goes through the training samples.",
    "setting:run.ranks": "Processes that train.",
}


def heading(column: PublishedColumn) -> str:
    """A column's heading with its unit."""
    unit = {"s": " (s)", "percent": " (%)"}.get(column.unit, "")
    return f"{column.heading}{unit}"


def table_meanings(table: PublishedTable) -> tuple[Fact, ...]:
    """What stands under every heading of a table, keys first.

    Headings are without their unit, but where a key has the same one.
    """
    called = ((heading(column) if column.heading in table.keys else column.heading, column) for column in table.columns)
    facts = (
        *(Fact(key, _KEYS.get(key, "")) for key in table.keys),
        *(Fact(c, _meaning(column)) for c, column in called),
    )
    return tuple(fact for fact in facts if fact.text)


def _meaning(column: PublishedColumn) -> str:
    text, ranks = _MEASURES.get(column.measure, ""), column.settings.get("run.ranks")
    return f"{text} On {counted(ranks, 'rank')}." if isinstance(ranks, int) else text
