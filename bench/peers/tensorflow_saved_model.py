"""A process of its own: TensorFlow from nothing to the first output of a SavedModel.

usage: tensorflow_saved_model.py saved_model_load
"""

import os

import common as c


def main():
    answers = c.claim_stdout()
    import numpy as np
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(c.THREADS)
    tf.config.threading.set_inter_op_parallelism_threads(c.THREADS)
    folder = os.environ["TANDEM_BENCH_MODELS"]
    model = tf.saved_model.load(folder + "/resnet50")
    serve = model.signatures["serving_default"]
    name = list(serve.structured_input_signature[1])[0]
    y = serve(**{name: tf.constant(np.load(folder + "/x.npy"))})["output_0"].numpy()
    c.answer(answers, {"peak_mb": c.peak_memory_mb(), "check": float((y * y).sum())})


main()
