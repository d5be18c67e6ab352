"""What `weights save` wrote, read by the real TensorFlow, and the reverse: check_weights.py WEIGHTS FOLDER [REPORT]"""

import json
import os
import pathlib
import subprocess
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf

keras = tf.keras
L = keras.layers
v1 = tf.compat.v1
TARGETS = np.array([[0.5], [-1.0], [2.0]], np.float32)


# ---- The models of weights.cpp. ----

def dense():
    return keras.Sequential([L.Input((6,)), L.Dense(5, activation="relu"), L.BatchNormalization(),
                             L.Dropout(0.3), L.Dense(3, activation="softmax")])


def convolutions():
    return keras.Sequential([L.Input((8, 8, 3)), L.Conv2D(4, 3), L.DepthwiseConv2D(3),
                             L.SeparableConv2D(5, 3, padding="same"), L.Conv2DTranspose(4, 3),
                             L.BatchNormalization(scale=False), L.GlobalAveragePooling2D(), L.Dense(2)])


def branches():
    a, b = L.Input((6,)), L.Input((4,))
    inner = keras.Sequential([L.Input((4,)), L.Dense(4, activation="relu"), L.LayerNormalization()])
    shared = L.Dense(3, use_bias=False)
    x = L.Dense(4)(a)
    total = L.Add()([inner(x), b])
    return keras.Model([a, b], L.Dense(2)(L.Concatenate()([shared(total), shared(x)])))


def text():
    tokens = L.Input((5,), dtype="int32")
    x = L.LayerNormalization()(L.Embedding(10, 8)(tokens))
    return keras.Model(tokens, L.Dense(2)(L.Flatten()(L.MultiHeadAttention(2, 4)(x, x))))


def recurrent():
    return keras.Sequential([L.Input((5, 4)), L.LSTM(4, return_sequences=True),
                             L.GRU(3, return_sequences=True), L.SimpleRNN(3), L.Dense(2)])


def wrapped():
    return keras.Sequential([L.Input((5, 4)), L.TimeDistributed(L.Dense(3)),
                             L.Bidirectional(L.LSTM(3, return_sequences=True)),
                             L.Bidirectional(L.GRU(2), merge_mode="sum"), L.Dense(2)])


def sequences():
    return keras.Sequential([L.Input((12, 4)), L.Conv1D(3, 3, padding="causal", dilation_rate=2),
                             L.SeparableConv1D(4, 3), L.ZeroPadding1D(1), L.DepthwiseConv1D(3),
                             L.Conv1DTranspose(2, 3), L.Flatten(), L.Dense(2)])


def volumes():
    return keras.Sequential([L.Input((6, 6, 6, 2)), L.Conv3D(3, 2), L.ZeroPadding3D(1),
                             L.Conv3DTranspose(2, 2), L.PReLU(), L.GroupNormalization(2),
                             L.RMSNormalization(), L.Flatten(), L.Dense(2)])


def frames():
    return keras.Sequential([L.Input((3, 6, 6, 2)), L.ConvLSTM2D(3, 2, return_sequences=True),
                             L.TimeDistributed(L.Conv2D(2, 2)), L.ConvLSTM2D(2, 2), L.Flatten(),
                             L.Dense(2)])


def unused_input():
    a, b = L.Input((6,)), L.Input((4,))
    return keras.Model([a, b], L.Dense(2)(L.Dense(3)(a)))


def tokens():
    return L.Input((5,), dtype="int32")


def words():
    return L.Embedding(10, 4, mask_zero=True)


def masked_text():
    return keras.Sequential([tokens(), words(), L.LSTM(4, return_sequences=True), L.Dropout(0.2),
                             L.Bidirectional(L.GRU(3)), L.Dense(2)])


def masked_steps():
    return keras.Sequential([L.Input((5, 4)), L.Masking(), L.GRU(4, return_sequences=True),
                             L.BatchNormalization(), L.TimeDistributed(L.Dense(3)), L.LSTM(3),
                             L.Dense(2)])


def mask_unused():
    return keras.Sequential([L.Input((5, 4)), L.Masking(), L.Dense(3), L.Flatten(), L.Dense(2)])


def masks_merged():
    t = tokens()
    a, b = words()(t), words()(t)
    total = L.LSTM(3, return_sequences=True)(L.Add()([a, b]))
    return keras.Model(t, L.Dense(2)(L.LSTM(3)(L.Concatenate()([a, total]))))


def mask_of_one():
    t, x = tokens(), L.Input((5, 4))
    return keras.Model([t, x], L.Dense(2)(L.GRU(3)(L.Concatenate(axis=1)([words()(t), x]))))


def masked_attention():
    t = tokens()
    x = words()(t)
    y = L.Attention(use_scale=True)([L.MultiHeadAttention(2, 4)(x, x), words()(t)])
    return keras.Model(t, L.Dense(2)(L.GlobalAveragePooling1D()(L.LayerNormalization()(y))))


def masked_inner():
    t = tokens()
    inner = keras.Sequential([L.Input((5, 4)), L.GRU(3, return_sequences=True)])
    return keras.Model(t, L.Dense(2)(L.LSTM(2)(inner(words()(t)))))


def masked_twice():
    t, u = tokens(), tokens()
    table, shared = words(), L.LSTM(3)
    return keras.Model([t, u], L.Dense(2)(L.Concatenate()([shared(table(t)), shared(table(u))])))


