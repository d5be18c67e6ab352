"""What the pipelines of `data` are made of; bench/common/pipelines.h has the same."""

import os
import time

import numpy as np

import common as c

SECONDS = 1.0
IMAGES, IMAGE_BATCH, IMAGE_SIDE, BRIGHTNESS = 512, 32, 224, 0.1
MEMORY_EPOCHS = 4
NUMBERS = 200_000
RECORDS, RECORD_BYTES = 200_000, 1000
EXAMPLES, EXAMPLE_BATCH, FEATURES = 20_480, 256, 5
PICTURES = 20_000
SEQUENCES, LONGEST = 20_000, 200
LENGTH_SEED = 8
TEXT_BYTES, TOKENS, LINES_ADAPTED, TEXT_BATCH, TOKENS_IN_LINE = 100_000_000, 20_000, 20_000, 512, 200
AUGMENTED, AUGMENTED_SIDE = 256, 160


def folder():
    return os.environ["TANDEM_BENCH_DATA"]


def lengths():
    return 1 + (c.mixed(SEQUENCES, LENGTH_SEED) % np.uint64(LONGEST)).astype(np.int64)


def pictures():
    return c.uniform((PICTURES, 28, 28), c.IMAGE_SEED)


def rate(epoch, rows, units, check):
    """Passes of `epoch()`, which gives the number of rows it saw, for a second or more."""
    start = time.perf_counter()
    passes, elapsed = 0, 0
    while elapsed < SECONDS:
        seen = epoch()
        if seen != rows:
            raise RuntimeError(f"a pass has {seen} elements, not {rows}")
        passes += 1
        elapsed = time.perf_counter() - start
    return {"value": units * passes / elapsed, "check": check}
