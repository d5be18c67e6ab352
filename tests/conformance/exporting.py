"""What exporters of cases share: a case's folder, frozen graphs, models with weights as after training."""

import json
import os
import pathlib

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

v1 = tf.compat.v1
CASES = {}
SLOW_CASES = {}  # exported only when named


def case(function):
    CASES[function.__name__] = function
    return function


class Writer:
    def __init__(self, folder):
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def write(self, graph_def, feeds, expected, text=False, **more):
        name = "graph.pbtxt" if text else "graph.pb"
        if text:
            tf.io.write_graph(graph_def, str(self.folder), name, as_text=True)
        else:
            (self.folder / name).write_bytes(graph_def.SerializeToString(deterministic=True))
        description = {"graph": name, "feeds": {}, "expected": {}, **more}
        for kind, values in (("feeds", feeds), ("expected", expected)):
            for i, (tensor, value) in enumerate(values.items()):
                file = f"{kind}_{i}.npy"
                value = np.asarray(value)
                if value.dtype == object:
                    value = value.astype("S")
                np.save(self.folder / file, value)
                description[kind][tensor] = file
        (self.folder / "case.json").write_text(json.dumps(description, indent=2))


def run_v1(graph, fetches, feeds):
    with v1.Session(graph=graph) as session:
        return dict(zip(fetches, session.run(fetches, feeds)))


def frozen(function, *specs, **how):
    """A concrete function as a frozen graph: (GraphDef, input names, output names)."""
    concrete = tf.function(function).get_concrete_function(*specs)
    concrete = convert_variables_to_constants_v2(concrete, **how)
    return (concrete.graph.as_graph_def(), [t.name for t in concrete.inputs],
            [t.name for t in concrete.outputs])


def write_model(writer, model, *inputs, any_batch=True, **more):
    specs = [tf.TensorSpec((None if any_batch else i.shape[0], *i.shape[1:]), i.dtype)
             for i in inputs]
    def call(*args):
        return model(args[0] if len(args) == 1 else list(args), training=False)

    graph, names, outputs = frozen(call, *specs)
    expected = run_v1(import_graph(graph), outputs, dict(zip(names, inputs)))
    writer.write(graph, dict(zip(names, inputs)), expected, **more)


def import_graph(graph_def):
    graph = tf.Graph()
    with graph.as_default():
        tf.import_graph_def(graph_def, name="")
    return graph


def floats(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def spread(model, seed=1):
    """Weights as after training: random statistics in batch normalisation too."""
    rng = np.random.default_rng(seed)
    for v in model.weights:
        if "moving_variance" in v.path or "gamma" in v.path:
            v.assign(rng.uniform(0.5, 1.5, v.shape))
        elif "moving_mean" in v.path or "beta" in v.path or "bias" in v.path:
            v.assign(rng.standard_normal(v.shape) * 0.1)
    return model
