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
    w = tf.Variable(tf.ones([3, 2]))
    adam = v1.train.AdamOptimizer(0.1)
    adam.minimize(lambda: tf.reduce_sum(w * tf.reshape(tf.range(6.0), [3, 2])), var_list=[w])
    tf.train.Checkpoint(w=w, optimizer=adam).write(str(theirs / "slots"))
    slots = {"momentum": adam.get_slot(w, "m").numpy(), "velocity": adam.get_slot(w, "v").numpy()}
    return objects.values(), slots


def main():
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    read_ours(folder)
    expected, slots = write_theirs(folder)
    subprocess.run([program, "load", folder], check=True)
    loaded = json.loads((folder / "loaded.json").read_text())
    for name in ("plain", "sharded", "managed", "with_iterator"):
        compare(f"theirs/{name}", loaded[name], expected)
    check("theirs/latest", os.path.basename(loaded["latest"]), "ckpt-3")
    check("theirs/listed", len(loaded["listed"]), 2)
    check("theirs/named", loaded["named"], [5.0, 6.0, 7.0])
    for slot, value in slots.items():
        check(f"theirs/slots/{slot}", loaded["slots"][slot], value)
    failed = sum(not good for _, good in cases)
    print(f"object checkpoints: {len(cases)} cases, {failed} failed")
    if len(sys.argv) > 3:
        with open(sys.argv[3], "a") as report:
            report.write(f"{len(cases)} {failed}\n")
    return 1 if failed else 0


sys.exit(main())
