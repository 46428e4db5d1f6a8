"""Augmentation of one batch on one core: ours against torchvision's transforms.v2, in turns.

python -m bench.augment [--rounds N] [--write]

v2 draws once per call. To change every sample in its own way it has to be called sample by sample, which is the fair
peer; called once for the whole batch it changes all samples alike, which is shown beside it. kornia is not measured:
it changes floats, from the state of a generator, and so can be had neither on bytes nor alike on any number of ranks.
"""

from __future__ import annotations

import argparse
import importlib
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"

import torch

from bench.claims import Claim, machine_lines, ratio_text, table
from paceline.analyze.stats.intervals import ratio_interval
from paceline.records.settings import AugmentSettings
from paceline.training.augment import Augmentation
from paceline.training.draws import sample_keys
from paceline.training.models.torchvision_import import torchvision_models
from paceline.units import number_text

ROOT = Path(__file__).parents[1]
SHAPE = (32, 32, 3)
BATCH = 128
MOST_MS = 3.0
"""For crop and flip of a batch."""

Change = Callable[[torch.Tensor], torch.Tensor]


def ours(settings: AugmentSettings) -> Change:
    """The keys are made anew for every batch, as they are in training."""
    change, indices = Augmentation(settings, SHAPE), torch.randperm(50_000)[:BATCH]
    return lambda images: change(images, sample_keys(1, 2, indices))


def each(transform: Any) -> Change:
    """v2 on one sample after another, as a DataLoader has it."""
    return lambda images: torch.stack([transform(image) for image in images.permute(0, 3, 1, 2)])


def at_once(transform: Any) -> Change:
    """v2 on the whole batch, all samples alike."""
    return lambda images: transform(images.permute(0, 3, 1, 2))


def ways() -> dict[str, tuple[Change, Change, Change]]:
    """What is done -> ours, v2 sample by sample, v2 on the whole batch."""
    torchvision_models()  # declares what torchvision needs to be imported
    v2 = importlib.import_module("torchvision.transforms.v2")
    moved = v2.Compose([v2.RandomCrop(32, padding=4), v2.RandomHorizontalFlip()])
    bilinear = v2.InterpolationMode.BILINEAR
    turned = v2.RandomAffine(15, translate=(0.1, 0.1), scale=(0.9, 1.1), interpolation=bilinear)
    coloured = v2.ColorJitter(0.4, 0.4, 0.4)
    return {
        "crop and flip": (ours(AugmentSettings(crop=4, flip=True)), each(moved), at_once(moved)),
        "shift, zoom and rotation": (
            ours(AugmentSettings(shift=0.1, zoom=0.1, rotation=15.0)),
            each(turned),
            at_once(turned),
        ),
        "colour": (ours(AugmentSettings(colour=0.4)), each(coloured), at_once(coloured)),
    }


def times_ms(changes: tuple[Change, ...], images: torch.Tensor, rounds: int) -> list[list[float]]:
    """Milliseconds of every change in every round; the first round warms up and is left out."""
    found: list[list[float]] = [[] for _ in changes]
    for number in range(rounds + 1):
        for change, taken in zip(changes, found, strict=True):
            started = time.perf_counter()
            change(images)
            if number:
                taken.append(1000 * (time.perf_counter() - started))
    return found


def claims(rounds: int) -> list[Claim]:
    """What a batch costs, and how much more it costs torchvision."""
    images = torch.randint(0, 256, (BATCH, *SHAPE), dtype=torch.uint8)
    rows = []
    for what, changes in ways().items():
        own, one_by_one, alike = times_ms(changes, images, rounds)
        own_ms = statistics.median(own)
        name = f"{what}, a batch of {BATCH} at {'×'.join(map(str, SHAPE))}"
        if what == "crop and flip":
            rows.append(Claim(name, "–", f"{number_text(own_ms)} ms", f"under {MOST_MS:g} ms", own_ms < MOST_MS))
        faster = ratio_interval(one_by_one, own)
        peer = f"v2 sample by sample ({number_text(statistics.median(one_by_one))} ms)"
        rows.append(Claim(f"{what} ({number_text(own_ms)} ms)", peer, ratio_text(faster), "above 1", faster.median > 1))
        faster = ratio_interval(alike, own)
        peer = f"v2, all samples alike ({number_text(statistics.median(alike))} ms)"
        rows.append(Claim(f"{what} ({number_text(own_ms)} ms)", peer, ratio_text(faster), "shown", True))
    return rows


def page(found: list[Claim], rounds: int, load_before: float) -> str:
    """The page that is kept."""
    return f"""# Benchmark of augmentation

Made by `python -m bench.augment --write` on {time.strftime("%Y-%m-%d")}. Load average of the machine before it began:
{load_before:.2f}.

{table(found)}

{machine_lines()}
- Protocol: one process on one core changes the same batch of bytes in turn with torchvision's transforms.v2, {rounds}
  rounds after one that warms up; medians, and beside the ratio of medians the interval of the ratios within a round
  ([interval](glossary.md)). Other libraries: [augmentation](augmentation.md#comparison-with-other-libraries).
"""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.augment")
    parser.add_argument("--rounds", type=int, default=15, help="how often the sides take turns (default 15)")
    parser.add_argument("--write", action="store_true", help="keep the table in docs/benchmarks-augment.md")
    options = parser.parse_args()
    load_before = os.getloadavg()[0]
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    torch.set_num_threads(1)
    found = claims(options.rounds)
    print(table(found))
    if options.write:
        (ROOT / "docs" / "benchmarks-augment.md").write_text(page(found, options.rounds, load_before))
    return 0 if all(claim.met for claim in found) else 1


if __name__ == "__main__":
    sys.exit(main())
