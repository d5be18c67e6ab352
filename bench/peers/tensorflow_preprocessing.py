"""Keras' preprocessing layers in tf.data's map: a row each time it is asked."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import common as c
import pipelines as p

import keras
import numpy as np
import tensorflow as tf

tf.config.threading.set_inter_op_parallelism_threads(c.THREADS)
tf.config.threading.set_intra_op_parallelism_threads(c.THREADS)

layers = keras.layers
AUTOTUNE = tf.data.AUTOTUNE


def epoch(dataset):
    return sum(element.shape[0] for element in dataset)


def images():
    side = p.AUGMENTED_SIDE
    values = c.uniform((p.AUGMENTED, side, side, 3), c.IMAGE_SEED) * np.float32(255)
    return tf.data.Dataset.from_tensor_slices(values)


def augment():
    return keras.Sequential([
        layers.RandomFlip("horizontal"),
        layers.RandomRotation(0.1),
        layers.RandomZoom(0.2),
        layers.RandomContrast(0.2),
    ])


def check():
    """What the layers make of images where nothing is left to chance."""
    fixed = keras.Sequential([layers.RandomRotation((0.1, 0.1)), layers.RandomZoom((0.2, 0.2))])
    batch = next(iter(images().batch(p.IMAGE_BATCH)))
    return float(tf.reduce_sum(tf.cast(fixed(batch, training=True), tf.float64)))


def augmentation():
    layer = augment()
    dataset = images().batch(p.IMAGE_BATCH).map(
        lambda x: layer(x, training=True), num_parallel_calls=AUTOTUNE).prefetch(AUTOTUNE)
    sum_of_fixed = check()
    return lambda: p.rate(lambda: epoch(dataset), p.AUGMENTED, p.AUGMENTED, sum_of_fixed)


def augmentation_by_image():
    layer = augment()
    dataset = images().map(
        lambda x: layer(x, training=True),
        num_parallel_calls=AUTOTUNE).batch(p.IMAGE_BATCH).prefetch(AUTOTUNE)
    sum_of_fixed = check()
    return lambda: p.rate(lambda: epoch(dataset), p.AUGMENTED, p.AUGMENTED, sum_of_fixed)


def lines():
    return tf.data.TextLineDataset(p.folder() + "/text.txt")


def text_vectorization():
    with open(p.folder() + "/words.txt") as file:
        words = file.read().split()[:p.TOKENS - 2]
    layer = layers.TextVectorization(
        max_tokens=p.TOKENS, output_sequence_length=p.TOKENS_IN_LINE, vocabulary=words)
    dataset = lines().batch(p.TEXT_BATCH).map(layer, num_parallel_calls=AUTOTUNE).prefetch(AUTOTUNE)
    numbers = sum(float(tf.reduce_sum(batch)) for batch in dataset.take(8))
    count = sum(1 for _ in open(p.folder() + "/text.txt", "rb"))
    return lambda: p.rate(lambda: epoch(dataset), count, p.TEXT_BYTES / 1e6, numbers)


def text_adapt():
    dataset = lines().take(p.LINES_ADAPTED).batch(p.TEXT_BATCH)
    size = sum(len(line) + 1 for batch in dataset for line in batch.numpy())

    def adapt():
        layer = layers.TextVectorization(max_tokens=p.TOKENS)
        layer.adapt(dataset)
        return layer.get_vocabulary()

    words = adapt()
    letters = sum(i * len(word) for i, word in enumerate(words))
    return lambda: p.rate(lambda: len(adapt()), len(words), size / 1e6, float(letters))


ROWS = (augmentation, augmentation_by_image, text_vectorization, text_adapt)
c.serve({row.__name__: c.Lazy(row) for row in ROWS},
        f"Keras {keras.__version__} on TensorFlow {tf.__version__}")
