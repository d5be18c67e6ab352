"""The real TensorFlow's Session as a client of one server of ours."""

import pathlib
import tempfile
import threading
import time
import unittest

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import config_pb2

import servers

tf1 = tf.compat.v1
tf1.disable_eager_execution()


class SessionTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = servers.Cluster(servers.td_path(), worker=["tandem"])
        cls.target = cls.cluster.target()

    @classmethod
    def tearDownClass(cls):
        codes = cls.cluster.stop()
        assert codes == [0], codes

    def setUp(self):
        self.graph = tf.Graph()
        with self.graph.as_default():
            self.a = tf1.placeholder(tf.float32, [2], name="a")
            self.b = tf1.placeholder(tf.float32, [2], name="b")
            self.c = tf.add(self.a, self.b, name="c")

    def session(self, **config):
        return tf1.Session(self.target, graph=self.graph,
                           config=tf1.ConfigProto(**config) if config else None)

    def test_feeds_and_fetches_of_every_dtype(self):
        with self.graph.as_default():
            pairs = []
            for dtype in (tf.float16, tf.bfloat16, tf.float32, tf.float64, tf.int8, tf.int16,
                          tf.int32, tf.int64, tf.uint8, tf.uint16, tf.uint32, tf.uint64, tf.bool,
                          tf.complex64, tf.complex128):
                fed = tf1.placeholder(dtype, [3], name="fed_" + dtype.name)
                pairs.append((fed, tf.identity(fed), np.array([0, 1, 2]).astype(dtype.as_numpy_dtype)))
            text = tf1.placeholder(tf.string, [None], name="text")
            upper = tf.strings.upper(text)
        with self.session() as session:
            values = session.run([out for _, out, _ in pairs], {fed: v for fed, _, v in pairs})
            for got, (fed, _, value) in zip(values, pairs):
                np.testing.assert_array_equal(got, value, err_msg=fed.name)
            self.assertEqual(list(session.run(upper, {text: ["ab", "cdef", ""]})),
                             [b"AB", b"CDEF", b""])
            # An inner tensor may be fed, and what it needs is not.
            with self.graph.as_default():
                d = self.c * 2.0
            np.testing.assert_array_equal(session.run(d, {self.c: [1, 2]}), [2, 4])

    def test_large_tensors_pass(self):
        with self.graph.as_default():
            big = tf1.placeholder(tf.float32, [None])
            out = big + 1.0
        with self.session() as session:
            value = np.arange(8 << 20, dtype=np.float32)  # 32 MiB
            np.testing.assert_array_equal(session.run(out, {big: value}), value + 1)

    def test_variables_are_shared_by_sessions_and_end_with_reset(self):
        with self.graph.as_default():
            v = tf1.get_variable("shared", initializer=[1.0, 2.0], use_resource=True)
            grow = v.assign_add([1.0, 1.0])
        with self.session() as one:
            one.run(v.initializer)
            one.run(grow)
        with self.session() as two:
            np.testing.assert_array_equal(two.run(v), [2, 3])
        with self.session(isolate_session_state=True) as alone:
            with self.assertRaises(tf.errors.FailedPreconditionError):
                alone.run(v)
        survivor = self.session()
        survivor.run(v)
        tf1.Session.reset(self.target)
        with self.assertRaisesRegex(tf.errors.AbortedError, "is not found"):
            survivor.run(v)
        with self.session() as three:
            with self.assertRaisesRegex(tf.errors.FailedPreconditionError, "Could not find variable"):
                three.run(v)

    def test_reference_variables(self):
        with self.graph.as_default():
            v = tf1.get_variable("ref", initializer=[1.0, 2.0], use_resource=False)
            grow = tf1.assign_add(v, self.a)
        with self.session() as session:
            with self.assertRaisesRegex(tf.errors.FailedPreconditionError,
                                        "Attempting to use uninitialized value ref"):
                session.run(v)
            session.run(v.initializer)
            session.run(grow, {self.a: [1, 1]})
            np.testing.assert_array_equal(session.run(v), [2, 3])
        tf1.Session.reset(self.target)

    def test_errors_have_tensorflows_codes_and_texts(self):
        with self.graph.as_default():
            inverse = tf.linalg.inv(tf1.placeholder(tf.float32, [2, 2], name="m"), name="inv")
        with self.session() as session:
            with self.assertRaisesRegex(
                    tf.errors.InvalidArgumentError,
                    "From /job:worker/replica:0/task:0:\nYou must feed a value for placeholder "
                    r"tensor 'b' with dtype float and shape \[2\]\n\t \[\[\{\{node b\}\}\]\]"):
                session.run(self.c, {self.a: [1, 2]})
            with self.assertRaisesRegex(tf.errors.InvalidArgumentError,
                                        r"Input is not invertible.\n\t \[\[\{\{node inv\}\}\]\]"):
                session.run(inverse, {"m:0": np.zeros((2, 2))})

    def test_placement_errors_come_with_the_graph(self):
        with self.graph.as_default(), tf1.device("/job:nope/task:3"):
            far = tf.constant(1.0, name="zz")
        with self.session() as session:
            with self.assertRaisesRegex(tf.errors.InvalidArgumentError,
                                        "Cannot assign a device for operation zz"):
                session.run(far)

    def test_the_graph_is_extended(self):
        with self.session() as session:
            np.testing.assert_array_equal(session.run(self.c, {self.a: [1, 2], self.b: [3, 4]}),
                                          [4, 6])
            with self.graph.as_default():
                d = self.c * 2.0
                loop = tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x + self.c),
                                     [0, self.c])[1]
            feed = {self.a: [1, 2], self.b: [3, 4]}
            np.testing.assert_array_equal(session.run(d, feed), [8, 12])
            np.testing.assert_array_equal(session.run(loop, feed), [16, 24])

    def test_partial_runs(self):
        with self.graph.as_default():
            d = tf.multiply(self.c, self.b, name="d")
        with self.session() as session:
            handle = session.partial_run_setup([self.c, d], [self.a, self.b])
            np.testing.assert_array_equal(
                session.partial_run(handle, self.c, {self.a: [1, 2], self.b: [3, 4]}), [4, 6])
            np.testing.assert_array_equal(session.partial_run(handle, d), [12, 24])
            handle = session.partial_run_setup([self.c], [self.a, self.b])
            with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "can't be computed"):
                session.partial_run(handle, self.c, {self.a: [1, 2]})

    def test_callables(self):
        with self.session() as session:
            call = session.make_callable(self.c, [self.a, self.b])
            np.testing.assert_array_equal(call([1, 2], [5, 6]), [6, 8])
            options = config_pb2.CallableOptions(feed=["a:0", "b:0"], fetch=["c:0"])
            raw = session._make_callable_from_options(options)
            np.testing.assert_array_equal(raw(np.float32([1, 2]), np.float32([7, 8]))[0], [8, 10])

    def test_timeouts_and_close_end_what_waits(self):
        with self.graph.as_default():
            queue = tf1.FIFOQueue(1, [tf.float32], shapes=[[]])
            taken = queue.dequeue()
        with self.session() as session:
            begin = time.monotonic()
            with self.assertRaises(tf.errors.DeadlineExceededError):
                session.run(taken, options=tf1.RunOptions(timeout_in_ms=300))
            self.assertLess(time.monotonic() - begin, 10)
            np.testing.assert_array_equal(session.run(self.c, {self.a: [1, 2], self.b: [3, 4]}),
                                          [4, 6])
        closing = self.session()
        closing.run(self.c, {self.a: [1, 2], self.b: [3, 4]})
        errors = []

        def wait():
            try:
                closing.run(taken)
            except tf.errors.OpError as error:
                errors.append(error)

        waiter = threading.Thread(target=wait)
        waiter.start()
        time.sleep(1.0)
        closing.close()
        waiter.join(30)
        self.assertEqual([type(error) for error in errors], [tf.errors.CancelledError])

    def test_full_trace_has_the_nodes(self):
        with self.session() as session:
            metadata = tf1.RunMetadata()
            session.run(self.c, {self.a: [1, 2], self.b: [3, 4]},
                        options=tf1.RunOptions(trace_level=tf1.RunOptions.FULL_TRACE,
                                               output_partition_graphs=True),
                        run_metadata=metadata)
            device, = metadata.step_stats.dev_stats
            self.assertEqual(device.device, "/job:worker/replica:0/task:0/device:CPU:0")
            self.assertIn("c", [node.node_name for node in device.node_stats])
            self.assertEqual(len(metadata.partition_graphs), 1)

    def test_training_goes_down(self):
        rng = np.random.default_rng(0)
        images = rng.normal(size=(64, 8)).astype(np.float32)
        labels = (images.sum(axis=1) > 0).astype(np.int64)
        with self.graph.as_default():
            x = tf1.placeholder(tf.float32, [None, 8])
            y = tf1.placeholder(tf.int64, [None])
            w = tf1.get_variable("w", [8, 2], use_resource=True,
                                 initializer=tf1.zeros_initializer())
            loss = tf1.losses.sparse_softmax_cross_entropy(y, tf.matmul(x, w))
            step = tf1.train.get_or_create_global_step()
            train = tf1.train.AdamOptimizer(0.1).minimize(loss, global_step=step)
            start = tf1.global_variables_initializer()
        with self.session() as session:
            session.run(start)
            feed = {x: images, y: labels}
            losses = [session.run([loss, train], feed)[0] for _ in range(30)]
            self.assertLess(losses[-1], losses[0] / 2)
            self.assertEqual(session.run(step), 30)
        tf1.Session.reset(self.target)


class ProfileTest(unittest.TestCase):
    def test_tensorflows_client_profiles_a_server(self):
        with servers.Cluster(servers.td_path(), worker=["tandem"]) as cluster, \
                tempfile.TemporaryDirectory() as logdir:
            with tf.Graph().as_default(), tf1.Session(cluster.target()) as session:
                product = tf.linalg.matmul(tf.random.uniform([64, 64]), tf.ones([64, 64]), name="product")
                ends = threading.Event()

                def work():
                    while not ends.is_set():
                        session.run(product)

                session.run(product)
                worker = threading.Thread(target=work)
                worker.start()
                try:
                    tf.profiler.experimental.client.trace(cluster.target(), logdir, 500)
                finally:
                    ends.set()
                    worker.join()
            files = list(pathlib.Path(logdir).rglob("*.xplane.pb"))
            self.assertEqual(len(files), 1)
            kernel = b"random_uniform/RandomUniform:RandomUniform"
            self.assertTrue(kernel in files[0].read_bytes(), "the profile lacks the kernel")


if __name__ == "__main__":
    unittest.main(verbosity=2)
