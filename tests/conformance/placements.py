"""Where nodes go, compared with the real TensorFlow; see make_placements.py.

    placements.py --python PYTHON --program PLACE_GRAPHS --out FOLDER --report FILE

PYTHON is that of TensorFlow's environment (./dev peers tensorflow). Where it is missing the answers that are
stored beside this file serve, and a line says so.
"""

import argparse
import base64
import gzip
import json
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
STORED = HERE / "placements.json.gz"


def answers(python, out):
    if not python.exists():
        print(f"placements: no TensorFlow at {python} (./dev peers tensorflow installs it): its stored answers serve")
        return json.loads(gzip.decompress(STORED.read_bytes()))
    made = out / "placements.json.gz"
    run = subprocess.run([python, HERE / "make_placements.py", made], capture_output=True, text=True)
    if run.returncode != 0:
        print(run.stdout + run.stderr[-3000:])
        sys.exit(1)
    print(run.stdout.strip())
    return json.loads(gzip.decompress(made.read_bytes()))


def differences(case, ours):
    """What differs, in lines, and how many nodes were compared."""
    if "failed" in ours:
        return [ours["failed"]], 0
    if "error" in case or "error" in ours:
        theirs, mine = case.get("error"), ours.get("error")
        if theirs is None or mine is None or not mine.startswith(theirs):
            return [f"TensorFlow: {theirs}", f"here:       {mine}"], 0
        return [], 1
    lines, compared = [], 0
    for node, device in sorted(ours["devices"].items()):
        theirs = case["devices"].get(node)
        if theirs is not None:
            compared += 1
            if theirs != device:
                lines.append(f"{node} is on {device}, with TensorFlow on {theirs}")
        elif not case.get("some"):
            lines.append(f"{node} is not in TensorFlow's graph")
    if compared == 0:
        lines.append("no node is in both graphs")
    return lines, compared


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", required=True, type=pathlib.Path)
    parser.add_argument("--program", required=True)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--report", required=True)
    options = parser.parse_args()
    shutil.rmtree(options.out, ignore_errors=True)
    options.out.mkdir(parents=True)
    cases = answers(options.python, options.out)["cases"]
    files = []
    for name, case in sorted(cases.items()):
        graph = options.out / f"{name}.pb"
        graph.write_bytes(base64.b64decode(case["graph"]))
        files.append(options.out / f"{name}.json")
        files[-1].write_text(json.dumps({**case, "graph": str(graph)}))
    run = subprocess.run([options.program, *files], stdout=subprocess.PIPE, text=True)
    results = [json.loads(line) for line in run.stdout.splitlines()]
    if run.returncode != 0 or len(results) != len(files):
        print(f"{options.program} ended with {run.returncode} after {len(results)} of {len(files)} graphs")
        return 1
    failed, nodes = 0, 0
    for (name, case), ours in zip(sorted(cases.items()), results):
        lines, compared = differences(case, ours)
        nodes += compared
        failed += bool(lines)
        print(f"{'FAILED ' if lines else 'ok     '} {name}: {compared} compared", *lines, sep="\n        ")
    print(f"{len(cases)} graphs, {nodes} nodes and errors, {failed} graphs differ")
    with open(options.report, "a", encoding="utf-8") as file:
        file.write(f"{len(cases)} {failed}\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
