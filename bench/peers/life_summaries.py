"""A scalar summary by TensorFlow, whose part for it is in TensorBoard's package: that of its own environment."""

import glob
import os
import shutil
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import common as c

PEERS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../build/peers")
sys.path += glob.glob(os.path.join(PEERS, "tensorboard/lib/python3*/site-packages"))

import tensorflow as tf


def scalar():
    folder = tempfile.mkdtemp(prefix="bench_scalar_")
    writer = tf.summary.create_file_writer(folder)
    steps = 0

    def loop(n):
        nonlocal steps
        with writer.as_default():
            for _ in range(n):
                tf.summary.scalar("loss", 0.5, step=steps)
                steps += 1

    value = c.seconds_per_call(loop) * 1e9
    writer.close()
    shutil.rmtree(folder)
    return {"value": value}


if __name__ == "__main__":
    c.serve({"scalar": scalar}, f"tensorflow {tf.__version__}")
