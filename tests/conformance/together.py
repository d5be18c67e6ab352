"""libtandem.so and TensorFlow in one process, whichever comes first, their symbols visible to all."""

import subprocess
import sys

import peer

PROGRAM = """
import ctypes, os, sys
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
library, first = sys.argv[1:]
load = lambda: ctypes.CDLL(library, ctypes.RTLD_GLOBAL)
if first == "tandem":
    load()
import tensorflow as tf
if first == "tensorflow":
    load()
graph = tf.function(lambda x: x * 2 + 1).get_concrete_function(tf.TensorSpec([], tf.float32))
assert len(graph.graph.as_graph_def().SerializeToString()) > 0
assert graph(tf.constant(3.0)).numpy() == 7.0
"""

args = peer.arguments()
failed = 0
for first in ("tandem", "tensorflow"):
    result = subprocess.run([args.python, "-c", PROGRAM, args.library, first], capture_output=True,
                            text=True)
    ok = result.returncode == 0
    failed += not ok
    print(f"{'ok      ' if ok else 'FAILED  '}{first} first")
    if not ok:
        print(result.stderr[-2000:])
with open(args.report, "a", encoding="utf-8") as file:
    file.write(f"2 {failed}\n")
sys.exit(1 if failed else 0)
