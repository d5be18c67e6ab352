"""What `object_checkpoints save` wrote, restored by the real TensorFlow, and the reverse:
check_object_checkpoints.py PROGRAM FOLDER [REPORT]"""

import json
import os
import pathlib
import subprocess
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
cases = []


def check(name, ours, theirs, tolerance=0.0):
    """A case: values, or texts, that must agree."""
    if isinstance(theirs, str) or theirs is None:
        good = ours == theirs
    else:
        good = np.allclose(np.ravel(ours), np.ravel(theirs), rtol=tolerance, atol=tolerance)
    cases.append((name, good))
    if not good:
        print(f"{name}: {ours} and not {theirs}")


class Objects:
    """As in object_checkpoints.cpp."""

    def __init__(self):
        self.a = tf.Variable([1.0, 2.0, 3.0], name="a")
        self.list = [tf.Variable([1, 2]), tf.Variable(True)]
        self.text = tf.Variable("words")
        self.steps = tf.Variable(5, dtype=tf.int64)
        self.generator = tf.random.Generator.from_seed(7)
        self.model = tf.keras.Sequential([tf.keras.layers.Input((3,)), tf.keras.layers.Dense(2)])
        self.optimizer = tf.keras.optimizers.Adam(0.1)

    def train(self):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(self.model(tf.ones([2, 3]))))
        weights = self.model.trainable_weights
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))

    def checkpoint(self, **more):
        return tf.train.Checkpoint(nested=Holder(a=self.a, again=self.a), list=self.list,
                                   text=self.text, steps=self.steps, generator=self.generator,
                                   model=self.model, optimizer=self.optimizer, **more)

    def values(self):
        values = {"a": self.a.numpy(), "list": self.list[0].numpy(),
                  "text": self.text.numpy().decode(), "steps": self.steps.numpy(),
                  "iterations": self.optimizer.iterations.numpy(),
                  "prediction": self.model(tf.ones([2, 3])).numpy()}
        self.train()
        values["trained"] = self.model(tf.ones([2, 3])).numpy()
        values["normal"] = self.generator.normal([3]).numpy()
        values["uniform"] = self.generator.uniform([2]).numpy()
        values["integers"] = self.generator.uniform([3], 0, 100, tf.int32).numpy()
        values["truncated"] = self.generator.truncated_normal([2]).numpy()
        return values


class Holder(tf.Module):
    def __init__(self, **parts):
        super().__init__()
        for name, part in parts.items():
            setattr(self, name, part)


def compare(name, ours, theirs):
    for key, value in theirs.items():
        tolerance = 1e-5 if key in ("prediction", "trained", "normal", "truncated") else 0
        check(f"{name}/{key}", ours[key], value, tolerance)


def read_ours(folder):
    expected = json.loads((folder / "ours.json").read_text())
    ours = folder / "ours"
    managed = tf.train.latest_checkpoint(str(ours / "managed"))
    check("ours/latest", os.path.basename(managed or ""), "ckpt-3")
    for name, path in (("twice", ours / "twice"), ("sharded", ours / "sharded"),
                       ("workers", ours / "workers"), ("managed", managed)):
        objects = Objects()
        objects.optimizer.build(objects.model.trainable_weights)
        status = objects.checkpoint().restore(str(path))
        status.assert_consumed()
        compare(f"ours/{name}", expected, objects.values())
    objects = Objects()
    iterator = iter(tf.data.Dataset.range(10).batch(2))
    objects.checkpoint(iterator=iterator).restore(str(ours / "with_iterator")).expect_partial()
    check("ours/with_iterator", expected["a"], objects.a.numpy())
    manager = tf.train.CheckpointManager(objects.checkpoint(), str(ours / "managed"), 2)
    check("ours/manager", [os.path.basename(p) for p in manager.checkpoints] == ["ckpt-2", "ckpt-3"],
          True)
    manager.save(checkpoint_number=4)
    check("ours/swept", (ours / "managed/ckpt-2.index").exists(), False)
    with tf.Graph().as_default():
        a = v1.get_variable("scope/a", [3])
        with v1.Session() as session:
            v1.train.Saver([a]).restore(session, str(ours / "named"))
            check("ours/named", expected["a"], session.run(a))


