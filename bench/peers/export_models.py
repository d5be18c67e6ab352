"""Exports the graphs that `models` measures with the real TensorFlow: export_models.py OUT [NAME...]

ResNet50's weights.npz has its weights by the names of Keras' layers.
"""

import exporting as e

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
layers = tf.keras.layers
MODELS = {}
IMAGES, SIDE, CLASSES = 16, 224, 1000


def model(function):
    MODELS[function.__name__] = function
    return function


def settle(keras_model, value):
    """Gives batch normalisation the statistics of `value`, as training would have, so that values
    keep their size through a deep network; its other weights are spread a little."""
    rng = np.random.default_rng(1)
    normalisations = [l for l in keras_model.layers if isinstance(l, layers.BatchNormalization)]
    for layer in normalisations:
        layer.gamma.assign(rng.uniform(0.5, 1.5, layer.gamma.shape))
        layer.beta.assign(0.1 * rng.standard_normal(layer.beta.shape))
    momenta = [layer.momentum for layer in normalisations]
    for layer in normalisations:
        layer.momentum = 0.0
    keras_model(value, training=True)
    for layer, momentum in zip(normalisations, momenta):
        layer.momentum = momentum
    return keras_model


def keras_resnet50(policy):
    """ResNet50 as Keras has it, its probabilities (or, without, its logits) in float."""
    tf.keras.config.set_dtype_policy("float32")
    tf.keras.utils.set_random_seed(1)
    settled = settle(tf.keras.applications.ResNet50(weights=None, classifier_activation=None),
                     e.floats(4, SIDE, SIDE, 3, seed=7))
    if policy == "float32":
        return settled
    tf.keras.config.set_dtype_policy(policy)
    mixed = tf.keras.applications.ResNet50(weights=None, classifier_activation=None)
    tf.keras.config.set_dtype_policy("float32")
    mixed.set_weights(settled.get_weights())
    return mixed


def write_resnet50_inference(folder, logits, **more):
    np.savez(folder / "weights.npz", **{w.path: w.numpy() for w in logits.weights})
    e.write_frozen(folder, with_softmax(logits), e.floats(IMAGES, SIDE, SIDE, 3),
                   unit=f"per_second {IMAGES}", **more)


def with_softmax(logits):
    outputs = layers.Activation("softmax", dtype="float32")(logits.output)
    return tf.keras.Model(logits.input, outputs)


@model
def resnet50_inference(folder):
    write_resnet50_inference(folder, keras_resnet50("float32"), tolerance=1e-4)


@model
def resnet50_inference_bf16(folder):
    # Fifty layers of bfloat16 move these probabilities by a fifth of the largest, in TensorFlow too,
    # and folding batch normalisation into the weights rounds others.
    write_resnet50_inference(folder, keras_resnet50("mixed_bfloat16"),
                             exact=with_softmax(keras_resnet50("float32")))


def initial(variable, seed):
    """A first value as Keras would draw it, by an op that gives the same numbers on every side."""
    shape = variable.shape
    if "gamma" in variable.path:
        # What a block adds begins small, which keeps gradients from growing on their way down: they
        # would show rounding errors rather than mistakes.
        return tf.fill(shape, 0.2 if "_3_bn" in variable.path else 1.0)
    if len(shape) == 1:
        return (tf.ones if "moving_variance" in variable.path else tf.zeros)(shape)
    limit = np.sqrt(6.0 / (np.prod(shape[:-2]) * (shape[-2] + shape[-1])))
    return tf.random.stateless_uniform(shape, (seed, 0), -limit, limit)


