"""Exports graphs with the real TensorFlow, with inputs and what it computes: export_models.py OUT [NAME...]

Each case is a folder: graph.pb or graph.pbtxt, a .npy for each feed and each expected value, and case.json,
which models.py turns into a call of `td run`.
"""

import functools
import json
import os
import pathlib
import sys
import tempfile

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


def frozen(function, *specs, **how):
    """A concrete function as a frozen graph: (GraphDef, input names, output names)."""
    concrete = tf.function(function).get_concrete_function(*specs)
    concrete = convert_variables_to_constants_v2(concrete, **how)
    return (concrete.graph.as_graph_def(), [t.name for t in concrete.inputs],
            [t.name for t in concrete.outputs])


def write_model(writer, model, *inputs, **more):
    specs = [tf.TensorSpec((None, *i.shape[1:]), i.dtype) for i in inputs]
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


def printed_by(call):
    """What the call's native code writes to standard error."""
    sys.stderr.flush()
    before = os.dup(2)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 2)
        try:
            call()
        finally:
            os.dup2(before, 2)
            os.close(before)
        file.seek(0)
        return file.read().decode()


@case
def printing(writer):
    """Print and PrintV2: the same text on standard error."""
    graph = tf.Graph()
    with graph.as_default():
        x = v1.placeholder(tf.float32, [3, 4], name="x")
        some = [tf.constant([1, 2, 3], tf.int64), tf.constant("a b"), tf.constant([True, False]),
                tf.constant([], tf.float32), tf.constant([1e20, np.nan, -np.inf, 1e-7]),
                tf.constant([b"a\x01", b"x y"]), tf.constant([123456789.0, 0.1], tf.float64)]
        last = v1.Print(x, [x, *some], message="some: ", summarize=5)
        with tf.control_dependencies([last]):
            last = v1.Print(x, [x], summarize=-1)
        with tf.control_dependencies([last]):
            last = v1.Print(x, [tf.reshape(tf.range(24), [2, 3, 4]), x])
        with tf.control_dependencies([last]):
            last = tf.print("values", x, *some, tf.reshape(tf.range(30), [10, 3]), sep="|",
                            end="!\n", summarize=2)
        with tf.control_dependencies([last]):
            tf.identity(x, name="y")
    feeds = {"x:0": np.arange(12, dtype=np.float32).reshape(3, 4) / 7}
    expected = {}
    with v1.Session(graph=graph) as session:
        session.run("x:0", feeds)
        text = printed_by(lambda: expected.update({"y:0": session.run("y:0", feeds)}))
    # `td run` takes a step, and then another one for its time.
    writer.write(graph.as_graph_def(), feeds, expected, stderr=2 * text)


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


def every_optimizer(step):
    train = v1.train
    return {
        "gradient_descent": train.GradientDescentOptimizer(0.1),
        "momentum": train.MomentumOptimizer(0.1, 0.9),
        "nesterov": train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
        "adam": train.AdamOptimizer(0.01),
        "adagrad": train.AdagradOptimizer(0.1),
        "adagrad_da": train.AdagradDAOptimizer(0.1, step, l1_regularization_strength=0.01,
                                               l2_regularization_strength=0.01),
        "adadelta": train.AdadeltaOptimizer(1.0),
        "rmsprop": train.RMSPropOptimizer(0.01, momentum=0.5),
        "centered": train.RMSPropOptimizer(0.01, momentum=0.5, centered=True),
        "ftrl": train.FtrlOptimizer(0.1, l1_regularization_strength=0.01,
                                    l2_regularization_strength=0.01),
        "ftrl_shrinkage": train.FtrlOptimizer(0.1, l2_shrinkage_regularization_strength=0.01),
        "proximal_descent": train.ProximalGradientDescentOptimizer(0.1, 0.01, 0.01),
        "proximal_adagrad": train.ProximalAdagradOptimizer(
            0.1, l1_regularization_strength=0.01, l2_regularization_strength=0.01)}


