"""Graphs that save and restore, run by TensorFlow and by `td run`; the files must be equal to the byte."""

import argparse
import pathlib
import shutil
import subprocess
import sys

import peer


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--td", required=True)
    parser.add_argument("--python", required=True, type=pathlib.Path)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--report")
    parser.add_argument("--compare", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    args = arguments()
    if not args.compare:  # TensorFlow's Python runs the rest
        peer.require(args.python)
        sys.exit(subprocess.run([args.python, __file__, *sys.argv[1:], "--compare"]).returncode)

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
raw = tf.raw_ops


def values():
    grid = np.arange(12, dtype=np.float32).reshape(3, 4)
    numbers = [tf.cast(grid, dtype) for dtype in (
        tf.float32, tf.float64, tf.float16, tf.bfloat16, tf.int8, tf.int16, tf.int32, tf.int64, tf.uint8,
        tf.uint16, tf.uint32, tf.uint64, tf.bool, tf.complex64, tf.complex128)]
    strings = [tf.constant(v) for v in (["ab", "", "c\0d"], "scalar", "x" * 300, [["a"], ["b"]])]
    return numbers + strings + [tf.constant(5), tf.zeros([0, 3]), tf.constant([], tf.string)]


def save_plainly(prefix):
    tensors = values()
    names = [f"layer_{i % 7}/value_{i}" for i in range(len(tensors))]
    return raw.SaveV2(prefix=prefix, tensor_names=names, shape_and_slices=[""] * len(names),
                      tensors=tensors)


def save_slices(prefix):
    x = tf.reshape(tf.range(16.0), [8, 2])
    far = tf.reshape(tf.range(6), [1, 6])
    return raw.SaveV2(
        prefix=prefix, tensor_names=["w", "w", "w", "far", "far", "whole", "a\0b\xff", "a\0b\xff"],
        shape_and_slices=["8 2 0,3:-", "8 2 3,1:-", "8 2 4,4:-", "1 91814 -:0,91808", "1 91814 -:91808,6",
                          "8 2 0,8:-", "8 2 0,7:-", "8 2 7,1:-"],
        tensors=[x[:3], x[3:4], x[4:], tf.zeros([1, 91808], tf.int32), far, x, x[:7], x[7:]])


def save_many(prefix):
    count = 20000
    return raw.SaveV2(prefix=prefix, tensor_names=[f"model/layer_{i}/kernel" for i in range(count)],
                      shape_and_slices=[""] * count, tensors=[tf.constant(7, tf.int8)] * count)


def save_shards(prefix):
    folder = prefix + "_temp/part"
    parts = [raw.ShardedFilename(basename=folder, shard=i, num_shards=3) for i in range(3)]
    saved = [raw.SaveV2(prefix=part, tensor_names=[f"x{i}", "w"],
                        shape_and_slices=["", f"6 2 {2 * i},2:-"],
                        tensors=[tf.range(i + 1), tf.ones([2, 2]) * float(i)])
             for i, part in enumerate(parts)]
    with tf.control_dependencies(saved):
        return raw.MergeV2Checkpoints(checkpoint_prefixes=tf.stack(parts),
                                      destination_prefix=prefix)


def again(reader):
    """A graph that restores what is in a checkpoint and saves it, with slices put together."""
    dtypes = reader.get_variable_to_dtype_map()
    names = sorted(dtypes)

    def build(source, prefix):
        tensors = raw.RestoreV2(prefix=source, tensor_names=names, shape_and_slices=[""] * len(names),
                                dtypes=[dtypes[name] for name in names])
        return raw.SaveV2(prefix=prefix, tensor_names=names, shape_and_slices=[""] * len(names),
                          tensors=tensors)
    return build


class Sides:
    """Runs a graph of prefixes with TensorFlow and with td."""

    def __init__(self, td, folder):
        self.td, self.folder = td, folder

    def graph(self, build, count):
        graph = tf.Graph()
        with graph.as_default():
            inputs = [v1.placeholder(tf.string, [], name=f"prefix_{i}") for i in range(count)]
            with tf.control_dependencies([build(*inputs)]):
                tf.no_op(name="done")
        return graph

    def tensorflow(self, build, *prefixes):
        with v1.Session(graph=self.graph(build, len(prefixes))) as session:
            session.run("done", {f"prefix_{i}:0": str(p) for i, p in enumerate(prefixes)})

    def ours(self, build, *prefixes):
        path = self.folder / "graph.pb"
        path.write_bytes(self.graph(build, len(prefixes)).as_graph_def().SerializeToString())
        command = [self.td, "run", str(path), "--target", "done"]
        for i, prefix in enumerate(prefixes):
            feed = self.folder / f"prefix_{i}.npy"
            np.save(feed, np.array(str(prefix).encode()))
            command += ["--feed", f"prefix_{i}={feed}"]
        result = subprocess.run([*command, "--repeat", "0"], capture_output=True, text=True)
        if result.returncode != 0:
            raise ValueError(result.stderr.strip())


def check_equal(theirs, ours):
    """The files of two checkpoints in folders of their own."""
    names = [sorted(p.name for p in folder.parent.iterdir()) for folder in (theirs, ours)]
    if names[0] != names[1]:
        raise ValueError(f"TensorFlow wrote {names[0]}, we {names[1]}")
    for name in names[0]:
        if (theirs.parent / name).read_bytes() != (ours.parent / name).read_bytes():
            raise ValueError(f"{name} differs")


def check(sides, save):
    prefix = {}
    for who in ("theirs", "ours", "theirs_again", "ours_again", "theirs_of_ours"):
        folder = sides.folder / who
        folder.mkdir(parents=True)
        prefix[who] = folder / "model"
    sides.tensorflow(save, prefix["theirs"])
    sides.ours(save, prefix["ours"])
    check_equal(prefix["theirs"], prefix["ours"])
    copy = again(tf.train.load_checkpoint(str(prefix["theirs"])))
    sides.tensorflow(copy, prefix["theirs"], prefix["theirs_again"])
    sides.ours(copy, prefix["theirs"], prefix["ours_again"])
    check_equal(prefix["theirs_again"], prefix["ours_again"])
    sides.tensorflow(copy, prefix["ours"], prefix["theirs_of_ours"])
    check_equal(prefix["theirs_again"], prefix["theirs_of_ours"])


def main(args):
    shutil.rmtree(args.out, ignore_errors=True)
    cases = (save_plainly, save_slices, save_many, save_shards)
    failed = 0
    for case in cases:
        try:
            check(Sides(args.td, args.out / case.__name__), case)
            print(f"ok      {case.__name__}")
        except Exception as error:  # whatever TensorFlow raises is a failed case
            failed += 1
            print(f"FAILED  {case.__name__}: {type(error).__name__}: {str(error)[:1000]}")
    if args.report:
        with open(args.report, "a", encoding="utf-8") as file:
            file.write(f"{len(cases)} {failed}\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(args))
