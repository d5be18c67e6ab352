"""Loads SavedModels with the real TensorFlow, calls and trains them as calls.json says, and saves them again:
check_saved_models.py FOLDER...
"""

import json
import os
import pathlib
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf


def compare(what, ours, theirs):
    ours = np.asarray(ours)
    if ours.dtype == object or ours.dtype.kind == "S":
        ours, theirs = ours.astype("S"), theirs.astype("S")
    if ours.dtype.kind in "OS" or ours.dtype.kind not in "fc":
        if not np.array_equal(ours, theirs):
            raise ValueError(f"{what} is {ours}, not {theirs}")
        return
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        raise ValueError(f"{what} is {ours.dtype}{ours.shape}, not {theirs.dtype}{theirs.shape}")
    if not np.allclose(ours, theirs, rtol=1e-4, atol=1e-4 * (np.abs(theirs).max(initial=0) or 1)):
        raise ValueError(f"{what} differs by {np.abs(ours - theirs).max()}")


class Case:
    def __init__(self, folder):
        self.folder = folder
        self.description = json.loads((folder / "calls.json").read_text())
        self.values = pathlib.Path(self.description.get("values", folder))

    def read(self, file):
        return np.load(self.values / file)

    def value(self, value):
        if not isinstance(value, dict):
            return value
        if "tensor" in value:
            return tf.constant(self.read(value["tensor"]))
        if "ragged" in value:
            flat, *splits = [self.read(file) for file in value["ragged"]]
            return tf.RaggedTensor.from_nested_row_splits(flat, splits)
        if "list" in value:
            return [self.value(item) for item in value["list"]]
        return {key: self.value(item) for key, item in value["dict"].items()}

    def call(self, model, call):
        if "signature" in call:
            feeds = {key: self.value(item) for key, item in call["kwargs"].items()}
            results = model.signatures[call["signature"]](**feeds)
            for key, file in call["results"].items():
                compare(f"{call['signature']} -> {key}", results[key].numpy(), self.read(file))
            return
        function = model
        for name in call["function"].split("."):
            function = getattr(function, name)
        args = [self.value(arg) for arg in call["args"]]
        if call["function"] == "nested":  # calls.json does not keep tuples
            args[0]["b"] = tuple(args[0]["b"])
        result = function(*args, **{key: self.value(item) for key, item in call["kwargs"].items()})
        flat = tf.nest.flatten(result, expand_composites=True)
        if len(flat) != len(call["expected"]):
            raise ValueError(f"{call['function']} returns {len(flat)} tensors")
        for i, (tensor, file) in enumerate(zip(flat, call["expected"])):
            compare(f"{call['function']} {i}", tensor.numpy(), self.read(file))

    def train(self, model, how):
        variables = list(all_variables(model))
        for expected in how["losses"]:
            with tf.GradientTape() as tape:
                if "signature" in how:
                    feeds = {key: self.value(item) for key, item in how["kwargs"].items()}
                    loss = model.signatures[how["signature"]](**feeds)[how["result"]]
                else:
                    function = model
                    for name in how["function"].split("."):
                        function = getattr(function, name)
                    loss = function(*[self.value(arg) for arg in how["args"]])
            compare("the loss", loss.numpy(), np.float32(expected))
            for variable, gradient in zip(variables, tape.gradient(loss, variables)):
                if gradient is not None:
                    variable.assign_sub(how["lr"] * gradient)

    def check(self):
        path = str(self.folder / "model")
        tags = self.description.get("tags")
        model = tf.saved_model.load(path, tags=tags)
        for call in self.description["calls"]:
            self.call(model, call)
        for name in self.description.get("variables", []):
            self.variable(model, name)
        tf.saved_model.experimental.read_fingerprint(path)
        with tempfile.TemporaryDirectory() as again:
            options = tf.saved_model.SaveOptions(experimental_custom_gradients=True)
            tf.saved_model.save(model, again, signatures=dict(model.signatures), options=options)
            tf.saved_model.load(again)
        if "train" in self.description:
            self.train(model, self.description["train"])
        if "keras" in self.description:
            self.as_layer(path)
        self.as_graph(path)

    @staticmethod
    def variable(model, path):
        for name in path.split("."):
            model = model[int(name)] if name.isdigit() else model[name] if isinstance(model, dict) else getattr(model, name)
        return model.numpy()

    def as_layer(self, path):
        import keras

        layer = keras.layers.TFSMLayer(path, call_endpoint="serve")
        result = layer(self.value(self.description["keras"]))
        result = result[0] if isinstance(result, (list, tuple)) else result
        compare("TFSMLayer", result.numpy(), self.read(self.description["keras_expected"]))

    def as_graph(self, path):
        """As TensorFlow 1 and servers load it."""
        v1 = tf.compat.v1
        with tf.Graph().as_default(), v1.Session() as session:
            meta = v1.saved_model.load(session, self.description.get("tags", ["serve"]), path)
            for call in self.description["calls"]:
                if "signature" not in call:
                    continue
                signature = meta.signature_def[call["signature"]]
                feeds = {signature.inputs[key].name: self.read(item["tensor"])
                         for key, item in call["kwargs"].items()}
                for key, file in call["results"].items():
                    value = session.run(signature.outputs[key].name, feeds)
                    compare(f"graph: {call['signature']} -> {key}", value, self.read(file))


def all_variables(model):
    """Trainable ones below an object, each once."""
    view = tf.train.Checkpoint(model=model)
    seen = set()
    from tensorflow.python.checkpoint.graph_view import ObjectGraphView

    for part in ObjectGraphView(view).breadth_first_traversal()[0]:
        if isinstance(part, tf.Variable) and part.trainable and id(part) not in seen:
            seen.add(id(part))
            yield part


def main():
    failed = 0
    for folder in map(pathlib.Path, sys.argv[1:]):
        name = f"{folder.parent.name}/{folder.name}"
        try:
            Case(folder).check()
            print(f"ok      TensorFlow loads {name}", flush=True)
        except Exception as error:  # of any kind: the next model is another test
            failed += 1
            print(f"FAILED  TensorFlow loads {name}: {type(error).__name__}: {str(error)[:1500]}", flush=True)
            if "-v" in sys.argv:
                raise
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
