"""Before the first step: every process says what it was given, rank 0 compares, and all go on or none does.

    all      ── what each was given (JSON) ──▶ rank 0
    rank 0   ◀── time stamps to and fro ──▶  those whose clock is another
    rank 0   ── compares with what was asked for ──▶ verdict, to all      refused: every rank ends
    pairs    ── messages of growing size ──▶ links ──▶ rank 0             ──▶ ranks/roll-call.json

Goes over the process group alone: nothing is assumed about file systems or settings, which may be what differs.
Messages are JSON in tensors of bytes, never pickled objects. The verdict is rank 0's: ranks whose code differs might
find another.
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
from paceline.records.allocation import Clock, Link, PreflightCheck, ProcessFacts
from paceline.records.run import Manifest
from paceline.storage.codec import from_plain, plain, write_record
from paceline.storage.folder import RunFolder
from paceline.training.group import RefusedByRank0, gpu_count
from paceline.training.links import Pair, measured_links, pairs

_ROUNDS = 10
"""Time stamps sent to and fro: the quickest round counts, and bounds the error by half its length."""


class Refused(RunError):
    """What was given makes the measurement meaningless; rank 0 says why."""


def run_preflight_check(
    identity: Identity, folder: RunFolder, manifest: Manifest, device: torch.device
) -> tuple[Clock, ...]:
    """Hold the roll call; every process's clock against rank 0's. Refused or Dismissed where the run must not go on."""
    own = process_facts(identity, manifest, threads=torch.get_num_threads(), device=str(device), gpus=_visible_gpus())
    everyone = [_facts(said) for said in gathered_from_all(plain(own))]
    clocks = _clocks(everyone, identity.rank)
    roll = None
    if identity.rank == 0:
        found = complaints(manifest, everyone, clocks)
        refused = not manifest.force and any(complaint.severity == "fatal" for complaint in found)
        roll = PreflightCheck(refused=refused, ranks=tuple(everyone), complaints=found, clocks=tuple(clocks))
        if refused:
            write_record(folder.roll_call, roll)  # before the others know, so that rank 0 is the first to say why
    verdict = from_rank_0(
        {"refused": roll.refused, "clocks": [plain(clock) for clock in clocks], "pairs": _pairs(everyone)}
        if roll
        else None
    )
    if verdict["refused"]:
        raise _refusal(roll) if roll else RefusedByRank0("Rank 0 has refused the run before its first step.")
    todo = [Pair(**pair) for pair in verdict["pairs"]]
    found_links = gathered_from_all([plain(link) for link in measured_links(todo, everyone, identity.rank)])
    if roll:
        links = tuple(from_plain(Link, link) for own in found_links for link in own)
        write_record(folder.roll_call, replace(roll, links=links))
    return tuple(from_plain(Clock, clock) for clock in verdict["clocks"])


def clock_at_end(clocks: Sequence[Clock], rank: int) -> Clock | None:
    """This process's clock against rank 0's, after a good run; None where it reads the same. To be called on all."""
    others = [clock.rank for clock in clocks if clock.method != "same"]
    found = [_exchanged(other, rank) for other in others]
    if not others:
        return None
    said = from_rank_0([plain(clock) for clock in found if clock is not None])
    return next((from_plain(Clock, clock) for clock in said if clock["rank"] == rank), None)


def _refusal(roll: PreflightCheck) -> Refused:
    fatal = [complaint for complaint in roll.complaints if complaint.severity == "fatal"]
    return Refused("\n".join(complaint.what for complaint in fatal))


def gathered_from_all(value: Any) -> list[Any]:
    """What every process said, in order of rank; to be called on all of them."""
    own = _bytes(value)
    if not dist.is_initialized():
        return [_value(own)]
    sizes = [torch.zeros(1, dtype=torch.int64) for _ in range(dist.get_world_size())]
    dist.all_gather(sizes, torch.tensor([len(own)]))
    # All parts have to be of one size: the longest is a few thousand bytes.
    longest = max(int(size) for size in sizes)
    parts = [torch.zeros(longest, dtype=torch.uint8) for _ in sizes]
    dist.all_gather(parts, torch.nn.functional.pad(own, (0, longest - len(own))))
    return [_value(part[: int(size)]) for part, size in zip(parts, sizes, strict=True)]


def from_rank_0(value: Any) -> Any:
    """What rank 0 says, on every process; the others' value is not used."""
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


def _facts(said: dict[str, Any]) -> ProcessFacts:
    """What a process said, as far as this version knows the words: another version's is a complaint, not a crash."""
    known = {field.name for field in fields(ProcessFacts)}
    return from_plain(ProcessFacts, {name: value for name, value in said.items() if name in known})


def _pairs(ranks: Sequence[ProcessFacts]) -> list[dict[str, Any]]:
    return [asdict(pair) for pair in pairs(ranks)]


def _clocks(ranks: Sequence[ProcessFacts], rank: int) -> list[Clock]:
    """Every clock against rank 0's, on rank 0; time stamps are exchanged with those that read another one."""
    clocks = [Clock(rank=other.rank, offset_ns=0, error_ns=0, method="same") for other in ranks]
    for other in from_rank_0([other.rank for other in ranks if other.clock != ranks[0].clock]):
        clocks[other] = _exchanged(other, rank) or clocks[other]
    return clocks


def _exchanged(other: int, rank: int) -> Clock | None:
    """Time stamps sent to and fro between rank 0, which gets the answer, and another."""
    if rank == other:
        answer_clock_requests()
    return clock_offset(other) if rank == 0 else None


def clock_offset(other: int) -> Clock:
    """Another rank's clock against this one's, which asks it for the time.

    sent ──▶ received, answered ──▶ back: the middles of what each saw are the same instant, but for half of what the
    round took beyond the other's own time. (Offset and delay of NTP, RFC 5905, of the round with the least delay.)
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
    """The other side of `clock_offset`: tells rank 0 the time, whenever asked."""
    question = torch.zeros(1, dtype=torch.int64)
    for _ in range(_ROUNDS):
        dist.recv(question, 0)
        received_ns = time.monotonic_ns()
        dist.send(torch.tensor([received_ns, time.monotonic_ns()]), 0)


def _visible_gpus() -> tuple[str, ...]:
    return tuple(torch.cuda.get_device_name(index) for index in range(gpu_count()))
