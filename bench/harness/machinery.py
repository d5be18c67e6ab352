"""How many instructions our machinery takes for an operation, under callgrind, compared with what
bench/machinery.json recorded.

    python3 bench/harness/machinery.py build release > bench/machinery.json

records again (the compiler is that of the build folder). Each row of the overhead bench is run with
two counts of calls, of which nothing but the calls is counted; the difference is free of the first
few, and the second call is warm. One thread on each side of a call, so that nothing depends on
time; what libraries do when they are loaded does, and would be millions of instructions."""

import json
import os
import re
import subprocess
import sys

if __package__:
    from . import instructions
else:
    import instructions

ROWS = {"eager_add": 20000, "graph_chain": 50, "graph_wide": 50, "function_call": 10000}
WARM = 8  # calls of either run; plans are made and tried in the first few


def counted(program, row, times):
    """Instructions of a run of `times` calls, and the operations of a call."""
    environment = {**os.environ, "TANDEM_BENCH_TIMES": str(times), "TANDEM_BENCH_THREADS": "1"}
    total, said = instructions.run([program], f"run {row}\nquit\n", environment, "bench::counted*")
    answer = json.loads(said.splitlines()[1])
    if "error" in answer:
        raise RuntimeError(f"{row}: {answer['error']}")
    return total, answer["nodes"]


def measure(program):
    """Instructions for an operation, by row."""
    result = {}
    for row, times in ROWS.items():
        few, nodes = counted(program, row, WARM)
        many, _ = counted(program, row, WARM + times)
        result[row] = (many - few) / times / nodes
    return result


def ratios(now, recorded):
    """Now / recorded by row; the row `machinery` is the largest."""
    missing = recorded.keys() - now.keys()
    if missing:
        raise RuntimeError(f"not measured: {', '.join(sorted(missing))}")
    return {row: now[row] / count for row, count in recorded.items()}


def reported(now, by_row):
    return ", ".join(f"{row} {now[row]:.1f} ({by_row[row]:.3f} x)" for row in sorted(by_row))


def compiler(build):
    with open(os.path.join(build, "CMakeCache.txt")) as file:
        path = re.search(r"^CMAKE_CXX_COMPILER:\w+=(.*)$", file.read(), re.MULTILINE).group(1)
    version = subprocess.run([path, "--version"], capture_output=True, text=True, check=True)
    return version.stdout.splitlines()[0]


def main():
    build, preset = sys.argv[1:3]
    program = sys.argv[3] if len(sys.argv) > 3 else os.path.join(build, "bench/bin/bench_overhead")
    counts = {row: round(count, 2) for row, count in measure(program).items()}
    json.dump({"compiler": compiler(build), "preset": preset, "instructions_per_op": counts},
              sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
