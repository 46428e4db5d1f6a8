"""What an export has to be: Trace Event JSON that viewers can draw, Chakra files whose every byte has its place.

The fields of Chakra are written down here anew, from et_def.proto of schema 0.0.4: the number of each, its name, and
how its value is to be read.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

# Phase -> the fields that the format demands of it, beside ph, pid, tid and name.
DEMANDED = {"X": {"ts", "dur", "cat"}, "M": {"args"}, "s": {"ts", "id", "cat"}, "t": {"ts", "id", "cat"}}
DEMANDED["f"] = DEMANDED["s"]


def check_chrome(trace: dict[str, Any]) -> None:
    """Every event has what its phase demands; the spans of a thread nest; an arrow touches a span at either end."""
    threads: dict[tuple[int, int], list[tuple[float, float]]] = defaultdict(list)
    for event in trace["traceEvents"]:
        assert {"ph", "pid", "tid", "name", *DEMANDED[event["ph"]]} <= set(event), event
        if event["ph"] == "X":
            threads[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    for spans in threads.values():
        around: list[float] = []
        for start, end in spans:
            while around and around[-1] <= start + 1e-6:
                around.pop()
            assert not around or end <= around[-1] + 1e-6
            around.append(end)
    arrows: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for event in trace["traceEvents"]:
        if event["ph"] in "stf":
            arrows[event["id"]].append(event)
            assert event.get("bp") == ("e" if event["ph"] == "f" else None)  # else it binds to the span after it
            spans = threads[event["pid"], event["tid"]]
            assert any(start - 1e-6 <= event["ts"] <= end + 1e-6 for start, end in spans)
    for events in arrows.values():
        ordered = sorted(events, key=lambda event: (event["ts"], "stf".index(event["ph"])))
        assert [event["ph"] for event in ordered] == ["s", *["t"] * (len(events) - 2), "f"]
        assert len({(event["name"], event["cat"]) for event in events}) == 1


VARINT, LENGTH = 0, 2
# Wire type of each kind of value; a list is packed, and so has a length.
SCALARS = {"uint64": VARINT, "int32": VARINT, "int64": VARINT, "bool": VARINT, "enum": VARINT, "string": LENGTH}
SCHEMA: dict[str, dict[int, tuple[str, str]]] = {
    "GlobalMetadata": {1: ("version", "string"), 2: ("attr", "repeated AttributeProto")},
    "Node": {
        1: ("id", "uint64"),
        2: ("name", "string"),
        3: ("type", "enum"),
        4: ("ctrl_deps", "packed uint64"),
        5: ("data_deps", "packed uint64"),
        6: ("start_time_micros", "uint64"),
        7: ("duration_micros", "uint64"),
        10: ("attr", "repeated AttributeProto"),
    },
    "AttributeProto": {
        1: ("name", "string"),
        7: ("int32_val", "int32"),
        8: ("int32_list", "Int32List"),
        9: ("int64_val", "int64"),
        27: ("bool_val", "bool"),
        29: ("string_val", "string"),
    },
    "Int32List": {1: ("values", "packed int32")},
}
METADATA, COMP, SEND, RECV, COLL = 1, 4, 5, 6, 7
# What a feeder looks for, and in which field of an attribute it does.
ATTRIBUTES = {
    "is_cpu_op": "bool_val",
    "comm_type": "int64_val",
    "comm_size": "int64_val",
    "comm_src": "int32_val",
    "comm_dst": "int32_val",
    "comm_tag": "int32_val",
    "pg_name": "string_val",
}


class Reader:
    """Reads messages, and fails on every byte that the schema has no place for."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            assert shift <= 70
            if byte < 0x80:
                assert byte or shift == 7, "a longer number than it has to be"
                return value

    def taken(self) -> bytes:
        length = self.varint()
        assert self.at + length <= len(self.data)
        self.at += length
        return self.data[self.at - length : self.at]

    def message(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = {}
        last = 0
        while self.at < len(self.data):
            key = self.varint()
            number, wire_type = key >> 3, key & 7
            assert number in SCHEMA[name], f"{name} has no field {number}"
            assert number >= last, "fields are in ascending order"
            last = number
            field, kind = SCHEMA[name][number]
            words = kind.split()
            assert wire_type == SCALARS.get(kind, LENGTH), f"{name}.{field} has wire type {wire_type}"
            if words[0] == "repeated":
                found.setdefault(field, []).append(Reader(self.taken()).message(words[1]))
                continue
            assert field not in found, f"{name}.{field} stands there twice"
            if words[0] == "packed":
                packed = Reader(self.taken())
                found[field] = []
                while packed.at < len(packed.data):
                    found[field].append(packed.varint())
            elif kind in SCHEMA:
                found[field] = Reader(self.taken()).message(kind)
            else:
                found[field] = self.taken().decode() if wire_type == LENGTH else self.varint()
        return found


def decoded(data: bytes) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The metadata and the nodes of a file, attributes by their names."""
    file = Reader(data)
    metadata = Reader(file.taken()).message("GlobalMetadata")
    nodes = []
    while file.at < len(file.data):
        node = Reader(file.taken()).message("Node")
        for attribute in node.get("attr", []):
            name = attribute.pop("name")
            (field,) = attribute
            assert field == ATTRIBUTES.get(name, field)
            node[name] = attribute[field]
        nodes.append(node)
    return metadata, nodes
