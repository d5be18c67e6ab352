"""Cases of Keras' layers, each on the same inputs in one model."""

import numpy as np
import tensorflow as tf

from exporting import case, floats, frozen, import_graph, run_v1, spread, write_model


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
