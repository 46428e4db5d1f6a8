"""How large traces are: at most 16 MB for an hour of a rank that takes part in 100 messages a second."""

from __future__ import annotations

import random

from paceline.records.rank_trace import SPAN_KINDS
from paceline.storage.span_stream import SpanRow, SpanWriter, read_spans

HOUR_S, FLUSH_S, MESSAGES_PER_S, STEPS_PER_S = 3600, 10, 100, 20
KIND = {name: index for index, name in enumerate(SPAN_KINDS)}
LIMIT_BYTES = 16_000_000


def rows_of(second: int, chance: random.Random) -> list[SpanRow]:
    """A second of training: steps of five parts each, messages of three sizes, all with a busy machine's jitter."""
    rows: list[SpanRow] = []
    per_step = MESSAGES_PER_S // STEPS_PER_S
    for number in range(STEPS_PER_S):
        step = second * STEPS_PER_S + number
        at = 8_000_000_000_000 + step * 50_000_000 + chance.randrange(3_000_000)
        for kind in ("input-wait", "forward", "backward", "communicate", "optimizer", "step"):
            end = at + chance.randrange(1_000_000, 12_000_000)
            rows.append((KIND[kind], at, end, step, None, -1, -1, None, -1, -1, None))
            at = end
        for message in range(per_step):
            end = at + chance.randrange(200_000, 9_000_000)
            sequence, size = step * per_step + message, (4_194_304, 1_048_576, 16)[message % 3]
            rows.append((KIND["collective"], at, end, step, "allreduce_", size, sequence, "0", -1, -1, "float32"))
            at += chance.randrange(100_000, 900_000)
    return rows


def test_an_hour_at_100_messages_a_second_takes_at_most_16_mb(tmp_path) -> None:
    path = tmp_path / "rank-0000.arrows"
    chance = random.Random(4)
    writer = SpanWriter(path)
    written = 0
    for start in range(0, HOUR_S, FLUSH_S):
        rows = [row for second in range(start, start + FLUSH_S) for row in rows_of(second, chance)]
        writer.write(rows)
        written += len(rows)
    writer.close()
    assert written >= HOUR_S * MESSAGES_PER_S
    assert path.stat().st_size <= LIMIT_BYTES, path.stat().st_size
    assert len(read_spans(path, 0)) == written
