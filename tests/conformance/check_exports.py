"""Graphs that write_graphs made, imported and run by the real TensorFlow: check_exports.py FOLDER [REPORT]"""

import json
import os
import pathlib
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf
from google.protobuf import text_format

v1 = tf.compat.v1


def check(folder):
    case = json.loads((folder / "case.json").read_text())
    graph_def = v1.GraphDef()
    path = folder / case["graph"]
    if path.suffix == ".pbtxt":
        text_format.Parse(path.read_text(), graph_def)
    else:
        graph_def.ParseFromString(path.read_bytes())
    with tf.Graph().as_default(), v1.Session() as session:
        tf.import_graph_def(graph_def, name="")
        if case["init"]:
            session.run(case["init"])
        feeds = {name: np.load(folder / file) for name, file in case["feeds"].items()}
        fetches = list(case["expected"])
        steps = [session.run(fetches + case["targets"], feeds) for _ in range(case["steps"])]
    worst = 0.0
    for i, name in enumerate(fetches):
        theirs = steps[0][i] if case["steps"] == 1 else np.stack([step[i] for step in steps])
        ours = np.load(folder / case["expected"][name])
        if ours.dtype != theirs.dtype or ours.shape != theirs.shape:
            raise ValueError(f"{name}: {ours.dtype}{ours.shape}, not {theirs.dtype}{theirs.shape}")
        largest = np.max(np.abs(theirs.astype(np.complex128)), initial=0) or 1.0
        error = np.max(np.abs(ours.astype(np.complex128) - theirs), initial=0) / largest
        worst = max(worst, float(error))
    if not worst < 1e-5:
        raise ValueError(f"the largest relative error is {worst:.2e}")
    return worst


def main():
    failed = 0
    folders = sorted(path.parent for path in pathlib.Path(sys.argv[1]).glob("*/case.json"))
    for folder in folders:
        try:
            print(f"ok      {folder.name}: largest relative error {check(folder):.1e}")
        except Exception as error:  # whatever TensorFlow raises is a failed case
            failed += 1
            print(f"FAILED  {folder.name}: {type(error).__name__}: {error}")
    if len(sys.argv) > 2:
        with open(sys.argv[2], "a", encoding="utf-8") as file:
            file.write(f"{len(folders)} {failed}\n")
    return 1 if failed or not folders else 0


if __name__ == "__main__":
    sys.exit(main())
