"""The rows that are counted: under callgrind, or by the stand-in for a GPU's driver."""

import json
import os

from . import gpu_host, instructions, machinery


def overhead_of_machinery(root, build, say):
    """The largest of instructions for an operation now / recorded, over the overhead bench."""
    with open(os.path.join(root, "bench/machinery.json")) as file:
        recorded = json.load(file)
    compiler = machinery.compiler(build)
    if compiler != recorded["compiler"]:
        say(f"machinery: recorded with {recorded['compiler']}, this is {compiler}")
    now = machinery.measure(os.path.join(build, "bench/bin/bench_overhead"))
    by_row = machinery.ratios(now, recorded["instructions_per_op"])
    say(f"machinery: {machinery.reported(now, by_row)}")
    return max(by_row.values()), {"instructions_per_op": now, "ratios": by_row}


def overhead_of_profiler(root, build, say):
    row, counts = instructions.profiler_overhead(os.path.join(build, "bench/bin/bench_profiler"))
    return row["ours"], {"instructions_per_step": counts}


ROWS = {"machinery": overhead_of_machinery, "profiler_overhead": overhead_of_profiler,
        **gpu_host.ROWS}


def measure(row, root, build, say):
    """The row's figure, and further results."""
    if row.name not in gpu_host.ROWS and not instructions.available():
        raise RuntimeError("valgrind is not installed")
    return ROWS[row.name](root, build, say)