def train_with_every_optimizer(writer, use_resource):
    """Three steps, each optimizer with variables of its own: one dense, one looked up in."""
    graph = tf.Graph()
    losses, trains = [], []
    with graph.as_default():
        ids = v1.placeholder(tf.int32, [None], name="ids")
        y = v1.placeholder(tf.float32, [None, 2], name="y")
        step = v1.train.get_or_create_global_step()
        for name, optimizer in every_optimizer(step).items():
            with v1.variable_scope(name, use_resource=use_resource):
                table = v1.get_variable("table", initializer=floats(6, 3))
                w = v1.get_variable("w", initializer=floats(3, 2, seed=4))
                found = tf.nn.embedding_lookup(table, ids)
                loss = tf.reduce_mean(tf.square(tf.matmul(found, w) - y))
                losses.append(loss.name)
                trains.append(optimizer.minimize(loss).name)
        with tf.control_dependencies([graph.get_operation_by_name(name) for name in trains]):
            tf.group(v1.assign_add(step, 1), name="train_all")
        v1.global_variables_initializer()
        v1.train.Saver()
    feeds = {"ids:0": np.array([1, 3, 1, 5], np.int32), "y:0": floats(4, 2)}
    with v1.Session(graph=graph) as session:
        session.run("init")
        seen = [session.run([losses, "train_all"], feeds)[0] for _ in range(3)]
    expected = {name: np.stack([row[i] for row in seen]) for i, name in enumerate(losses)}
    writer.write(graph.as_graph_def(), feeds, expected, init="init", targets=["train_all"], steps=3,
                 tolerance=5e-4)


@case
def optimizers_on_resources(writer):
    train_with_every_optimizer(writer, True)


@case
def optimizers_on_references(writer):
    train_with_every_optimizer(writer, False)


def layers_model(layers, *values):
    """Each layer on the same inputs, all in one model."""
    tf.keras.utils.set_random_seed(1)
    inputs = [tf.keras.Input(value.shape[1:], dtype=value.dtype) for value in values]
    argument = inputs[0] if len(inputs) == 1 else inputs
    return spread(tf.keras.Model(argument, [layer(argument) for layer in layers]))


def write_layers(writer, layers, *values):
    write_model(writer, layers_model(layers, *values), *values)


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
def layers_3d(writer):
    layers = tf.keras.layers
    write_layers(writer, [
        layers.Conv3D(3, 3, strides=2, padding="same"), layers.Conv3D(4, 2, groups=2),
        layers.Conv3D(4, 3, dilation_rate=2, padding="same"),
        layers.Conv3DTranspose(3, 3, strides=2, padding="same"), layers.MaxPooling3D(2),
        layers.AveragePooling3D(2, padding="same"), layers.ZeroPadding3D(1), layers.Cropping3D(1),
        layers.UpSampling3D(2), layers.GlobalAveragePooling3D(), layers.GlobalMaxPooling3D(),
        layers.ConvLSTM2D(3, 3), layers.TimeDistributed(layers.Conv2D(3, 3)),
        layers.Bidirectional(layers.ConvLSTM2D(2, 3, padding="same", return_sequences=True))],
        floats(2, 5, 7, 6, 4))


@case
def resizing_layers(writer):
    layers = tf.keras.layers
    write_layers(writer, [
        layers.UpSampling2D(2, interpolation="bilinear"), layers.CenterCrop(5, 6),
        layers.UpSampling2D(3, interpolation="bicubic"),
        layers.UpSampling2D(2, interpolation="lanczos3"), layers.Resizing(7, 9),
        layers.Resizing(20, 9, interpolation="nearest"), layers.Resizing(7, 9, interpolation="area"),
        layers.Resizing(20, 9, crop_to_aspect_ratio=True), layers.AveragePooling2D(2, padding="same"),
        layers.GroupNormalization(2), layers.BatchNormalization(axis=1)], floats(2, 12, 14, 4))


