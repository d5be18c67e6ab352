"""tf.data: a row each time it is asked, or, as a process of its own, the memory of the images.

usage: tensorflow_data.py [jpeg_memory]
"""

import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import common as c
import pipelines as p

import tensorflow as tf

tf.config.threading.set_inter_op_parallelism_threads(c.THREADS)
tf.config.threading.set_intra_op_parallelism_threads(c.THREADS)

data = tf.data.Dataset


def epoch(dataset):
    """Iterated as the guide does it; gives the number of rows."""
    rows = 0
    for element in dataset:
        first = element[0] if isinstance(element, tuple) else element
        rows += first.shape[0]
    return rows


def total(dataset):
    numbers = 0.0
    for element in dataset:
        for part in element if isinstance(element, tuple) else (element,):
            numbers += float(tf.reduce_sum(tf.cast(part, tf.float64)))
    return numbers


def rate(dataset, rows, units, check):
    return lambda: p.rate(lambda: epoch(dataset), rows, units, check)


def load(path):
    image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
    return tf.image.resize(image, [p.IMAGE_SIDE, p.IMAGE_SIDE])


def files():
    return data.list_files(p.folder() + "/photos/*.jpg", shuffle=False)


def images():
    def prepare(path):
        return tf.image.random_brightness(load(path), p.BRIGHTNESS) / 255.0

    return files().map(prepare, num_parallel_calls=tf.data.AUTOTUNE).batch(p.IMAGE_BATCH).prefetch(
        tf.data.AUTOTUNE)


def jpeg():
    return rate(images(), p.IMAGES, p.IMAGES, total(files().take(p.IMAGE_BATCH).map(load)))


def range_map():
    dataset = data.range(p.NUMBERS).map(lambda x: x + 1).batch(100)
    return rate(dataset, p.NUMBERS, p.NUMBERS, total(dataset))


def tfrecord():
    dataset = tf.data.TFRecordDataset(p.folder() + "/records.tfrecord").batch(1000)
    check = sum(record[-1] for batch in dataset for record in batch.numpy())
    return rate(dataset, p.RECORDS, p.RECORDS * p.RECORD_BYTES / 1e6, float(check))


def parse_example():
    spec = {f"float_{i}": tf.io.FixedLenFeature([8], tf.float32) for i in range(p.FEATURES)}
    spec |= {f"int_{i}": tf.io.FixedLenFeature([2], tf.int64) for i in range(p.FEATURES)}
    records = tf.data.TFRecordDataset(p.folder() + "/examples.tfrecord").batch(p.EXAMPLE_BATCH)
    batches = data.from_tensor_slices(tf.stack(list(records)))
    dataset = batches.map(lambda batch: tuple(tf.io.parse_example(batch, spec).values()))
    return rate(dataset, p.EXAMPLES, p.EXAMPLES, total(dataset))


def shuffle_batch():
    dataset = data.from_tensor_slices(p.pictures()).shuffle(10000).batch(128)
    return rate(dataset, p.PICTURES, p.PICTURES, total(dataset))


def sequences():
    return data.from_tensor_slices(p.lengths()).map(lambda n: tf.fill([n], n))


def of_sequences(dataset):
    check = total(dataset) + sum(1e-3 * batch.shape[1] for batch in dataset)
    return rate(dataset, p.SEQUENCES, p.SEQUENCES, check)


def padded_batch():
    return of_sequences(sequences().padded_batch(64))


def bucket():
    return of_sequences(sequences().bucket_by_sequence_length(
        lambda x: tf.shape(x)[0], [51, 101, 151], [64] * 4))


def jpeg_memory():
    answers = c.claim_stdout()
    dataset = images()
    for _ in range(p.MEMORY_EPOCHS):
        assert epoch(dataset) == p.IMAGES
    c.answer(answers, {"peak_mb": c.peak_memory_mb()})


ROWS = (jpeg, range_map, tfrecord, parse_example, shuffle_batch, padded_batch, bucket)

if sys.argv[1:] == ["jpeg_memory"]:
    jpeg_memory()
else:
    c.serve({row.__name__: c.Lazy(row) for row in ROWS}, f"tf.data of TensorFlow {tf.__version__}")
