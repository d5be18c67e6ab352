"""Saves models with the real Keras, has them loaded, trained and saved by keras_files.cpp, and loads those.

    check_keras_files.py PROGRAM DIR REPORT [CASE...]

CASE: only these; "families": one application of each of Keras' families; "applications": every application
of Keras (or those named behind it), one after another.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

import keras
import numpy as np
import tensorflow as tf
from keras import layers as L

# Its model is not loaded from Keras' file: keras_files.cpp makes it.
MADE_HERE = "operations made here"
RANDOM = np.random.default_rng(1)


def values(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


def one_layer(layer, *shape):
    """A functional model of one layer, and an input for it."""
    x = keras.Input(shape, name="x")
    return keras.Model(x, layer(x)), [values(2, *shape)]


def two_inputs(layer, a, b):
    x, y = keras.Input(a, name="x"), keras.Input(b, name="y")
    return keras.Model([x, y], layer([x, y])), [values(2, *a), values(2, *b)]


def layer_cases():
    sequence, image, volume = (5, 4), (6, 6, 3), (4, 4, 4, 2)
    yield "Dense", one_layer(L.Dense(3, "gelu", kernel_initializer=keras.initializers.HeNormal(3),
                                     kernel_regularizer=keras.regularizers.L1L2(.1, .2)), 4)
    yield "Conv1D", one_layer(L.Conv1D(3, 2, padding="causal", dilation_rate=2), *sequence)
    yield "Conv2D", one_layer(L.Conv2D(6, (3, 2), strides=(2, 1), groups=3, use_bias=False), *image)
    yield "Conv3D", one_layer(L.Conv3D(2, 2), *volume)
    yield "Conv1DTranspose", one_layer(L.Conv1DTranspose(2, 3, strides=2), *sequence)
    yield "Conv2DTranspose", one_layer(L.Conv2DTranspose(2, 3, strides=2, output_padding=1), *image)
    yield "Conv3DTranspose", one_layer(L.Conv3DTranspose(2, 2), *volume)
    yield "DepthwiseConv1D", one_layer(L.DepthwiseConv1D(2), *sequence)
    yield "DepthwiseConv2D", one_layer(L.DepthwiseConv2D(3, depth_multiplier=2), *image)
    yield "SeparableConv1D", one_layer(L.SeparableConv1D(3, 2), *sequence)
    yield "SeparableConv2D", one_layer(L.SeparableConv2D(3, 3, activation="relu"), *image)
    for n, shape in ((1, sequence), (2, image), (3, volume)):
        for kind in ("Max", "Average"):
            yield f"{kind}Pooling{n}D", one_layer(
                getattr(L, f"{kind}Pooling{n}D")(2, padding="same"), *shape)
            yield f"Global{kind}Pooling{n}D", one_layer(
                getattr(L, f"Global{kind}Pooling{n}D")(keepdims=True), *shape)
        yield f"ZeroPadding{n}D", one_layer(getattr(L, f"ZeroPadding{n}D")(1), *shape)
        yield f"Cropping{n}D", one_layer(getattr(L, f"Cropping{n}D")(1), *shape)
        yield f"UpSampling{n}D", one_layer(getattr(L, f"UpSampling{n}D")(2), *shape)
        yield f"SpatialDropout{n}D", one_layer(getattr(L, f"SpatialDropout{n}D")(.5), *shape)
    yield "UpSampling2D bilinear", one_layer(L.UpSampling2D((2, 3), interpolation="bilinear"), *image)
    yield "ZeroPadding2D of each side", one_layer(L.ZeroPadding2D(((1, 0), (2, 3))), *image)
    for name in ("SimpleRNN", "LSTM", "GRU"):
        yield name, one_layer(getattr(L, name)(3, return_sequences=True), *sequence)
        yield f"Bidirectional {name}", one_layer(
            L.Bidirectional(getattr(L, name)(3), merge_mode="sum"), *sequence)
        yield f"RNN of {name}Cell", one_layer(L.RNN(getattr(L, f"{name}Cell")(3)), *sequence)
    yield "GRU reset before", one_layer(L.GRU(3, reset_after=False, go_backwards=True), *sequence)
    yield "StackedRNNCells", one_layer(
        L.RNN(L.StackedRNNCells([L.LSTMCell(3), L.LSTMCell(2), L.GRUCell(2)])), *sequence)
    yield "ConvLSTM1D", one_layer(L.ConvLSTM1D(2, 2), 3, 5, 2)
    yield "ConvLSTM2D", one_layer(L.ConvLSTM2D(2, 2, return_sequences=True), 3, 4, 4, 2)
    yield "ConvLSTM3D", one_layer(L.ConvLSTM3D(2, 2), 2, 3, 3, 3, 1)
    yield "TimeDistributed", one_layer(L.TimeDistributed(L.Dense(2)), *sequence)
    yield "BatchNormalization", one_layer(L.BatchNormalization(momentum=.9, scale=False), *image)
    yield "LayerNormalization", one_layer(L.LayerNormalization(axis=[1, 2]), *sequence)
    yield "GroupNormalization", one_layer(L.GroupNormalization(2), *sequence)
    yield "RMSNormalization", one_layer(L.RMSNormalization(), *sequence)
    yield "UnitNormalization", one_layer(L.UnitNormalization(), *sequence)
    normalization = L.Normalization()
    normalization.adapt(values(20, *sequence))
    yield "Normalization", one_layer(normalization, *sequence)
    yield "Normalization given", one_layer(
        L.Normalization(mean=[1., 2., 3.], variance=[1., 2., 4.]), *image)
    yield "Dropout", one_layer(L.Dropout(.5, noise_shape=(None, 1, 4), seed=3), *sequence)
    yield "AlphaDropout", one_layer(L.AlphaDropout(.5), *sequence)
    yield "GaussianDropout", one_layer(L.GaussianDropout(.5), *sequence)
    yield "GaussianNoise", one_layer(L.GaussianNoise(.5), *sequence)
    yield "ActivityRegularization", one_layer(L.ActivityRegularization(.1, .2), *sequence)
    yield "Activation", one_layer(L.Activation("mish"), *sequence)
    yield "ReLU", one_layer(L.ReLU(max_value=1., negative_slope=.1), *sequence)
    yield "LeakyReLU", one_layer(L.LeakyReLU(.2), *sequence)
    yield "ELU", one_layer(L.ELU(.7), *sequence)
    yield "PReLU", one_layer(L.PReLU("uniform", shared_axes=[1]), *sequence)
    yield "Softmax", one_layer(L.Softmax(axis=(1, 2)), *sequence)
    yield "Flatten", one_layer(L.Flatten(), *sequence)
    yield "Reshape", one_layer(L.Reshape((2, -1)), *sequence)
    yield "Permute", one_layer(L.Permute((2, 1)), *sequence)
    yield "RepeatVector", one_layer(L.RepeatVector(3), 4)
    yield "Rescaling", one_layer(L.Rescaling(2, -1), *sequence)
    yield "Identity", one_layer(L.Identity(), *sequence)
    for name in ("Add", "Subtract", "Multiply", "Average", "Maximum", "Minimum"):
        yield name, two_inputs(getattr(L, name)(), sequence, sequence)
    yield "Concatenate", two_inputs(L.Concatenate(axis=1), sequence, (3, 4))
    yield "Dot", two_inputs(L.Dot(axes=(2, 1), normalize=True), (3, 4), (4, 2))
    yield "Attention", two_inputs(L.Attention(use_scale=True), sequence, (3, 4))
    yield "AdditiveAttention", two_inputs(L.AdditiveAttention(), sequence, (3, 4))


WORDS = np.array([["The cat, the dog"], ["a dog"], ["a cat  sat"], ["und \u00e9t\u00e9"]])


def preprocessing(layer, inputs, dtype=None):
    x = keras.Input(inputs.shape[1:], dtype=dtype, name="x")
    return keras.Model(x, layer(x)), [inputs]


def adapted(layer, data):
    layer.adapt(data)
    return layer


def preprocessing_cases():
    """Layers with a vocabulary, given or learnt, and those that change images."""
    words, numbers = np.array([["b"], ["zz"], ["a"], [""]]), np.array([[3], [4], [-7], [12]])
    seen, images = np.array(["b", "a", "b", "c", "c", "c"]), values(2, 6, 5, 3)
    yield "StringLookup", preprocessing(adapted(L.StringLookup(), seen), words, "string")
    for mode in ("one_hot", "multi_hot", "count"):
        yield f"StringLookup {mode}", preprocessing(
            adapted(L.StringLookup(output_mode=mode, max_tokens=3), seen), words, "string")
    yield "StringLookup given", preprocessing(
        L.StringLookup(vocabulary=["a", "b"], num_oov_indices=3), words, "string")
    yield "StringLookup mask", preprocessing(
        adapted(L.StringLookup(mask_token="", oov_token="?", num_oov_indices=2), seen), words, "string")
    yield "StringLookup mask multi_hot", preprocessing(
        L.StringLookup(mask_token="", vocabulary=["a", "b"], output_mode="multi_hot"), words, "string")
    yield "StringLookup invert", preprocessing(
        L.StringLookup(vocabulary=["a", "b"], invert=True), np.array([[2], [1], [0]]), "int64")
    yield "StringLookup tf_idf", preprocessing(
        adapted(L.StringLookup(output_mode="tf_idf", max_tokens=6, pad_to_max_tokens=True), seen), words, "string")
    yield "StringLookup tf_idf given", preprocessing(
        L.StringLookup(output_mode="tf_idf", vocabulary=["a", "b"], idf_weights=[.5, .25]), words, "string")
    yield "IntegerLookup tf_idf", preprocessing(
        adapted(L.IntegerLookup(output_mode="tf_idf"), np.array([3, 4, 4])), numbers, "int64")
    yield "IntegerLookup", preprocessing(adapted(L.IntegerLookup(), np.array([3, 4, 4])), numbers, "int64")
    yield "IntegerLookup given", preprocessing(
        L.IntegerLookup(vocabulary=[3, 12], num_oov_indices=2, mask_token=4), numbers, "int64")
    yield "TextVectorization", preprocessing(
        adapted(L.TextVectorization(output_sequence_length=5), WORDS), WORDS, "string")
    yield "TextVectorization given", preprocessing(
        L.TextVectorization(vocabulary=["cat", "dog"], standardize="lower"), WORDS, "string")
    yield "TextVectorization characters", preprocessing(
        adapted(L.TextVectorization(standardize=None, split="character", max_tokens=8), WORDS), WORDS, "string")
    yield "TextVectorization ngrams", preprocessing(
        adapted(L.TextVectorization(ngrams=2, output_mode="multi_hot"), WORDS), WORDS, "string")
    yield "TextVectorization tf_idf", preprocessing(
        adapted(L.TextVectorization(output_mode="tf_idf", max_tokens=5), WORDS), WORDS, "string")
    yield "TextVectorization tf_idf padded", preprocessing(
        adapted(L.TextVectorization(output_mode="tf_idf", max_tokens=20, pad_to_max_tokens=True), WORDS),
        WORDS, "string")
    yield "TextVectorization tf_idf given", preprocessing(
        L.TextVectorization(output_mode="tf_idf", vocabulary=["cat", "dog"], idf_weights=[.5, .25]),
        WORDS, "string")
    yield "TextVectorization padded", preprocessing(
        adapted(L.TextVectorization(output_mode="count", max_tokens=20, pad_to_max_tokens=True), WORDS), WORDS, "string")
    for mode in ("int", "one_hot", "multi_hot", "count"):
        yield f"Discretization {mode}", preprocessing(
            L.Discretization(bin_boundaries=[-.5, 0., .5], output_mode=mode), values(4, 1))
    yield "Discretization adapted", preprocessing(
        adapted(L.Discretization(num_bins=4), values(200)), values(4, 3))
    for mode in ("one_hot", "multi_hot", "count"):
        yield f"CategoryEncoding {mode}", preprocessing(
            L.CategoryEncoding(num_tokens=5, output_mode=mode), np.array([[3], [0], [4]]), "int64")
    yield "Hashing", preprocessing(L.Hashing(num_bins=7, salt=[133, 137]), words, "string")
    yield "Hashing mask", preprocessing(L.Hashing(num_bins=7, mask_value="b", output_mode="one_hot"), words, "string")
    yield "Resizing", preprocessing(L.Resizing(4, 7, interpolation="bicubic", antialias=True), images)
    yield "Resizing crop", preprocessing(L.Resizing(3, 2, crop_to_aspect_ratio=True), images)
    yield "Resizing pad", preprocessing(L.Resizing(3, 9, pad_to_aspect_ratio=True, fill_value=.5), images)
    yield "CLAHE", preprocessing(L.ContrastLimitedAdaptiveHistogramEqualization((0, 1), 2., (2, 3)), images)
    yield "STFTSpectrogram", preprocessing(L.STFTSpectrogram("magnitude", 16, window="hamming"), values(2, 60, 2))
    yield "MelSpectrogram", preprocessing(L.MelSpectrogram(32, 8, num_mel_bins=4), values(2, 60))
    yield "CenterCrop", preprocessing(L.CenterCrop(3, 4), images)
    yield "RandomFlip", preprocessing(L.RandomFlip("vertical"), images)
    # Of larger images it gives the middle here; Keras leaves them as they are, unlike its documents.
    yield "RandomCrop", preprocessing(L.RandomCrop(6, 5), images)
    yield "RandomRotation", preprocessing(L.RandomRotation((-.1, .2), fill_mode="constant"), images)
    yield "RandomTranslation", preprocessing(L.RandomTranslation(.1, (-.2, .3)), images)
    yield "RandomZoom", preprocessing(L.RandomZoom(.2, seed=3), images)
    yield "RandomZoom both", preprocessing(L.RandomZoom(.2, (.1, .2), interpolation="nearest"), images)
    yield "RandomContrast", preprocessing(L.RandomContrast(.3, value_range=(0, 1)), images)
    yield "RandomBrightness", preprocessing(L.RandomBrightness((-.1, .3)), images)
    yield "RandomGrayscale", preprocessing(L.RandomGrayscale(.3), images)
    yield "RandomInvert", preprocessing(L.RandomInvert(.3), images)
    yield "text classifier", text_classifier()


def text_classifier():
    """Two learnt vocabularies, one of them in a model within the model, before layers with weights."""
    tag = keras.Input((1,), dtype="string", name="tag")
    tags = keras.Model(tag, L.Flatten()(L.Embedding(5, 2)(adapted(
        L.StringLookup(max_tokens=5), np.array(["x", "y", "y"]))(tag))), name="tags")
    text, label = keras.Input((1,), dtype="string", name="text"), keras.Input((1,), dtype="string", name="label")
    x = adapted(L.TextVectorization(max_tokens=20, output_sequence_length=4), WORDS)(text)
    x = L.GlobalAveragePooling1D()(L.Embedding(20, 3)(x))
    y = L.Dense(2)(L.Concatenate()([x, tags(label)]))
    return keras.Model([text, label], y), [WORDS, np.array([["x"], ["y"], ["z"], ["x"]])]


def attention():
    x, y = keras.Input((5, 4), name="x"), keras.Input((3, 4), name="y")
    layer = L.MultiHeadAttention(2, 3, value_dim=2)
    return keras.Model([x, y], layer(x, y, use_causal_mask=True)), [values(2, 5, 4), values(2, 3, 4)]


def nested():
    """Models within models, a layer that is called twice, several outputs."""
    inner = keras.Sequential([keras.Input((4,)), L.Dense(3, "relu"), L.Dense(3)], name="inner")
    a, b = keras.Input((4,), name="a"), keras.Input((4,), name="b")
    shared = L.Dense(4, name="shared")
    x, y = shared(a), shared(b)
    # Keras cannot load its own file of a model that shares parts with one around it.
    c = keras.Input((4,), name="c")
    deep = keras.Model(c, L.Dense(3)(L.Dense(4)(c)), name="deep")
    z = L.Concatenate()([inner(x), deep(y)])
    return keras.Model([a, b], [L.Dense(2)(z), z]), [values(3, 4), values(3, 4)]


def masked():
    tokens = keras.Input((5,), dtype="int32", name="tokens")
    x = L.Embedding(8, 4, mask_zero=True)(tokens)
    x = L.Bidirectional(L.LSTM(3, return_sequences=True))(x)
    y = L.TimeDistributed(L.Dense(6))(x)
    x = L.LayerNormalization()(L.Add()([x, y]))
    x = L.GlobalAveragePooling1D()(L.MultiHeadAttention(2, 3)(x, x))
    return keras.Model(tokens, L.Dense(2, "softmax")(x)), [RANDOM.integers(0, 8, (4, 5)).astype(np.int32)]


def explicit_mask_cases():
    """Calls that are given masks, beside or instead of those that come with their inputs."""
    o = keras.ops

    def inputs():
        return keras.Input((5, 4), name="x"), keras.Input((5,), dtype="bool", name="m")

    def case(outputs, x, m):
        steps = RANDOM.random((2, 5)) < .6
        steps[:, :2] = [True, False]
        return keras.Model([x, m], outputs), [values(2, 5, 4), steps]

    one = {"LSTM": L.LSTM(3), "GRU": L.GRU(3, return_sequences=True), "SimpleRNN": L.SimpleRNN(3),
           "RNN": L.RNN(L.LSTMCell(3)), "Bidirectional": L.Bidirectional(L.LSTM(3)),
           "TimeDistributed": L.TimeDistributed(L.Dense(2)), "BatchNormalization": L.BatchNormalization(),
           "GlobalAveragePooling1D": L.GlobalAveragePooling1D()}
    for name, layer in one.items():
        x, m = inputs()
        yield f"mask of {name}", case(layer(x, mask=m), x, m)
    x, m = inputs()
    yield "mask of Softmax", case(L.Softmax(axis=1)(x, mask=o.logical_or(m[..., None], x > 0)), x, m)
    x, m = inputs()
    yield "mask travels on", case(L.GlobalAveragePooling1D()(L.LSTM(3, return_sequences=True)(x, mask=m)), x, m)
    x, m = inputs()
    yield "mask by position", case([L.LSTM(3)(x, None, m), L.GlobalAveragePooling1D()(x, m)], x, m)
    x, m = inputs()
    yield "mask and states", case(L.LSTM(3)(x, initial_state=[x[:, 0, :3], x[:, 1, :3]], mask=m), x, m)
    x, m = inputs()
    yield "mask instead of the input's", case(L.LSTM(3)(L.Masking()(x), mask=m), x, m)
    x, m = inputs()
    y = L.MultiHeadAttention(2, 3)(x, x, query_mask=m, value_mask=m)
    yield "masks of MultiHeadAttention", case(L.GlobalAveragePooling1D()(y), x, m)
    x, m = inputs()
    y = L.MultiHeadAttention(2, 3)(L.Masking()(x), x[:, ::-1], key_mask=m)
    yield "masks of MultiHeadAttention beside the input's", case(L.GlobalAveragePooling1D()(y), x, m)
    x, m = inputs()
    y = L.GroupQueryAttention(3, 4, 2)(x, x, value_mask=m)
    yield "masks of GroupQueryAttention", case(y, x, m)
    for kind in (L.Attention, L.AdditiveAttention):
        x, m = inputs()
        y = kind()([x, x[:, ::-1]], mask=[m, o.logical_not(m)])
        yield f"masks of {kind.__name__}", case(L.GlobalAveragePooling1D()(y), x, m)
    x, m = inputs()
    yield "mask of a value", case(L.Attention()([x, x], mask=[None, m]), x, m)
    for kind in ("Functional", "Sequential"):
        a = keras.Input((5, 4))
        lstm = L.LSTM(3)
        inner = keras.Model(a, lstm(L.Dense(4)(a))) if kind == "Functional" else keras.Sequential([a, L.Dense(4), lstm])
        x, m = inputs()
        yield f"mask of {kind}", case(inner(x, mask=m), x, m)
    tokens = keras.Input((5,), dtype="int32", name="tokens")
    numbers = [RANDOM.integers(0, 4, (4, 5)).astype(np.int32)]
    for zero in (False, True):
        x = L.Embedding(8, 4, mask_zero=zero)(tokens)
        for other in (0, 3):
            yield f"mask of tokens that are not {other}, {zero}", (
                keras.Model(tokens, L.LSTM(3)(x, mask=o.not_equal(tokens, other))), numbers)


def masks_of_inputs_cases():
    """Masks that come with the inputs, by each way in which Keras computes them."""
    x = keras.Input((5, 4), name="x")
    holes = values(2, 5, 4)
    holes[:, 1:3] = 0
    yield "mask of Masking", (keras.Model(x, L.LSTM(3)(L.Masking()(x))), [holes])
    yield "mask of Masking 0.5", (keras.Model(x, L.LSTM(3)(L.Masking(.5)(x))), [holes + .5])
    yield "mask of cast", (keras.Model(x, L.LSTM(3)(L.Masking(dtype="float64")(x))), [holes])
    tokens = keras.Input((5,), dtype="int32", name="tokens")
    numbers = RANDOM.integers(0, 3, (4, 5)).astype(np.int32)
    a, b = (L.Embedding(4, 3, mask_zero=True)(tokens) for _ in range(2))
    c = L.Embedding(4, 3)(tokens)
    for name, y in (("Add", L.Add()([a, b])), ("Concatenate", L.Concatenate()([a, b])),
                    ("Concatenate with none", L.Concatenate()([a, c])),
                    ("Concatenate of steps", L.Concatenate(axis=1)([a, c])),
                    ("Attention", L.Attention()([a, b]))):
        yield f"mask of {name}", (keras.Model(tokens, L.LSTM(3)(y)), [numbers])
    d = keras.Input((5, 3))
    inner = keras.Model(d, L.LSTM(2)(d))
    yield "mask into a model", (keras.Model(tokens, inner(a)), [numbers])


def states():
    x = keras.Input((5, 4), name="x")
    y, h, c = L.LSTM(3, return_state=True)(x)
    z = L.LSTM(3)(x, initial_state=[h, c])
    return keras.Model(x, [y, z]), [values(2, 5, 4)]


def frozen():
    model = keras.Sequential([keras.Input((4,)), L.Dense(3, trainable=False), L.Dense(2)])
    return model, [values(2, 4)]


def mixed():
    model = keras.Sequential([keras.Input((4,)), L.Dense(3, dtype="mixed_bfloat16"),
                              L.Dense(2, dtype="float32")])
    return model, [values(2, 4)]


def arithmetic():
    """Ops between Keras tensors, as applications have them."""
    x = keras.Input((4,), name="x")
    y = L.Dense(4)(x)
    z = (y + 3.) * (1. / 6.) - .5
    return keras.Model(x, L.Dense(2)(x + y * z)), [values(2, 4)]


def operations():
    """Functions of keras.ops between Keras tensors, and brackets."""
    x, y = keras.Input((4,), name="x"), keras.Input((4,), name="y")
    o, d = keras.ops, L.Dense(4)(x)
    outputs = [
        x - y, 2 * d, 2.5 - x, x / 3, 1 / (o.abs(x) + 1), x // .5, x % 2, -x, abs(x) ** 1.5, x ** 2,
        o.cast(x < y, "float32"), o.where(x > 0, d, y), x[:, 1], x[1:, ::2], x[..., None, 1:3], x[0],
        x + np.arange(4, dtype="float32"), x * tf.constant([[1., 2., 3., 4.]]),
        o.matmul(x, o.transpose(y)), o.transpose(x, (1, 0)), o.mean(x, axis=1, keepdims=True),
        o.sum(x), o.max(d, axis=(0, 1)), o.min(x, axis=-1), o.prod(x, axis=1), o.std(x, axis=0), o.var(x),
        o.reshape(x, (-1, 2, 2)), o.expand_dims(x, -1), o.squeeze(o.expand_dims(x, 1), 1),
        o.concatenate([x, y], axis=1), o.stack([x, y], axis=1), o.take(x, [0, 2], axis=1),
        o.cumsum(x, axis=1), o.cumsum(x), o.exp(x), o.log(o.square(x) + 1), o.sqrt(abs(x)), o.sin(x),
        o.tanh(x), o.clip(x, -.5, 1), o.maximum(x, 0), o.minimum(x, y), o.sign(x), o.floor(x),
        o.stop_gradient(x), o.relu(x), o.relu6(x), o.softmax(x), o.log_softmax(x, axis=0), o.gelu(x),
        o.gelu(x, approximate=False), o.elu(x, .5), o.leaky_relu(x, .3), o.sigmoid(x), o.silu(x),
        o.selu(x), o.softplus(x), o.hard_sigmoid(x), o.erf(x), o.rsqrt(o.square(x) + 1),
        keras.activations.relu(x, negative_slope=.1, max_value=1., threshold=.2)]
    return keras.Model([x, y], outputs), [values(3, 4), values(3, 4)]


def operations_made_here():
    """What `operations` of keras_files.cpp is."""
    x, y = keras.Input((4,), name="x"), keras.Input((4,), name="y")
    o = keras.ops
    outputs = [
        x - y, x * 2, 2.5 - x, 1 / (o.abs(x) + 1), -x, x % 2, o.cast(x < y, "float32"),
        o.where(x > 0, y, x * .5), x[:, 1], x[1:, ::2], x[..., None, 1:3], x[0],
        x + np.array([1, 2, 3, 4], "float32"), o.matmul(x, o.transpose(y)), o.mean(x, axis=1, keepdims=True),
        o.sum(x), o.max(x, axis=(0, 1)), o.reshape(x, (-1, 2, 2)), o.expand_dims(x, -1),
        o.concatenate([x, y], axis=1), o.stack([x, y], axis=1), o.take(x, [0, 2], axis=1), o.cumsum(x, axis=0),
        o.power(o.abs(x), 1.5), o.exp(x), o.softmax(x), o.gelu(x, approximate=False), o.leaky_relu(x, .3)]
    return keras.Model([x, y], outputs), [values(3, 4), values(3, 4)]


def application(name):
    """With weights that are all random, normalizations' too."""
    side = 80  # the least that every application takes
    model = getattr(keras.applications, name)(weights=None, input_shape=(side, side, 3), classes=5)
    for weight in model.weights:
        if len(weight.shape) == 1:  # the variances among them stay above zero
            weight.assign(weight + RANDOM.uniform(0, .1, weight.shape).astype(np.float32))
    return model, [values(1, side, side, 3)]