def write_theirs(folder):
    theirs = folder / "theirs"
    objects = Objects()
    objects.a.assign([7.0, 8.0, 9.0])
    objects.steps.assign(11)
    objects.train()
    objects.generator.skip(20)
    checkpoint = objects.checkpoint()
    checkpoint.write(str(theirs / "plain"))
    sharding = tf.train.experimental.MaxShardSizePolicy(max_shard_size=16)
    checkpoint.write(str(theirs / "sharded"),
                     tf.train.CheckpointOptions(experimental_sharding_callback=sharding))
    manager = tf.train.CheckpointManager(checkpoint, str(theirs / "managed"), 2)
    for _ in range(3):
        manager.save()
    iterator = iter(tf.data.Dataset.range(10).batch(2))
    objects.checkpoint(iterator=iterator).write(str(theirs / "with_iterator"))
    with tf.Graph().as_default():
        a = v1.get_variable("a", initializer=tf.constant([5.0, 6.0, 7.0]))
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            v1.train.Saver([a]).save(session, str(theirs / "named"))
    return objects.values()


# ---- Optimizers before Keras 3 ----

def v1_optimizer(name):
    t = v1.train
    return {"Adam": lambda: t.AdamOptimizer(0.1, epsilon=1e-7), "Momentum": lambda: t.MomentumOptimizer(0.1, 0.9),
            "RMSProp": lambda: t.RMSPropOptimizer(0.1, epsilon=1e-6),
            "CenteredRMSProp": lambda: t.RMSPropOptimizer(0.1, momentum=0.5, epsilon=1e-6, centered=True),
            "Adagrad": lambda: t.AdagradOptimizer(0.1),
            "Adadelta": lambda: t.AdadeltaOptimizer(0.1, epsilon=1e-6),
            "Ftrl": lambda: t.FtrlOptimizer(0.1, l1_regularization_strength=0.01)}[name]()


def v2_optimizer(name):
    """What tf.keras.optimizers were in TensorFlow 2.0 to 2.10."""
    from tensorflow.python.keras.optimizer_v2 import adam, gradient_descent, rmsprop
    return {"Adam": lambda: adam.Adam(0.1), "Momentum": lambda: gradient_descent.SGD(0.1, momentum=0.9),
            "CenteredRMSProp": lambda: rmsprop.RMSprop(0.1, momentum=0.5, epsilon=1e-6, centered=True)}[name]()


V1 = ["Adam", "Momentum", "RMSProp", "CenteredRMSProp", "Adagrad", "Adadelta", "Ftrl"]
V2 = ["Adam", "Momentum", "CenteredRMSProp"]
FORMER = [f"v1_{name}" for name in V1] + [f"v2_{name}" for name in V2]


class Former:
    """A layer in a graph of TensorFlow 1, and one of its optimizers or of tf.keras' former ones."""

    def __init__(self, case):
        kind, name = case.split("_")
        with tf.Graph().as_default() as self.graph:
            with v1.variable_scope("layer"):
                self.kernel = v1.get_variable("kernel", initializer=tf.ones([3, 2]), use_resource=True)
                self.bias = v1.get_variable("bias", initializer=tf.zeros([2]), use_resource=True)
            x = tf.reshape(tf.range(6.0), [2, 3])
            loss = tf.reduce_sum(tf.square(x @ self.kernel + self.bias - 1.0))
            self.steps = v1.train.get_or_create_global_step()
            if kind == "v1":
                self.op = v1_optimizer(name).minimize(loss, self.steps)
            else:
                with v1.name_scope("training"):
                    optimizer = v2_optimizer(name)
                    self.op = optimizer.get_updates(loss, [self.kernel, self.bias])
                    self.steps = optimizer.iterations
            self.saver = v1.train.Saver()
            self.session = v1.Session()
            self.session.run(v1.global_variables_initializer())

    def train(self):
        self.session.run(self.op)

    def save(self, path):
        with self.graph.as_default():
            self.saver.save(self.session, path, write_meta_graph=False)

    def restore(self, path):
        with self.graph.as_default():
            self.saver.restore(self.session, path)

    def values(self):
        kernel, bias, steps = self.session.run([self.kernel, self.bias, self.steps])
        return {"kernel": kernel, "bias": bias, "steps": steps}


