"""What the checks of TensorFlow's names in C++ share: expected values by name, and their comparison."""

import os
import subprocess

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf

EXPECTED = {}


def numbers(shape, seed=0.0):
    count = int(np.prod(shape))
    return tf.constant(np.sin(1.7 * np.arange(count) + 0.3 + seed).astype(np.float32).reshape(shape))


def add(name, results):
    for i, result in enumerate(results):
        EXPECTED[name if len(results) == 1 else f"{name} {i}"] = np.asarray(result)


def fails(name, call):
    try:
        call()
        kind = "none"
    except tf.errors.OpError as error:
        kind = {3: "INVALID_ARGUMENT", 11: "OUT_OF_RANGE", 9: "FAILED_PRECONDITION"}[error.error_code]
    except (ValueError, TypeError):
        kind = "INVALID_ARGUMENT"
    EXPECTED[name] = np.asarray(kind.encode())


def differentiated(name, f, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
        loss = tf.reduce_sum(tf.square(y))
    EXPECTED[name] = EXPECTED[name + " traced"] = y.numpy()
    EXPECTED[name + " grad"] = tf.convert_to_tensor(tape.gradient(loss, x)).numpy()


def differs(ours, theirs):
    """Why ours is not theirs; None if it is."""
    if ours.dtype.kind == "S" or theirs.dtype == object:
        theirs = theirs.astype("S")
        return None if np.array_equal(ours.astype(theirs.dtype), theirs) else f"{ours} instead of {theirs}"
    if ours.dtype != theirs.dtype:
        return f"dtype {ours.dtype} instead of {theirs.dtype}"
    if ours.shape != theirs.shape:
        return f"shape {ours.shape} instead of {theirs.shape}"
    if ours.dtype.kind in "fc":
        scale = float(np.max(np.abs(theirs[np.isfinite(theirs)]), initial=1.0))
        if np.allclose(ours, theirs, rtol=2e-5, atol=2e-6 * scale, equal_nan=True):
            return None
        return f"{ours.ravel()[:6]} instead of {theirs.ravel()[:6]}"
    return None if np.array_equal(ours, theirs) else f"{ours.ravel()[:8]} instead of {theirs.ravel()[:8]}"


def compare(program, folder, report, *arguments, differs=differs):
    """Runs the program, which writes its values to FOLDER, and returns an exit code."""
    subprocess.run([program, folder / "ours.npz", *arguments], check=True)
    with np.load(folder / "ours.npz", allow_pickle=False) as file:
        ours = {name: file[name] for name in file.files}
    failed = 0
    for name in sorted(EXPECTED.keys() | ours.keys()):
        if name not in ours or name not in EXPECTED:
            problem = "only here" if name in ours else "missing"
        else:
            problem = differs(ours[name], EXPECTED[name])
        if problem:
            failed += 1
            print(f"FAILED {name}: {problem}")
    print(f"conformance: {len(EXPECTED)} cases, {failed} failed")
    with open(report, "a", encoding="utf-8") as out:
        out.write(f"{len(EXPECTED)} {failed}\n")
    return 1 if failed else 0
