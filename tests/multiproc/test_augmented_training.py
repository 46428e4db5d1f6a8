"""Augmentation keeps the two promises of training: the same on any number of ranks, and after a resume."""

from __future__ import annotations

import random

import gate
import pytest

CHANGED = {"crop": 1, "zoom": 0.05, "rotation": 5.0, "colour": 0.1, "cutout": 1}


@pytest.fixture(scope="module")
def one_process(groups, digits_folder: str, tmp_path_factory: pytest.TempPathFactory) -> gate.Losses:
    return gate.one_process_losses(groups[1], digits_folder, tmp_path_factory.mktemp("one"))


@pytest.mark.parametrize("size", [2, 3, 4])
def test_any_number_of_ranks_follows_one_process_on_augmented_images(
    groups, digits_folder, tmp_path, one_process, size
):
    changed = {**gate.EVEN, "augment": CHANGED}
    expected = one_process("adam", changed)
    assert expected != one_process("adam", gate.EVEN), "nothing was augmented"
    gate.follows_one_process(groups[size], digits_folder, tmp_path, expected, gate.learning("adam", changed))


@pytest.mark.parametrize("size", [1, 2])
def test_a_stopped_run_resumes_bit_for_bit_on_augmented_images(groups, digits_folder, tmp_path, size):
    gate.resumes(groups[size], digits_folder, tmp_path, "ddp", random.Random(size), augment=CHANGED)
