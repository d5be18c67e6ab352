"""Cases of whole networks in training, as graphs that TensorFlow exports: forward pass, gradients and optimizer.

The networks are small, their structure is that of their family. `loss` is a step's; `after/NAME` a variable
behind it.
"""

import numpy as np
import tensorflow as tf
from keras.src.applications import efficientnet

from exporting import case, floats, v1

layers = tf.keras.layers
STEPS = 3


def labels_of(classes, *shape, seed=0):
    return np.random.default_rng(seed).integers(0, classes, shape).astype(np.int32)


def begin():
    """The same names and values whatever was exported before."""
    tf.keras.backend.clear_session()
    tf.keras.utils.set_random_seed(1)


def first_value(variable, value, seed):
    """Of a variable of Keras with this value: an op that gives the same numbers everywhere, where a constant would
    take room in the graph. Offsets are not zero, since some have gradients that are nothing but rounding."""
    shape = variable.shape
    if not variable.trainable or not shape.rank:
        return value
    if shape.rank == 1:
        return value + tf.random.stateless_uniform(shape, (seed, 0), -0.1, 0.1)
    limit = np.sqrt(6.0 / (np.prod(shape[:-2]) * (shape[-2] + shape[-1])))
    return tf.random.stateless_uniform(shape, (seed, 0), -limit, limit)


def imported(concrete, inputs, paths, values):
    """A traced function's operations in the current graph, with variables of its own: what the function returns,
    the operations that it runs for their effects, and the variables by the handles of the function's."""
    made = {}
    named = {paths.get(v.handle._id, v.name.split(":")[0]).replace("/", "_"): v for v in concrete.graph.variables}
    for i, (path, v) in enumerate(sorted(named.items())):
        made[v.handle._id] = v1.get_variable(path, initializer=first_value(v, values[v.handle._id], i),
                                             use_resource=True, trainable=v.trainable)
    given = dict(zip((tensor.name for tensor in concrete.inputs), inputs))
    for outside, inside in concrete.graph.captures:
        given[inside.name] = (made[outside._id].handle if outside.dtype == tf.resource
                              else tf.constant(values[outside._id]))
    effects = [op.name for op in concrete.graph.control_outputs]
    results = [tensor.name for tensor in concrete.outputs]
    returned = tf.import_graph_def(concrete.graph.as_graph_def(), input_map=given, name="step",
                                   return_elements=results + effects)
    structured = tf.nest.pack_sequence_as(concrete.structured_outputs, returned[:len(results)],
                                          expand_composites=True)
    return structured, returned[len(results):], made


def write_training(writer, model, x, labels, optimizer, clip=0.0):
    """Three steps of a model of Keras. The optimizer is one of Keras, which becomes part of the function, or
    one of TensorFlow 1, whose ops the graph has. `clip`: the largest norm of all gradients together."""
    weights = model.trainable_variables
    of_keras = isinstance(optimizer, tf.keras.optimizers.Optimizer)
    if of_keras:
        optimizer.build(weights)

    @tf.function
    def step(x, labels):
        with tf.GradientTape() as tape:
            logits = tf.cast(model(x, training=True), tf.float32)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(
                labels=tf.reshape(labels, [-1]), logits=tf.reshape(logits, [-1, logits.shape[-1]])))
        slopes = tape.gradient(loss, [v.value for v in weights])
        if clip:
            slopes, _ = tf.clip_by_global_norm(slopes, clip)
        if not of_keras:
            return [loss, *slopes]
        optimizer.apply(slopes, weights)
        return [loss]

    specs = [tf.TensorSpec((None, *value.shape[1:]), value.dtype) for value in (x, labels)]
    concrete = step.get_concrete_function(*specs)
    paths = {v.value.handle._id: v.path for v in model.variables + (optimizer.variables if of_keras else [])}
    values = {v.handle._id: v.numpy() for v in concrete.graph.variables}
    values |= {constant._id: constant.numpy() for constant, _ in concrete.graph.captures
               if constant.dtype != tf.resource}
    graph = tf.Graph()
    with graph.as_default():
        inputs = [v1.placeholder(spec.dtype, spec.shape, name) for spec, name in zip(specs, ("x", "labels"))]
        (loss, *slopes), effects, made = imported(concrete, inputs, paths, values)
        loss = tf.identity(loss, name="loss")
        if not of_keras:
            effects.append(optimizer.apply_gradients(
                [(slope, made[v.value.handle._id]) for slope, v in zip(slopes, weights)]))
        train = tf.group(*effects, name="train")
        write_steps(writer, graph, {"x:0": x, "labels:0": labels}, train,
                    [made[v.value.handle._id] for v in model.variables if v.value.handle._id in made])


