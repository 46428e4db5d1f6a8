"""One sentence that explains real, user and sys of a run: parallelism, threads, time off a core.

Parts below 1 % of their total, and parts that were not measured, are left out.
"""

from __future__ import annotations

from paceline.records.counters import CpuTime
from paceline.units import counted, duration_text, number_text, percent_text

_WORTH_SAYING = 0.01
# The kernel divides CPU time into user and system by sampling.
_ALIKE = 0.03


def sentence(whole: CpuTime, *, ranks: int, others: int, threads: int | None) -> str:
    """The sentence for a run of `ranks` ranks with `threads` threads each, and `others` other processes."""
    if whole.user_s is None or whole.system_s is None or whole.real_s <= 0:
        return f"Real {duration_text(whole.real_s)}; user and sys were not measured."
    times = (whole.real_s, whole.user_s, whole.system_s)
    head = "Real {}, user {}, sys {}".format(*map(duration_text, times))
    parts = [
        _together(whole, ranks, others, threads),
        _kernel(whole, ranks + others),
        _off_core(whole, ranks + others),
        _on_core(whole),
    ]
    return f"{head}: {'; '.join(filter(None, parts))}."


def _together(whole: CpuTime, ranks: int, others: int, threads: int | None) -> str:
    """How user and sys compare with real, and which processes they belong to."""
    cpu_s = _cpu_s(whole)
    who = counted(ranks, "rank")
    if threads is not None and threads > 1:
        who += f" of {threads} threads each" if ranks > 1 else f" of {threads} threads"
    if others:
        who += " and 1 other process" if others == 1 else f" and {others} other processes"
    ratio = cpu_s / whole.real_s
    if abs(ratio - 1) <= _ALIKE:
        said = f"user and sys together are as long as real because {who} kept one core busy on average"
    elif ratio > 1:
        said = f"user and sys add up to {number_text(ratio)} times real because {who} ran on several cores at once"
    else:
        on_core = min(1.0, (cpu_s if whole.main_s is None else whole.main_s) / ((ranks + others) * whole.real_s))
        were = "was" if ranks + others == 1 else "were"
        said = f"user and sys add up to {percent_text(ratio, 0)} of real because {who} {were} on a core for only "
        said += f"{percent_text(on_core, 0)} of the time"
    return said + _threads(whole, cpu_s)


def _threads(whole: CpuTime, cpu_s: float) -> str:
    """CPU time of threads other than the main threads."""
    if whole.main_s is None:
        return ""
    comm_s = whole.comm_s or 0.0
    # Counters of a sample are read one after the other, so the difference may be slightly negative.
    rest_s = max(0.0, cpu_s - whole.main_s - comm_s)
    shares = []
    if comm_s >= _WORTH_SAYING * cpu_s:
        shares.append(f"{duration_text(comm_s)} in threads that move messages")
    if rest_s >= _WORTH_SAYING * cpu_s:
        shares.append(f"{duration_text(rest_s)} in {'others' if shares else 'other threads'} than the main ones")
    return f" (of the CPU time {' and '.join(shares)})" if shares else ""


def _kernel(whole: CpuTime, processes: int) -> str:
    share = (whole.system_s or 0.0) / max(_cpu_s(whole), 1e-9)
    if share < _WORTH_SAYING:
        return ""
    whom = "it" if processes == 1 else "them"
    return f"sys, {percent_text(share, 0)} of the CPU time, is the kernel's work for {whom}: memory, files, messages"


def _off_core(whole: CpuTime, processes: int) -> str:
    """Time of the main threads off a core, and its causes."""
    if whole.main_s is None:
        return ""
    total_s = processes * whole.real_s
    off_s = max(0.0, total_s - whole.main_s)
    if off_s < _WORTH_SAYING * total_s:
        return ""
    whose = "its main thread was" if processes == 1 else "their main threads were"
    said = f"{whose} off a core for {duration_text(off_s)} of {duration_text(total_s)}"
    why = []
    queued_s = whole.main_run_queue_wait_s or 0.0
    if queued_s >= _WORTH_SAYING * total_s:
        why.append(f"{duration_text(queued_s)} of it because none was free")
    blocked_s = min((whole.exposed_s or 0.0) - (whole.exposed_on_core_s or 0.0), off_s - queued_s)
    if blocked_s >= _WORTH_SAYING * total_s and whole.exposed_on_core_s is not None:
        why.append(f"up to {duration_text(blocked_s)} of it blocked in exposed communication")
    return f"{said}, {' and '.join(why)}" if why else f"{said}, blocked or not yet started"


def _on_core(whole: CpuTime) -> str:
    """Exposed communication that used CPU time."""
    exposed_s, on_core_s = whole.exposed_s or 0.0, whole.exposed_on_core_s or 0.0
    if on_core_s < 0.1 * exposed_s or on_core_s < _WORTH_SAYING * whole.real_s:
        return ""
    return (
        f"at least {duration_text(on_core_s)} of the {duration_text(exposed_s)} of exposed communication were spent "
        "on a core, spinning or copying"
    )


def _cpu_s(whole: CpuTime) -> float:
    return (whole.user_s or 0.0) + (whole.system_s or 0.0)
