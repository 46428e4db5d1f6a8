"""Keras on torch: compile, fit, evaluate; 2 epochs of 5 steps of 16."""

import os

os.environ["KERAS_BACKEND"] = "torch"
import keras
import numpy as np

keras.utils.set_random_seed(1)
model = keras.Sequential([keras.Input((64,)), keras.layers.Dense(32, activation="relu"), keras.layers.Dense(10)])
model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
inputs, labels = np.random.rand(80, 64).astype("float32"), np.random.randint(0, 10, 80)
model.fit(inputs, labels, batch_size=16, epochs=2, verbose=0)
model.evaluate(inputs, labels, batch_size=16, verbose=0)
print(f"checksum {sum(float(np.asarray(w, dtype='float64').sum()) for w in model.get_weights())!r}", flush=True)
