"""Reads with TensorFlow what we wrote, and compares what both read from files of TensorFlow's.

    check_records.py PROGRAM DIR REPORT        the program is records.cpp, which wrote DIR before
    check_records.py --store DIR               only writes TensorFlow's files, for tests without it
"""

import os
import pathlib
import random
import subprocess
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf  # noqa: E402

COMPRESSIONS = ("", "GZIP", "ZLIB")


def example(number):
    """The same as records.cpp makes."""
    e = tf.train.Example()
    f = e.features.feature
    f["number"].int64_list.value.append(number - 5)
    f["floats"].float_list.value.extend(number / 4 + i for i in range(3))
    f["some"].int64_list.value.extend((number << 40) + i for i in range(number % 4))
    f["name"].bytes_list.value.append(b"\xff\x00" + str(number).encode())
    return e


def write_theirs(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for compression in COMPRESSIONS:
        with tf.io.TFRecordWriter(str(folder / f"theirs{compression}.tfrecord"), compression) as writer:
            for number in range(20):
                writer.write(example(number).SerializeToString())
            writer.write(b"")
            writer.write(b"x" * (70000 if compression else 700))
    chance = random.Random(1)
    text = "".join(chance.choice(["a", "bc", "\n", "\r\n", " ", "\r", "\n\n"]) for _ in range(500))
    (folder / "lines.txt").write_bytes(text.encode())
    cells = ["", "a", "b c", '"d,e"', '"f""g"', '"h\ni"', '""', "\u00e4"]
    rows = [f"{chance.randint(-999, 999)},{chance.choice(cells)},{chance.random():.6g}" for _ in range(100)]
    (folder / "table.csv").write_bytes(("\n".join(rows)).encode())


def hexes(strings):
    return [s.hex() for s in strings]


def expected(folder):
    lines = {}
    for compression in COMPRESSIONS:
        path = str(folder / f"theirs{compression}.tfrecord")
        dataset = tf.data.TFRecordDataset(path, compression_type=compression)
        lines[f"records{compression}"] = hexes(dataset.as_numpy_iterator())
    parsed = next(iter(dataset.take(20).batch(20)))
    parsed = tf.io.parse_example(parsed, {
        "number": tf.io.FixedLenFeature([], tf.int64), "floats": tf.io.FixedLenFeature([3], tf.float32),
        "some": tf.io.VarLenFeature(tf.int64), "name": tf.io.FixedLenFeature([1], tf.string),
        "absent": tf.io.FixedLenFeature([2], tf.float32, [1.5, 2.5])})
    lines["number"] = [str(v) for v in parsed["number"].numpy()]
    lines["floats"] = [f"{v:.9g}" for v in parsed["floats"].numpy().ravel()]
    lines["some"] = [str(v) for v in parsed["some"].values.numpy()]
    lines["indices"] = [str(v) for v in parsed["some"].indices.numpy().ravel()]
    lines["name"] = hexes(parsed["name"].numpy().ravel())
    lines["absent"] = [f"{v:.9g}" for v in parsed["absent"].numpy().ravel()]
    lines["lines"] = hexes(tf.data.TextLineDataset(str(folder / "lines.txt")).as_numpy_iterator())
    lines["fixed"] = hexes(tf.data.FixedLengthRecordDataset(
        str(folder / "theirs.tfrecord"), 2, 4, (folder / "theirs.tfrecord").stat().st_size % 2)
        .take(100).as_numpy_iterator())
    table = tf.data.experimental.CsvDataset(str(folder / "table.csv"), [tf.int32, ["none"], tf.float32])
    lines["csv"] = [f"{a}/{b.hex()}/{c:.9g}" for a, b, c in table.as_numpy_iterator()]
    return lines


def main():
    if sys.argv[1] == "--store":
        return write_theirs(pathlib.Path(sys.argv[2]))
    program, folder, report = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
    cases, failed = 0, 0

    def check(name, ours, theirs):
        nonlocal cases, failed
        cases += 1
        if ours != theirs:
            failed += 1
            print(f"FAILED {name}\n    ours   {str(ours)[:300]}\n    theirs {str(theirs)[:300]}")

    # Ours, read by TensorFlow.
    for compression in COMPRESSIONS:
        records = list(tf.data.TFRecordDataset(str(folder / f"ours{compression}.tfrecord"),
                                               compression_type=compression).as_numpy_iterator())
        read = [tf.train.Example.FromString(record) for record in records[:20]]
        check(f"ours{compression}", read, [example(number) for number in range(20)])
        check(f"ours{compression}, the rest", records[20:], [b"", b"x" * (70000 if compression else 700)])
        check(f"ours{compression}, bytes", records[:20],
              [example(number).SerializeToString(deterministic=True) for number in range(20)])
    sequence = tf.train.SequenceExample.FromString((folder / "sequence.bin").read_bytes())
    check("sequence, context", list(sequence.context.feature["id"].int64_list.value), [7])
    check("sequence, steps", [list(f.float_list.value) for f in
                              sequence.feature_lists.feature_list["steps"].feature], [[1.0, 2.0], [], [3.0]])
    # Theirs, read by both.
    write_theirs(folder)
    done = subprocess.run([program, "read", folder], check=True, capture_output=True, text=True)
    ours = {}
    for line in done.stdout.splitlines():
        name, *values = line.split(" ")
        ours[name] = values
    for name, theirs in expected(folder).items():
        check(f"read {name}", [v for v in ours.get(name, ["missing"])], theirs)
    print(f"conformance: {cases} cases, {failed} failed")
    with open(report, "a") as out:
        out.write(f"{cases} {failed}\n")
    return 1 if failed else 0


sys.exit(main())
