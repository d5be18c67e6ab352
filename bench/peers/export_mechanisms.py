"""Exports the graphs that `mechanisms` measures: export_mechanisms.py OUT [NAME...]

Each is what one mechanism is for, and little else. Large inputs are variables, so that no side is
measured at feeding them; of large results one row is fetched.
"""

import exporting as e

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
layers = tf.keras.layers
MODELS = {}


def model(function):
    MODELS[function.__name__] = function
    return function


def on_variables(folder, make, megabytes=0.0, unit=e.MILLISECONDS, **shapes):
    """Writes the graph of `make(name=variable...)`, whose result is fetched, its first row where it
    has more than a million elements. With `megabytes`, what a step must read and write, the figure
    is megabytes in a second."""
    graph = tf.Graph()
    with graph.as_default():
        variables = {}
        for i, (name, shape) in enumerate(shapes.items()):
            first = tf.random.stateless_uniform(shape, (i, 0), -1.0, 1.0)
            variables[name] = v1.get_variable(name, initializer=first, use_resource=True)
        result = make(**{name: v.read_value() for name, v in variables.items()})
        large = result.shape.num_elements() > 1e6
        result = tf.identity(result[0] if large else result, name="result")
        v1.global_variables_initializer()
    with v1.Session(graph=graph) as session:
        session.run("init")
        np.savez(folder / "weights.npz", **session.run(variables))
    if megabytes:
        unit = f"per_second {megabytes}"
    e.write(folder, graph.as_graph_def(), {}, ["result:0"], init="init", unit=unit)


def on_keras(folder, shape, *chain):
    """Writes a frozen Keras model on a fed array."""
    tf.keras.utils.set_random_seed(1)
    inputs = x = layers.Input(shape[1:])
    for layer in chain:
        x = layer(x)
    e.write_frozen(folder, tf.keras.Model(inputs, x), e.floats(*shape))


@model
def batch_norm_folding(folder):
    on_keras(folder, (4, 56, 56, 32), layers.Conv2D(64, 3), layers.BatchNormalization(),
             layers.GlobalAveragePooling2D())


@model
def conv_bias_activation(folder):
    on_keras(folder, (4, 56, 56, 32), layers.Conv2D(64, 3, activation="relu"),
             layers.GlobalAveragePooling2D())


@model
def residual_add(folder):
    def block(x):
        return layers.ReLU()(x + layers.Conv2D(32, 1)(x))

    on_keras(folder, (4, 56, 56, 32), block, block, block, layers.GlobalAveragePooling2D())


@model
def pointwise_gradient(folder):
    """Of 1x1 filters, as training asks for them."""
    def gradients(x, y):
        return tf.raw_ops.Conv2DBackpropFilter(
            input=x, filter_sizes=(1, 1, x.shape[-1], y.shape[-1]), out_backprop=y,
            strides=[1, 1, 1, 1], padding="SAME")

    on_variables(folder, gradients, x=(8, 56, 56, 64), y=(8, 56, 56, 256))


@model
def matmul_bias_activation(folder):
    on_keras(folder, (256, 256), layers.Dense(1024, activation="relu"),
             layers.Dense(1024, activation="gelu"), layers.Dense(10))


@model
def packed_weights(folder):
    on_keras(folder, (8, 1024), layers.Dense(2048), layers.Dense(1024))


@model
def primitive_cache(folder):
    """Convolutions so small that making them ready would take longer than they do."""
    on_keras(folder, (1, 8, 8, 16), *(layers.Conv2D(16, 3, padding="same") for _ in range(16)))


@model
def elementwise_chain(folder):
    def chain(x, y):
        z = tf.tanh(x * y + 0.5) - y
        return tf.reduce_sum(tf.nn.relu(z * z - 0.1 * x) * 2.0, axis=1)

    on_variables(folder, chain, x=(2048, 2048), y=(2048, 2048))


