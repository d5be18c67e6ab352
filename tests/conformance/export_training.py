"""Cases of training as TensorFlow 1 has it: gradients and every optimizer."""

import numpy as np
import tensorflow as tf

from exporting import case, floats, v1


def train_network(writer, optimizer, use_resource):
    """A small CNN with batch normalisation, three steps."""
    rng = np.random.default_rng(0)
    graph = tf.Graph()
    with graph.as_default():
        def variable(name, *shape):
            return v1.get_variable(name, initializer=0.2 * rng.standard_normal(shape).astype("f"),
                                   use_resource=use_resource)

        x = v1.placeholder(tf.float32, [None, 12, 12, 2], name="x")
        labels = v1.placeholder(tf.int32, [None], name="labels")
        net = tf.nn.conv2d(x, variable("kernel", 3, 3, 2, 8), 1, "SAME")
        net = v1.nn.fused_batch_norm(net, 1.0 + variable("scale", 8), variable("offset", 8))[0]
        net = tf.nn.max_pool2d(tf.nn.relu(net), 2, 2, "VALID")
        net = tf.matmul(tf.reshape(net, [-1, 6 * 6 * 8]), variable("dense", 6 * 6 * 8, 5))
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(
            labels=labels, logits=net + variable("bias", 5)), name="loss")
        optimizer().minimize(loss, name="train")
        v1.global_variables_initializer()
    feeds = {"x:0": floats(4, 12, 12, 2), "labels:0": np.array([0, 3, 1, 4], np.int32)}
    with v1.Session(graph=graph) as session:
        session.run("init")
        losses = [session.run(["loss:0", "train"], feeds)[0] for _ in range(3)]
    writer.write(graph.as_graph_def(), feeds, {"loss:0": np.stack(losses)}, inits=["init"],
                 targets=["train"], steps=3, tolerance=5e-4)


@case
def adam_on_resources(writer):
    train_network(writer, lambda: v1.train.AdamOptimizer(0.01), True)


@case
def adam_on_references(writer):
    train_network(writer, lambda: v1.train.AdamOptimizer(0.01), False)


@case
def momentum_on_references(writer):
    train_network(writer, lambda: v1.train.MomentumOptimizer(0.05, 0.9), False)


def every_optimizer(step):
    train = v1.train
    return {
        "gradient_descent": train.GradientDescentOptimizer(0.1),
        "momentum": train.MomentumOptimizer(0.1, 0.9),
        "nesterov": train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
        "adam": train.AdamOptimizer(0.01),
        "adagrad": train.AdagradOptimizer(0.1),
        "adagrad_da": train.AdagradDAOptimizer(0.1, step, l1_regularization_strength=0.01,
                                               l2_regularization_strength=0.01),
        "adadelta": train.AdadeltaOptimizer(1.0),
        "rmsprop": train.RMSPropOptimizer(0.01, momentum=0.5),
        "centered": train.RMSPropOptimizer(0.01, momentum=0.5, centered=True),
        "ftrl": train.FtrlOptimizer(0.1, l1_regularization_strength=0.01,
                                    l2_regularization_strength=0.01),
        "ftrl_shrinkage": train.FtrlOptimizer(0.1, l2_shrinkage_regularization_strength=0.01),
        "proximal_descent": train.ProximalGradientDescentOptimizer(0.1, 0.01, 0.01),
        "proximal_adagrad": train.ProximalAdagradOptimizer(
            0.1, l1_regularization_strength=0.01, l2_regularization_strength=0.01)}


def train_with_every_optimizer(writer, use_resource):
    """Three steps, each optimizer with variables of its own: one dense, one looked up in."""
    graph = tf.Graph()
    losses, trains = [], []
    with graph.as_default():
        ids = v1.placeholder(tf.int32, [None], name="ids")
        y = v1.placeholder(tf.float32, [None, 2], name="y")
        step = v1.train.get_or_create_global_step()
        for name, optimizer in every_optimizer(step).items():
            with v1.variable_scope(name, use_resource=use_resource):
                table = v1.get_variable("table", initializer=floats(6, 3))
                w = v1.get_variable("w", initializer=floats(3, 2, seed=4))
                found = tf.nn.embedding_lookup(table, ids)
                loss = tf.reduce_mean(tf.square(tf.matmul(found, w) - y))
                losses.append(loss.name)
                trains.append(optimizer.minimize(loss).name)
        with tf.control_dependencies([graph.get_operation_by_name(name) for name in trains]):
            tf.group(v1.assign_add(step, 1), name="train_all")
        v1.global_variables_initializer()
        v1.train.Saver()
    feeds = {"ids:0": np.array([1, 3, 1, 5], np.int32), "y:0": floats(4, 2)}
    with v1.Session(graph=graph) as session:
        session.run("init")
        seen = [session.run([losses, "train_all"], feeds)[0] for _ in range(3)]
    expected = {name: np.stack([row[i] for row in seen]) for i, name in enumerate(losses)}
    writer.write(graph.as_graph_def(), feeds, expected, inits=["init"], targets=["train_all"], steps=3,
                 tolerance=5e-4)


@case
def optimizers_on_resources(writer):
    train_with_every_optimizer(writer, True)


@case
def optimizers_on_references(writer):
    train_with_every_optimizer(writer, False)


def train_in_step_with_replicas(writer, optimizer, use_resource):
    """Three steps of a chief that is the only worker: the gradients of a dense variable and of one that is
    looked up in go through accumulators, and a token lets the worker go on."""
    graph = tf.Graph()
    with graph.as_default(), v1.variable_scope("", use_resource=use_resource):
        ids = v1.placeholder(tf.int32, [None], name="ids")
        y = v1.placeholder(tf.float32, [None, 2], name="y")
        step = v1.get_variable("global_step", initializer=np.int64(7), trainable=False)
        table = v1.get_variable("table", initializer=floats(6, 3))
        w = v1.get_variable("w", initializer=floats(3, 2, seed=4))
        found = tf.nn.embedding_lookup(table, ids)
        loss = tf.reduce_mean(tf.square(tf.matmul(found, w) - y), name="loss")
        replicas = v1.train.SyncReplicasOptimizer(optimizer(), replicas_to_aggregate=1,
                                                  total_num_replicas=1)
        train = replicas.minimize(loss, global_step=step)
        chief, = replicas.get_chief_queue_runner().enqueue_ops
        inits = [v1.global_variables_initializer(), v1.local_variables_initializer(),
                 replicas.chief_init_op, replicas.get_init_tokens_op(0)]
        with tf.control_dependencies([train, chief]):
            tf.add(step, 0, name="step")
    feeds = {"ids:0": np.array([1, 3, 1, 5], np.int32), "y:0": floats(4, 2)}
    fetches = ["loss:0", "step:0"]
    with v1.Session(graph=graph) as session:
        for init in inits:
            session.run(init)
        seen = [session.run(fetches, feeds) for _ in range(3)]
    expected = {name: np.stack([row[i] for row in seen]) for i, name in enumerate(fetches)}
    writer.write(graph.as_graph_def(), feeds, expected, inits=[init.name for init in inits], steps=3,
                 tolerance=5e-4)


@case
def sync_replicas_on_resources(writer):
    train_in_step_with_replicas(writer, lambda: v1.train.AdamOptimizer(0.01), True)


@case
def sync_replicas_on_references(writer):
    train_in_step_with_replicas(writer, lambda: v1.train.GradientDescentOptimizer(0.1), False)
