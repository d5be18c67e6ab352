"""Exports graphs with the real TensorFlow, with inputs and what it computes: export_models.py OUT [NAME...]

Each case is a folder: graph.pb or graph.pbtxt, a .npy for each feed and each expected value, and case.json,
which models.py turns into a call of `td run`.
"""

import json
import os
import pathlib
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

v1 = tf.compat.v1
CASES = {}


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


def frozen(function, *specs):
    """A concrete function as a frozen graph: (GraphDef, input names, output names)."""
    concrete = tf.function(function).get_concrete_function(*specs)
    concrete = convert_variables_to_constants_v2(concrete)
    return (concrete.graph.as_graph_def(), [t.name for t in concrete.inputs],
            [t.name for t in concrete.outputs])


def write_model(writer, model, *inputs, **more):
    specs = [tf.TensorSpec((None, *i.shape[1:]), i.dtype) for i in inputs]
    call = model if len(specs) == 1 else lambda *args: model(list(args))
    graph, names, outputs = frozen(lambda *args: call(*args, training=False), *specs)
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


def small_graph():
    graph = tf.Graph()
    with graph.as_default():
        x = v1.placeholder(tf.float32, [None, 4], name="x")
        hidden = tf.nn.relu(tf.matmul(x, tf.constant(floats(4, 8)), name="product") + tf.zeros([8]),
                            name="hidden")
        tf.nn.softmax(hidden, name="y")
        tf.split(hidden, 2, axis=1, name="halves")
    return graph


@case
def mlp(writer):
    graph = small_graph()
    feeds = {"x:0": floats(3, 4)}
    writer.write(graph.as_graph_def(), feeds, run_v1(graph, ["y:0", "halves:1"], feeds))


@case
def mlp_text(writer):
    graph = small_graph()
    feeds = {"x:0": floats(3, 4)}
    writer.write(graph.as_graph_def(), feeds, run_v1(graph, ["y:0", "halves:1"], feeds), text=True)


@case
def cut_in_the_middle(writer):
    graph = small_graph()
    feeds = {"hidden:0": floats(2, 8)}
    writer.write(graph.as_graph_def(), feeds, run_v1(graph, ["y:0", "halves:0"], feeds))


@case
def unneeded_nodes(writer):
    """Nodes that we lack do no harm where nobody needs them, as those of a Saver."""
    graph = tf.Graph()
    with graph.as_default():
        v = v1.get_variable("v", initializer=floats(3), use_resource=True)
        x = v1.placeholder(tf.float32, [3], name="x")
        tf.add(x, 1.0, name="y")
        v1.train.Saver([v])
    feeds = {"x:0": floats(3)}
    writer.write(graph.as_graph_def(), feeds, run_v1(graph, ["y:0"], feeds))


@case
def dtypes(writer):
    graph = tf.Graph()
    feeds, fetches = {}, []
    with graph.as_default():
        for dtype in (tf.bool, tf.int8, tf.int16, tf.int32, tf.int64, tf.uint8, tf.uint16, tf.uint32,
                      tf.uint64, tf.half, tf.float32, tf.float64, tf.complex64, tf.complex128):
            x = v1.placeholder(dtype, [2, 3], name=f"x_{dtype.name}")
            y = tf.stack([x, tf.constant(np.ones((2, 3)), dtype=dtype)], name=f"y_{dtype.name}")
            feeds[x.name] = np.arange(6).reshape(2, 3).astype(dtype.as_numpy_dtype)
            fetches.append(y.name)
    writer.write(graph.as_graph_def(), feeds, run_v1(graph, fetches, feeds))


@case
def conv_net(writer):
    layers = tf.keras.layers
    model = tf.keras.Sequential([
        layers.Input((20, 24, 3)), layers.Conv2D(8, 3, padding="same"), layers.BatchNormalization(),
        layers.ReLU(), layers.MaxPooling2D(), layers.DepthwiseConv2D(3), layers.AveragePooling2D(2),
        layers.Flatten(), layers.Dense(10, activation="softmax")])
    write_model(writer, spread(model), floats(4, 20, 24, 3))


@case
def functions(writer):
    """Calls that are not inlined, one function in another."""
    @tf.function
    def inner(x, y):
        return tf.matmul(x, y), tf.reduce_sum(x)

    @tf.function
    def outer(x):
        product, total = inner(x, tf.transpose(x))
        again, _ = inner(product, product)
        return again / total, total

    concrete = outer.get_concrete_function(tf.TensorSpec([None, 3], tf.float32))
    value = floats(4, 3)
    names = [t.name for t in concrete.outputs]
    writer.write(concrete.graph.as_graph_def(), {concrete.inputs[0].name: value},
                 dict(zip(names, concrete(value))))