@case
def merging_layers(writer):
    layers = tf.keras.layers
    write_layers(writer, [
        layers.Add(), layers.Multiply(), layers.Subtract(), layers.Average(), layers.Maximum(),
        layers.Minimum(), layers.Concatenate(), layers.Dot(axes=2), layers.AdditiveAttention(),
        layers.Attention(use_scale=True, score_mode="concat"),
        lambda x: layers.MultiHeadAttention(2, 3, value_dim=5)(*x, use_causal_mask=True),
        lambda x: layers.GroupQueryAttention(3, 4, 2)(*x)], floats(2, 5, 4), floats(2, 5, 4, seed=3))


@case
def masked_layers(writer):
    """What follows from a mask: padded sequences of different length."""
    layers = tf.keras.layers
    embedding = layers.Embedding(9, 4, mask_zero=True)
    recurrent = [layers.LSTM(4), layers.GRU(4, return_sequences=True), layers.SimpleRNN(4),
                 layers.Bidirectional(layers.LSTM(3)), layers.GlobalAveragePooling1D()]
    ids = np.array([[1, 2, 3, 0, 0], [3, 4, 5, 6, 0], [7, 0, 0, 0, 0]], np.int32)
    write_layers(writer, [lambda x, layer=layer: layer(embedding(x)) for layer in recurrent] + [
        lambda x: layers.MultiHeadAttention(2, 3)(embedding(x), embedding(x))], ids)


@case
def loops_as_functions(writer):
    """Recurrent layers as TensorFlow 2 has them: While with functions, nothing inlined."""
    layers = tf.keras.layers
    value = floats(3, 9, 6)
    model = layers_model([layers.LSTM(5), layers.GRU(4, return_sequences=True),
                          layers.Bidirectional(layers.LSTM(3))], value)
    graph, names, outputs = frozen(lambda x: model(x, training=False), tf.TensorSpec((3, 9, 6)),
                                   lower_control_flow=False)
    feeds = {names[0]: value}
    writer.write(graph, feeds, run_v1(import_graph(graph), outputs, feeds))


@case
def gradients_of_loops(writer):
    """The gradients of recurrent layers towards their weights, which are arguments."""
    layers = tf.keras.layers
    value = floats(3, 7, 6)
    model = layers_model([layers.LSTM(5), layers.GRU(4, return_sequences=True),
                          layers.SimpleRNN(3)], value)
    weights = [v.numpy() for v in model.trainable_variables]
    others = [v.numpy() for v in model.non_trainable_variables]

    @tf.function
    def f(x, *weights):
        with tf.GradientTape() as tape:
            tape.watch(weights)
            outputs, _ = model.stateless_call(list(weights), others, x, training=True)
            loss = tf.add_n([tf.reduce_sum(tf.square(y)) for y in outputs])
        return [loss, *tape.gradient(loss, weights)]

    inputs = [value, *weights]
    concrete = f.get_concrete_function(*[tf.TensorSpec(i.shape, i.dtype) for i in inputs])
    names = [t.name for t in concrete.outputs]
    writer.write(concrete.graph.as_graph_def(),
                 dict(zip([t.name for t in concrete.inputs], inputs)),
                 dict(zip(names, concrete(*map(tf.constant, inputs)))))


APPLICATIONS = {"MobileNet": 64, "MobileNetV3Small": 64, "EfficientNetB0": 64, "EfficientNetV2B0": 64,
                "DenseNet121": 64, "InceptionV3": 80, "Xception": 72, "NASNetMobile": 64,
                "ConvNeXtTiny": 64}


def write_application(writer, name, size):
    tf.keras.utils.set_random_seed(1)
    shape = (size, size, 3)
    model = getattr(tf.keras.applications, name)(weights=None, input_shape=shape, classes=10)
    write_model(writer, spread(model), floats(1, *shape))


for application, size in APPLICATIONS.items():
    CASES["application_" + application.lower()] = functools.partial(
        write_application, name=application, size=size)


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