def applications():
    return sorted(name for name in dir(keras.applications) if name[0].isupper())


def trainable(optimizer, loss="mse", metrics=("mae",)):
    model = keras.Sequential([keras.Input((4,)), L.Dense(5, "tanh"), L.BatchNormalization(), L.Dense(2)])
    model.compile(optimizer, loss, metrics=list(metrics))
    return model, [values(8, 4)]


def training_cases():
    O, S = keras.optimizers, keras.optimizers.schedules
    for name in ("SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adamax", "Nadam", "Adadelta"):
        yield f"train {name}", trainable(getattr(O, name)(learning_rate=.01))
    yield "train SGD momentum", trainable(O.SGD(.01, momentum=.9, nesterov=True, clipnorm=1.))
    yield "train amsgrad", trainable(O.Adam(.01, amsgrad=True, weight_decay=.01), "huber")
    yield "train schedule", trainable(
        O.Adam(S.CosineDecay(.01, 20, warmup_target=.02, warmup_steps=3)), keras.losses.LogCosh())
    yield "train metrics", trainable("rmsprop", keras.losses.MeanSquaredError(reduction="sum"),
                                     [keras.metrics.RootMeanSquaredError(name="r"), "mae", "accuracy"])


def model_cases():
    yield from layer_cases()
    yield from preprocessing_cases()
    yield "attention", attention()
    yield "nested", nested()
    yield "masked", masked()
    yield from explicit_mask_cases()
    yield from masks_of_inputs_cases()
    yield "states", states()
    yield "frozen", frozen()
    yield "mixed", mixed()
    yield "arithmetic", arithmetic()
    yield "operations", operations()
    yield MADE_HERE, operations_made_here()
    yield "MobileNetV3Small", application("MobileNetV3Small")


