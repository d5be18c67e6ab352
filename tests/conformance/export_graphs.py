"""Cases of graphs: feeds and fetches, control flow, printing, variables."""

import os
import sys
import tempfile

import numpy as np
import tensorflow as tf

from exporting import case, floats, run_v1, spread, v1, write_model


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
    """Nodes that we lack do no harm where nothing needs them, as those of a Saver."""
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
    writer.write(graph.as_graph_def(), feeds, {"loss:0": np.stack(losses)}, inits=["init"],
                 targets=["train"], steps=3)


@case
def nested_loops(writer):
    """Nested loops of TensorFlow 1 with a condition inside."""
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