def write_steps(writer, graph, feeds, train, variables):
    """Runs what the current graph trains, and writes it with the losses and the variables."""
    with tf.control_dependencies([train]):
        after = [tf.identity(v.read_value(), name="after/" + v.op.name) for v in variables]
    v1.global_variables_initializer()
    fetches = ["loss:0", *(tensor.name for tensor in after)]
    with v1.Session(graph=graph) as session:
        session.run("init")
        seen = [session.run(fetches, feeds) for _ in range(STEPS)]
    expected = {name: np.stack([row[i] for row in seen]) for i, name in enumerate(fetches)}
    writer.write(graph.as_graph_def(), feeds, expected, inits=["init"], targets=["train"], steps=STEPS,
                 tolerance=5e-4)


@case
def training_mlp(writer):
    begin()
    model = tf.keras.Sequential([layers.Input((20,)), layers.Dense(16, activation="relu"), layers.Dropout(0.2),
                                 layers.Dense(12, activation="tanh"), layers.Dense(5)])
    write_training(writer, model, floats(8, 20), labels_of(5, 8), v1.train.GradientDescentOptimizer(0.1))


@case
def training_cnn(writer):
    begin()
    model = tf.keras.Sequential([
        layers.Input((12, 12, 3)), layers.Conv2D(6, 3, activation="relu"), layers.MaxPooling2D(),
        layers.Conv2D(8, 3, padding="same", use_bias=False), layers.BatchNormalization(),
        layers.ReLU(), layers.AveragePooling2D(2), layers.Flatten(), layers.Dropout(0.3), layers.Dense(5)])
    write_training(writer, model, floats(4, 12, 12, 3), labels_of(5, 4), v1.train.AdamOptimizer(0.01))


def residual_block(x, filters, stride):
    """A bottleneck of ResNet50's."""
    def conv(x, width, size, step=1):
        x = layers.Conv2D(width, size, step, padding="same")(x)
        return layers.BatchNormalization(epsilon=1.001e-5)(x)

    side = x if stride == 1 and x.shape[-1] == 4 * filters else conv(x, 4 * filters, 1, stride)
    x = layers.ReLU()(conv(x, filters, 1, stride))
    x = layers.ReLU()(conv(x, filters, 3))
    return layers.ReLU()(layers.Add()([side, conv(x, 4 * filters, 1)]))


def residual_network():
    images = layers.Input((24, 24, 3))
    x = layers.Conv2D(8, 7, 2, use_bias=False)(layers.ZeroPadding2D(3)(images))
    x = layers.ReLU()(layers.BatchNormalization(epsilon=1.001e-5)(x))
    x = layers.MaxPooling2D(3, 2)(layers.ZeroPadding2D(1)(x))
    for filters, stride in ((3, 1), (3, 1), (4, 2)):
        x = residual_block(x, filters, stride)
    return tf.keras.Model(images, layers.Dense(6)(layers.GlobalAveragePooling2D()(x)))


@case
def training_resnet(writer):
    begin()
    write_training(writer, residual_network(), floats(4, 24, 24, 3), labels_of(6, 4),
                   v1.train.MomentumOptimizer(0.02, 0.9, use_nesterov=True))


def inverted_block(x, filters, stride, expansion):
    """Of MobileNetV2."""
    def normal(x):
        return layers.BatchNormalization(momentum=0.999, epsilon=1e-3)(x)

    side = x
    x = normal(layers.Conv2D(expansion * x.shape[-1], 1, padding="same", use_bias=False)(x))
    x = layers.ReLU(6.0)(x)
    if stride == 2:
        x = layers.ZeroPadding2D(((0, 1), (0, 1)))(x)
    x = layers.DepthwiseConv2D(3, stride, use_bias=False, padding="same" if stride == 1 else "valid")(x)
    x = layers.ReLU(6.0)(normal(x))
    x = normal(layers.Conv2D(filters, 1, padding="same", use_bias=False)(x))
    return layers.Add()([side, x]) if stride == 1 and side.shape[-1] == filters else x


@case
def training_mobilenet(writer):
    begin()
    images = layers.Input((16, 16, 3))
    x = layers.Conv2D(4, 3, 2, padding="same", use_bias=False)(images)
    x = layers.ReLU(6.0)(layers.BatchNormalization(momentum=0.999, epsilon=1e-3)(x))
    for filters, stride, expansion in ((4, 1, 2), (6, 2, 3), (6, 1, 3)):
        x = inverted_block(x, filters, stride, expansion)
    model = tf.keras.Model(images, layers.Dense(5)(layers.GlobalAveragePooling2D()(x)))
    write_training(writer, model, floats(4, 16, 16, 3), labels_of(5, 4),
                   v1.train.RMSPropOptimizer(0.01, momentum=0.9, epsilon=0.1))


