#!/usr/bin/env python3
"""Makes the stored reference values of Keras 3: layers, losses, metrics, optimizers, training.

    python make_keras_reference.py [--file NAME]... [--check]

Run with a Python that has the TensorFlow pinned in tests/peers.txt. Writes
data/keras_NAME.jsonl.gz and data/keras_summary_*.txt, byte for byte the same for the same
packages on the same kind of machine; README.md describes what the records mean. `--check` compares
with the stored files instead of writing them.
"""

import argparse
import os
import pathlib
import sys

os.environ.update({"CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "3",
                   "TF_ENABLE_ONEDNN_OPTS": "0", "KERAS_BACKEND": "tensorflow", "COLUMNS": "80"})

import keras
import numpy as np
import tensorflow as tf

import keras_cases as cases
from case_language import generate, parse_input, random_of
from records import encode, encode_or_null, packed, unpacked

HERE = pathlib.Path(__file__).resolve().parent
LEARNING_RATE = 0.1


def make(text, *salt):
    """The value of an input written in the language of the case files."""
    return generate(parse_input(text), random_of(text, *salt))


def described(*parts):
    """A line that names a record; what is in it decides the random values."""
    texts = [" ".join(f"{key}={value}" for key, value in part.items()) if isinstance(part, dict)
             else str(part or "") for part in parts]
    return " | ".join(texts).rstrip(" |")


# --- Layers -----------------------------------------------------------------------------------

def call_layer(layer, tensors, arguments):
    """Merging layers (inputs named by number) take a list, the others take names."""
    if "0" in tensors:
        return layer(list(tensors.values()), **arguments)
    if "inputs" in tensors:
        return layer(tensors["inputs"], **arguments)
    return layer(**tensors, **arguments)


def new_weights(layer, line):
    """Random weights instead of the initial ones; variances stay positive."""
    for index, weight in enumerate(layer.weights):
        kind = "positive" if "variance" in weight.path else "normal"
        dims = ",".join(map(str, weight.shape))
        dtype = "double" if weight.dtype == "float64" else "float"
        weight.assign(make(f"{dtype}[{dims}]:{kind}", line, "weight", index))


def weight_records(layer):
    """Weights in Keras' order, by their path below the layer."""
    return [{"name": weight.path.split("/", 1)[1], "trainable": bool(weight.trainable),
             "value": encode(weight.numpy())} for weight in layer.weights]


def dense(gradient):
    return None if gradient is None else tf.convert_to_tensor(gradient).numpy()


def make_layer(name, config, **more):
    """A layer from its class and arguments; layers within are given as {"class", "config"}."""
    def within(value):
        if isinstance(value, dict):
            return make_layer(value["class"], value["config"])
        if isinstance(value, list):
            return [within(entry) for entry in value]
        return value

    arguments = {key: within(value) for key, value in config.items()}
    return getattr(keras.layers, name)(**arguments, **more)


