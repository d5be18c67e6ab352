"""Writes sequences.txt: what the real tf.data gives for the pipelines of sequences_test.cpp.

Run with TensorFlow 2.21: python make_sequences.py > sequences.txt
A line is: name, cardinality, elements; separated by tabs. Elements are joined by " | ", components
by ";", a dataset in an element stands in braces; an error is "!" and its code.
"""
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf

Dataset = tf.data.Dataset
span = Dataset.range
i64 = lambda *values: tf.constant(values, tf.int64)


def nested(value):
    if isinstance(value, list):
        return "[" + ",".join(nested(e) for e in value) + "]"
    return value.decode() if isinstance(value, bytes) else str(value)


def written(value):
    if isinstance(value, Dataset):
        return "{" + ",".join(written(e) for e in value) + "}"
    if isinstance(value, (tuple, list)):
        return ";".join(written(e) for e in value)
    value = value.numpy()
    return nested(value.tolist() if hasattr(value, "tolist") else value)


def code_of(error):
    if isinstance(error, tf.errors.OpError):
        return {3: "INVALID_ARGUMENT", 15: "DATA_LOSS"}.get(error.error_code, str(error.error_code))
    return "INVALID_ARGUMENT" if isinstance(error, (ValueError, TypeError)) else repr(error)


def case(name, make):
    parts, cardinality = [], ""
    try:
        dataset = make()
        cardinality = int(dataset.cardinality())
        for element in dataset:
            parts.append(written(element))
    except Exception as error:
        parts.append("!" + code_of(error))
    print(name, cardinality, " | ".join(parts), sep="\t")


def tens(x):
    return span(x * 10, x * 10 + x)


def sequence(n):
    return tf.fill([n], n)


lengths = i64(3, 1, 7, 2, 9, 4, 5, 1, 12, 2, 6)
growing = span(1, 6).map(sequence)


def buckets(values=lengths, **options):
    return Dataset.from_tensor_slices(values).map(sequence).bucket_by_sequence_length(
        lambda e: tf.shape(e)[0], [3, 6], [2, 3, 2], **options)


def grouped(**options):
    return span(10).group_by_window(lambda x: x % 3, lambda k, d: d.batch(10), **options)


def chosen(choices, **options):
    three = [span(3), span(10, 12), span(20, 24)]
    return Dataset.choose_from_datasets(three, Dataset.from_tensor_slices(i64(*choices)), **options)


