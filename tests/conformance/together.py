"""libtandem.so and TensorFlow in one process, whichever comes first, their symbols visible to all; both
run the same graph, each before and after the other."""

import subprocess
import sys

import peer

PROGRAM = """
import ctypes, os, sys
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
library, calls, first = sys.argv[1:]

def load():
    ctypes.CDLL(library, ctypes.RTLD_GLOBAL)
    run = ctypes.CDLL(calls, ctypes.RTLD_GLOBAL).tandem_run
    run.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_float, ctypes.c_char_p]
    run.restype = ctypes.c_float
    return run

if first == "tandem":
    run = load()
import tensorflow as tf
if first == "tensorflow":
    run = load()
w = tf.constant([[1.0, 2.0], [3.0, 4.0]])
# A convolution, a product and a while loop: what both have threads and oneDNN for.
def network(x):
    image = tf.nn.conv2d(x * tf.ones([1, 16, 16, 3]), tf.ones([3, 3, 3, 8]), 1, "SAME")
    product = tf.matmul(tf.fill([64, 64], x), tf.ones([64, 64]))
    looped = tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y @ w), (0, w * x))[1]
    return tf.reduce_mean(image) + tf.reduce_mean(product) + tf.reduce_sum(looped)

graph = tf.function(network).get_concrete_function(tf.TensorSpec([], tf.float32))
bytes = graph.graph.as_graph_def().SerializeToString()
assert len(bytes) > 0
feed, fetch = graph.inputs[0].name.encode(), graph.outputs[0].name.encode()
for x in (3.0, -0.5, 3.0):
    theirs = float(graph(tf.constant(x)))
    ours = run(bytes, len(bytes), feed, x, fetch)
    assert abs(ours - theirs) <= 1e-5 * abs(theirs), (ours, theirs)
"""

args = peer.arguments()
failed = 0
for first in ("tandem", "tensorflow"):
    result = subprocess.run([args.python, "-c", PROGRAM, args.library, args.writer, first], capture_output=True,
                            text=True)
    ok = result.returncode == 0
    failed += not ok
    print(f"{'ok      ' if ok else 'FAILED  '}{first} first")
    if not ok:
        print(result.stderr[-2000:])
with open(args.report, "a", encoding="utf-8") as file:
    file.write(f"2 {failed}\n")
sys.exit(1 if failed else 0)
