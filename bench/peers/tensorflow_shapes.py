"""TensorFlow: calls of 1,000 batch sizes in random order from four threads (bench/ours/shapes.cpp)."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import itertools
import threading
import time

import common as c

import numpy as np
import tensorflow as tf

tf.config.threading.set_inter_op_parallelism_threads(c.THREADS)
tf.config.threading.set_intra_op_parallelism_threads(c.THREADS)

SIZES = int(os.environ.get("TANDEM_BENCH_SIZES", "1000"))
CALLERS = 4
ORDER_SEED = 6


def random_order():
    """1 to 1,000, in the order of bench/ours/shapes.cpp."""
    keys = c.mixed(SIZES + 1, ORDER_SEED)
    return sorted(range(1, SIZES + 1), key=lambda size: int(keys[size]))


def network(convolutions):
    tf.keras.utils.set_random_seed(0)
    layers = tf.keras.layers
    if not convolutions:
        return tf.keras.Sequential([
            tf.keras.Input((784,)), layers.Dense(c.MLP_HIDDEN, activation="relu"),
            layers.Dense(c.CLASSES)])
    return tf.keras.Sequential([
        tf.keras.Input((28, 28, 1)), layers.Conv2D(c.CNN_FILTERS, 3, activation="relu"),
        layers.MaxPooling2D(), layers.Flatten(), layers.Dense(c.CLASSES)])


def run(sizes, call):
    """Seconds for a call of each size, by four threads that take the next one each."""
    numbers = itertools.count()
    failures = []

    def caller():
        try:
            while (i := next(numbers)) < len(sizes):
                call(sizes[i])
        except Exception as failure:
            failures.append(failure)

    threads = [threading.Thread(target=caller) for _ in range(CALLERS)]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return time.perf_counter() - start


def work(convolutions, training):
    shape = (28, 28, 1) if convolutions else (784,)
    images, labels = (tf.constant(a) for a in c.samples(SIZES, shape))
    # Rows of the first axis share memory.
    batches = {n: (images[:n], labels[:n]) for n in range(1, SIZES + 1)}
    model = network(convolutions)
    loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    optimizer = tf.keras.optimizers.Adam()
    optimizer.build(model.trainable_variables)
    some_images = tf.TensorSpec((None,) + shape, tf.float32)
    some_labels = tf.TensorSpec((None,), tf.int32)

    @tf.function(input_signature=[some_images])
    def predict(x):
        return model(x, training=False)

    @tf.function(input_signature=[some_images, some_labels])
    def train(x, y):
        with tf.GradientTape() as tape:
            loss = loss_of(y, model(x, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    def call(n):
        if not training:
            predict(batches[n][0]).numpy()
        elif not np.isfinite(train(*batches[n]).numpy()):
            raise RuntimeError("the loss is not finite")

    call(SIZES // 2)  # traces
    order = random_order()
    return lambda: run(order, call)


def shapes():
    works = [work(convolutions, training)
             for convolutions in (False, True) for training in (False, True)]
    images = 4 * SIZES * (SIZES + 1) // 2

    def measure():
        return {"value": images / sum(run() for run in works), "check": float(images)}

    return measure


if __name__ == "__main__":
    about = f"tensorflow {tf.__version__}, keras {tf.keras.__version__}"
    c.serve({"shapes": c.Lazy(shapes)}, about)