def layer_record(name, config, inputs, arguments, policy=None):
    """`arguments` are those of the call; "masks" among them come with the inputs of these names."""
    line = described(name, config, inputs, arguments, policy)
    arguments = dict(arguments)
    masks = {key: make(text, line, key, "mask")
             for key, text in arguments.pop("masks", {}).items()}
    arrays = {key: make(text, line, key) for key, text in inputs.items()}
    tensors = {key: tf.constant(array) for key, array in arrays.items()}
    fresh_session(policy)
    dtype = {"dtype": "float64"} if any(a.dtype == np.float64 for a in arrays.values()) else {}
    layer = make_layer(name, config, **dtype)
    call_layer(layer, tensors, {})
    new_weights(layer, line)
    record = {"line": line, "layer": name, "config": {**config, **dtype}, "call": arguments,
              **({"policy": policy} if policy else {}),
              "inputs": {key: encode(array) for key, array in arrays.items()},
              "masks": {key: encode(mask) for key, mask in masks.items()},
              "weights": weight_records(layer)}
    for key, mask in masks.items():
        keras.src.backend.set_keras_mask(tensors[key], tf.constant(mask))
    sources = {key: tensor for key, tensor in tensors.items() if tensor.dtype.is_floating}
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(list(sources.values()))
        output = call_layer(layer, tensors, arguments)
        regularization = tf.add_n(layer.losses) if layer.losses else None
    record["output"] = encode(output.numpy())
    if masks or getattr(layer, "mask_zero", False) or name == "Masking":
        mask = keras.src.backend.get_keras_mask(output)
        record["output_mask"] = encode_or_null(None if mask is None else mask.numpy())
    if regularization is not None:
        record["regularization_loss"] = encode(regularization.numpy())
    upstream = make(f"{'double' if dtype else 'float'}[{','.join(map(str, output.shape))}]:normal",
                    line, "upstream")
    if policy:
        upstream = upstream.astype(output.numpy().dtype)
    record["upstream"] = encode(upstream)
    targets = [weight.value for weight in layer.trainable_weights]
    gradients = tape.gradient(output, [*targets, *sources.values()],
                              output_gradients=tf.constant(upstream))
    record["weight_gradients"] = [encode_or_null(dense(g)) for g in gradients[:len(targets)]]
    record["input_gradients"] = {key: encode_or_null(dense(g)) for key, g in
                                 zip(sources, gradients[len(targets):])}
    if targets:
        keras.optimizers.SGD(LEARNING_RATE).apply(gradients[:len(targets)],
                                                  layer.trainable_weights)
    record["after_step"] = weight_records(layer)
    return record


def layers():
    return [layer_record(*case) for case in cases.LAYERS]


# --- Losses -----------------------------------------------------------------------------------

def loss_record(name, loss, config, spec, weight):
    line = described(name, config, " ".join(spec), weight)
    truth, guess = make(spec[0], line, "true"), make(spec[1], line, "pred")
    weights = None if weight is None else make(weight, line, "weight")
    prediction = tf.constant(guess)
    with tf.GradientTape() as tape:
        tape.watch(prediction)
        value = loss(truth, prediction, sample_weight=weights)
    return {"line": line, "loss": name, "config": config, "y_true": encode(truth),
            "y_pred": encode(guess), "sample_weight": encode_or_null(weights),
            "value": encode(value.numpy()),
            "gradient": encode_or_null(dense(tape.gradient(value, prediction)))}


def losses():
    records = []
    for name, spec in cases.LOSS_NAMES.items():
        # A name stands for a function, which compile() wraps like this.
        loss = keras.src.losses.losses.LossFunctionWrapper(keras.losses.get(name), name=name)
        records += [loss_record(name, loss, {}, spec, weight) for weight in weights_for(spec)]
    for name, config, spec in cases.LOSS_CLASSES:
        loss = getattr(keras.losses, name)(**config)
        weights = [None] if "axis" in config else weights_for(spec)
        records += [loss_record(name, loss, config, spec, weight) for weight in weights]
    return records


def weights_for(spec):
    """No sample weights, and weights of the shape that the loss has before its reduction."""
    shape = make(spec[1]).shape
    dims = ",".join(map(str, shape[:1] if len(shape) <= 2 else shape[:-1]))
    return [None, f"float[{dims}]:uniform(0,2)"]


# --- Metrics ----------------------------------------------------------------------------------

def metric_record(name, config, spec, weighted):
    """Two updates with the result after each, and the result after a reset."""
    line = described(name, config, spec and " ".join(spec), weighted and "weighted")
    metric = getattr(keras.metrics, name)(**config)
    updates = []
    for turn in range(2):
        if spec is None:
            values = {"values": make("float[4]", line, turn)}
        else:
            values = {"y_true": make(spec[0], line, turn, "true"),
                      "y_pred": make(spec[1], line, turn, "pred")}
        if weighted:
            batch = next(iter(values.values())).shape[0]
            values["sample_weight"] = make(f"float[{batch}]:uniform(0,2)", line, turn, "weight")
        metric.update_state(**values)
        updates.append({**{key: encode(array) for key, array in values.items()},
                        "result": encode(np.asarray(keras.ops.convert_to_numpy(metric.result())))})
    metric.reset_state()
    return {"line": line, "metric": name, "config": config, "default_name": metric.name,
            "updates": updates,
            "after_reset": encode(np.asarray(keras.ops.convert_to_numpy(metric.result())))}


