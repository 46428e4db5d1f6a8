"""Preflight check before the first step: rank 0 compares all processes, and either all ranks continue or none does.

    all      ── process facts (JSON) ──▶ rank 0
    rank 0   ◀── time stamps ──▶  ranks that read another clock
    rank 0   ── compares with the request ──▶ verdict, to all             refused: every rank ends
    pairs    ── messages of growing size ──▶ links ──▶ rank 0             ──▶ ranks/allocation-check.json

It uses the process group only: file systems and settings may be what differs. Messages are JSON in tensors of bytes,
never pickled objects. Only rank 0 decides: ranks with different code might decide differently.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, fields, replace
from typing import Any

import torch
import torch.distributed as dist

from paceline.errors import RunError
from paceline.identity import Identity
from paceline.preflight.allocation_checks import complaints
from paceline.preflight.process_facts import process_facts
from paceline.records.allocation import AllocationCheck, Clock, Link, ProcessFacts
from paceline.records.run import Manifest
from paceline.storage.codec import from_plain, plain, write_record
from paceline.storage.folder import RunFolder
from paceline.training.group import RefusedByRank0, gpu_count
from paceline.training.links import Pair, measured_links, pairs

_ROUNDS = 10
"""Exchanges of time stamps: the fastest round counts, and half its length bounds the error."""


class Refused(RunError):
    """The allocation makes the measurement meaningless; rank 0 reports the reason."""


def run_allocation_check(
    identity: Identity, folder: RunFolder, manifest: Manifest, device: torch.device
) -> tuple[Clock, ...]:
    """Offset of every process's clock against rank 0's.

    Raises Refused on rank 0 and RefusedByRank0 on the others if the run must not start.
    """
    own = process_facts(identity, manifest, threads=torch.get_num_threads(), device=str(device), gpus=_visible_gpus())
    everyone = [_facts(each) for each in gathered_from_all(plain(own))]
    clocks = _clocks(everyone, identity.rank)
    check = None
    if identity.rank == 0:
        found = complaints(manifest, everyone, clocks)
        refused = not manifest.force and any(complaint.severity == "fatal" for complaint in found)
        check = AllocationCheck(refused=refused, ranks=tuple(everyone), complaints=found, clocks=tuple(clocks))
        if refused:
            # Before the verdict: rank 0 must be first to report the reason.
            write_record(folder.allocation_check, check)
    verdict = from_rank_0(
        {"refused": check.refused, "clocks": [plain(clock) for clock in clocks], "pairs": _pairs(everyone)}
        if check
        else None
    )
    if verdict["refused"]:
        raise _refusal(check) if check else RefusedByRank0("Rank 0 has refused the run before its first step.")
    todo = [Pair(**pair) for pair in verdict["pairs"]]
    found_links = gathered_from_all([plain(link) for link in measured_links(todo, everyone, identity.rank)])
    if check:
        links = tuple(from_plain(Link, link) for own in found_links for link in own)
        write_record(folder.allocation_check, replace(check, links=links))
    return tuple(from_plain(Clock, clock) for clock in verdict["clocks"])


def clock_at_end(clocks: Sequence[Clock], rank: int) -> Clock | None:
    """Offset of this process's clock against rank 0's after the run; None for the same clock. A collective call."""
    others = [clock.rank for clock in clocks if clock.method != "same"]
    found = [_exchanged(other, rank) for other in others]
    if not others:
        return None
    clocks_at_end = from_rank_0([plain(clock) for clock in found if clock is not None])
    return next((from_plain(Clock, clock) for clock in clocks_at_end if clock["rank"] == rank), None)


def _refusal(check: AllocationCheck) -> Refused:
    fatal = [complaint for complaint in check.complaints if complaint.severity == "fatal"]
    return Refused("\n".join(complaint.what for complaint in fatal))


def gathered_from_all(value: Any) -> list[Any]:
    """The value of every process, in order of rank. A collective call."""
    own = _bytes(value)
    if not dist.is_initialized():
        return [_value(own)]
    sizes = [torch.zeros(1, dtype=torch.int64) for _ in range(dist.get_world_size())]
    dist.all_gather(sizes, torch.tensor([len(own)]))
    # all_gather needs equal sizes: the longest message has a few thousand bytes.
    longest = max(int(size) for size in sizes)
    parts = [torch.zeros(longest, dtype=torch.uint8) for _ in sizes]
    dist.all_gather(parts, torch.nn.functional.pad(own, (0, longest - len(own))))
    return [_value(part[: int(size)]) for part, size in zip(parts, sizes, strict=True)]


def from_rank_0(value: Any) -> Any:
    """The value of rank 0, on every process. A collective call."""
    message = _bytes(value)
    if not dist.is_initialized():
        return _value(message)
    size = torch.tensor([len(message)])
    dist.broadcast(size, src=0)
    if dist.get_rank():
        message = torch.zeros(int(size), dtype=torch.uint8)
    dist.broadcast(message, src=0)
    return _value(message)


def _bytes(value: Any) -> torch.Tensor:
    return torch.frombuffer(bytearray(json.dumps(value).encode()), dtype=torch.uint8)


def _value(message: torch.Tensor) -> Any:
    return json.loads(message.numpy().tobytes())


def _facts(values: dict[str, Any]) -> ProcessFacts:
    """The facts of a process; fields of another version are ignored, since that is a complaint, not a crash."""
    known = {field.name for field in fields(ProcessFacts)}
    return from_plain(ProcessFacts, {name: value for name, value in values.items() if name in known})


def _pairs(ranks: Sequence[ProcessFacts]) -> list[dict[str, Any]]:
    return [asdict(pair) for pair in pairs(ranks)]


def _clocks(ranks: Sequence[ProcessFacts], rank: int) -> list[Clock]:
    """On rank 0: offset of every clock against rank 0's, measured for ranks that read another clock."""
    clocks = [Clock(rank=other.rank, offset_ns=0, error_ns=0, method="same") for other in ranks]
    for other in from_rank_0([other.rank for other in ranks if other.clock != ranks[0].clock]):
        clocks[other] = _exchanged(other, rank) or clocks[other]
    return clocks


