"""The anatomy of a run as text for a terminal: what `paceline trace` prints.

    heading · ledger · efficiency tree · causes · messages · matrix · stragglers · critical path · CPU time · problems

A part that the traces cannot give is one sentence that says what is missing.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from paceline.records.counters import CpuTimes
from paceline.records.slow_cause import SlowCause
from paceline.records.trace_summary import RunTrace, TraceSummary
from paceline.reporting.tables import trace_tables as tables
from paceline.reporting.tables.point_tables import Table
from paceline.reporting.tables.resource_tables import cpu_table, energy_table
from paceline.reporting.text.report_text import table_text
from paceline.reporting.wording.characters import printable
from paceline.reporting.wording.phrases import listed
from paceline.units import count_text, counted, duration_text, percent_text

_MOST_HOSTS = 4


def render(
    run: RunTrace,
    found: TraceSummary,
    lost_to: Mapping[str, float],
    *,
    cpu: CpuTimes | None = None,
    suspects: Sequence[SlowCause] = (),
    top: int = 10,
    whole_matrix: bool = False,
    width: int = 100,
    color: bool = False,
) -> str:
    """What the traces of a run show, in at most `width` columns.

    `lost_to` says how much of the lost efficiency each factor explains, `cpu`
    what was used of cores and memory, `suspects` what made it slow. At most `top` rows of a table that is not about
    every rank are shown.
    """
    sections: list[Table | str] = ["\n".join(heading(run, found))]
    sections.append(tables.ledger_table(run, found) if found.ledgers_s else "No rank has a ledger: there are no spans.")
    sections.append(tables.tree_table(found.efficiencies, lost_to) if found.efficiencies else _no_tree(run, found))
    if suspects:
        sections.append("\n".join(["What made the timed steps longer, the costliest first:", *_causes(suspects[:top])]))
    sections.append(tables.message_rows(found, top) if found.messages else _no_messages(found))
    sections += _matrix(found, top, whole_matrix)
    sections += [*_stragglers(found, top)]
    if found.path:
        sections.append(tables.path_table(found, top))
    sections += _counters(cpu)
    problems = (*found.problems, *(cpu.problems if cpu else ()))
    if problems:
        sections.append("\n".join(["What is missing or damaged:", *(f"  {printable(text)}" for text in problems)]))
    texts = (_section(each, width, color) for each in sections if each)
    return "\n".join(texts)


def heading(run: RunTrace, found: TraceSummary) -> Iterator[str]:
    """Which run it is: ranks, hosts, wall time, steps, and how well the clocks agree."""
    yield f"Run {printable(run.name)}"
    names = [printable(name) for name in dict.fromkeys(run.hosts)]
    place = f" on {listed(names) if len(names) <= _MOST_HOSTS else counted(len(names), 'host')}" if names else ""
    steps = counted(found.steps, "step") if found.steps else "no steps"
    wall = duration_text(found.wall_s)
    yield f"{counted(found.ranks, 'rank')}{place}, {wall} from launch to end, {steps} on every rank"
    if found.ranks > 1:
        error = duration_text(found.clock_error_s)
        clocks = f"Clocks: two ranks' instants are off by {error} at most; what is shorter is not claimed."
        yield clocks if found.clock_error_s else "Clocks: all ranks read one, as far as is known."


def _section(section: Table | str, width: int, color: bool) -> str:
    if isinstance(section, str):
        return "\n".join(map(partial(_wrapped, width=width), section.split("\n"))) + "\n"
    return f"{_wrapped(section.caption, width)}\n{table_text(section, width=width, color=color)}"


def _wrapped(line: str, width: int) -> str:
    """A line broken between words; paths and names stay whole."""
    indent = line[: len(line) - len(line.lstrip())]
    return textwrap.fill(line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _no_tree(run: RunTrace, found: TraceSummary) -> str:
    """Why there is no efficiency tree, and with it no critical path."""
    what = "There is no efficiency tree and no critical path"
    there = len(found.ledgers_s)
    if there < found.ranks:
        return f"{what}: they need the spans of all {found.ranks} ranks, and those of {there} are there."
    if found.steps < 2:
        return f"{what}: they are of the steps after the first, and the traces show {counted(found.steps, 'step')}."
    return f"{what}: not every rank shows the same messages, so waiting cannot be told from moving bytes."


def _causes(suspects: Sequence[SlowCause]) -> Iterator[str]:
    for each in suspects:
        who = "all ranks" if each.rank is None else f"rank {each.rank}"
        yield f"  {duration_text(each.lost_s)}, {who}, {each.kind}: {printable(each.why)}"


def _no_messages(found: TraceSummary) -> str:
    if found.ranks == 1:
        return "There are no messages: one rank has nobody to talk to, and nobody to wait for."
    return "The traces show no messages: either the ranks sent none, or what they sent them through is not watched."


def _matrix(found: TraceSummary, top: int, whole: bool) -> list[Table | str]:
    if not found.messages:
        return []
    if not found.matrix:
        return ["There is no matrix: nothing says between which ranks the messages went."]
    processes = {rank for cell in found.matrix for rank in (cell.source, cell.target)}
    if whole or len(processes) <= tables.WIDEST_MATRIX:
        shown = tables.matrix_table(found, servers_from=found.ranks)
    else:
        shown = tables.pairs_table(found, top)
    return [shown, tables.host_table(found)] if len(found.host_names) > 1 and found.host_matrix else [shown]


def _stragglers(found: TraceSummary, top: int) -> Iterator[Table | str]:
    if not found.messages or found.ranks == 1:
        return
    seen = max((each.of for each in found.arrivals), default=0)
    if not seen:
        yield "Nobody can be called late: no collective of the timed steps is shown by all its ranks."
        return
    worst = max(found.arrivals, key=lambda each: each.caused_wait_s)
    yield tables.arrivals_table(found, top)
    if not worst.last:
        yield "No rank was later than the others by more than the clocks' error."
        return
    doing = tables.lateness_causes_text(worst)
    yield (
        f"Rank {worst.rank} was last to {count_text(worst.last)} of {count_text(worst.of)} collectives "
        f"({percent_text(worst.last / worst.of, 0)}), by {duration_text(worst.late_s)} in the median; the others "
        f"waited {duration_text(worst.caused_wait_s)} for it{f', while it was longer in {doing}' if doing else ''}."
    )


def _counters(cpu: CpuTimes | None) -> list[Table | str]:
    """CPU time, memory and energy, and what they say about this run."""
    if cpu is None:
        return ["CPU time and memory are not known: the run has no counters."]
    return [cpu_table(cpu), cpu.sentence, *([energy_table(cpu)] if cpu.energy else [])]