def outputs_of(model, inputs):
    """By calling the model: `predict` would trace a graph of each, which takes most of the time here."""
    tensors = [tf.constant(x) for x in inputs]
    outputs = model(tensors if len(tensors) > 1 else tensors[0], training=False)
    return [np.asarray(y) for y in (outputs if isinstance(outputs, (list, tuple)) else [outputs])]


def differences(found, wanted, tolerance):
    if len(found) != len(wanted):
        return f"{len(found)} outputs, not {len(wanted)}"
    for ours, theirs in zip(found, wanted):
        if theirs.dtype.kind in "OS":
            if not np.array_equal(np.asarray(ours, "S"), np.asarray(theirs, "S")):
                return f"is {ours}, not {theirs}"
            continue
        ours, theirs = np.asarray(ours, np.float32), np.asarray(theirs, np.float32)
        if ours.shape != theirs.shape or not np.allclose(ours, theirs, rtol=tolerance, atol=tolerance):
            return f"differs by up to {np.abs(ours - theirs).max() if ours.shape == theirs.shape else 'shape'}"
    return None


def flat_layers(model):
    return [inner for layer in model.layers
            for inner in (flat_layers(layer) if isinstance(layer, keras.Model) else [layer])]


FAMILIES = ["DenseNet121", "EfficientNetB0", "InceptionV3", "MobileNet", "MobileNetV2", "NASNetMobile",
            "ResNet50", "ResNet50V2", "VGG16", "Xception", "ConvNeXtTiny", "EfficientNetV2B0"]


