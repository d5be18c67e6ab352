"""Exports graphs with the real TensorFlow, with inputs and what it computes: export_models.py OUT [NAME...]

Each case is a folder: graph.pb or graph.pbtxt, a .npy for each feed and each expected value, and case.json,
which models.py turns into a call of `td run`.
"""

import pathlib
import sys

import export_collectives
import export_conditionals
import export_graphs
import export_layers
import export_networks
import export_state
import export_text
import export_training
import export_training_graphs
from exporting import CASES, SLOW_CASES, Writer

FILES = (export_collectives, export_conditionals, export_graphs, export_layers, export_networks, export_state,
         export_text, export_training, export_training_graphs)  # each adds its cases


def main():
    out = pathlib.Path(sys.argv[1])
    for name in sys.argv[2:] or CASES:
        (CASES | SLOW_CASES)[name](Writer(out / name))
        print(f"exported {name}", file=sys.stderr)


if __name__ == "__main__":
    main()