@case
def training_efficientnet(writer):
    """Keras' own EfficientNet with two of its stages, narrow."""
    begin()
    stages = [{"kernel_size": 3, "repeats": 1, "filters_in": 32, "filters_out": 16, "expand_ratio": 1,
               "id_skip": True, "strides": 1, "se_ratio": 0.25},
              {"kernel_size": 5, "repeats": 2, "filters_in": 16, "filters_out": 24, "expand_ratio": 3,
               "id_skip": True, "strides": 2, "se_ratio": 0.25}]
    model = efficientnet.EfficientNet(
        0.25, 1.0, 32, dropout_rate=0.2, drop_connect_rate=0.4, depth_divisor=2, blocks_args=stages, include_top=True,
        weights=None, input_shape=(32, 32, 3), classes=5, classifier_activation=None)
    images = (40 * floats(4, 32, 32, 3) + 128).clip(0, 255)
    write_training(writer, model, images, labels_of(5, 4), tf.keras.optimizers.RMSprop(0.01, momentum=0.9, epsilon=1e-3))


def recurrent_network(layer):
    return tf.keras.Sequential([
        layers.Input((6,), dtype="int32"), layers.Embedding(12, 6), layer(7, return_sequences=True), layer(5),
        layers.Dense(4)])


@case
def training_lstm(writer):
    begin()
    write_training(writer, recurrent_network(layers.LSTM), labels_of(12, 3, 6), labels_of(4, 3),
                   v1.train.AdamOptimizer(0.01), clip=1.0)


@case
def training_gru(writer):
    begin()
    write_training(writer, recurrent_network(layers.GRU), labels_of(12, 3, 6), labels_of(4, 3),
                   v1.train.AdagradOptimizer(0.1))


def transformer(width=8, heads=2, words=12, length=6):
    tokens = layers.Input((length,), dtype="int32")
    x = layers.Embedding(words, width)(tokens)
    x = layers.Dropout(0.1)(x + layers.Embedding(length, width)(np.arange(length)))
    for _ in range(2):
        attention = layers.MultiHeadAttention(heads, width // heads, dropout=0.1)
        x = layers.LayerNormalization()(x + attention(x, x, use_causal_mask=True))
        hidden = layers.Dense(width)(layers.Dense(2 * width, activation="gelu")(x))
        x = layers.LayerNormalization()(x + layers.Dropout(0.1)(hidden))
    return tf.keras.Model(tokens, layers.Dense(words)(x))


@case
def training_transformer(writer):
    begin()
    schedule = tf.keras.optimizers.schedules.ExponentialDecay(0.02, 2, 0.7)
    optimizer = tf.keras.optimizers.AdamW(schedule, weight_decay=0.01, global_clipnorm=1.0)
    write_training(writer, transformer(), labels_of(12, 2, 6), labels_of(12, 2, 6, seed=1), optimizer)


@case
def training_loop(writer):
    """An LSTM cell of one's own in a loop of TensorFlow 1, with its stacks and arrays."""
    width, steps, batch = 5, 4, 3
    v1.disable_control_flow_v2()
    graph = tf.Graph()
    with graph.as_default():
        def variable(name, seed, *shape):
            return v1.get_variable(name, initializer=0.3 * floats(*shape, seed=seed), use_resource=True)

        x = v1.placeholder(tf.float32, [None, steps, 4], name="x")
        labels = v1.placeholder(tf.int32, [None], name="labels")
        kernel, bias = variable("kernel", 1, 4 + width, 4 * width), variable("bias", 2, 4 * width)
        given = tf.TensorArray(tf.float32, steps).unstack(tf.transpose(x, [1, 0, 2]))
        seen = tf.TensorArray(tf.float32, steps)

        def cell(i, h, c, seen):
            gates = tf.matmul(tf.concat([given.read(i), h], 1), kernel) + bias
            i_gate, new, forget, o_gate = tf.split(gates, 4, 1)
            c = tf.sigmoid(forget + 1.0) * c + tf.sigmoid(i_gate) * tf.tanh(new)
            h = tf.sigmoid(o_gate) * tf.tanh(c)
            return i + 1, h, c, seen.write(i, h)

        zero = tf.zeros([tf.shape(x)[0], width])
        h, seen = v1.while_loop(lambda i, *_: i < steps, cell, (0, zero, zero, seen))[1::2]
        mean = tf.reduce_mean(seen.stack(), 0)
        logits = tf.matmul(tf.concat([h, mean], 1), variable("dense", 3, 2 * width, 4))
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits),
                              name="loss")
        train = v1.train.AdamOptimizer(0.02).minimize(loss, name="train")
        write_steps(writer, graph, {"x:0": floats(batch, steps, 4), "labels:0": labels_of(4, batch)}, train,
                    v1.trainable_variables())
    v1.enable_control_flow_v2()
