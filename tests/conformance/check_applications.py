"""Compares td::keras::applications with Keras': check_applications.py PROGRAM DIR REPORT [NAME...]

For each architecture Keras makes it for small images, with random weights, and saves them; the program makes
ours, loads them, and says what it predicts and which layers there are. Without names a few small ones;
"all" stands for all of them (half an hour and 10 GB of files, one after the other).
"""

import os
import pathlib
import subprocess
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"

import keras
import numpy as np

FEW = ["MobileNetV3Small", "EfficientNetB0", "NASNetMobile"]
SIZES = {"Xception": 71, "InceptionV3": 75, "InceptionResNetV2": 75}
ALL = [name for name in dir(keras.applications) if name[0].isupper()]


def random_weights(model, rng):
    """Moderate values that keep activations in range; statistics of normalizations stay as they would be."""
    values = []
    for weight in model.weights:
        name = weight.path.rsplit("/", 1)[-1]
        if weight.dtype == "int64":
            values.append(np.zeros(weight.shape, "int64"))
        elif "variance" in name:
            values.append(rng.uniform(0.5, 1.5, weight.shape))
        elif name in ("kernel", "depthwise_kernel", "pointwise_kernel"):
            fan_in = max(1, int(np.prod(weight.shape[:-1])))
            values.append(rng.normal(0, fan_in ** -0.5, weight.shape))
        elif "gamma" in name:
            values.append(rng.uniform(0.5, 1.0, weight.shape))
        else:
            values.append(rng.normal(0, 0.1, weight.shape))
    model.set_weights(values)


def check(name, program, folder):
    keras.utils.clear_session()
    size = SIZES.get(name, 32 if name != "NASNetMobile" else 64)
    top = name == "MobileNetV3Small" or name == "EfficientNetB0"
    model = getattr(keras.applications, name)(weights=None, include_top=top, input_shape=(size, size, 3),
                                              pooling="avg", classes=10)
    rng = np.random.default_rng(5)
    random_weights(model, rng)
    model.save_weights(folder / "model.weights.h5")
    x = rng.uniform(0, 255, (2, size, size, 3)).astype("float32")
    np.save(folder / "x.npy", x)
    wanted = model.predict(x, verbose=0)
    found = subprocess.run([program, name, folder, "top" if top else "features"], capture_output=True, text=True)
    if found.returncode != 0:
        return found.stderr.strip() or f"exit code {found.returncode}"
    layers = [layer.name for layer in model.layers if layer.weights]
    ours = (folder / "layers.txt").read_text().split()
    named = {(a, b) for a, b in zip(ours, layers) if a != b and not a.rsplit("_", 1)[-1].isdigit()
             and not b.rsplit("_", 1)[-1].isdigit()}
    if len(layers) != len(ours) or named:
        return f"{len(ours)} layers with weights instead of {len(layers)}; differing names {sorted(named)[:4]}"
    got = np.load(folder / "y.npy")
    if got.shape != wanted.shape:
        return f"shape {got.shape} instead of {wanted.shape}"
    error = float(np.max(np.abs(got - wanted)) / (np.max(np.abs(wanted)) + 1e-9))
    if not error < 2e-4:
        return f"the largest difference is {error:.2e} of the largest value"
    print(f"{name}: {model.count_params()} parameters, largest difference {error:.1e}", flush=True)
    return None


def main():
    program, folder, report, names = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3], sys.argv[4:] or FEW
    if names == ["all"]:
        names = ALL
    failed = 0
    for name in names:
        problem = check(name, program, folder)
        if problem:
            failed += 1
            print(f"FAILED {name}: {problem}", flush=True)
    (folder / "model.weights.h5").unlink(missing_ok=True)
    print(f"conformance: {len(names)} cases, {failed} failed")
    with open(report, "a", encoding="utf-8") as out:
        out.write(f"{len(names)} {failed}\n")
    return 1 if failed else 0


sys.exit(main())
