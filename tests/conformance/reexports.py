"""Graphs of the real TensorFlow that we read and wrote again: TensorFlow runs them, and so does td."""

import pathlib
import shutil
import subprocess
import sys

import peer

# One or more of each kind of thing that a graph may hold.
CASES = """
    mlp mlp_text conv_net dtypes unneeded_nodes printing functions functional_control_flow nested_loops
    loops_as_functions gradients_of_loops switch_case switch_case_with_state cond_gradient
    resource_training adam_on_references momentum_on_references sync_replicas_on_resources
    sync_replicas_on_references queues staging_areas gradient_accumulators mutable_tables
    tables_from_lists tensor_arrays tensor_lists stateful_branches references hash_table ragged_arrays
    rows_in_variants lstm_classifier
""".split()

args = peer.arguments()
here = pathlib.Path(__file__).parent
shutil.rmtree(args.out, ignore_errors=True)
exported = subprocess.run([args.python, here / "export_models.py", args.out, *CASES],
                          capture_output=True, text=True)
if exported.returncode != 0:
    sys.exit(exported.stderr)
subprocess.run([args.writer, args.out], check=True)
theirs = subprocess.run([args.python, here / "check_exports.py", args.out, args.report]).returncode
ours = subprocess.run([args.python, here / "models.py", "--compare", "--td", args.td,
                       "--python", args.python, "--out", args.out,
                       "--report", args.report]).returncode
sys.exit(theirs or ours)