@model
def in_place_reuse(folder):
    """Each value is needed once; 67 MB each."""
    def chain(x):
        for _ in range(4):
            x = tf.tanh(tf.sqrt(tf.abs(x)))
        return x

    on_variables(folder, chain, x=(4096, 4096))


@model
def fused_lstm(folder):
    on_keras(folder, (2, 20, 64), layers.LSTM(64))


@model
def fused_gru(folder):
    on_keras(folder, (2, 20, 64), layers.GRU(64))


@model
def fused_attention(folder):
    on_keras(folder, (2, 128, 128), lambda x: layers.MultiHeadAttention(4, 32)(x, x))


def attention(batch, heads, tokens, size, causal=False, matmul=False):
    """Exports what MultiHeadAttention has between its projections, as Keras writes it, or by
    products of matrices; of many heads' results the first batch is fetched."""
    def einsums(q, k, v):
        scores = tf.einsum("BTNH,BSNH->BNTS", q, k) * size**-0.5
        if causal:
            earlier = tf.linalg.band_part(tf.ones((1, 1, tokens, tokens), tf.bool), -1, 0)
            scores = tf.where(earlier, scores, -3e38)
        return tf.einsum("BNTS,BSNH->BTNH", tf.nn.softmax(scores), v)

    def products(q, k, v):
        scores = tf.matmul(q, k, transpose_b=True) * size**-0.5
        return tf.matmul(tf.nn.softmax(scores), v)

    shape = (batch, heads, tokens, size) if matmul else (batch, tokens, heads, size)
    return lambda folder: on_variables(folder, products if matmul else einsums,
                                       q=shape, k=shape, v=shape)


MODELS["attention_16"] = attention(32, 12, 16, 64)
MODELS["attention_64"] = attention(8, 8, 64, 32)
MODELS["attention_256"] = attention(4, 12, 256, 64)
MODELS["attention_256_causal"] = attention(16, 2, 256, 16, causal=True)
MODELS["attention_1024"] = attention(1, 8, 1024, 64)
MODELS["attention_1024_matmul"] = attention(1, 8, 1024, 64, matmul=True)

LOOPS = 1000


@model
def loop_iteration(folder):
    """A loop of TensorFlow 1 whose body is two operations on a scalar, and counting."""
    graph = tf.Graph()
    v1.disable_control_flow_v2()
    with graph.as_default():
        x = v1.placeholder(tf.float32, [], name="x")
        _, y = v1.while_loop(lambda i, _: i < LOOPS, lambda i, y: (i + 1, y * 0.99 + x), [0, x])
        tf.identity(y, name="result")
    v1.enable_control_flow_v2()
    e.write(folder, graph.as_graph_def(), {"x:0": np.float32(0.5)}, ["result:0"],
            unit=f"per_step {1e9 / LOOPS}")


@model
def reduction(folder):
    on_variables(folder, lambda x: tf.reduce_sum(x, axis=1), 4096 * 4096 * 4 / 1e6, x=(4096, 4096))


@model
def softmax(folder):
    on_variables(folder, tf.nn.softmax, 2 * 8192 * 1024 * 4 / 1e6, logits=(8192, 1024))


@model
def layer_norm(folder):
    def normalised(x, scale, offset):
        mean, variance = tf.nn.moments(x, [1], keepdims=True)
        return tf.nn.batch_normalization(x, mean, variance, offset, scale, 1e-3)

    on_variables(folder, normalised, 2 * 8192 * 1024 * 4 / 1e6, x=(8192, 1024), scale=(1024,),
                 offset=(1024,))


@model
def gather(folder):
    """Rows of 1 KiB in random order."""
    order = np.random.default_rng(1).permutation(40000)[:32768].astype(np.int32)
    on_variables(folder, lambda table: tf.gather(table, order), 2 * 32768 * 256 * 4 / 1e6,
                 table=(40000, 256))


if __name__ == "__main__":
    e.main(MODELS)
