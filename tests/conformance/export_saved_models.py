"""Writes SavedModels of the real TensorFlow, each with calls and what they return: export_saved_models.py OUT [NAME...]

calls.json beside a model lists what to call and train; check_saved_models.py and saved_models.cpp read it.
"""

import json
import pathlib
import sys

from exporting import CASES, case, floats, np, spread, tf, v1

import keras


class Calls:
    """The calls of a model, as they are written to calls.json."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.model = str(folder / "model")
        self.description = {"calls": []}
        self.count = 0

    def file(self, value):
        value = np.asarray(value)
        if value.dtype == object:
            value = value.astype("S")
        name = f"value_{self.count}.npy"
        self.count += 1
        np.save(self.folder / name, value)
        return name

    def value(self, value):
        if isinstance(value, tf.RaggedTensor):
            parts = [value.flat_values, *value.nested_row_splits]
            return {"ragged": [self.file(part.numpy()) for part in parts]}
        if isinstance(value, (tf.Tensor, np.ndarray)):
            return {"tensor": self.file(value)}
        if isinstance(value, dict):
            return {"dict": {key: self.value(item) for key, item in value.items()}}
        if isinstance(value, (list, tuple)):
            return {"list": [self.value(item) for item in value]}
        return value

    def expected(self, result):
        flat = tf.nest.flatten(result, expand_composites=True)
        return [self.file(item.numpy()) for item in flat]

    def call(self, function, name, *args, **kwargs):
        """Of an attribute of the module; `function` is what gives the results."""
        self.description["calls"].append({
            "function": name, "args": [self.value(a) for a in args],
            "kwargs": {key: self.value(v) for key, v in kwargs.items()},
            "expected": self.expected(function(*args, **kwargs))})

    def signature(self, name, feeds, results):
        self.description["calls"].append({
            "signature": name, "kwargs": {key: self.value(v) for key, v in feeds.items()},
            "results": {key: self.file(value) for key, value in results.items()}})

    def train(self, function, name, variables, *args, lr=0.1, steps=3):
        """Steps of gradient descent on what the function returns; the losses are compared."""
        losses = []
        for _ in range(steps):
            with tf.GradientTape() as tape:
                loss = function(*args)
            losses.append(float(loss))
            for variable, gradient in zip(variables, tape.gradient(loss, variables)):
                if gradient is not None:
                    variable.assign_sub(lr * gradient)
        self.description["train"] = {"function": name, "args": [self.value(a) for a in args],
                                     "lr": lr, "losses": losses}

    def write(self, **more):
        self.description.update(more)
        (self.folder / "calls.json").write_text(json.dumps(self.description, indent=1))


def of_keras(calls, model, *inputs, structure=None):
    spread(model)
    model.export(calls.model, verbose=False)
    loaded = tf.saved_model.load(calls.model)
    given = structure(inputs) if structure else inputs[0] if len(inputs) == 1 else list(inputs)
    calls.call(loaded.serve, "serve", given)
    names = [tensor.name for tensor in model.inputs]
    results = loaded.signatures["serving_default"](
        **{name: tf.constant(value) for name, value in zip(names, inputs)})
    calls.signature("serving_default", dict(zip(names, inputs)),
                    {key: value.numpy() for key, value in results.items()})
    calls.write()


@case
def keras_dense(calls):
    of_keras(calls, keras.Sequential([keras.Input((4,)), keras.layers.Dense(8, activation="relu"),
                                      keras.layers.Dense(3, activation="softmax")]), floats(5, 4))


@case
def keras_cnn(calls):
    of_keras(calls, keras.Sequential([
        keras.Input((12, 12, 3)), keras.layers.Conv2D(8, 3, activation="relu"),
        keras.layers.BatchNormalization(), keras.layers.MaxPooling2D(),
        keras.layers.Flatten(), keras.layers.Dropout(0.5), keras.layers.Dense(10)]), floats(2, 12, 12, 3))


@case
def keras_lstm(calls):
    of_keras(calls, keras.Sequential([
        keras.Input((7, 5)), keras.layers.Bidirectional(keras.layers.LSTM(6, return_sequences=True)),
        keras.layers.GRU(4), keras.layers.Dense(2)]), floats(3, 7, 5))


@case
def keras_text(calls):
    vectorize = keras.layers.TextVectorization(output_sequence_length=6)
    vectorize.adapt(["the quick brown fox", "jumps over the lazy dog"])
    of_keras(calls, keras.Sequential([
        keras.Input((1,), dtype="string"), vectorize, keras.layers.Embedding(20, 4),
        keras.layers.GlobalAveragePooling1D(), keras.layers.Dense(2)]),
        np.array([["the lazy fox"], ["a quick dog jumps high"]]))


@case
def keras_lookup(calls):
    strings = keras.Input((3,), dtype="string", name="words")
    numbers = keras.Input((3,), dtype="int64", name="numbers")
    x = keras.layers.StringLookup(vocabulary=["a", "b", "c"], num_oov_indices=2)(strings)
    y = keras.layers.IntegerLookup(vocabulary=[3, 5, 8])(numbers)
    x = keras.layers.Embedding(8, 2)(x)
    y = keras.layers.Embedding(8, 2)(y)
    of_keras(calls, keras.Model([strings, numbers], keras.layers.Concatenate()([x, y])),
             np.array([["a", "b", "zz"], ["c", "q", "a"]]), np.array([[3, 5, 1], [8, 9, 3]]))


@case
def keras_several(calls):
    a, b = keras.Input((4,), name="a"), keras.Input((3,), name="b")
    y = keras.layers.Dense(2)(a)
    z = keras.layers.Dense(2)(keras.layers.Concatenate()([a, b]))
    of_keras(calls, keras.Model([a, b], [y, z]), floats(2, 4), floats(2, 3, seed=1))


@case
def keras_named(calls):
    a, b = keras.Input((4,), name="a"), keras.Input((3,), name="b")
    y = keras.layers.Dense(2)(keras.layers.Concatenate()([a, b]))
    of_keras(calls, keras.Model({"a": a, "b": b}, {"y": y, "z": y * 2}), floats(2, 4),
             floats(2, 3, seed=1), structure=lambda inputs: {"a": inputs[0], "b": inputs[1]})


@case
def keras_attention(calls):
    x = keras.Input((6, 8))
    y = keras.layers.MultiHeadAttention(2, 4)(x, x)
    y = keras.layers.LayerNormalization()(x + y)
    of_keras(calls, keras.Model(x, keras.layers.Dense(3)(y)), floats(2, 6, 8))


@case
def keras_mobilenet(calls):
    of_keras(calls, keras.applications.MobileNetV2((64, 64, 3), alpha=0.35, weights=None, classes=10),
             floats(2, 64, 64, 3))


@case
def keras_resnet(calls):
    of_keras(calls, keras.applications.ResNet50(weights=None, input_shape=(64, 64, 3), classes=10),
             floats(1, 64, 64, 3))


class Everything(tf.Module):
    def __init__(self, vocabulary):
        super().__init__()
        self.w = tf.Variable([1., 2., 3.], name="w")
        self.constant = tf.constant([5., 6., 7.] * 200)
        self.asset = tf.saved_model.Asset(vocabulary)
        self.words = tf.lookup.StaticHashTable(tf.lookup.TextFileInitializer(
            self.asset.asset_path, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64,
            tf.lookup.TextFileIndex.LINE_NUMBER), -1)
        self.numbers = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(
            tf.constant(["x", "y"]), tf.constant([3, 4], tf.int64)), -1)
        self.changing = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)
        self.changing.insert(["q"], [9])
        self.layers = [tf.Variable(1.), {"k": tf.Variable(2., trainable=False)}]

    @tf.function
    def f(self, x, training=False, scale=2.0):
        rest = (x + 1. if training else x, [tf.reduce_sum(x) + self.constant[0]])
        return {"y": x * self.w * scale, "rest": rest, "extra": self.layers[0] + self.layers[1]["k"]}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def look(self, words):
        return self.words.lookup(words) + self.numbers.lookup(words) + self.changing.lookup(words)

    @tf.function(input_signature=[tf.RaggedTensorSpec([None, None], tf.float32)])
    def ragged(self, rows):
        return rows * 2., tf.reduce_sum(rows, 1)

    @tf.function(input_signature=[{"a": tf.TensorSpec([None]), "b": (tf.TensorSpec([]), tf.TensorSpec([2], tf.int32))}])
    def nested(self, tree):
        return tree["a"] * tree["b"][0], tree["b"][1]

    @tf.function(input_signature=[tf.TensorSpec([], tf.string)])
    def read(self, suffix):
        return tf.io.read_file(self.asset.asset_path) + suffix

    @tf.function(input_signature=[tf.TensorSpec([None])])
    def loop(self, x):
        total = tf.zeros([])
        for i in tf.range(tf.shape(x)[0]):
            total += tf.cond(x[i] > 0, lambda: x[i], lambda: -2. * x[i])
        return total


@case
def module(calls):
    vocabulary = calls.folder / "vocabulary.txt"
    vocabulary.write_text("a\nb\nc\n")
    m = Everything(str(vocabulary))
    x = tf.constant([1., 2., 4.])
    calls.call(m.f, "f", x)
    calls.call(m.f, "f", x, training=True)
    calls.call(m.f, "f", x, scale=tf.constant(3.))
    words = tf.constant(["a", "c", "x", "q", "nothing"])
    calls.call(m.look, "look", words)
    calls.call(m.ragged, "ragged", tf.ragged.constant([[1., 2.], [], [3., 4., 5.]]))
    calls.call(m.nested, "nested", {"a": tf.constant([1., 2.]), "b": (tf.constant(3.), tf.constant([4, 5]))})
    calls.call(m.read, "read", tf.constant("!"))
    calls.call(m.loop, "loop", tf.constant([1., -2., 3.]))
    tf.saved_model.save(m, calls.model, signatures={"serving_default": m.look, "ragged": m.ragged, "loop": m.loop})
    loaded = tf.saved_model.load(calls.model)
    for name, feeds in (("serving_default", {"words": words}), ("loop", {"x": x})):
        results = loaded.signatures[name](**feeds)
        calls.signature(name, feeds, {key: value.numpy() for key, value in results.items()})
    calls.write(variables=["w", "layers.0", "layers.1.k"], vocabulary="a\nb\nc\n")


class Custom(tf.Module):
    def __init__(self):
        super().__init__()
        self.w = tf.Variable([0.5, -0.25], name="w")
        self.b = tf.Variable(0.1, name="b")

    @tf.function(input_signature=[tf.TensorSpec([None, 2])])
    def loss(self, x):
        @tf.custom_gradient
        def odd(z):
            e = tf.exp(z)
            def gradient(dy):
                return dy * e * 0.5 / (1 + e)  # half of what follows from the body
            return tf.math.log(1 + e), gradient
        return tf.reduce_sum(odd(tf.linalg.matvec(x, self.w) + self.b))


@case
def custom_gradient(calls):
    m = Custom()
    x = tf.constant(floats(3, 2))
    tf.saved_model.save(m, calls.model, options=tf.saved_model.SaveOptions(experimental_custom_gradients=True))
    calls.call(m.loss, "loss", x)
    calls.train(m.loss, "loss", [m.w, m.b], x)
    calls.write()


@case
def several_tags(calls):
    m = tf.Module()
    m.v = tf.Variable(3.)
    m.f = tf.function(lambda x: x * m.v, input_signature=[tf.TensorSpec([])])
    tf.saved_model.save(m, calls.model)
    calls.call(m.f, "f", tf.constant(2.))
    calls.write(tags=["serve"])


def build_v1(calls, references):
    with tf.Graph().as_default() as graph, v1.Session() as session:
        x = v1.placeholder(tf.float32, [None, 2], name="x")
        words = v1.placeholder(tf.string, [None], name="words")
        vocabulary = calls.folder / "vocabulary.txt"
        vocabulary.write_text("red\ngreen\n")
        asset = tf.constant(str(vocabulary))
        v1.add_to_collection(v1.GraphKeys.ASSET_FILEPATHS, asset)
        table = tf.lookup.StaticHashTable(tf.lookup.TextFileInitializer(
            asset, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64,
            tf.lookup.TextFileIndex.LINE_NUMBER), -1)
        v1.add_to_collection(v1.GraphKeys.TABLE_INITIALIZERS, table._initializer and table._init_op)
        w = v1.get_variable("scope/w", initializer=[[1., 2.], [3., 4.]], use_resource=not references)
        step = v1.get_variable("step", initializer=7, trainable=False, use_resource=not references)
        y = tf.identity(x @ w + tf.cast(step, tf.float32), name="y")
        ids = tf.identity(table.lookup(words), name="ids")
        loss = tf.reduce_sum(y * y, name="loss")
        session.run([v1.global_variables_initializer(), v1.tables_initializer()])
        session.run(v1.assign_add(w, [[.5, .5], [.5, .5]]))
        info = v1.saved_model.build_tensor_info
        signatures = {
            "serving_default": v1.saved_model.signature_def_utils.build_signature_def(
                {"x": info(x)}, {"y": info(y)}, "tensorflow/serving/predict"),
            "words": v1.saved_model.signature_def_utils.build_signature_def(
                {"words": info(words)}, {"ids": info(ids)}, "tensorflow/serving/predict"),
            "loss": v1.saved_model.signature_def_utils.build_signature_def(
                {"x": info(x)}, {"loss": info(loss)}, "tensorflow/serving/predict")}
        builder = v1.saved_model.Builder(calls.model)
        how = {"signature_def_map": signatures, "main_op": v1.tables_initializer(),
               "assets_collection": v1.get_collection(v1.GraphKeys.ASSET_FILEPATHS)}
        builder.add_meta_graph_and_variables(session, ["serve"], **how)
        del how["main_op"]  # the graph has it already
        builder.add_meta_graph(["serve", "gpu"], **how)
        builder.save()
        given = floats(3, 2)
        calls.signature("serving_default", {"x": given}, {"y": session.run(y, {x: given})})
        given_words = np.array(["green", "blue", "red"])
        calls.signature("words", {"words": given_words}, {"ids": session.run(ids, {words: given_words})})
        if not references:
            losses = []
            gradient = tf.gradients(loss, w)[0]
            update = v1.assign_sub(w, 0.01 * gradient)
            for _ in range(3):
                losses.append(float(session.run(loss, {x: given})))
                session.run(update, {x: given})
            calls.description["train"] = {"signature": "loss", "result": "loss",
                                          "kwargs": {"x": calls.value(given)}, "lr": 0.01,
                                          "losses": losses}
    calls.write(tags=["serve", "gpu"], v1=True)


@case
def tensorflow_1(calls):
    build_v1(calls, references=False)


@case
def tensorflow_1_references(calls):
    build_v1(calls, references=True)


def main():
    out = pathlib.Path(sys.argv[1])
    for name in sys.argv[2:] or CASES:
        CASES[name](Calls(out / name))


if __name__ == "__main__":
    main()
