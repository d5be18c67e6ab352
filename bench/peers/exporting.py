"""What the exporters share: writing a graph of the real TensorFlow, and what it computes.

Each model is a folder that all sides read: graph.pb; a .npy for each feed and for each value that
TensorFlow computed, without any optimisation of the graph; and model.txt, a line for each word on
how to run it:

    feed TENSOR FILE      init NODE      target NODE
    fetch TENSOR FILE     steps N        tolerance T
    per_second W          per_step S

FILE of a fetch has its expected values, with a leading axis of N where N steps were made; T bounds
the largest error relative to the largest value. A measurement is W divided by the seconds of a step,
or S times those seconds. weights.npz, where there is one, has the values of the variables for peers
that don't read graphs.
"""

import os
import pathlib
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import rewriter_config_pb2
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

v1 = tf.compat.v1
MILLISECONDS = "per_step 1e3"


def floats(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def integers(limit, *shape, seed=0):
    return np.random.default_rng(seed).integers(0, limit, shape).astype(np.int32)


def plain_config():
    """A session that runs the graph as it is written."""
    config = v1.ConfigProto(intra_op_parallelism_threads=2, inter_op_parallelism_threads=2)
    options = config.graph_options
    options.optimizer_options.opt_level = v1.OptimizerOptions.L0
    options.rewrite_options.disable_meta_optimizer = True
    options.rewrite_options.constant_folding = rewriter_config_pb2.RewriterConfig.OFF
    return config


def compute(graph_def, feeds, fetches, init="", targets=(), steps=1):
    """What TensorFlow computes: for each step the values of the fetches."""
    graph = tf.Graph()
    with graph.as_default():
        tf.import_graph_def(graph_def, name="")
    with v1.Session(graph=graph, config=plain_config()) as session:
        if init:
            session.run(init)
        return [session.run([fetches, list(targets)], feeds)[0] for _ in range(steps)]


def write(folder, graph_def, feeds, fetches, init="", targets=(), steps=1, tolerance=1e-4,
          unit=MILLISECONDS, exact=None):
    """`exact` is the same model in more exact arithmetic, with feeds and fetches of the same names:
    the expected values are then its own, and all sides may be half as far again from them as
    TensorFlow with `graph_def` is. Sides that round in different places, each as good as the other,
    are far apart where each is far from the truth."""
    (folder / "graph.pb").write_bytes(graph_def.SerializeToString(deterministic=True))
    made = compute(graph_def, feeds, fetches, init, targets, steps)
    if exact is not None:
        rounded, made = made, compute(exact, feeds, fetches, init, targets, steps)
        tolerance = 1.5 * np.max(np.abs(np.subtract(rounded, made))) / np.max(np.abs(made))
    lines = [f"steps {steps}", f"tolerance {tolerance}", unit]
    if init:
        lines.append(f"init {init}")
    lines += [f"target {target}" for target in targets]
    for i, (tensor, value) in enumerate(feeds.items()):
        np.save(folder / f"feed_{i}.npy", value)
        lines.append(f"feed {tensor} feed_{i}.npy")
    for i, tensor in enumerate(fetches):
        value = np.stack([step[i] for step in made]) if steps > 1 else made[0][i]
        np.save(folder / f"expected_{i}.npy", value)
        lines.append(f"fetch {tensor} expected_{i}.npy")
    (folder / "model.txt").write_text("\n".join(lines) + "\n")


def frozen(keras_model, value):
    """A Keras model as a function for inference, of any batch, with its weights as constants."""
    spec = tf.TensorSpec((None, *value.shape[1:]), value.dtype)
    function = tf.function(lambda x: keras_model(x, training=False)).get_concrete_function(spec)
    return convert_variables_to_constants_v2(function)


def write_frozen(folder, keras_model, value, exact=None, **more):
    """`exact` is the Keras model in more exact arithmetic, see `write`."""
    function = frozen(keras_model, value)
    write(folder, function.graph.as_graph_def(), {function.inputs[0].name: value},
          [t.name for t in function.outputs],
          exact=frozen(exact, value).graph.as_graph_def() if exact is not None else None,
          **more)


def main(models):
    """`models`: name -> function that exports into a folder."""
    out = pathlib.Path(sys.argv[1])
    for name in sys.argv[2:] or models:
        print(f"exporting {name}", file=sys.stderr, flush=True)
        (out / name).mkdir(parents=True, exist_ok=True)
        models[name](out / name)