def eager_former(case, path):
    """The same in checkpoints with objects, whose optimizers have slots."""
    kind, name = case.split("_")
    kernel = tf.Variable(tf.ones([3, 2]), name="layer/kernel")
    bias = tf.Variable(tf.zeros([2]), name="layer/bias")
    optimizer = v1_optimizer(name) if kind == "v1" else v2_optimizer(name)

    def step():
        with tf.GradientTape() as tape:
            x = tf.reshape(tf.range(6.0), [2, 3])
            loss = tf.reduce_sum(tf.square(x @ kernel + bias - 1.0))
        optimizer.apply_gradients(zip(tape.gradient(loss, [kernel, bias]), [kernel, bias]))

    for _ in range(3):
        step()
    tf.train.Checkpoint(kernel=kernel, bias=bias, optimizer=optimizer).write(path)
    step()
    return {"kernel": kernel.numpy(), "bias": bias.numpy()}


def write_former(folder):
    formers, eager = {}, {}
    for case in FORMER:
        former = formers[case] = Former(case)
        for _ in range(3):
            former.train()
        former.save(str(folder / case))
        if case.startswith("v2") or case in ("v1_Adam", "v1_Momentum"):
            id = case.replace("_", "objects_", 1)
            eager[id] = eager_former(case, str(folder / id))
    return formers, eager


def compare_former(folder, loaded, formers, eager):
    def agree(name, ours, theirs):
        for key, value in theirs.items():
            check(f"former/{name}/{key}", ours[key], value, 2e-5)

    for case, former in formers.items():
        ours = loaded[case]
        agree(f"{case}/restored", ours["restored"], former.values())
        if case.startswith("v1"):
            check(f"former/{case}/left", ours["left"], [], 0)
        former.train()
        agree(f"{case}/trained", ours["trained"], former.values())
        former.train()
        further = former.values()
        agree(f"{case}/further", ours["further"], further)
        agree(f"{case}/again", ours["again"], further)
        if case.startswith("v1"):  # our file, with everything that a graph of TensorFlow 1 wants
            back = Former(case)
            back.restore(str(folder / "ours/former" / case))
            agree(f"{case}/back", ours["trained"], back.values())
            back.train()
            agree(f"{case}/back trained", ours["further"], back.values())
    for id, theirs in eager.items():
        agree(id, loaded[id]["trained"], theirs)
        check(f"former/{id}/steps", loaded[id]["restored"]["steps"],
              3 if "Adam" in id or id.startswith("v2") else 0)


def main():
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    read_ours(folder)
    expected = write_theirs(folder)
    formers, eager = write_former(folder / "theirs/former")
    subprocess.run([program, "load", folder], check=True)
    loaded = json.loads((folder / "loaded.json").read_text())
    for name in ("plain", "sharded", "managed", "with_iterator"):
        compare(f"theirs/{name}", loaded[name], expected)
    check("theirs/latest", os.path.basename(loaded["latest"]), "ckpt-3")
    check("theirs/listed", len(loaded["listed"]), 2)
    check("theirs/named", loaded["named"], [5.0, 6.0, 7.0])
    compare_former(folder, loaded["former"], formers, eager)
    failed = sum(not good for _, good in cases)
    print(f"object checkpoints: {len(cases)} cases, {failed} failed")
    if len(sys.argv) > 3:
        with open(sys.argv[3], "a") as report:
            report.write(f"{len(cases)} {failed}\n")
    return 1 if failed else 0


sys.exit(main())