@case
def functional_control_flow(writer):
    @tf.function
    def f(x, n):
        def body(i, total, values):
            total = tf.cond(tf.reduce_sum(total) > 3.0, lambda: total / 2.0, lambda: total + values)
            return i + 1, total, values * 1.5

        _, total, values = tf.while_loop(lambda i, *_: i < n, body, [0, x, x])
        return total, values

    concrete = f.get_concrete_function(tf.TensorSpec([3], tf.float32), tf.TensorSpec([], tf.int32))
    inputs = [np.array([0.25, 1, -0.5], np.float32), np.int32(7)]
    names = [t.name for t in concrete.outputs]
    writer.write(concrete.graph.as_graph_def(),
                 dict(zip([t.name for t in concrete.inputs], inputs)),
                 dict(zip(names, concrete(*map(tf.constant, inputs)))))


@case
def resource_training(writer):
    """Three steps of training on resource variables; the state goes on."""
    graph = tf.Graph()
    with graph.as_default():
        x = v1.placeholder(tf.float32, [None, 4], name="x")
        y = v1.placeholder(tf.float32, [None, 1], name="y")
        w = v1.get_variable("w", initializer=floats(4, 1), use_resource=True)
        b = v1.get_variable("b", initializer=np.zeros(1, np.float32), use_resource=True)
        loss = tf.reduce_mean(tf.square(tf.matmul(x, w) + b - y), name="loss")
        gradients = tf.gradients(loss, [w, b])
        with tf.control_dependencies([loss]):
            updates = [v1.assign_sub(v, 0.1 * g) for v, g in zip([w, b], gradients)]
        tf.group(*updates, name="train")
        v1.global_variables_initializer()
        v1.train.Saver()
    feeds = {"x:0": floats(8, 4, seed=1), "y:0": floats(8, 1, seed=2)}
    with v1.Session(graph=graph) as session:
        session.run("init")
        losses = [session.run(["loss:0", "train"], feeds)[0] for _ in range(3)]
    writer.write(graph.as_graph_def(), feeds, {"loss:0": np.stack(losses)}, init="init",
                 targets=["train"], steps=3)


@case
def nested_loops(writer):
    """Loops of TensorFlow 1, one in the other, with a condition inside."""
    v1.disable_control_flow_v2()
    graph = tf.Graph()
    with graph.as_default():
        x = v1.placeholder(tf.float32, [3], name="x")

        def outer(i, total):
            inner = v1.while_loop(lambda j, _: j < i, lambda j, t: (j + 1, t * 1.25 + x), [0, total])
            total = v1.cond(tf.reduce_sum(inner[1]) > 20.0, lambda: inner[1] / 4.0, lambda: inner[1])
            return i + 1, total

        _, total = v1.while_loop(lambda i, _: i < 6, outer, [0, x])
        tf.identity(total, name="total")
        slope = tf.identity(tf.gradients(total, x)[0], name="gradient")
    v1.enable_control_flow_v2()
    feeds = {"x:0": np.array([0.5, 1, -0.25], np.float32)}
    writer.write(graph.as_graph_def(), feeds, run_v1(graph, ["total:0", slope.name], feeds))


def train_network(writer, optimizer, use_resource):
    """A small CNN with batch normalisation, three steps."""
    rng = np.random.default_rng(0)
    graph = tf.Graph()
    with graph.as_default():
        def variable(name, *shape):
            return v1.get_variable(name, initializer=0.2 * rng.standard_normal(shape).astype("f"),
                                   use_resource=use_resource)

        x = v1.placeholder(tf.float32, [None, 12, 12, 2], name="x")
        labels = v1.placeholder(tf.int32, [None], name="labels")
        net = tf.nn.conv2d(x, variable("kernel", 3, 3, 2, 8), 1, "SAME")
        net = v1.nn.fused_batch_norm(net, 1.0 + variable("scale", 8), variable("offset", 8))[0]
        net = tf.nn.max_pool2d(tf.nn.relu(net), 2, 2, "VALID")
        net = tf.matmul(tf.reshape(net, [-1, 6 * 6 * 8]), variable("dense", 6 * 6 * 8, 5))
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(
            labels=labels, logits=net + variable("bias", 5)), name="loss")
        optimizer().minimize(loss, name="train")
        v1.global_variables_initializer()
    feeds = {"x:0": floats(4, 12, 12, 2), "labels:0": np.array([0, 3, 1, 4], np.int32)}
    with v1.Session(graph=graph) as session:
        session.run("init")
        losses = [session.run(["loss:0", "train"], feeds)[0] for _ in range(3)]
    writer.write(graph.as_graph_def(), feeds, {"loss:0": np.stack(losses)}, init="init",
                 targets=["train"], steps=3, tolerance=5e-4)


@case
def adam_on_resources(writer):
    train_network(writer, lambda: v1.train.AdamOptimizer(0.01), True)


@case
def adam_on_references(writer):
    train_network(writer, lambda: v1.train.AdamOptimizer(0.01), False)


@case
def momentum_on_references(writer):
    train_network(writer, lambda: v1.train.MomentumOptimizer(0.05, 0.9), False)


def write_layers(writer, layers, value):
    """Each layer on the same input, all in one graph."""
    tf.keras.utils.set_random_seed(1)
    inputs = tf.keras.Input(value.shape[1:])
    model = tf.keras.Model(inputs, [layer(inputs) for layer in layers])
    write_model(writer, spread(model), value)


