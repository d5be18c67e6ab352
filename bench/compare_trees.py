#!/usr/bin/env python3
"""Two builds of Tandem beside each other, so that a change can be seen to cost nothing:

    python3 bench/compare_trees.py NAME BEFORE [AFTER] [--pairs 7] [--rows ROW,ROW]

BEFORE and AFTER are build folders that have bench_NAME (NAME: overhead, train, models or data); AFTER is
`build` if left out. Both programs measure each row in turns on the same two processors. A row is in
order when the ratio in the middle lies within the spread of the pairs around 1."""

import argparse
import os
import statistics
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "bench"))

from harness import data_files, machine, models, sides, specs  # noqa: E402


def inputs(name, build):
    """The variables that name what a bench reads, which `./dev bench NAME` has made before."""
    bench = specs.BENCHES[name]
    say = print
    if bench.models:
        return {"TANDEM_BENCH_MODELS": models.exported(ROOT, bench.models, lambda: True, say)}
    if bench.files:
        return {"TANDEM_BENCH_DATA": data_files.made(ROOT, build, say)}
    return {}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("name")
    parser.add_argument("before")
    parser.add_argument("after", nargs="?", default=os.path.join(ROOT, "build"))
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--rows", default="")
    arguments = parser.parse_args()
    machine.hold_to_two()
    environment = machine.environment() | inputs(arguments.name, arguments.after)
    both = []
    for title, build in (("before", arguments.before), ("after", arguments.after)):
        program = os.path.join(build, "bench/bin", f"bench_{arguments.name}")
        both.append(sides.Side(title, [program], f"/tmp/bench_{title}.log", environment))
    rows = {row.ours or row.name: row for row in specs.BENCHES[arguments.name].rows
            if not row.one_shot and not row.counted}
    wanted = arguments.rows.split(",") if arguments.rows else list(rows)
    print(f"{'row':<28} {'before':>12} {'after':>12}  faster  lowest..highest")
    for name in wanted:
        pairs = []
        for turn in range(arguments.pairs + 1):
            values = [side.run(name)["value"] for side in both]
            if turn:  # the first warms up
                pairs.append(values)
        lower = rows[name].better == "lower"
        ratios = sorted(old / new if lower else new / old for old, new in pairs)
        middle = [statistics.median(v) for v in zip(*pairs)]
        print(f"{name:<28} {middle[0]:12.4g} {middle[1]:12.4g}  {statistics.median(ratios):5.3f}x"
              f"  {ratios[0]:.3f}..{ratios[-1]:.3f}", flush=True)
    for side in both:
        side.close()


if __name__ == "__main__":
    main()
