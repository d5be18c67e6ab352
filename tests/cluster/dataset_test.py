"""The real TensorFlow's datasets and iterators on tasks of ours, against the same ones in the client."""

import unittest

import numpy as np
import tensorflow as tf

import servers

THERE = "/job:worker/task:0"


def values(element):
    return tf.nest.map_structure(lambda t: np.asarray(t.numpy()).tolist(), element)


def elements(dataset):
    return [values(element) for element in dataset]


class DatasetTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = servers.Cluster(servers.td_path(), worker=["tandem", "tandem"])
        tf.config.experimental_connect_to_cluster(tf.train.ClusterSpec(cls.cluster.spec),
                                                  job_name="client")

    @classmethod
    def tearDownClass(cls):
        codes = cls.cluster.stop()
        assert codes == [0, 0], codes

    def expect_equal(self, make):
        expected = elements(make())
        with tf.device(THERE):
            dataset = make()
            iterator = iter(dataset)
            seen = []
            for element in iterator:
                for part in tf.nest.flatten(element):
                    self.assertIn("/job:worker/replica:0/task:0", part.device)
                seen.append(values(element))
        self.assertEqual(seen, expected)
        self.assertGreater(len(seen), 0)

    def test_sources_and_transformations(self):
        x, y = np.arange(24, dtype=np.float32).reshape(8, 3), np.arange(8, dtype=np.int32)
        data = tf.data.Dataset
        self.expect_equal(lambda: data.range(10).batch(3).repeat(2).prefetch(1))
        self.expect_equal(lambda: data.range(2, 20, 3).skip(1).take(4).batch(2, drop_remainder=True))
        self.expect_equal(lambda: data.from_tensor_slices({"x": x, "y": y}).batch(4).cache())
        self.expect_equal(lambda: data.zip((data.range(3), data.from_tensors(x).repeat())))
        self.expect_equal(lambda: data.range(3).concatenate(data.range(5)).shard(2, 1).enumerate())
        self.expect_equal(lambda: data.from_tensor_slices(["a", "bc"]).map(tf.strings.upper))

    def test_functions_of_elements(self):
        factor = tf.constant(3, tf.int64)  # captured
        data = tf.data.Dataset
        self.expect_equal(lambda: data.range(6).map(lambda i: (i * factor, i)).filter(
            lambda a, b: b % 2 == 0))
        self.expect_equal(lambda: data.range(20).map(lambda i: i * i, num_parallel_calls=4).batch(
            5, num_parallel_calls=tf.data.AUTOTUNE))
        self.expect_equal(lambda: data.range(4).flat_map(lambda i: data.range(i)))
        self.expect_equal(lambda: data.range(4).interleave(
            lambda i: data.from_tensors(i).repeat(3), cycle_length=2, block_length=2))
        self.expect_equal(lambda: data.range(7).window(3, shift=2).flat_map(lambda w: w.batch(3)))

    def test_shuffled_elements_are_all_there(self):
        with tf.device(THERE):
            seen = [int(i) for i in tf.data.Dataset.range(100).shuffle(50, seed=3)]
        self.assertEqual(sorted(seen), list(range(100)))
        self.assertNotEqual(seen, sorted(seen))

    def test_an_iterator_ends_and_its_errors_have_tensorflows_codes(self):
        with tf.device(THERE):
            iterator = iter(tf.data.Dataset.range(2))
            self.assertEqual([int(next(iterator)), int(next(iterator))], [0, 1])
            with self.assertRaises(StopIteration):
                next(iterator)
            self.assertFalse(bool(iterator.get_next_as_optional().has_value()))
            failing = iter(tf.data.Dataset.range(2).map(
                lambda i: tf.linalg.inv(tf.zeros([2, 2]) + tf.cast(i, tf.float32) * tf.eye(2))))
            with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "not invertible"):
                next(failing)
            np.testing.assert_array_equal(next(failing), np.eye(2))  # it goes on behind it

    def test_functions_iterate_there(self):
        @tf.function
        def total(iterator, steps):
            value = tf.constant(0, tf.int64)
            for _ in tf.range(steps):
                value += next(iterator)
            return value

        @tf.function
        def whole():
            value = tf.constant(0, tf.int64)
            for i in tf.data.Dataset.range(10).map(lambda i: i * 2):
                value += i
            return value

        with tf.device(THERE):
            iterator = iter(tf.data.Dataset.range(10))
            self.assertEqual(int(total(iterator, 4)), 6)
            self.assertEqual(int(total(iterator, 6)), 39)
            self.assertEqual(int(whole()), 90)

    def test_elements_pass_from_task_to_task(self):
        with tf.device(THERE):
            iterator = iter(tf.data.Dataset.range(3))
            first = next(iterator)
        with tf.device("/job:worker/task:1"):
            self.assertEqual(int(first + 5), 5)


if __name__ == "__main__":
    unittest.main(verbosity=2)
