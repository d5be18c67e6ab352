"""What the Python programs of the benchmarks share: the line protocol, the data, the timing.

A program is started once, says `{"ready": true, ...}`, and then answers each line `run ROW` on
stdin with one line of JSON on stdout: `value` in the row's unit, `nodes` (operations executed per
step, where that is the row's unit of work), `check` (a number that both sides must agree on).
bench/ours/ and the C++ peers speak the same.
"""

import json
import os
import sys
import time

import numpy as np

THREADS = int(os.environ.get("TANDEM_BENCH_THREADS", "2"))

# What the two training rows train on; the same numbers as in bench/ours/data.h.
MLP_SAMPLES, MLP_BATCH, MLP_HIDDEN = 8192, 32, 128
CNN_SAMPLES, CNN_BATCH, CNN_FILTERS = 4096, 128, 32
CLASSES = 10
IMAGE_SEED, LABEL_SEED, LEFT_SEED, RIGHT_SEED, CLASS_SEED = 1, 2, 3, 4, 5
BAND = 78  # pixels of an image that its class brightens

# A model that has learnt what there is to learn comes to 1.4, one that has learnt nothing to 2.3.
LEARNT = 2.0

# What a single-row timing adds up to, and into how many blocks it is divided.
BLOCK_SECONDS, BLOCKS = 0.02, 15


def mixed(count, seed):
    """`count` well mixed 64-bit numbers that depend on their place and on `seed` alone."""
    with np.errstate(over="ignore"):
        z = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z += np.uint64(seed) * np.uint64(0xD1342543DE82EF95)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def uniform(shape, seed):
    """Floats in [0, 1), equal to the bit on every side."""
    count = int(np.prod(shape))
    values = (mixed(count, seed) >> np.uint64(40)).astype(np.float32) * np.float32(2.0**-24)
    return values.reshape(shape)


def samples(count, shape):
    """Images of noise in which a band is brighter, and labels that name the band of every second
    image and are random for the rest, so that the gradients stay alive however long one trains."""
    classes = (mixed(count, CLASS_SEED) % np.uint64(CLASSES)).astype(np.int32)
    labels = (mixed(count, LABEL_SEED) % np.uint64(CLASSES)).astype(np.int32)
    labels[::2] = classes[::2]
    images = uniform((count, 784), IMAGE_SEED)
    band = np.arange(784, dtype=np.int32) // BAND
    images += np.float32(0.5) * (band[None, :] == classes[:, None])
    return images.reshape((count,) + shape), labels


def mlp_data():
    return samples(MLP_SAMPLES, (784,))


def cnn_data():
    return samples(CNN_SAMPLES, (28, 28, 1))


def seconds_per_call(loop):
    """`loop(n)` does the work n times. The median block's time for one."""
    n = 1
    while True:
        start = time.perf_counter()
        loop(n)
        elapsed = time.perf_counter() - start
        if elapsed >= BLOCK_SECONDS / 2:
            break
        n *= 2
    n = max(1, round(n * BLOCK_SECONDS / elapsed))
    times = []
    for _ in range(BLOCKS):
        start = time.perf_counter()
        loop(n)
        times.append((time.perf_counter() - start) / n)
    return sorted(times)[BLOCKS // 2]


class Trainer:
    """Times epochs. `epoch()` trains once over the data, `evaluate()` gives the loss on all of it;
    `units` is what an epoch counts for, steps or images."""

    def __init__(self, data, epoch, evaluate, units, least_seconds=0.5):
        images, labels = data
        middle = images.reshape(len(images), -1)[:, 391].astype(np.float64)
        self.check = float(np.sum(middle * (labels + 1)))  # shows that both sides have the same
        self.epoch, self.evaluate, self.units = epoch, evaluate, units
        epoch()  # compiles what there is to compile
        start = time.perf_counter()
        epoch()
        self.epochs = max(1, round(least_seconds / (time.perf_counter() - start)))

    def run(self):
        start = time.perf_counter()
        for _ in range(self.epochs):
            self.epoch()
        elapsed = time.perf_counter() - start
        loss = float(self.evaluate())
        if not loss < LEARNT:
            raise RuntimeError(f"does not learn: the loss is {loss}")
        return {"value": self.units * self.epochs / elapsed, "check": self.check, "loss": loss}


class Lazy:
    """Makes a row's state at its first run and keeps it for the runs that follow."""

    def __init__(self, make):
        self.make = make
        self.made = None

    def __call__(self):
        if self.made is None:
            self.made = self.make()
        return self.made()


def peak_memory_mb():
    """The largest memory that this process has held so far (VmHWM)."""
    with open("/proc/self/status") as status:
        for line in status:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024 / 1e6
    raise RuntimeError("no VmHWM in /proc/self/status")


def claim_stdout():
    """Keeps stdout for answers: whatever a library prints there goes to stderr."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    return answers


def answer(answers, fields):
    print(json.dumps(fields), file=answers, flush=True)


def serve(rows, about):
    """Answers until stdin ends. `rows`: name -> callable that returns an answer's fields."""
    answers = claim_stdout()
    answer(answers, {"ready": True, "about": about, "rows": sorted(rows)})
    for line in sys.stdin:
        words = line.split()
        if words[:1] == ["quit"]:
            break
        try:
            if len(words) != 2 or words[0] != "run" or words[1] not in rows:
                raise RuntimeError(f"not understood: {line.strip()!r}")
            fields = rows[words[1]]()
        except Exception as error:  # reported to the harness, which stops
            fields = {"error": f"{type(error).__name__}: {error}"}
        answer(answers, fields)
