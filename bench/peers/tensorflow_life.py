"""TensorFlow: checkpoints of as many variables, until they would survive a crash."""

import common as c
import life

import tensorflow as tf

tf.config.threading.set_intra_op_parallelism_threads(c.THREADS)

PREFIX = life.path("tensorflow")


def variables():
    return [tf.Variable(tf.fill([life.elements()], float(i + 1))) for i in range(life.VARIABLES)]


STATE = {}


def checkpoint():
    if not STATE:
        STATE["v"] = variables()
        STATE["checkpoint"] = tf.train.Checkpoint(v=STATE["v"])
    return STATE["checkpoint"]


def check():
    return float(sum(v[0].numpy() for v in STATE["v"]))


def save():
    made = checkpoint()
    life.remove("tensorflow")
    seconds = life.timed(lambda: (made.write(PREFIX), life.sync("tensorflow")))
    return {"value": life.megabytes() / seconds, "check": check()}


def restore():
    made = checkpoint()
    if not tf.io.gfile.exists(PREFIX + ".index"):
        made.write(PREFIX)
    seconds = life.timed(lambda: made.read(PREFIX).assert_consumed())
    return {"value": life.megabytes() / seconds, "check": check()}


c.serve({"save": save, "restore": restore}, f"TensorFlow {tf.__version__}")