def metrics():
    records = [metric_record(*case, weighted)
               for case in cases.METRICS for weighted in (False, True)
               if not (weighted and case[0] in cases.UNWEIGHTED)]
    names = {name: type(keras.metrics.get(name)).__name__ for name in cases.METRIC_NAMES}
    return records + [{"names": names}]


# --- Optimizers and schedules -----------------------------------------------------------------

def optimizer_record(name, config, schedule=None):
    line = described(name, config, schedule and "scheduled")
    keras.utils.clear_session()
    shapes = ["[5]", "[2,3]"]
    first = [make(f"float{shape}", line, "variable", i) for i, shape in enumerate(shapes)]
    variables = [keras.Variable(value, name=f"v{i}") for i, value in enumerate(first)]
    arguments = dict(config)
    if schedule:
        made = getattr(keras.optimizers.schedules, schedule["class"])(**schedule["config"])
        arguments["learning_rate"] = made
    optimizer = getattr(keras.optimizers, name)(**arguments)
    optimizer.build(variables)
    steps = []
    for step in range(3):
        gradients = [make(f"float{shape}", line, "gradient", step, i)
                     for i, shape in enumerate(shapes)]
        optimizer.apply([tf.constant(gradient) for gradient in gradients], variables)
        steps.append({"gradients": [encode(gradient) for gradient in gradients],
                      "variables": [encode(variable.numpy()) for variable in variables]})
    state = [{"name": variable.path, "value": encode(variable.numpy())}
             for variable in optimizer.variables]
    return {"line": line, "optimizer": name, "config": config, "schedule": schedule,
            "variables": [encode(value) for value in first], "steps": steps, "state": state}


def optimizers():
    records = [optimizer_record(*case) for case in cases.OPTIMIZERS]
    return records + [optimizer_record(name, {}, cases.SCHEDULED) for name in ("SGD", "Adam")]


def schedules():
    records = []
    for name, config in cases.SCHEDULES:
        schedule = getattr(keras.optimizers.schedules, name)(**config)
        values = [keras.ops.convert_to_numpy(schedule(step)) for step in cases.STEPS]
        records.append({"line": described(name, config), "schedule": name, "config": config,
                        "steps": cases.STEPS, "values": encode(np.array(values, dtype=np.float32))})
    return records


# --- Initializers and regularizers ------------------------------------------------------------

TRUNCATED = 0.87962566103423978  # Standard deviation of a normal cut at two of its own.


def distribution(initializer, config, shape):
    """What the values follow, as a formula gives it."""
    name = type(initializer).__name__
    if name == "RandomUniform":
        return {"kind": "uniform", "low": initializer.minval, "high": initializer.maxval}
    if name in ("RandomNormal", "TruncatedNormal"):
        kind = "normal" if name == "RandomNormal" else "truncated_normal"
        return {"kind": kind, "mean": initializer.mean, "stddev": initializer.stddev}
    fan_in, fan_out = (keras.src.initializers.random_initializers.compute_fans(tuple(shape)))
    fan = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2}
    scale = initializer.scale / max(1.0, fan[initializer.mode])
    fans = {"fan_in": fan_in, "fan_out": fan_out}
    if initializer.distribution == "uniform":
        limit = float(np.sqrt(3 * scale))
        return {"kind": "uniform", "low": -limit, "high": limit, **fans}
    if initializer.distribution == "truncated_normal":
        # The normal before the cut is wider, so that what is left has the variance asked for.
        return {"kind": "truncated_normal", "mean": 0.0,
                "stddev": float(np.sqrt(scale)) / TRUNCATED, **fans}
    return {"kind": "normal", "mean": 0.0, "stddev": float(np.sqrt(scale)), **fans}