def _exchanged(other: int, rank: int) -> Clock | None:
    """On rank 0: offset of the clock of rank `other`, from exchanged time stamps."""
    if rank == other:
        answer_clock_requests()
    return clock_offset(other) if rank == 0 else None


def clock_offset(other: int) -> Clock:
    """Offset of another rank's clock against this one's, in ns.

    sent ──▶ received, answered ──▶ back: both midpoints are the same instant, with an error of at most half the network
    delay. (Offset and delay of NTP, RFC 5905; the round with the least delay counts.)
    """
    rounds = []
    question, stamps = torch.zeros(1, dtype=torch.int64), torch.zeros(2, dtype=torch.int64)
    for _ in range(_ROUNDS):
        sent_ns = time.monotonic_ns()
        dist.send(question, other)
        dist.recv(stamps, other)
        back_ns = time.monotonic_ns()
        received_ns, answered_ns = stamps.tolist()
        delay_ns = (back_ns - sent_ns) - (answered_ns - received_ns)
        rounds.append((delay_ns, (received_ns + answered_ns - sent_ns - back_ns) // 2, received_ns))
    delay_ns, offset_ns, at_ns = min(rounds)
    return Clock(rank=other, offset_ns=offset_ns, error_ns=delay_ns // 2 + 1, method="exchange", at_ns=at_ns)


def answer_clock_requests() -> None:
    """The other side of `clock_offset`: send the time to rank 0 for each request."""
    question = torch.zeros(1, dtype=torch.int64)
    for _ in range(_ROUNDS):
        dist.recv(question, 0)
        received_ns = time.monotonic_ns()
        dist.send(torch.tensor([received_ns, time.monotonic_ns()]), 0)


def _visible_gpus() -> tuple[str, ...]:
    return tuple(torch.cuda.get_device_name(index) for index in range(gpu_count()))
