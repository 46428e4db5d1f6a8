"""One run as text: the accuracy of a training, or where the time of a script went, then what was noticed."""

from __future__ import annotations

from paceline.records.run import RunResult
from paceline.reporting.model import ReportModel
from paceline.reporting.text.report_text import findings_text, table_text
from paceline.units import count_text, counted, duration_text, number_text, percent_text


def render(result: RunResult, model: ReportModel, *, width: int, color: bool = False) -> str:
    """Lines about the run; a training has a test accuracy, a script has a ledger."""
    lines = _script_lines(result, model, width) if result.test_accuracy is None else _training_lines(result)
    # One run alone never has an interval.
    findings = [finding for finding in model.findings if finding.name != "few-repeats"]
    if findings:
        lines.append("\n" + findings_text(findings, width=width, color=color).rstrip())
    return "\n".join(lines).removeprefix("\n")


def _training_lines(result: RunResult) -> list[str]:
    accuracy, loss = percent_text(result.test_accuracy), number_text(result.test_loss)
    ranks = counted(result.ranks, "rank")
    steps = f"{counted(len(result.epochs), 'epoch')} ({counted(result.steps, 'step')})"
    lines = [f"Test accuracy {accuracy}, test loss {loss}: {steps}, {ranks}, {duration_text(result.wall_s)}."]
    for phase in result.phases[:-1]:
        before, loss = percent_text(phase.test_accuracy), number_text(phase.test_loss)
        lines.append(f"Before it was fine-tuned: test accuracy {before}, test loss {loss}.")
    if result.resumed_from_step is not None:
        changed = result.resume_note
        written = f", written on another host or with other versions: {changed}" if changed else ""
        lines.append(f"It went on from the checkpoint of step {count_text(result.resumed_from_step)}{written}.")
    return lines


def _script_lines(result: RunResult, model: ReportModel, width: int) -> list[str]:
    lines = [f"{'Found':<10} {', '.join(result.script.found)}"] if result.script.found else []
    lines += [f"{'Note':<10} {note}" for note in result.script.notes]
    ledger = model.brief_ledger
    if ledger.rows:
        lines.append(f"\n{ledger.caption}\n{table_text(ledger, width=width)}".rstrip())
    return lines
