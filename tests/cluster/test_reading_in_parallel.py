"""Reading through an MPI file view, with real mpiexec and 1 to 4 ranks: each its own records, and no others.

python test_reading_in_parallel.py FOLDER      what one rank does
"""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from light_ranks.light_launch import point
from paceline.data.store import prepare
from paceline.identity import this_rank
from paceline.launch.child import python
from paceline.records.settings import DataSettings
from paceline.training import mpi_session
from paceline.training.reading import data_share, load_data, read_bytes

SHAPE = (28, 28, 1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    cache = tmp_path_factory.mktemp("cache")
    settings = DataSettings(dataset="synthetic", shape=SHAPE, classes=10, samples=3000)
    return prepare(settings, base=cache, cache=cache).folder


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_every_rank_reads_its_own_records_of_the_one_file(folder, size):
    mpiexec = Path(sys.executable).with_name("mpiexec")
    command = [str(mpiexec), "-n", str(size), *python(__file__, str(folder))]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    answers = sorted((json.loads(line) for line in done.stdout.splitlines()), key=lambda answer: answer["rank"])
    assert [answer["rank"] for answer in answers] == list(range(size))
    assert all(answer["equal"] for answer in answers)
    images = 3000 * int(np.prod(SHAPE))
    if size > 1:
        for answer in answers:
            # Its share of images and labels, the holes that validation leaves in it, and headers.
            assert answer["share"] <= answer["read"] < images / size * 1.35
        assert sum(answer["samples"] for answer in answers) == 2700


def main() -> None:
    me, folder = this_rank(), Path(sys.argv[1])
    settings = DataSettings(dataset="synthetic", read="mpi-io", validation=300)
    wanted = replace(point(me.size), data=settings)
    before = read_bytes()
    held = load_data(folder, wanted, me.rank)
    after = read_bytes()
    own = data_share(held.parts.train, me.rank, me.size) if me.size > 1 else slice(None)
    answer = {
        "rank": me.rank,
        "samples": len(held.train_images),
        "read": (after or 0) - (before or 0),
        "share": held.train_images.nbytes,
        "equal": np.array_equal(held.train_images, held.mapped.train_images[own])
        and np.array_equal(held.train_labels, held.mapped.train_labels[own]),
    }
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
    mpi_session.finalize()


if __name__ == "__main__":
    main()
