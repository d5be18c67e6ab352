"""Runs graphs of the real TensorFlow through `td run` and compares: models.py --td TD --python PYTHON

PYTHON is that of TensorFlow's environment (./dev peers tensorflow). Without it nothing can be compared: the
reason is printed, and the exit code is 77, which ctest shows as skipped.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys

SKIPPED = 77
TOLERANCE = 1e-4  # the largest error, relative to the output's largest value


def run_case(td, folder):
    """The largest relative error over the outputs; raises ValueError with what went wrong."""
    import numpy as np

    case = json.loads((folder / "case.json").read_text())
    out = folder / "out"
    command = [td, "run", str(folder / case["graph"]), "--out", str(out), "--json"]
    for tensor, file in case["feeds"].items():
        command += ["--feed", f"{tensor}={folder / file}"]
    for tensor in case["expected"]:
        command += ["--fetch", tensor]
    for target in case.get("targets", []):
        command += ["--target", target]
    for init in case.get("inits", []):
        command += ["--init", init]
    command += ["--steps", str(case.get("steps", 1)), "--repeat", str(case.get("repeat", 1))]
    environment = {**os.environ, **case.get("environment", {})}
    result = subprocess.run(command, capture_output=True, text=True, env=environment)
    if result.returncode != 0:
        raise ValueError(result.stderr.strip() or f"exit code {result.returncode}")
    if "stderr" in case and result.stderr != case["stderr"]:
        raise ValueError(f"printed {result.stderr!r}, not {case['stderr']!r}")
    if "optimized" in case:
        compare_ops(td, folder / case["graph"], case["optimized"])
    worst = 0.0
    for tensor, file in case["expected"].items():
        theirs = np.load(folder / file)
        ours = np.load(out / (tensor.replace(":", "_").replace("/", "_") + ".npy"))
        if ours.dtype != theirs.dtype or ours.shape != theirs.shape:
            raise ValueError(f"{tensor} is {ours.dtype}{list(ours.shape)}, "
                             f"not {theirs.dtype}{list(theirs.shape)}")
        if theirs.dtype.kind in "fc":
            theirs, ours = theirs.astype(np.complex128), ours.astype(np.complex128)
            if not np.array_equal(np.isnan(theirs), np.isnan(ours)):
                raise ValueError(f"{tensor} has other NaNs")
            largest = np.nanmax(np.abs(theirs), initial=0) or 1.0
            worst = max(worst, float(np.nanmax(np.abs(ours - theirs), initial=0) / largest))
        elif not np.array_equal(ours, theirs):
            raise ValueError(f"{tensor} has other values")
    if worst > case.get("tolerance", TOLERANCE):
        raise ValueError(f"the largest relative error is {worst:.2e}")
    timing = json.loads(result.stdout.strip().splitlines()[-1])
    return worst, timing


def compare_ops(td, graph, wanted):
    """How many nodes of these ops there are in the graph as it runs."""
    result = subprocess.run([td, "graph", str(graph), "--optimized", "--json"], capture_output=True,
                            text=True, check=True)
    ops = json.loads(result.stdout)["ops"]
    found = {op: ops.get(op, 0) for op in wanted}
    if found != wanted:
        raise ValueError(f"runs with {found}, not {wanted}")


def compare(td, folder, report):
    failed = 0
    cases = sorted(path.parent for path in folder.glob("*/case.json"))
    for case in cases:
        try:
            worst, timing = run_case(td, case)
            took = "not timed" if timing["min_ms"] is None else f"{timing['min_ms']:.2f} ms"
            print(f"ok      {case.name}: largest relative error {worst:.1e}, {timing['nodes']} nodes, {took}")
        except ValueError as error:
            failed += 1
            print(f"FAILED  {case.name}: {error}")
    if report:
        with open(report, "a", encoding="utf-8") as file:
            file.write(f"{len(cases)} {failed}\n")
    return 1 if failed or not cases else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--td", required=True)
    parser.add_argument("--python", required=True, type=pathlib.Path)
    parser.add_argument("--out", required=True, type=pathlib.Path, help="where the graphs go")
    parser.add_argument("--report", help="file to which a line 'CASES FAILED' is added")
    parser.add_argument("--compare", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("names", nargs="*", help="cases; all without")
    args = parser.parse_args()
    if args.compare:
        return compare(args.td, args.out, args.report)
    if not args.python.exists():
        print(f"skipped: TensorFlow's environment is missing ({args.python}); ./dev peers tensorflow "
              "installs it")
        return SKIPPED
    here = pathlib.Path(__file__).parent
    exported = subprocess.run([args.python, here / "export_models.py", args.out, *args.names],
                              capture_output=True, text=True)
    if exported.returncode != 0:
        print(exported.stderr)
        return 1
    # NumPy is TensorFlow's.
    return subprocess.run([args.python, __file__, *sys.argv[1:], "--compare"]).returncode


if __name__ == "__main__":
    sys.exit(main())
