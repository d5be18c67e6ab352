"""TensorFlow and Keras: calls of a function, training through fit, matrix products."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import common as c

import tensorflow as tf

tf.config.threading.set_inter_op_parallelism_threads(c.THREADS)
tf.config.threading.set_intra_op_parallelism_threads(c.THREADS)


def function_call():
    add = tf.function(lambda y, x: y + x)
    x, y = tf.constant(0.5), tf.constant(1.0)
    add = add.get_concrete_function(y, x)

    def loop(n):
        z = y
        for _ in range(n):
            z = add(z, x)

    def run():
        loop(2)
        return {"value": c.seconds_per_call(loop) * 1e6, "nodes": 1, "check": float(add(y, x))}

    return run


def trainer(model, images, targets, batch, units, **mode):
    model.compile(
        optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"], **mode)

    def epoch():
        model.fit(images, targets, batch_size=batch, epochs=1, verbose=0)

    def evaluate():
        return model.evaluate(images, targets, batch_size=1024, verbose=0)[0]

    return c.Trainer((images, targets), epoch, evaluate, units).run


def mlp(**mode):
    tf.keras.utils.set_random_seed(0)
    model = tf.keras.Sequential([
        tf.keras.Input((784,)),
        tf.keras.layers.Dense(c.MLP_HIDDEN, activation="relu"),
        tf.keras.layers.Dense(c.CLASSES, activation="softmax"),
    ])
    return trainer(model, *c.mlp_data(), c.MLP_BATCH, c.MLP_SAMPLES // c.MLP_BATCH, **mode)


def tuned_mlp():
    """What Keras offers beyond its defaults: XLA, and many steps in one call of the function, after
    which alone callbacks and the progress bar come to their turn."""
    return mlp(jit_compile=True, steps_per_execution=32)


def cnn_model():
    tf.keras.utils.set_random_seed(0)
    return tf.keras.Sequential([
        tf.keras.Input((28, 28, 1)),
        tf.keras.layers.Conv2D(c.CNN_FILTERS, 3, activation="relu"),
        tf.keras.layers.MaxPooling2D(),
        tf.keras.layers.Flatten(),
        tf.keras.layers.Dense(c.CLASSES, activation="softmax"),
    ])


def cnn():
    return trainer(cnn_model(), *c.cnn_data(), c.CNN_BATCH, c.CNN_SAMPLES)


def matmul(dtype, n):
    def make():
        a = tf.cast(c.uniform((n, n), c.LEFT_SEED), dtype)
        b = tf.cast(c.uniform((n, n), c.RIGHT_SEED), dtype)

        def loop(times):
            for _ in range(times):
                tf.linalg.matmul(a, b)

        def run():
            value = c.seconds_per_call(loop) * 1e3
            return {"value": value, "check": float(tf.linalg.matmul(a, b)[n // 3, n // 2])}

        return run

    return make


ROWS = {"function_call": function_call, "mlp": mlp, "info_mlp_tuned": tuned_mlp, "cnn": cnn}
for size in (512, 1024, 2048):
    ROWS[f"float_{size}"] = matmul(tf.float32, size)
    ROWS[f"bfloat16_{size}"] = matmul(tf.bfloat16, size)

if __name__ == "__main__":
    about = f"tensorflow {tf.__version__}, keras {tf.keras.__version__}"
    c.serve({name: c.Lazy(make) for name, make in ROWS.items()}, about)