def trained(optimizer):
    model = keras.Sequential([L.Input((4,)), L.Dense(5, activation="tanh"), L.BatchNormalization(),
                              L.Dense(1)])
    model.compile(optimizer, "mse")
    return model


def make(name):
    if name == "momentum":
        return trained(keras.optimizers.SGD(0.1, momentum=0.9))
    if name == "schedule":
        return trained(keras.optimizers.Adam(keras.optimizers.schedules.ExponentialDecay(0.1, 1, 0.5)))
    return globals()[name]() if name in globals() else trained(name)


# ---- Checks. ----

def require_close(what, ours, theirs, tolerance=1e-5):
    if ours.shape != theirs.shape:
        raise ValueError(f"{what}: {ours.shape}, not {theirs.shape}")
    error = np.max(np.abs(ours.astype(np.float64) - theirs), initial=0)
    if not error <= tolerance * max(1.0, np.max(np.abs(theirs), initial=0)):
        raise ValueError(f"{what} differs by {error:.2e}")


def load(folder, name):
    return np.load(folder / f"{name}.npy")


def inputs(folder):
    count = len(list(folder.glob("x_*.npy")))
    x = [load(folder, f"x_{i}") for i in range(count)]
    return x[0] if count == 1 else x


def predict(model, x):
    return np.asarray(model(x, training=False))


def check_ours(folder, case):
    """TensorFlow restores what we saved, and runs the graph that we exported."""
    model = make(folder.name)
    if case["trains"]:
        model.optimizer.build(model.trainable_variables)
    status = tf.train.Checkpoint(model=model).restore(str(folder / "ours"))
    status.assert_consumed()
    for i, weight in enumerate(model.get_weights()):
        if not np.array_equal(weight, load(folder, f"weight_{i}")):
            raise ValueError(f"weight {i} was not restored")
    x, y = inputs(folder), load(folder, "y")
    require_close("the output of TensorFlow with our weights", predict(model, x), y)
    if case["trains"]:
        model.train_on_batch(x, TARGETS)
        require_close("the output after one more step in TensorFlow", predict(model, x),
                      load(folder, "y_after"))
    run_graph(folder, case, x, y)


def run_graph(folder, case, x, y):
    graph_def = v1.GraphDef.FromString((folder / "graph.pb").read_bytes())
    feeds = dict(zip(case["inputs"], x if isinstance(x, list) else [x]))
    with tf.Graph().as_default() as graph, v1.Session() as session:
        tf.import_graph_def(graph_def, name="")
        for name in case["inputs"]:
            if graph.get_tensor_by_name(name).shape[0] is not None:
                raise ValueError(f"the batch size of {name} is fixed")
        require_close("the exported graph", session.run(case["outputs"], feeds)[0], y)
        fewer = session.run(case["outputs"], {name: value[:1] for name, value in feeds.items()})[0]
        require_close("the exported graph with one example", fewer, y[:1])


def write_theirs(folder, case):
    keras.utils.set_random_seed(3)
    model = make(folder.name)
    model.set_weights([w + np.random.uniform(size=w.shape).astype(w.dtype) for w in model.get_weights()])
    x = inputs(folder)
    if case["trains"]:
        for _ in range(3):
            model.train_on_batch(x, TARGETS)
    tf.train.Checkpoint(model=model).write(str(folder / "theirs"))
    weights, y = model.get_weights(), predict(model, x)
    if case["trains"]:
        model.train_on_batch(x, TARGETS)
    return weights, y, predict(model, x)


def keys(path):
    return sorted((key, tuple(shape)) for key, shape in tf.train.list_variables(str(path))
                  if key != "_CHECKPOINTABLE_OBJECT_GRAPH" and not key.startswith("save_counter"))


def check_theirs(folder, case, written):
    weights, y, y_after = written
    for i, weight in enumerate(weights):
        if not np.array_equal(weight, load(folder, f"loaded_weight_{i}")):
            raise ValueError(f"weight {i} of TensorFlow's was not loaded")
    require_close("our output with TensorFlow's weights", load(folder, "loaded_y"), y)
    if case["trains"]:
        require_close("our output after one more step", load(folder, "loaded_y_after"), y_after)
    elif keys(folder / "ours") != keys(folder / "theirs"):
        raise ValueError(f"we save {keys(folder / 'ours')}, TensorFlow {keys(folder / 'theirs')}")


def main():
    program, root = sys.argv[1], pathlib.Path(sys.argv[2])
    folders = sorted(path.parent for path in root.glob("*/case.json"))
    failed, written = {}, {}

    def attempt(folder, action):
        try:
            return action(folder, json.loads((folder / "case.json").read_text()))
        except Exception as error:  # whatever TensorFlow raises is a failed case
            failed.setdefault(folder, f"{type(error).__name__}: {str(error)[:1500]}")

    for folder in folders:
        attempt(folder, check_ours)
        written[folder] = attempt(folder, write_theirs)
    loaded = subprocess.run([program, "load", root], capture_output=True, text=True)
    for folder in folders:
        if written[folder]:
            attempt(folder, lambda f, case: check_theirs(f, case, written[f]))
        print(f"FAILED  {folder.name}: {failed[folder]}" if folder in failed else f"ok      {folder.name}")
    print(loaded.stderr, end="")
    if len(sys.argv) > 3:
        with open(sys.argv[3], "a", encoding="utf-8") as file:
            file.write(f"{len(folders)} {len(failed)}\n")
    return 1 if failed or loaded.returncode != 0 or not folders else 0


if __name__ == "__main__":
    sys.exit(main())
