"""Writers of checkpoints that get killed: `python checkpoint_writers.py FOLDER COUNT [in-place]`.

Torch is imported once, then each writer is a fork, so that a kill costs milliseconds instead of
an import. A writer says each step on a pipe after `write_checkpoint` has returned: that is when a
run may rely on it. Prints how often something acknowledged was gone afterwards.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
import time
from pathlib import Path

import torch
from safetensors.torch import save

from paceline.storage import codec
from paceline.training import checkpoint


def standing(step: int) -> checkpoint.CheckpointState:
    return checkpoint.CheckpointState(
        point_id="p", seed=1, layout={"data": 2}, step=step, epochs=(), epoch_elapsed_s=0.0, host="h", versions={}
    )


def in_place(folder: Path, standing: checkpoint.CheckpointState, tensors: dict[str, torch.Tensor]) -> None:
    """What the rename is there against: the same files, written where they will be read."""
    for old in checkpoint.checkpoint_folders(folder):
        shutil.rmtree(old)
    final = folder / f"step-{standing.step:06d}"
    final.mkdir(parents=True)
    data = save(tensors)
    state = json.dumps({"schema": checkpoint.CheckpointState.SCHEMA, **codec.plain(standing)}).encode()
    (final / "tensors.safetensors").write_bytes(data)
    (final / "state.json").write_bytes(state)
    sums = {"tensors.safetensors": checkpoint._sha256(data), "state.json": checkpoint._sha256(state)}
    (final / "complete").write_text(json.dumps(sums))


def write_forever(folder: Path, acknowledge: int) -> None:
    tensors = {"x": torch.zeros(200_000)}
    step = 0
    while True:
        step += 1
        tensors["x"].fill_(step)
        checkpoint.write_checkpoint(folder, standing(step), tensors)
        os.write(acknowledge, f"{step}\n".encode())


def acknowledged_before_kill(folder: Path, after_s: float) -> int:
    """The last step that a writer acknowledged before it was killed."""
    reading, writing = os.pipe()
    writer = os.fork()
    if writer == 0:
        try:
            write_forever(folder, writing)
        finally:
            os._exit(3)
    os.close(writing)
    with os.fdopen(reading) as said:
        first = said.readline()
        time.sleep(after_s)
        os.kill(writer, signal.SIGKILL)
        os.waitpid(writer, 0)
        rest = said.read().split()
    return int(rest[-1] if rest else first)


def main() -> None:
    folder, count = Path(sys.argv[1]), int(sys.argv[2])
    torch.set_num_threads(1)
    if "in-place" in sys.argv:
        checkpoint.write_checkpoint = in_place  # type: ignore[assignment]
    chance = random.Random(1)
    lost = 0
    for number in range(count):
        acknowledged = acknowledged_before_kill(folder / str(number), chance.uniform(0.0, 0.05))
        found = checkpoint.newest_checkpoint(folder / str(number), "p", 1, {"data": 2})
        if found is None or found[1].step < acknowledged:
            lost += 1
        else:
            assert found[2]["x"].eq(found[1].step).all()
        shutil.rmtree(folder / str(number))
    print(f"{lost} of {count} lost")


if __name__ == "__main__":
    main()