def dividing():
    return Dataset.from_tensor_slices(i64(1, 2, 0, 4, 5)).map(lambda x: 20 // x)


case("flat_map", lambda: span(5).flat_map(tens))
for cycle in (1, 2, 3, 10):
    for block in (1, 2, 3):
        case(f"interleave {cycle} {block}",
             lambda: span(7).interleave(tens, cycle_length=cycle, block_length=block))
        case(f"parallel_interleave {cycle} {block}", lambda: span(7).interleave(
            tens, cycle_length=cycle, block_length=block, num_parallel_calls=min(2, cycle),
            deterministic=True))
case("interleave cycle 0", lambda: span(4).interleave(tens, cycle_length=0))
case("interleave block 0", lambda: span(4).interleave(tens, cycle_length=2, block_length=0))
case("padded_batch", lambda: growing.padded_batch(2))
case("padded_batch drop", lambda: growing.padded_batch(2, drop_remainder=True))
case("padded_batch values", lambda: growing.padded_batch(
    2, padded_shapes=[6], padding_values=tf.constant(-1, tf.int64)))
case("padded_batch small", lambda: growing.padded_batch(3, padded_shapes=[2]))
case("padded_batch rank", lambda: growing.padded_batch(3, padded_shapes=[2, 2]))
case("padded_batch dtype", lambda: growing.padded_batch(3, padding_values=tf.constant(1.0)))
case("padded_batch zero", lambda: growing.padded_batch(0))
case("padded_batch matrix",
     lambda: span(1, 4).map(lambda n: tf.fill([n, 4 - n], n)).padded_batch(3))
case("padded_batch two", lambda: Dataset.zip((growing, span(5))).padded_batch(2))
case("bucket", buckets)
case("bucket drop", lambda: buckets(drop_remainder=True))
case("bucket boundary", lambda: buckets(i64(3, 1, 5, 2, 4, 2), pad_to_bucket_boundary=True))
case("bucket no padding", lambda: buckets(no_padding=True))
case("bucket sizes", lambda: span(3).bucket_by_sequence_length(lambda e: 1, [3, 6], [2, 3]))
for size, shift, stride, drop in ((3, None, 1, False), (3, None, 1, True), (3, 1, 1, False),
                                  (3, 1, 2, False), (3, 1, 2, True), (2, 3, 2, False),
                                  (2, 5, 1, False), (2, 5, 1, True), (9, 2, 1, False)):
    case(f"window {size} {shift or 0} {stride} {int(drop)}",
         lambda: span(7).window(size, shift, stride, drop))
case("window two", lambda: Dataset.zip((span(3), span(5, 8))).window(2))
case("window flat", lambda: span(7).window(3, 1).flat_map(lambda d: d.batch(3)))
case("window size 0", lambda: span(7).window(0))
case("window stride 0", lambda: span(7).window(2, 1, 0))
case("take_while", lambda: span(7).take_while(lambda x: x < 4))
case("take_while none", lambda: span(7).take_while(lambda x: x > 0))
case("scan", lambda: span(5).scan(tf.constant(0, tf.int64), lambda s, x: (s + x, s * 10 + x)))
case("scan dtype", lambda: span(5).scan(tf.constant(0.0), lambda s, x: (x, x)))
case("group_by_window 2", lambda: grouped(window_size=2))
case("group_by_window 10", lambda: grouped(window_size=10))
case("group_by_window key", lambda: grouped(window_size_func=lambda k: k + 1))
case("group_by_window 0", lambda: grouped(window_size=0))
case("rebatch 3", lambda: span(10).batch(4).rebatch(3))
case("rebatch 3 drop", lambda: span(10).batch(4).rebatch(3, drop_remainder=True))
case("rebatch 1 2", lambda: span(10).batch(4).rebatch([1, 2]))
case("rebatch 7", lambda: span(10).batch(2).rebatch(7))
case("choose", lambda: chosen([0, 1, 2, 0, 1, 2, 0, 1, 2, 2]))
case("choose on", lambda: chosen([0, 1, 2, 0, 1, 2, 0, 1, 2, 2, 0], stop_on_empty_dataset=False))
case("choose range", lambda: chosen([0, 3]))
case("choose dtype", lambda: Dataset.choose_from_datasets(
    [span(3), span(4)], Dataset.from_tensor_slices([0, 1])))
case("choose none", lambda: Dataset.choose_from_datasets([], span(2)))
case("sample zero", lambda: Dataset.sample_from_datasets(
    [span(3), span(10, 13)], weights=[1.0, 0.0], seed=1))
case("ignore_errors", lambda: dividing().ignore_errors())
case("ignore_errors batch", lambda: dividing().batch(2).ignore_errors())
case("interleave errors", lambda: span(6).interleave(
    lambda x: span(x * 10, x * 10 + 4).map(lambda y: y + 0 * (1 // (y % 10 - 2))),
    cycle_length=2).ignore_errors())
case("enumerate", lambda: Dataset.from_tensor_slices(["a", "b"]).enumerate(start=5))
case("shard", lambda: span(10).shard(3, 1))
case("zip", lambda: Dataset.zip((span(3), span(10, 14))))
case("unbatch", lambda: span(5).batch(2).unbatch())
case("skip take", lambda: span(10).skip(7).take(-1).concatenate(span(2).take(1)))
for buffer in (1, 3, 10):
    case(f"shuffle {buffer}", lambda: span(10).shuffle(buffer, seed=42).repeat(2))