def training_graph(keras_model, image_shape):
    """A graph of TensorFlow 1 that trains the Keras model by SGD with momentum: nodes `init` and
    `train`, tensors `images:0`, `labels:0` and `loss:0`; and its variables by their path."""
    variables = keras_model.trainable_variables

    @tf.function
    def gradients(x, labels):
        with tf.GradientTape() as tape:
            logits = tf.cast(keras_model(x, training=True), tf.float32)
            loss = tf.reduce_mean(
                tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
        return [loss, *tape.gradient(loss, [v.value for v in variables])]

    concrete = gradients.get_concrete_function(
        tf.TensorSpec((None, *image_shape), tf.float32), tf.TensorSpec((None,), tf.int32))
    graph = tf.Graph()
    with graph.as_default():
        images = v1.placeholder(tf.float32, (None, *image_shape), name="images")
        labels = v1.placeholder(tf.int32, (None,), name="labels")
        made, by_path = {}, {}
        for i, v in enumerate(keras_model.weights):
            by_path[v.path] = made[v.value.handle._id] = v1.get_variable(
                v.path.replace("/", "_"), initializer=initial(v, i), use_resource=True,
                trainable=v.trainable)
        # What the function captured are the model's variables; here they are the graph's own.
        inputs = {concrete.inputs[0].name: images, concrete.inputs[1].name: labels}
        for outside, inside in concrete.graph.captures:
            inputs[inside.name] = made[outside._id].handle
        updates = [op.name for op in concrete.graph.control_outputs]
        returned = tf.import_graph_def(
            concrete.graph.as_graph_def(), input_map=inputs, name="step",
            return_elements=[t.name for t in concrete.outputs] + updates)
        loss = tf.identity(returned[0], name="loss")
        slopes = returned[1:len(concrete.outputs)]
        optimizer = v1.train.MomentumOptimizer(1e-3, 0.9)
        apply = optimizer.apply_gradients(
            [(g, made[v.value.handle._id]) for g, v in zip(slopes, variables)])
        tf.group(apply, *returned[len(concrete.outputs):], name="train")
        v1.global_variables_initializer()
    return graph, by_path


def write_resnet50_training(folder, policy, tolerance):
    graph, variables = training_graph(keras_resnet50(policy), (SIDE, SIDE, 3))
    with v1.Session(graph=graph) as session:
        session.run("init")
        np.savez(folder / "weights.npz", **session.run(variables))
    feeds = {"images:0": e.floats(IMAGES, SIDE, SIDE, 3), "labels:0": e.integers(CLASSES, IMAGES)}
    e.write(folder, graph.as_graph_def(), feeds, ["loss:0"], init="init", targets=["train"], steps=3,
          tolerance=tolerance, unit=f"per_second {IMAGES}")


@model
def resnet50_training(folder):
    write_resnet50_training(folder, "float32", 5e-4)


@model
def resnet50_training_bf16(folder):
    write_resnet50_training(folder, "mixed_bfloat16", 0.01)  # losses, which are means of the batch


@model
def mobilenetv2(folder):
    tf.keras.utils.set_random_seed(1)
    net = tf.keras.applications.MobileNetV2(weights=None)
    e.write_frozen(folder, settle(net, e.floats(4, SIDE, SIDE, 3, seed=7)), e.floats(2, SIDE, SIDE, 3))


@model
def transformer(folder):
    """An encoder of 2 layers, width 128, 4 heads, on 64 tokens."""
    tf.keras.utils.set_random_seed(1)
    tokens = layers.Input((64,), dtype="int32")
    x = layers.Embedding(1000, 128)(tokens)
    for _ in range(2):
        attention = layers.MultiHeadAttention(4, 32)(x, x)
        x = layers.LayerNormalization()(x + attention)
        hidden = layers.Dense(128)(layers.Dense(512, activation="gelu")(x))
        x = layers.LayerNormalization()(x + hidden)
    net = tf.keras.Model(tokens, layers.Dense(10)(layers.GlobalAveragePooling1D()(x)))
    e.write_frozen(folder, net, e.integers(1000, 2, 64))


@model
def lstm(folder):
    tf.keras.utils.set_random_seed(1)
    net = tf.keras.Sequential([layers.Input((20,), dtype="int32"), layers.Embedding(1000, 64),
                               layers.LSTM(64), layers.Dense(10, activation="softmax")])
    e.write_frozen(folder, net, e.integers(1000, 2, 20))


@model
def cnn_training(folder):
    """A small CNN with batch normalisation, trained by Adam; batch 4."""
    rng = np.random.default_rng(0)
    graph = tf.Graph()
    with graph.as_default():
        def variable(name, *shape):
            value = 0.2 * rng.standard_normal(shape).astype(np.float32)
            return v1.get_variable(name, initializer=value, use_resource=True)

        x = v1.placeholder(tf.float32, [None, 12, 12, 2], name="x")
        labels = v1.placeholder(tf.int32, [None], name="labels")
        net = tf.nn.conv2d(x, variable("kernel", 3, 3, 2, 8), 1, "SAME")
        net = v1.nn.fused_batch_norm(net, 1.0 + variable("scale", 8), variable("offset", 8))[0]
        net = tf.nn.max_pool2d(tf.nn.relu(net), 2, 2, "VALID")
        net = tf.matmul(tf.reshape(net, [-1, 6 * 6 * 8]), variable("dense", 6 * 6 * 8, 5))
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(
            labels=labels, logits=net + variable("bias", 5)), name="loss")
        v1.train.AdamOptimizer(0.01).minimize(loss, name="train")
        v1.global_variables_initializer()
    # Equal images with different labels can't be learnt, so that gradients don't fade.
    feeds = {"x:0": e.floats(2, 12, 12, 2).repeat(2, 0), "labels:0": np.array([0, 3, 1, 4], np.int32)}
    e.write(folder, graph.as_graph_def(), feeds, ["loss:0"], init="init", targets=["train"], steps=3,
          tolerance=5e-4)


if __name__ == "__main__":
    e.main(MODELS)
