"""Cases of whole models: Keras' applications, a transformer, recurrent and convolutional ones."""

import functools
import unittest.mock

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import convert_to_constants

from exporting import CASES, SLOW_CASES, case, floats, spread, write_model


APPLICATIONS = {"MobileNet": 64, "MobileNetV3Small": 64, "EfficientNetB0": 64, "EfficientNetV2B0": 64,
                "DenseNet121": 64, "InceptionV3": 80, "Xception": 72, "NASNetMobile": 64,
                "ConvNeXtTiny": 64, "ResNet50V2": 64, "MobileNetV3Large": 64, "VGG16": 32}
LARGE_APPLICATIONS = {"InceptionResNetV2": 75}  # half a minute to export


def write_application(writer, name, size):
    tf.keras.utils.set_random_seed(1)
    shape = (size, size, 3)
    model = getattr(tf.keras.applications, name)(weights=None, input_shape=shape, classes=10)
    write_model(writer, spread(model), floats(1, *shape))


for cases, applications in ((CASES, APPLICATIONS), (SLOW_CASES, LARGE_APPLICATIONS)):
    for application, size in applications.items():
        cases["application_" + application.lower()] = functools.partial(
            write_application, name=application, size=size)


@case
def functions_of_layers(writer):
    """Every layer a function of its own, none of them inlined, with its weights as constants."""
    tf.keras.utils.set_random_seed(1)
    model = spread(tf.keras.applications.MobileNetV3Small(weights=None, input_shape=(64, 64, 3)))
    for layer in model.layers:
        if not isinstance(layer, tf.keras.layers.InputLayer):
            layer.call = tf.function(layer.call)
    # What freezes a graph inlines its functions first.
    with unittest.mock.patch.object(convert_to_constants, "_run_inline_graph_optimization",
                                    lambda function, *_: function.graph.as_graph_def()):
        write_model(writer, model, floats(1, 64, 64, 3))


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
def masked_attention(writer):
    """Heads that see no later and no empty positions; one batch has none but empty ones."""
    tf.keras.utils.set_random_seed(1)
    layers = tf.keras.layers
    tokens = layers.Input((24,), dtype="int32")
    x = layers.Embedding(50, 32, mask_zero=True)(tokens)
    x = layers.MultiHeadAttention(4, 8)(x, x, use_causal_mask=True)
    x = x + layers.MultiHeadAttention(4, 8, dropout=0.1)(x, x)
    model = tf.keras.Model(tokens, layers.Dense(5)(layers.Flatten()(x)))
    inputs = np.random.default_rng(0).integers(1, 50, (3, 24)).astype(np.int32)
    inputs[0, 10:] = inputs[1] = 0
    write_model(writer, spread(model), inputs, any_batch=False,
                optimized={"_FusedAttention": 2, "Softmax": 0})


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
