"""What the peers of `models` and `mechanisms` share: the exported models, checking against them, timing steps.

A peer's program answers the harness; with a row's name as its argument it makes a few steps of that
model alone and reports the peak memory. bench/ours/models.cpp does the same for us.
"""

import os
import pathlib
import sys
import time

import numpy as np

import common as c


class Description:
    """What model.txt (bench/peers/exporting.py) says."""

    def __init__(self, name):
        self.name = name
        self.folder = pathlib.Path(os.environ["TANDEM_BENCH_MODELS"]) / name
        self.feeds, self.fetches, self.expected, self.targets, self.init = {}, [], [], [], ""
        for line in (self.folder / "model.txt").read_text().splitlines():
            word, value, *file = line.split()
            if word == "feed":
                self.feeds[value] = np.load(self.folder / file[0])
            elif word == "fetch":
                self.fetches.append(value)
                self.expected.append(np.load(self.folder / file[0]))
            elif word == "target":
                self.targets.append(value)
            elif word == "init":
                self.init = value
            elif word == "steps":
                self.steps = int(value)
            elif word == "tolerance":
                self.tolerance = float(value)
            elif word == "per_second":
                self.measured = lambda seconds, work=float(value): work / seconds
            elif word == "per_step":
                self.measured = lambda seconds, scale=float(value): scale * seconds

    def verify(self, step):
        """Makes the steps whose results are known; returns the number that all sides report."""
        results = np.concatenate([np.ravel(step()) for _ in range(self.steps)]).astype(np.float64)
        expected = np.ravel(self.expected[0])
        error = np.max(np.abs(results - expected)) / np.max(np.abs(expected))
        if not error <= self.tolerance:
            raise RuntimeError(f"the largest error relative to the largest value is {error}")
        return float(np.sum(results * (np.arange(len(results)) % 97 + 1)))


def seconds_per_step(step):
    """Of a large model a few steps are timed, as many as fill two seconds."""
    start = time.perf_counter()
    step()
    first = time.perf_counter() - start
    if first < 0.2:
        def loop(n):
            for _ in range(n):
                step()
        return c.seconds_per_call(loop)
    n = max(2, int(2 / first))
    start = time.perf_counter()
    for _ in range(n):
        step()
    return (time.perf_counter() - start) / n


class Runner:
    """Answers for each row with the model of that name; holds one model at a time. `make` takes a
    Description and returns an object with `step` and, where it is known, `nodes`."""

    def __init__(self, make):
        self.make = make
        self.name = self.model = None

    def measure(self, name):
        if self.name != name:
            self.name = self.model = None
            described = Description(name)
            self.model = self.make(described)
            self.check = described.verify(self.model.step)
            self.described, self.name = described, name
        seconds = seconds_per_step(self.model.step)
        fields = {"value": self.described.measured(seconds), "check": self.check}
        if getattr(self.model, "nodes", None):
            fields["nodes"] = self.model.nodes
        if self.described.targets:
            fields["loss"] = float(np.ravel(self.model.step())[0])
        return fields


def names():
    return sorted(path.parent.name
                  for path in pathlib.Path(os.environ["TANDEM_BENCH_MODELS"]).glob("*/model.txt"))


def main(make, names, about):
    if len(sys.argv) == 1:
        runner = Runner(make)
        c.serve({name: lambda name=name: runner.measure(name) for name in names}, about)
        return
    answers = c.claim_stdout()
    described = Description(sys.argv[1].removesuffix("_memory"))
    model = make(described)
    described.verify(model.step)
    for _ in range(2):
        model.step()
    c.answer(answers, {"peak_mb": c.peak_memory_mb()})
