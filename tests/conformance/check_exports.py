"""Graphs that we wrote, imported and run by the real TensorFlow: check_exports.py FOLDER [REPORT]"""

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
        for init in case.get("inits", []):
            session.run(init)
        feeds = {name: np.load(folder / file) for name, file in case["feeds"].items()}
        fetches = list(case["expected"])
        count = case.get("steps", 1)
        steps = [session.run(fetches + case.get("targets", []), feeds) for _ in range(count)]
    worst = 0.0
    for i, name in enumerate(fetches):
        theirs = np.asarray(steps[0][i] if count == 1 else np.stack([step[i] for step in steps]))
        worst = max(worst, error_of(name, np.load(folder / case["expected"][name]), theirs))
    if not worst < 1e-5:
        raise ValueError(f"the largest relative error is {worst:.2e}")
    return worst


def error_of(name, expected, computed):
    """The largest error, relative to the largest value; what is no float must be equal."""
    if computed.dtype == object:
        computed = computed.astype("S")
    both_strings = expected.dtype.kind == computed.dtype.kind == "S"
    if expected.shape != computed.shape or not (both_strings or expected.dtype == computed.dtype):
        raise ValueError(f"{name}: expected {expected.dtype}{expected.shape}, "
                         f"got {computed.dtype}{computed.shape}")
    if expected.dtype.kind not in "fc":
        if not np.array_equal(expected, computed):
            raise ValueError(f"{name} has other values")
        return 0.0
    finite = np.isfinite(expected)
    if not np.array_equal(expected[~finite], computed[~finite], equal_nan=True):
        raise ValueError(f"{name} has other NaNs or infinities")
    if not np.isfinite(computed[finite]).all():
        raise ValueError(f"{name} has NaNs or infinities where numbers are expected")
    expected, computed = (each[finite].astype(np.complex128) for each in (expected, computed))
    largest = np.max(np.abs(computed), initial=0) or 1.0
    return float(np.max(np.abs(expected - computed), initial=0) / largest)


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
