"""Peer: data-parallel training as it was published: TensorFlow, eager, with mpi4py's pickled reduce and broadcast.

    mpiexec -n 2 python published_mpi.py FOLDER DATA     in the environment of published-requirements.txt

Written from its description alone: the network of 690,590 parameters, Adam, a batch of 128 per process; after each
batch the list of gradients is reduced to rank 0, averaged, and broadcast. It takes turns as bench/turns.py has them.
"""

import json
import os
import sys
import time
from pathlib import Path

os.environ |= {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1", "OMP_NUM_THREADS": "1"}

import numpy as np
from mpi4py import MPI

WORLD = MPI.COMM_WORLD
BATCH = 128
SAMPLES = 12_000
os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[WORLD.rank % os.cpu_count()]})

import tensorflow as tf

tf.config.threading.set_intra_op_parallelism_threads(1)
tf.config.threading.set_inter_op_parallelism_threads(1)


def network() -> tf.keras.Model:
    layers = tf.keras.layers
    stack = [tf.keras.Input((28, 28, 1))]
    for filters in (32, 128, 256):
        stack += [layers.Conv2D(filters, 3, activation="relu"), layers.MaxPooling2D(2)]
    stack += [layers.Flatten(), layers.Dropout(0.25), layers.Dense(1000, activation="relu")]
    stack += [layers.Dense(100, activation="relu"), layers.Dense(10)]
    return tf.keras.Sequential(stack)


def added(one: list, other: list) -> list:
    return [a + b for a, b in zip(one, other, strict=True)]


class Training:
    """Takes as many steps as it is asked to."""

    def __init__(self, data: Path) -> None:
        images = np.load(data / "train-images.npy", mmap_mode="r")[:SAMPLES]
        labels = np.load(data / "train-labels.npy", mmap_mode="r")[:SAMPLES]
        own = slice(WORLD.rank, None, WORLD.size)
        self._images = (images[own].astype(np.float32) / 255 - 0.1307) / 0.3081
        self._labels = labels[own].astype(np.int64)
        tf.keras.utils.set_random_seed(1)
        self._model = network()
        assert self._model.count_params() == 690_590
        self._optimizer = tf.keras.optimizers.Adam(0.001 * WORLD.size)
        self._loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        self._step = 0

    def steps(self, count: int) -> None:
        variables = self._model.trainable_variables
        for _ in range(count):
            start = self._step * BATCH % (len(self._images) - BATCH)
            self._step += 1
            inputs, labels = self._images[start : start + BATCH], self._labels[start : start + BATCH]
            with tf.GradientTape() as tape:
                loss = self._loss(labels, self._model(inputs, training=True))
            gradients = [gradient.numpy() for gradient in tape.gradient(loss, variables)]
            total = WORLD.reduce(gradients, op=added, root=0)
            mean = [gradient / WORLD.size for gradient in total] if total is not None else None
            mean = WORLD.bcast(mean, root=0)
            self._optimizer.apply_gradients(zip(mean, variables, strict=True))


def main() -> None:
    folder, training = Path(sys.argv[1]), Training(Path(sys.argv[2]))
    training.steps(5)
    number = 0
    while True:
        number += 1
        asked = folder / f"turn-{number:04d}"
        # The file is looked for by every process: waiting in MPI would keep a core busy that others are timed on.
        while not asked.exists():
            time.sleep(0.05)
        block, count = json.loads(asked.read_text())
        started = time.perf_counter()
        training.steps(count)
        WORLD.Barrier()
        if WORLD.rank == 0:
            answer = folder / f"turn-{number:04d}.json"
            answer.with_suffix(".tmp").write_text(json.dumps(time.perf_counter() - started))
            answer.with_suffix(".tmp").rename(answer)
        if not block:
            break


if __name__ == "__main__":
    main()
