"""A process of its own: Keras on TensorFlow from nothing to the first trained step, or its memory.

usage: tensorflow_start.py first_step|memory
"""

import sys

import common as c
import tensorflow_peer as peer


def main():
    what = sys.argv[1]
    answers = c.claim_stdout()
    images, targets = c.cnn_data()
    model = peer.cnn_model()
    model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    if what == "first_step":
        images, targets = images[: c.CNN_BATCH], targets[: c.CNN_BATCH]
    model.fit(images, targets, batch_size=c.CNN_BATCH, epochs=1, verbose=0)
    c.answer(answers, {"peak_mb": c.peak_memory_mb()})


main()
