"""The real TensorFlow as an eager client: ops, variables and functions on tasks of ours, and of both kinds."""

import unittest

import numpy as np
import tensorflow as tf

import servers

WORKERS = ["tandem", "tandem", "tensorflow"]


class EagerTest(unittest.TestCase):
    """Task 2 is TensorFlow's, so that values and functions pass between both kinds."""

    @classmethod
    def setUpClass(cls):
        cls.cluster = servers.Cluster(servers.td_path(), worker=WORKERS)
        tf.config.experimental_connect_to_cluster(tf.train.ClusterSpec(cls.cluster.spec),
                                                  job_name="client")

    @classmethod
    def tearDownClass(cls):
        codes = cls.cluster.stop()
        assert codes[:2] == [0, 0], codes

    def test_all_devices_are_there(self):
        names = [device.name for device in tf.config.list_logical_devices("CPU")]
        for task in range(len(WORKERS)):
            self.assertIn(f"/job:worker/replica:0/task:{task}/device:CPU:0", names)

    def test_ops_run_where_they_are_asked_to(self):
        with tf.device("/job:worker/task:0"):
            a = tf.constant([1.0, 2.0])
            b = a + a
        self.assertEqual(b.device, "/job:worker/replica:0/task:0/device:CPU:0")
        for task in range(1, len(WORKERS)):  # from task to task, and back
            with tf.device(f"/job:worker/task:{task}"):
                b = b * 2.0
            self.assertEqual(b.device, f"/job:worker/replica:0/task:{task}/device:CPU:0")
        with tf.device("/job:worker/task:0"):
            b = tf.concat([b, a], 0)
        np.testing.assert_array_equal(b, [8, 16, 1, 2])

    def test_values_of_all_dtypes_and_sizes(self):
        for dtype in (tf.float16, tf.bfloat16, tf.float64, tf.int8, tf.int64, tf.uint8, tf.bool,
                      tf.complex64):
            value = tf.cast(tf.constant([0, 1, 1]), dtype)
            with tf.device("/job:worker/task:0"):
                there = tf.reverse(value, [0])
            np.testing.assert_array_equal(there, value[::-1], err_msg=dtype.name)
        with tf.device("/job:worker/task:1"):
            text = tf.strings.upper(tf.constant(["ab", ""]))
            large = tf.ones([2000, 1000]) * 3.0
        self.assertEqual(list(text.numpy()), [b"AB", b""])
        self.assertEqual(large.numpy().sum(), 6e6)

    def test_variables_stay_there(self):
        for task in range(len(WORKERS)):
            with tf.device(f"/job:worker/task:{task}"):
                v = tf.Variable([1.0, 1.0])
                v.assign_add([1.0, 2.0])
            self.assertEqual(v.device, f"/job:worker/replica:0/task:{task}/device:CPU:0")
            v.assign(v * 2.0)  # computed here, assigned there
            np.testing.assert_array_equal(v, [4, 6])

    def test_gradients_and_optimizers(self):
        with tf.device("/job:worker/task:1"):
            v = tf.Variable([1.0, -2.0])
            slot = tf.Variable([0.0, 0.0])
        losses = []
        for _ in range(5):
            with tf.GradientTape() as tape, tf.device("/job:worker/task:1"):
                loss = tf.reduce_sum(v * v)
            gradient, = tape.gradient(loss, [v])
            with tf.device("/job:worker/task:1"):
                slot.assign(0.5 * slot + gradient)
                v.assign_sub(0.1 * slot)
            losses.append(float(loss))
        self.assertLess(losses[-1], losses[0] / 2)

    def test_functions_run_remotely(self):
        @tf.function
        def power(x, n):
            y = x
            for _ in tf.range(n - 1):
                y *= x
            return tf.cond(tf.reduce_sum(y) > 0, lambda: y, lambda: -y)

        for task in range(len(WORKERS)):
            with tf.device(f"/job:worker/task:{task}"):
                np.testing.assert_array_equal(power(tf.constant([2.0, 1.0]), 3), [8, 1])
                np.testing.assert_array_equal(power(tf.constant([-2.0, 1.0]), 3), [8, -1])

    def test_functions_span_tasks(self):
        with tf.device("/job:worker/task:1"):
            v = tf.Variable([1.0, 1.0])

        @tf.function
        def step(x):
            parts = []
            for task in range(len(WORKERS)):
                with tf.device(f"/job:worker/task:{task}"):
                    x = x * 2.0
                    parts.append(tf.reduce_sum(x))
            with tf.device("/job:worker/task:1"):
                v.assign_add(x)
                total = v + x
            return total, tf.add_n(parts)

        for run in range(1, 4):
            total, parts = step(tf.constant([1.0, 2.0]))
            np.testing.assert_array_equal(v, 1 + np.float32([8, 16]) * run)
            np.testing.assert_array_equal(total, v.numpy() + [8, 16])
            self.assertEqual(parts, 6 + 12 + 24)

    def test_a_function_there_uses_a_variable_elsewhere(self):
        with tf.device("/job:worker/task:1"):
            v = tf.Variable([1.0, 2.0])

        @tf.function
        def scale(x):
            v.assign_add(x)
            return v * 10.0

        with tf.device("/job:worker/task:0"):
            np.testing.assert_array_equal(scale(tf.constant([1.0, 1.0])), [20, 30])
        np.testing.assert_array_equal(v, [2, 3])

    def test_errors_have_tensorflows_codes_and_what_follows_goes_on(self):
        with tf.device("/job:worker/task:0"):
            with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "Input is not invertible"):
                print(tf.linalg.inv(tf.zeros([2, 2])).numpy())
            np.testing.assert_array_equal(tf.constant([1.0]) + 1.0, [2])

        @tf.function
        def fails(x):
            with tf.device("/job:worker/task:1"):
                y = tf.linalg.inv(x)
            with tf.device("/job:worker/task:0"):
                return y + 1.0

        with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "Input is not invertible"):
            fails(tf.zeros([2, 2]))
        np.testing.assert_array_equal(fails(tf.eye(2)), np.eye(2) + 1)

    def test_other_resources_are_remote_too(self):
        with tf.device("/job:worker/task:0"):
            queue = tf.queue.FIFOQueue(4, [tf.float32], shapes=[[]])
            queue.enqueue(3.0)
            self.assertEqual(queue.dequeue().numpy(), 3)
            random = tf.random.normal([100])
        self.assertGreater(random.numpy().std(), 0.5)


if __name__ == "__main__":
    unittest.main(verbosity=2)
