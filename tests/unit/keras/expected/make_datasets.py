#!/usr/bin/env python3
"""Makes small files in the formats of keras.datasets, and what Keras loads from them: datasets/.

    python make_datasets.py        # with a Python that has the Keras of tests/peers.txt
"""

import gzip
import io
import os
import pathlib
import pickle
import struct
import tarfile
import tempfile

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent / "datasets"


def add_file(tar, name, content):
    info = tarfile.TarInfo(name)
    info.size = len(content)
    tar.addfile(info, io.BytesIO(content))


def cifar_batch(first, labels, key=b"labels", more=()):
    data = np.concatenate([np.stack([np.full(1024, first + i + 100 * c, np.uint8) for c in range(3)]).reshape(1, 3072)
                           for i in range(len(labels))])
    return pickle.dumps({b"batch_label": b"a batch", key: labels, b"data": data, **dict(more)}, protocol=2)


def idx(values):
    return gzip.compress(struct.pack(">BBBB", 0, 0, 8, values.ndim) + struct.pack(f">{values.ndim}I", *values.shape)
                         + values.astype(np.uint8).tobytes(), mtime=0)


def ragged(rng, count):
    lists = np.empty(count, dtype=object)
    for i in range(count):
        lists[i] = [int(w) for w in rng.integers(1, 30, rng.integers(2, 9))]
    return lists


def padded(sequences):
    longest = max(map(len, sequences))
    return np.array([[0] * (longest - len(s)) + list(s) for s in sequences])


def main():
    rng = np.random.default_rng(1)
    (HERE / "fashion-mnist").mkdir(parents=True, exist_ok=True)
    images = rng.integers(0, 255, (5, 28, 28)).astype(np.uint8)
    np.savez_compressed(HERE / "mnist.npz", x_train=images[:3], y_train=np.array([7, 2, 1], np.uint8),
                        x_test=images[3:], y_test=np.array([0, 4], np.uint8))
    for name, values in {"train-images-idx3": images[:2], "train-labels-idx1": np.array([9, 3]),
                         "t10k-images-idx3": images[2:3], "t10k-labels-idx1": np.array([4])}.items():
        (HERE / "fashion-mnist" / f"{name}-ubyte.gz").write_bytes(idx(values))
    with tarfile.open(HERE / "cifar-10-python.tar.gz", "w:gz") as tar:
        for i in range(5):
            add_file(tar, f"cifar-10-batches-py/data_batch_{i + 1}", cifar_batch(2 * i, [i, i + 1]))
        add_file(tar, "cifar-10-batches-py/test_batch", cifar_batch(40, [9, 8]))
    with tarfile.open(HERE / "cifar-100-python.tar.gz", "w:gz") as tar:
        for name in ("train", "test"):
            add_file(tar, f"cifar-100-python/{name}",
                     cifar_batch(0, [50, 60], b"fine_labels", [(b"coarse_labels", [3, 4])]))
    np.savez(HERE / "boston_housing.npz", x=np.arange(39).reshape(13, 3) * 1.0, y=np.arange(13) * 1.0)
    np.savez(HERE / "imdb.npz", x_train=ragged(rng, 12), y_train=rng.integers(0, 2, 12),
             x_test=ragged(rng, 9), y_test=rng.integers(0, 2, 9))
    np.savez(HERE / "reuters.npz", x=ragged(rng, 15), y=rng.integers(0, 46, 15))
    expected(HERE)


def expected(folder):
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import keras
    from keras.src.datasets import boston_housing, imdb, reuters

    def local(*args, fname=None, **kwargs):
        return str(folder / (fname or args[0]))
    for module in (boston_housing, imdb, reuters):
        module.get_file = local
    found = {}
    (_, found["boston_y_train"]), (found["boston_x_test"], _) = keras.datasets.boston_housing.load_data()
    train, test = keras.datasets.imdb.load_data(num_words=20, skip_top=5, maxlen=7)
    found["imdb_x_train"], found["imdb_y_train"], found["imdb_x_test"] = padded(train[0]), train[1], padded(test[0])
    train, test = keras.datasets.reuters.load_data()
    found["reuters_x_train"], found["reuters_y_test"] = padded(train[0]), test[1]
    np.savez(folder / "expected.npz", **found)


if __name__ == "__main__":
    main()
