"""A run as MLCommons Chakra execution traces, which simulators such as ASTRA-sim replay: one file for each rank.

A file is a GlobalMetadata, then Nodes in the order of their starts, each with its length before it (schema 0.0.4):

    span                       node            what it carries
    computation, by kind       COMP            duration; the computation before it, and the messages that it waited for
    collective                 COMM_COLL       comm_type, comm_size, pg_name, the ranks of the group, the root
    send, receive              COMM_SEND/RECV  comm_src, comm_dst, comm_size; comm_tag is the same at both ends
    message of another kind    METADATA        its name and size

Dependencies are data_deps, which is what a feeder goes by; the order of the program stands in ctrl_deps, too. Times
are whole microseconds: the schema has no finer ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from typing import BinaryIO

from paceline.records.rank_trace import LEDGER_KINDS
from paceline.records.trace_summary import RunTrace
from paceline.records.track import RankGraph

_VARINT, _LENGTH = 0, 2
_SHORT = tuple(bytes((low,)) for low in range(0x80)) + tuple(
    bytes((value & 0x7F | 0x80, value >> 7)) for value in range(0x80, 1 << 14)
)
"""What one or two bytes hold."""
_MORE = tuple(bytes((value & 0x7F | 0x80, value >> 7 | 0x80)) for value in range(1 << 14))
"""The lowest 14 bits of what takes more."""


def varint(value: int) -> bytes:
    """A whole number of at most 64 bits."""
    if 0 <= value < 1 << 14:
        return _SHORT[value]
    value &= (1 << 64) - 1
    encoded = b""
    while value >= 1 << 14:
        encoded += _MORE[value & 0x3FFF]
        value >>= 14
    return encoded + _SHORT[value]


@cache
def _key(field: int, wire_type: int) -> bytes:
    return varint(field << 3 | wire_type)


def number(field: int, value: int) -> bytes:
    """A field that is a whole number, an enumeration or a truth value."""
    return _key(field, _VARINT) + varint(value)


def scalar(field: int, value: int) -> bytes:
    """A number field outside of a oneof: 0 is the default and is not written."""
    return number(field, value) if value else b""


def block(field: int, value: bytes) -> bytes:
    """A field that is a message, or bytes."""
    return _key(field, _LENGTH) + varint(len(value)) + value


def text(field: int, value: str) -> bytes:
    """A field that is text; half a character, which UTF-8 does not have, is replaced."""
    return block(field, value.encode("utf-8", "replace"))


def numbers(field: int, values: Iterable[int]) -> bytes:
    """A repeated field of whole numbers, packed as version 3 of the language has it; nothing where there are none."""
    packed = b"".join(map(varint, values))
    return block(field, packed) if packed else b""


def delimited(message: bytes) -> bytes:
    """A message in a file of several: its length before it."""
    return varint(len(message)) + message


SCHEMA_VERSION = "0.0.4"
METADATA, COMP, SEND, RECEIVE, COLLECTIVE = 1, 4, 5, 6, 7
_NODES = {"send": SEND, "recv_": RECEIVE, "recv_any_source_": RECEIVE}
# Operation -> CollectiveCommType.
COLLECTIVES = {
    **dict.fromkeys(("allreduce_", "allreduce_coalesced_", "mpi_allreduce"), 0),
    **dict.fromkeys(("reduce_", "mpi_reduce", "mpi_reduce_pickled"), 1),
    **dict.fromkeys(("allgather_", "_allgather_base_", "allgather_coalesced_", "allgather_into_tensor_coalesced_"), 2),
    "gather_": 3,
    "scatter_": 4,
    **dict.fromkeys(("broadcast_", "mpi_bcast", "mpi_bcast_pickled"), 5),
    **dict.fromkeys(("alltoall_", "alltoall_base_"), 6),
    **dict.fromkeys(("reduce_scatter_", "_reduce_scatter_base_", "reduce_scatter_tensor_coalesced_"), 7),
    **dict.fromkeys(("barrier", "monitored_barrier_"), 9),
}
_AT_ONCE = 4096
"""Nodes that are written together."""


def write_chakra(run: RunTrace, graph: RankGraph, file: BinaryIO) -> None:
    """Write the execution trace of one rank."""
    about = [
        _text("made_by", "Paceline"),
        _text("run", run.name),
        _int64("rank", graph.rank),
        _int64("ranks", run.ranks),
        *([_text("host", graph.host)] if graph.host else []),
    ]
    file.write(delimited(text(1, SCHEMA_VERSION) + b"".join(block(2, each) for each in about)))
    groups = {name: ranks for trace in run.traces for name, ranks in trace.groups.items()}
    waiting = []
    for node in _nodes(graph, groups, on_cpu=run.device == "cpu"):
        waiting.append(delimited(node))
        if len(waiting) == _AT_ONCE:
            file.write(b"".join(waiting))
            waiting.clear()
    file.write(b"".join(waiting))


def _nodes(graph: RankGraph, groups: Mapping[str, tuple[int, ...]], *, on_cpu: bool) -> Iterator[bytes]:
    """Each node as bytes. A loop, since each has a length of its own; what nodes have in common is encoded once."""
    on_core = block(10, _bool("is_cpu_op", on_cpu))
    computing = [(text(2, name) + number(3, COMP), on_core) for name in LEDGER_KINDS]

    @lru_cache(maxsize=4096)
    def sending(
        operation: str | None, payload: int, group: str | None, dtype: str | None, peer: int
    ) -> tuple[bytes, bytes]:
        return _message(graph.rank, operation, payload, group, dtype, peer, groups.get(group or "", ()))

    edges = _Edges(graph)
    columns = (graph.start_ns, graph.length_ns, graph.kind, graph.after, graph.payload, graph.peer, graph.message)
    lists = [column.tolist() for column in (*columns, graph.sequence, graph.wait_ns)]
    words = (graph.operation, graph.group, graph.dtype)
    for node, row in enumerate(zip(*lists, *words, strict=True)):
        start, length, kind, after, payload, peer, message, sequence, wait, operation, group, dtype = row
        depends = edges.of(node)
        head, about = computing[kind] if kind >= 0 else sending(operation, payload, group, dtype, peer)
        encoded = scalar(1, node) + head
        if after >= 0:
            depends = [after, *depends]
            encoded += numbers(4, [after])
        encoded += numbers(5, depends) + scalar(6, max(start, 0) // 1000) + scalar(7, (length + 500) // 1000) + about
        if operation in _NODES and message >= 0:
            encoded += block(10, _int32("comm_tag", message & 0x7FFFFFFF))
        if sequence >= 0:
            encoded += block(10, _int64("sequence", sequence))
        yield encoded + (block(10, _int64("wait_micros", wait // 1000)) if wait >= 0 else b"")


class _Edges:
    """The messages that nodes wait for, asked for in the order of the nodes."""

    def __init__(self, graph: RankGraph) -> None:
        self._from, self._to = graph.edge_from.tolist(), graph.edge_to.tolist()
        self._next = 0

    def of(self, node: int) -> list[int]:
        begin = self._next
        while self._next < len(self._to) and self._to[self._next] == node:
            self._next += 1
        return self._from[begin : self._next]


def _message(
    rank: int,
    operation: str | None,
    payload: int,
    group: str | None,
    dtype: str | None,
    peer: int,
    members: tuple[int, ...],
) -> tuple[bytes, bytes]:
    """What all messages of one kind and size have in common: name and type, and attributes."""
    name = operation or "message"
    attributes = [_bool("is_cpu_op", False), _int64("comm_size", max(payload, 0))]
    node = _NODES.get(name, COLLECTIVE if name in COLLECTIVES else METADATA)
    if node == COLLECTIVE:
        attributes.append(_int64("comm_type", COLLECTIVES[name]))
        attributes += [_int32("root", peer)] if peer >= 0 else []
    elif node in (SEND, RECEIVE) and peer >= 0:
        source, target = (rank, peer) if node == SEND else (peer, rank)
        attributes += [_int32("comm_src", source), _int32("comm_dst", target)]
    attributes += [_text("pg_name", group)] if group is not None else []
    attributes += [_int32_list("pg_ranks", members)] if members else []
    attributes += [_text("dtype", dtype)] if dtype is not None else []
    return text(2, name) + number(3, node), b"".join(block(10, attribute) for attribute in attributes)


def _bool(name: str, value: bool) -> bytes:
    return text(1, name) + number(27, value)


def _int32(name: str, value: int) -> bytes:
    return text(1, name) + number(7, value)


def _int64(name: str, value: int) -> bytes:
    return text(1, name) + number(9, value)


def _text(name: str, value: str) -> bytes:
    return text(1, name) + text(29, value)


def _int32_list(name: str, values: tuple[int, ...]) -> bytes:
    return text(1, name) + block(8, block(1, b"".join(map(varint, values))))