def check_distribution(values, expected, line):
    """The formulas above are ours; Keras' own draws must agree with them."""
    values = np.asarray(values, dtype=np.float64)
    if expected["kind"] == "uniform":
        low, high = expected["low"], expected["high"]
        mean, deviation = (low + high) / 2, (high - low) / np.sqrt(12)
        assert values.min() >= low and values.max() <= high, line
    else:
        mean, deviation = expected["mean"], expected["stddev"]
        if expected["kind"] == "truncated_normal":
            assert np.abs(values - mean).max() <= 2 * deviation + 1e-6, line
            deviation *= TRUNCATED
    error = 5 / np.sqrt(values.size)
    assert abs(values.mean() - mean) < deviation * error, line
    assert abs(values.std() / deviation - 1) < error, line


def initializers():
    records = []
    for name, config in cases.INITIALIZERS:
        for shape in cases.SHAPES:
            line = described(name, config, shape)
            initializer = getattr(keras.initializers, name)(**config, seed=1)
            expected = distribution(initializer, config, shape)
            check_distribution(initializer(shape=tuple(shape)), expected, line)
            records.append({"line": line, "initializer": name, "config": config, "shape": shape,
                            "distribution": expected})
    for name, config, shape in cases.FIXED_INITIALIZERS:
        value = getattr(keras.initializers, name)(**config)(shape=tuple(shape))
        records.append({"line": described(name, config, shape), "initializer": name,
                        "config": config, "shape": shape, "value": encode(value.numpy())})
    names = {name: type(keras.initializers.get(name)).__name__ for name in cases.INITIALIZER_NAMES}
    return records + [{"names": names}]


def regularizers():
    records = []
    for name, config in [("L1", {}), ("L2", {}), ("L1", {"l1": 0.5}), ("L2", {"l2": 0.5}),
                         ("L1L2", {"l1": 0.25, "l2": 0.5}), ("L1L2", {})]:
        weights = make("float[3,4]", name)
        value = getattr(keras.regularizers, name)(**config)(tf.constant(weights))
        records.append({"line": described(name, config), "regularizer": name,
                        "config": config, "weights": encode(weights),
                        "value": encode(np.float32(value))})
    for name in ("l1", "l2", "L1L2"):
        weights = make("float[3,4]", name)
        value = keras.regularizers.get(name)(tf.constant(weights))
        records.append({"line": name, "regularizer": name, "config": None,
                        "weights": encode(weights), "value": encode(np.float32(value))})
    return records


# --- Models -----------------------------------------------------------------------------------

def model_weights(model):
    return [{"name": weight.path, "trainable": bool(weight.trainable),
             "value": encode(weight.numpy())} for weight in model.weights]