def every_case(only):
    if only and set(only) <= set(applications()):
        return [(name, application(name), 0) for name in only]
    return ([(name, made, 0) for name, made in model_cases()] +
            [(name, made, 3) for name, made in training_cases()])


def main():
    program, folder, report = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
    only = sys.argv[4:]
    if only == ["families"]:  # one application of each
        only = FAMILIES
    if only[:1] == ["applications"]:  # each in a process of its own, whose memory and files then go
        codes = []
        for name in only[1:] or applications():
            with tempfile.TemporaryDirectory(dir=folder) as own:
                print(name, flush=True)
                codes.append(subprocess.run([sys.executable, *sys.argv[:2], own, report, name]).returncode)
        print(f"{len(codes)} applications, {len(codes) - codes.count(0)} failed")
        return max(codes)
    keras.utils.set_random_seed(1)
    cases, models = [], {}
    every = every_case(only)
    for number, (name, (model, inputs), steps) in enumerate(every):
        if only and name not in only:
            continue
        case = {key: str(folder / f"{number}_{key}.{ending}") for key, ending in (
            ("model", "keras"), ("inputs", "npz"), ("outputs", "npz"), ("saved", "keras"),
            ("weights", "weights.h5"), ("json", "json"))}
        case.update(name=name, steps=steps, made_here=name == MADE_HERE)
        if any(layer.get_config().get("vocabulary", 0) is None for layer in flat_layers(model)):
            del case["weights"]  # a vocabulary that was learnt is no weight
        arrays = {f"x{i}": x for i, x in enumerate(inputs)}
        if steps:
            arrays["y"] = values(8, 2)
            for _ in range(2):  # so that the optimizer has something to remember
                model.train_on_batch(inputs[0], arrays["y"])
        np.savez(case["inputs"], **{key: np.char.encode(x, "utf-8") if x.dtype.kind == "U" else x
                                    for key, x in arrays.items()})
        model.save(case["model"])
        for key in ("outputs", "saved", "json"):
            pathlib.Path(case[key]).unlink(missing_ok=True)
        cases.append(case)
        models[name] = (model, inputs, arrays, case)
    (folder / "cases.json").write_text(json.dumps(cases))
    said = subprocess.run([program, str(folder / "cases.json")], capture_output=True, text=True)
    print(said.stdout, said.stderr, sep="", end="")

    count, failed = 0, 0
    if said.returncode:  # its last case is the first below that has no outputs
        count, failed = 1, 1
        print(f"FAILED {program} ended with {said.returncode}, negative: a signal")

    def expect(name, what, problem):
        nonlocal count, failed
        count += 1
        if problem:
            failed += 1
            print(f"FAILED {name}: {what}: {problem}")

    for name, (model, inputs, arrays, case) in models.items():
        steps = case["steps"]
        for _ in range(steps):
            model.train_on_batch(inputs[0], arrays["y"])
        wanted = outputs_of(model, inputs)
        # Layers above one another add up what the order of sums changes.
        tolerance = 2e-2 if name == "mixed" else 1e-4 if steps or len(model.layers) > 30 else 2e-5
        try:
            with np.load(case["outputs"]) as found:
                ours = [found[f"y{i}"] for i in range(len(found.files))]
            expect(name, "loaded", differences(ours, wanted, tolerance))
            again = keras.models.load_model(case["saved"])
            expect(name, "saved", differences(outputs_of(again, inputs), wanted, tolerance))
            if "weights" not in case:
                continue
            bare = keras.models.model_from_json(pathlib.Path(case["json"]).read_text())
            bare.load_weights(case["weights"])
            expect(name, "json and weights", differences(outputs_of(bare, inputs), wanted, tolerance))
            if steps:  # and training goes on there as if nothing had happened
                for m in (model, again):
                    m.train_on_batch(inputs[0], arrays["y"])
                expect(name, "training goes on", differences(
                    outputs_of(again, inputs), outputs_of(model, inputs), tolerance))
        except Exception as error:  # whatever the reader of the real Keras throws is the finding
            expect(name, "exchanged", f"{type(error).__name__}: {error}"[:600])
    for name, (*_, case) in models.items():
        if name in FAMILIES:  # hundreds of MB each
            for key in ("model", "saved", "weights"):
                pathlib.Path(case[key]).unlink(missing_ok=True)
    print(f"conformance: {count} cases, {failed} failed")
    with open(report, "a", encoding="utf-8") as out:
        out.write(f"{count} {failed}\n")
    return 1 if failed else 0


sys.exit(main())
