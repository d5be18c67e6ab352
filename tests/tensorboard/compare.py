#!/usr/bin/env python3
"""Our summary ops beside TensorFlow's: compare.py --writer PROGRAM --python PYTHON --out FOLDER.

PROGRAM (summary_ops) calls each op on fixed inputs; TensorFlow, in PYTHON, calls it on equal ones, and the Summaries must
be equal but for the bytes of PNG files, whose pixels must be. Exit code 77: TensorFlow's environment is missing.
"""

import argparse
import pathlib
import shutil
import subprocess
import sys


def tensorflow_summaries():
    import numpy as np
    import tensorflow as tf
    raw = tf.raw_ops

    # In TensorFlow this op's attributes are beyond what eager calls take.
    @tf.function
    def image_summary(tag, tensor, max_images):
        return raw.ImageSummary(tag=tag, tensor=tensor, max_images=max_images)

    def images(low, high, channels):
        count = 2 * 3 * 4 * channels
        share = np.arange(count) * 7 % count / (count - 1)
        return (low + (high - low) * share).astype(np.float32).reshape(2, 3, 4, channels)

    clips = ((np.arange(40) * 13 % 40 - 20) / 16).astype(np.float32).reshape(2, 10, 2)
    bad = images(0, 1, 3)
    bad.flat[4] = np.nan
    one = raw.ScalarSummary(tags="a", values=0.5)
    two = raw.ScalarSummary(tags=["b", "c"], values=[3, -4])
    histogram = raw.HistogramSummary(tag="h", values=np.float32([-3, 0, 1e-13, .5, .5, 7, 1e21]))
    return [
        one, two, histogram,
        raw.HistogramSummary(tag="none", values=np.zeros(0, np.float32)),
        raw.HistogramSummary(tag="ints", values=np.int32([1, 2, 3, 100])),
        image_summary("bright", images(0, 3, 3), 3),
        image_summary("signed", images(-2, 1, 1), 1),
        image_summary("bad", bad, 3),
        image_summary("bytes", images(0, 255, 4).astype(np.uint8), 3),
        raw.AudioSummaryV2(tag="clips", tensor=clips, sample_rate=44100.),
        # AudioSummary itself is in no graph that TensorFlow still reads.
        raw.AudioSummaryV2(tag="clip", tensor=clips, sample_rate=8000., max_outputs=1),
        raw.TensorSummaryV2(tag="t", tensor=np.float32([1, 2]), serialized_summary_metadata=b"\x0a\x03\x0a\x01p"),
        raw.TensorSummaryV2(tag="s", tensor=["x", "yz"], serialized_summary_metadata=b""),
        raw.MergeSummary(inputs=[one, two, histogram]),
    ]


def comparable(summary):
    """The message with images as pixels, and tensors as values."""
    import tensorflow as tf
    values = []
    for value in summary.value:
        kind = value.WhichOneof("value")
        content = getattr(value, kind)
        if kind == "image":
            pixels = tf.image.decode_png(content.encoded_image_string).numpy().tolist()
            content = (content.height, content.width, content.colorspace, pixels)
        elif kind == "tensor":
            content = (content.dtype, tf.make_ndarray(content).tolist())
        values.append((value.tag, kind, str(content), value.metadata.SerializeToString()))
    return values


def compare(path):
    import tensorflow as tf
    theirs = tensorflow_summaries()
    ours = list(tf.data.TFRecordDataset(path))
    failed = 0 if len(ours) == len(theirs) else 1
    for number, (our, their) in enumerate(zip(ours, theirs)):
        found = comparable(tf.compat.v1.Summary.FromString(our.numpy()))
        wanted = comparable(tf.compat.v1.Summary.FromString(their.numpy()))
        if found != wanted:
            failed += 1
            print(f"summary {number}:\n  ours   {found}\n  theirs {wanted}")
    print(f"summary ops: {len(ours)} calls, {failed} differ from TensorFlow's")
    sys.exit(failed != 0)


def main():
    parser = argparse.ArgumentParser()
    for name in ("writer", "python", "out"):
        parser.add_argument(f"--{name}")
    parser.add_argument("--records")
    arguments = parser.parse_args()
    if arguments.records:
        compare(arguments.records)
    if not pathlib.Path(arguments.python).exists():
        print("TensorFlow is missing (./dev peers tensorflow): nothing is compared")
        sys.exit(77)
    out = pathlib.Path(arguments.out)
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    records = out / "summaries.tfrecord"
    subprocess.run([arguments.writer, records], check=True)
    sys.exit(subprocess.run([arguments.python, __file__, "--records", records]).returncode)


if __name__ == "__main__":
    main()
