"""What the exporters share: writing a graph of the real TensorFlow, and what it computes.

Each model is a folder that all sides read: graph.pb; a .npy for each feed and for each value that
TensorFlow computed, without any optimisation of the graph; and model.txt, a line for each word on
how to run it:

    feed TENSOR FILE      init NODE      target NODE
    fetch TENSOR FILE     steps N        tolerance T
    per_second W          per_step S

FILE of a fetch has its expected values, with a leading axis of N where N steps were made. A
measurement is W divided by the seconds of a step, or S times those seconds. weights.npz, where there
is one, has the values of the variables for peers that don't read graphs.
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


def write(folder, graph_def, feeds, fetches, init="", targets=(), steps=1, tolerance=1e-4,
          unit=MILLISECONDS):
    (folder / "graph.pb").write_bytes(graph_def.SerializeToString(deterministic=True))
    graph = tf.Graph()
    with graph.as_default():
        tf.import_graph_def(graph_def, name="")
    with v1.Session(graph=graph, config=plain_config()) as session:
        if init:
            session.run(init)
        made = [session.run([fetches, list(targets)], feeds)[0] for _ in range(steps)]
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


def write_frozen(folder, keras_model, value, **more):
    """A Keras model for inference, of any batch, with its weights as constants."""
    spec = tf.TensorSpec((None, *value.shape[1:]), value.dtype)
    function = tf.function(lambda x: keras_model(x, training=False)).get_concrete_function(spec)
    function = convert_variables_to_constants_v2(function)
    write(folder, function.graph.as_graph_def(), {function.inputs[0].name: value},
          [t.name for t in function.outputs], **more)


def main(models):
    """`models`: name -> function that exports into a folder."""
    out = pathlib.Path(sys.argv[1])
    for name in sys.argv[2:] or models:
        print(f"exporting {name}", file=sys.stderr, flush=True)
        (out / name).mkdir(parents=True, exist_ok=True)
        models[name](out / name)