@case
def recurrent_layers(writer):
    layers = tf.keras.layers
    write_layers(writer, [
        layers.LSTM(5), layers.LSTM(4, return_sequences=True, go_backwards=True), layers.GRU(5),
        layers.GRU(3, reset_after=False), layers.SimpleRNN(4), layers.Bidirectional(layers.LSTM(4)),
        layers.Bidirectional(layers.GRU(3, return_sequences=True), merge_mode="sum"),
        layers.TimeDistributed(layers.Dense(3))], floats(3, 9, 6))


@case
def layers_1d(writer):
    layers = tf.keras.layers
    write_layers(writer, [
        layers.Conv1D(4, 3, strides=2), layers.SeparableConv1D(4, 3),
        layers.Conv1DTranspose(3, 3, strides=2), layers.UpSampling1D(2), layers.MaxPooling1D(2),
        layers.AveragePooling1D(2), layers.ZeroPadding1D(2), layers.Cropping1D(2),
        layers.GlobalMaxPooling1D(), layers.LayerNormalization(), layers.GroupNormalization(2),
        layers.UnitNormalization(), layers.PReLU(), layers.Flatten()], floats(3, 12, 6))


@case
def layers_2d(writer):
    layers = tf.keras.layers
    write_layers(writer, [
        layers.Conv2DTranspose(3, 3, strides=2, padding="same"), layers.SeparableConv2D(5, 3),
        layers.UpSampling2D(2), layers.Cropping2D(2), layers.ZeroPadding2D(1),
        layers.DepthwiseConv2D(3, depth_multiplier=2), layers.GlobalMaxPooling2D(),
        layers.GlobalAveragePooling2D(), layers.Permute((2, 1, 3)), layers.MaxPooling2D(3, 2, "same"),
        layers.AveragePooling2D(3, 2, "same"), layers.Conv2D(4, 3, dilation_rate=2),
        layers.Conv2D(4, 3, groups=2)], floats(2, 12, 14, 4))


@case
def activations(writer):
    names = ("relu", "relu6", "leaky_relu", "elu", "selu", "gelu", "silu", "mish", "hard_sigmoid",
             "hard_silu", "softplus", "softsign", "exponential", "log_softmax", "tanh_shrink",
             "soft_shrink", "hard_shrink", "sparse_plus", "squareplus", "celu", "glu", "sparsemax",
             "hard_tanh", "log_sigmoid", "softmax", "sigmoid", "tanh", "linear")
    write_layers(writer, [tf.keras.layers.Activation(name) for name in names], 2 * floats(4, 10))


@case
def mobilenetv2(writer):
    tf.keras.utils.set_random_seed(1)
    model = tf.keras.applications.MobileNetV2(weights=None, input_shape=(96, 96, 3))
    write_model(writer, spread(model), floats(2, 96, 96, 3))


@case
def resnet50(writer):
    tf.keras.utils.set_random_seed(1)
    model = tf.keras.applications.ResNet50(weights=None, input_shape=(96, 96, 3))
    write_model(writer, spread(model), floats(2, 96, 96, 3))


@case
def transformer(writer):
    tf.keras.utils.set_random_seed(1)
    layers = tf.keras.layers
    tokens = layers.Input((24,), dtype="int32")
    x = layers.Embedding(50, 32)(tokens)
    for _ in range(2):
        attention = layers.MultiHeadAttention(4, 8)(x, x)
        x = layers.LayerNormalization()(x + attention)
        hidden = layers.Dense(32)(layers.Dense(64, activation="gelu")(x))
        x = layers.LayerNormalization()(x + hidden)
    model = tf.keras.Model(tokens, layers.Dense(5)(layers.GlobalAveragePooling1D()(x)))
    inputs = np.random.default_rng(0).integers(0, 50, (3, 24)).astype(np.int32)
    write_model(writer, spread(model), inputs)


@case
def lstm_classifier(writer):
    tf.keras.utils.set_random_seed(1)
    layers = tf.keras.layers
    model = tf.keras.Sequential([layers.Input((12,), dtype="int32"), layers.Embedding(30, 16),
                                 layers.LSTM(20), layers.Dense(4, activation="softmax")])
    inputs = np.random.default_rng(0).integers(0, 30, (3, 12)).astype(np.int32)
    write_model(writer, model, inputs)


@case
def causal_conv1d(writer):
    tf.keras.utils.set_random_seed(1)
    layers = tf.keras.layers
    model = tf.keras.Sequential([layers.Input((40, 6))] + [
        layers.Conv1D(16, 3, padding="causal", dilation_rate=rate, activation="relu")
        for rate in (1, 2, 4)] + [layers.Conv1D(2, 1)])
    write_model(writer, spread(model), floats(3, 40, 6))


def main():
    out = pathlib.Path(sys.argv[1])
    for name in sys.argv[2:] or CASES:
        CASES[name](Writer(out / name))
        print(f"exported {name}", file=sys.stderr)


if __name__ == "__main__":
    main()
