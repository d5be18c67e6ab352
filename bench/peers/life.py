"""What the peers of the rows save and restore share; bench/ours/life/checkpoints.cpp does the same."""

import os
import pathlib
import time

VARIABLES = 16
FOLDER = pathlib.Path("build/bench/life")


def elements():
    return int(os.environ.get("TANDEM_BENCH_LIFE_MB", "2048")) * 1000000 // 4 // VARIABLES


def megabytes():
    return elements() * 4 * VARIABLES / 1e6


def path(name):
    FOLDER.mkdir(parents=True, exist_ok=True)
    return str(FOLDER / name)


def files(prefix):
    return [p for p in FOLDER.iterdir() if p.name.startswith(prefix)]


def remove(prefix):
    for each in files(prefix):
        each.unlink()


def sync(prefix):
    """What was written would survive a crash, as it does on the other side."""
    for each in [*files(prefix), FOLDER]:
        handle = os.open(each, os.O_RDONLY)
        os.fsync(handle)
        os.close(handle)


def timed(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