def training_record(name, build, arguments, x_text, y_text, weighting):
    line = described(name, arguments, f"{x_text} {y_text}", weighting)
    keras.utils.clear_session()
    model = build()
    for layer in model.layers:
        new_weights_small(layer, line)
    first = model_weights(model)
    # compile() keeps lists that it is given and changes them.
    copies = {key: list(value) if isinstance(value, list) else value
              for key, value in arguments.items()}
    if isinstance(arguments["optimizer"], dict):
        optimizer = arguments["optimizer"]
        copies["optimizer"] = getattr(keras.optimizers, optimizer["class"])(**optimizer["config"])
    model.compile(**copies, jit_compile=False)
    x, y = make(x_text, line, "x"), make(y_text, line, "y")
    extra = {}
    if weighting == "sample_weight":
        extra["sample_weight"] = make("float[10]:uniform(0,2)", line, "weight")
    if weighting == "class_weight":
        extra["class_weight"] = {0: 0.5, 1: 2.0, 2: 1.25}
    record = {"line": line, "model": name, "compile": arguments, "fit": cases.FIT, "weights": first,
              "x": encode(x), "y": encode(y), "weighting": weighting,
              "sample_weight": encode_or_null(extra.get("sample_weight")),
              "class_weight": extra.get("class_weight") and
              {str(key): value for key, value in extra["class_weight"].items()}}
    record["predictions_before"] = encode(model.predict(x, verbose=0))
    history = model.fit(x, y, validation_data=(x[:5], y[:5]), verbose=0, **cases.FIT, **extra)
    record["history"] = {key: [float(value) for value in values]
                         for key, values in history.history.items()}
    record["weights_after"] = model_weights(model)
    record["evaluate"] = {key: float(value) for key, value in
                          model.evaluate(x, y, batch_size=4, verbose=0, return_dict=True).items()}
    record["train_on_batch"] = {key: float(value) for key, value in
                                model.train_on_batch(x, y, return_dict=True).items()}
    record["predictions_after"] = encode(model.predict(x, verbose=0))
    return record


def new_weights_small(layer, line):
    """Weights of a size that training likes, different in each layer."""
    for index, weight in enumerate(layer.weights):
        kind = "positive" if "variance" in weight.path else "normal(0,0.5)"
        dims = ",".join(map(str, weight.shape))
        weight.assign(make(f"float[{dims}]:{kind}", line, layer.name, index))


def training():
    records = [training_record(*case, None) for case in cases.MODELS]
    records.append(training_record(*cases.MODELS[0], "sample_weight"))
    records.append(training_record(*cases.MODELS[0], "class_weight"))
    records.append(training_record(*cases.MODELS[3], "sample_weight"))
    return records


# --- Mixed precision --------------------------------------------------------------------------

def fresh_session(policy):
    """clear_session() sets the global policy back as well."""
    keras.utils.clear_session()
    keras.mixed_precision.set_global_policy(policy or "float32")


def step_record(policy, name, build, arguments, x_text, y_text):
    """One training step of a model."""
    line = described(name, arguments, f"{x_text} {y_text}", policy)
    fresh_session(policy)
    model = build()
    for layer in model.layers:
        new_weights_small(layer, line)
    optimizer = arguments["optimizer"]
    optimizer = getattr(keras.optimizers, optimizer["class"])(**optimizer["config"])
    model.compile(optimizer, arguments["loss"], metrics=list(arguments["metrics"]),
                  jit_compile=False)
    x, y = make(x_text, line, "x"), make(y_text, line, "y")
    record = {"line": line, "model": name, "policy": policy, "compile": arguments,
              "weights": model_weights(model),
              "x": encode(x), "y": encode(y), "predictions_before": encode(model(x).numpy())}
    record["train_on_batch"] = {key: float(value) for key, value in
                                model.train_on_batch(x, y, return_dict=True).items()}
    record["weights_after"] = model_weights(model)
    scaled = isinstance(model.optimizer, keras.optimizers.LossScaleOptimizer)
    record["loss_scale"] = float(model.optimizer.dynamic_scale) if scaled else None
    record["predictions_after"] = encode(model(x).numpy())
    return record


