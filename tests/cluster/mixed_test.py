"""Clusters of several tasks, ours and TensorFlow's, with TensorFlow's client."""

import unittest

import numpy as np
import tensorflow as tf

import servers

tf1 = tf.compat.v1
tf1.disable_eager_execution()


def scenario(test, target):
    """What a session does over /job:ps/task:0 and two workers; the same on every kind of server."""
    graph = tf.Graph()
    with graph.as_default():
        with tf1.device("/job:ps/task:0"):
            v = tf1.get_variable("v", initializer=[1.0, 2.0], use_resource=True)
        with tf1.device("/job:worker/task:1"):
            a = tf1.placeholder(tf.float32, [2], name="a")
            c = tf.add(a, v, name="c")
            text = tf.strings.upper(tf1.placeholder(tf.string, [None], name="s"), name="upper")
            inverse = tf.linalg.inv(tf1.placeholder(tf.float32, [2, 2], name="m"), name="inv")
        with tf1.device("/job:worker/task:0"):
            d = tf.reduce_sum(c) + tf.reduce_sum(inverse)
        grow = v.assign_add(c)
        start = tf1.global_variables_initializer()
        chosen = tf.cond(tf.reduce_sum(c) > 0, lambda: c + v, lambda: c - v)
    with tf1.Session(target, graph=graph) as session:
        names = sorted(device.name for device in session.list_devices())
        test.assertEqual([name for name in names if name.endswith("CPU:0")],
                         ["/job:ps/replica:0/task:0/device:CPU:0",
                          "/job:worker/replica:0/task:0/device:CPU:0",
                          "/job:worker/replica:0/task:1/device:CPU:0"])
        session.run(start)
        np.testing.assert_array_equal(session.run(c, {a: [1, 2]}), [2, 4])
        np.testing.assert_array_equal(session.run(grow, {a: [1, 2]}), [3, 6])
        np.testing.assert_array_equal(session.run(v), [3, 6])
        test.assertEqual(list(session.run(text, {"s:0": ["ab", "c"]})), [b"AB", b"C"])
        test.assertEqual(session.run(d, {a: [1, 2], "m:0": np.eye(2)}), 14)
        np.testing.assert_array_equal(session.run(chosen, {a: [1, 2]}), [7, 14])
        with test.assertRaisesRegex(
                tf.errors.InvalidArgumentError,
                r"(?s)From /job:worker/replica:0/task:1:\nInput is not invertible.*\{\{node inv\}\}"):
            session.run(d, {a: [1, 2], "m:0": np.zeros((2, 2))})
        # The failure has ended one step and nothing else.
        test.assertEqual(session.run(d, {a: [1, 2], "m:0": np.eye(2)}), 14)
        test.assertEqual(session.run(d, {a: [1, 2], "m:0": np.eye(2)}), 14)


class MixedTest(unittest.TestCase):
    def test_tandem_alone(self):
        with servers.Cluster(servers.td_path(), ps=["tandem"], worker=["tandem"] * 2) as cluster:
            scenario(self, cluster.target())

    def test_a_worker_of_tensorflow_under_our_master(self):
        # Its kernels are kept by the names of nodes: steps of one session must not share them.
        with servers.Cluster(servers.td_path(), ps=["tandem"],
                             worker=["tandem", "tensorflow"]) as cluster:
            scenario(self, cluster.target())

    def test_a_parameter_server_of_tensorflow_under_our_master(self):
        with servers.Cluster(servers.td_path(), ps=["tensorflow"],
                             worker=["tandem", "tandem"]) as cluster:
            scenario(self, cluster.target())

    def test_our_tasks_under_a_master_of_tensorflow(self):
        with servers.Cluster(servers.td_path(), ps=["tandem"],
                             worker=["tensorflow", "tandem"]) as cluster:
            scenario(self, cluster.target())


if __name__ == "__main__":
    unittest.main(verbosity=2)
