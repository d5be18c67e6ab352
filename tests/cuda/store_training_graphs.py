"""Stores training graphs that tests/conformance exported: store_training_graphs.py EXPORTED_FOLDER

Needs NumPy. Of each case (tests/conformance/export_training_graphs.py) it keeps the graph, and in values.npz what is
fed, the loss of each step and the variables behind the last one.
"""

import gzip
import json
import pathlib
import sys

import numpy as np


def store(case, out):
    description = json.loads((case / "case.json").read_text())
    out.mkdir(parents=True, exist_ok=True)
    graph = (case / description["graph"]).read_bytes()
    (out / "graph.pb.gz").write_bytes(gzip.compress(graph, mtime=0))
    values = {"feeds/" + name: np.load(case / file) for name, file in description["feeds"].items()}
    for name, file in description["expected"].items():
        steps = np.load(case / file)
        values["expected/" + name] = steps if name == "loss:0" else steps[-1]
    np.savez_compressed(out / "values.npz", **values)


def main():
    folder = pathlib.Path(__file__).parent / "training_graphs"
    for case in sorted(path.parent for path in pathlib.Path(sys.argv[1]).glob("training_*/case.json")):
        store(case, folder / case.name.removeprefix("training_"))


if __name__ == "__main__":
    main()