def loss_scale_record(name, config, scaling, kinds):
    line = described(name, config, scaling, " ".join(kinds))
    keras.utils.clear_session()
    inner = getattr(keras.optimizers, name)(**config)
    optimizer = keras.optimizers.LossScaleOptimizer(inner, **scaling)
    variables = [keras.Variable(make(text, line, text)) for text in ("float[3]", "float[2,2]")]
    optimizer.build(variables)
    record = {"line": line, "optimizer": name, "config": config, "scaling": scaling,
              "variables": [encode(v.numpy()) for v in variables], "steps": []}

    @tf.function(jit_compile=False)
    def apply(*gradients):
        optimizer.apply(list(gradients), variables)

    for number, kind in enumerate(kinds):
        scale = float(optimizer.scale_loss(1.0))
        gradients = [make(f"float[{','.join(map(str, v.shape))}]", line, number, index)
                     * np.float32(scale) for index, v in enumerate(variables)]
        if kind != "fine":
            gradients[1][1, 0] = float(kind)
        apply(*gradients)
        record["steps"].append({
            "gradients": [encode(g) for g in gradients], "scale_before": scale,
            "variables": [encode(v.numpy()) for v in variables],
            "scale": float(optimizer.dynamic_scale), "counter": int(optimizer.step_counter),
            "iterations": int(optimizer.iterations)})
    record["state"] = [encode(v.numpy()) for v in optimizer.variables]
    return record


def precision():
    records = []
    for policy in cases.POLICIES:
        records += [layer_record(*case, policy) for case in cases.PRECISION_LAYERS]
        records += [step_record(policy, *case) for case in cases.PRECISION_MODELS]
    fresh_session("float32")
    return records + [loss_scale_record(*case) for case in cases.LOSS_SCALES]


def summaries():
    """The texts of summary(), by name."""
    texts = {}

    def take(name, model):
        lines = []
        model.summary(print_fn=lambda line, **_: lines.append(line))
        texts[name] = "\n".join(line.rstrip() for line in "\n".join(lines).splitlines()) + "\n"

    for name, build in (("mlp", cases.mlp), ("cnn", cases.cnn), ("attention", cases.attention)):
        keras.utils.clear_session()
        take(name, build())
    keras.utils.clear_session()
    model = cases.mlp()
    model.compile(optimizer="adam", loss="mse")
    model.fit(np.zeros((2, 6), np.float32), np.zeros((2, 3), np.float32), verbose=0)
    take("mlp_trained", model)
    keras.utils.clear_session()
    take("unbuilt", keras.Sequential([keras.layers.Dense(5, activation="relu"),
                                      keras.layers.Dropout(0.5), keras.layers.Dense(3)]))
    keras.utils.clear_session()
    frozen = cases.mlp()
    frozen.layers[0].trainable = False
    take("frozen", frozen)
    return texts


FILES = {"layers": layers, "losses": losses, "metrics": metrics, "optimizers": optimizers,
         "schedules": schedules, "initializers": initializers, "regularizers": regularizers,
         "training": training, "precision": precision}


def write_or_compare(path, data, check):
    if not check:
        path.write_bytes(data)
        return True
    return path.exists() and path.read_bytes() == data


def compare_records(path, records):
    stored = unpacked(path) if path.exists() else []
    for record in records:
        if record not in stored:
            print(f"{path.name}: differs: {record.get('line', list(record))}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--file", action="append", help="only these: layers, losses, ...")
    parser.add_argument("--check", action="store_true", help="compare with the stored files")
    arguments = parser.parse_args()
    tf.config.threading.set_inter_op_parallelism_threads(1)
    tf.config.threading.set_intra_op_parallelism_threads(1)
    equal = True
    for name, build in FILES.items():
        if arguments.file and name not in arguments.file:
            continue
        records = build()
        header = {"format": 1, "file": name, "tensorflow": tf.__version__,
                  "keras": keras.__version__, "records": len(records)}
        path = HERE / "data" / f"keras_{name}.jsonl.gz"
        data = packed([header, *records])
        same = write_or_compare(path, data, arguments.check)
        if not same:
            compare_records(path, records)
        equal &= same
        print(f"{name}: {len(records)} records, {len(data):,} bytes", flush=True)
    if not arguments.file or "summaries" in arguments.file:
        for name, text in summaries().items():
            path = HERE / "data" / f"keras_summary_{name}.txt"
            same = write_or_compare(path, text.encode(), arguments.check)
            print(f"summary {name}: {'as stored' if arguments.check and same else len(text)}")
            equal &= same
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main())
