"""export_cluster.py FOLDER: the graphs of `./dev bench cluster`, one NAME.pb each, for a cluster of
one task of job ps (embedding_N: two) and some of job worker. ps_train_N.pb and embedding_N.pb are what worker
N's client runs: training as TensorFlow's guide to between-graph replication has it."""

import os
import pathlib
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tensorflow as tf

v1 = tf.compat.v1
PS, WORKER = "/job:ps/task:0", "/job:worker/task:0"
WORKERS = 8  # of ps_train: how it scales
PULLED, ROWS = 10, 2_500_000  # ten variables of 10 MB


def master_step():
    x = v1.placeholder(tf.float32, [10], name="x")
    y = v1.placeholder(tf.float32, [10], name="y")
    tf.add(x, y, name="sum")


def ps_step():
    with tf.device(PS):
        counter = v1.get_variable("counter", initializer=0.0, use_resource=True)
        v1.group(counter.initializer, name="init")
        tf.identity(counter.assign_add(1.0), name="count")


def ps_pull():
    inits, pulled = [], []
    for i in range(PULLED):
        with tf.device(PS):
            variable = v1.get_variable(f"v{i}", use_resource=True, initializer=tf.fill([ROWS], float(i)))
            inits.append(variable.initializer)
            value = variable.read_value()
        with tf.device(WORKER):
            pulled.append(tf.identity(value)[ROWS - 1])
    v1.group(*inits, name="init")
    with tf.device(WORKER):
        tf.add_n(pulled, name="sum")


def ps_train(worker):
    with v1.device(v1.train.replica_device_setter(
            ps_tasks=1, worker_device=f"/job:worker/task:{worker}")):
        v1.get_variable_scope().set_use_resource(True)
        x = v1.placeholder(tf.float32, [32, 784], name="x")
        y = v1.placeholder(tf.int32, [32], name="y")
        initial = v1.initializers.glorot_uniform
        w1 = v1.get_variable("w1", [784, 128], initializer=initial(seed=1))
        b1 = v1.get_variable("b1", [128], initializer=v1.zeros_initializer())
        w2 = v1.get_variable("w2", [128, 10], initializer=initial(seed=2))
        b2 = v1.get_variable("b2", [10], initializer=v1.zeros_initializer())
        logits = tf.nn.relu(x @ w1 + b1) @ w2 + b2
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
        loss = tf.reduce_mean(losses, name="loss")
        v1.group(v1.train.AdamOptimizer(0.001).minimize(loss), name="train")
    v1.group(v1.global_variables_initializer(), name="init")


def embedding(worker):  # sizes: bench/ours/cluster/embedding.cpp
    rows, columns = 1_000_000, 64
    with v1.device(f"/job:worker/task:{worker}"):
        v1.get_variable_scope().set_use_resource(True)
        ids = v1.placeholder(tf.int32, [1000], name="ids")
        shards = []
        for ps in range(2):
            with v1.device(f"/job:ps/task:{ps}"):
                shards.append(v1.get_variable(f"table_{ps}", initializer=tf.fill([rows // 2, columns], 0.5)))
        looked_up = v1.nn.embedding_lookup(shards, ids, partition_strategy="div")
        loss = tf.reduce_sum(tf.square(looked_up), name="loss")
        v1.group(v1.train.GradientDescentOptimizer(0.001).minimize(loss), name="train")
    v1.group(v1.global_variables_initializer(), name="init")


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True)
    graphs = {"master_step": master_step, "ps_step": ps_step, "ps_pull": ps_pull,
              **{f"ps_train_{w}": lambda w=w: ps_train(w) for w in range(WORKERS)},
              "embedding_0": lambda: embedding(0), "embedding_1": lambda: embedding(1)}
    for name, build in graphs.items():
        with tf.Graph().as_default() as graph:
            build()
        (folder / f"{name}.pb").write_bytes(graph.as_graph_def().SerializeToString())


if __name__ == "__main__":
    main()
