"""The real TensorFlow's ParameterServerStrategy and ClusterCoordinator over tasks of ours."""

import os
import signal
import sys
import unittest

import numpy as np
import tensorflow as tf

import servers


class StrategyTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = servers.Cluster(servers.td_path(), ps=["tandem", "tandem"],
                                      worker=["tandem", "tandem"])
        spec = dict(cls.cluster.spec, chief=[f"localhost:{servers.free_ports(1)[0]}"])
        resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
            tf.train.ClusterSpec(spec), task_type="chief", task_id=0, rpc_layer="grpc")
        cls.strategy = tf.distribute.ParameterServerStrategy(
            resolver, variable_partitioner=tf.distribute.experimental.partitioners.FixedShardsPartitioner(2))
        cls.coordinator = tf.distribute.coordinator.ClusterCoordinator(cls.strategy)

    @classmethod
    def tearDownClass(cls):
        cls.cluster.stop()

    def train_function(self):
        with self.strategy.scope():
            w = tf.Variable(tf.zeros([4, 1]))  # in two shards, on two servers
            b = tf.Variable(0.0)
            steps = tf.Variable(0, dtype=tf.int64)

        @tf.function
        def train(x, y):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((tf.matmul(x, tf.convert_to_tensor(w)) + b - y) ** 2)
            variables = [*w.variables, b]
            for variable, gradient in zip(variables, tape.gradient(loss, variables)):
                variable.assign_sub(0.05 * gradient)
            steps.assign_add(1)
            return loss

        rng = np.random.default_rng(0)
        x = rng.normal(size=(64, 4)).astype(np.float32)
        y = x @ np.float32([[1], [-2], [3], [0]]) + 0.5
        return w, steps, train, (tf.constant(x), tf.constant(y))

    def run_steps(self, train, batch, count):
        losses = [self.coordinator.schedule(train, args=batch) for _ in range(count)]
        self.coordinator.join()
        return [float(loss.fetch()) for loss in losses]

    def test_variables_are_on_the_servers_and_the_loss_falls(self):
        w, steps, train, batch = self.train_function()
        self.assertEqual([shard.device for shard in w.variables],
                         [f"/job:ps/replica:0/task:{task}/device:CPU:0" for task in range(2)])
        losses = self.run_steps(train, batch, 60)
        self.assertLess(losses[-1], losses[0] / 10)
        self.assertEqual(steps.numpy(), 60)

    def test_each_worker_has_a_dataset_of_its_own(self):
        def make_dataset():
            return tf.data.Dataset.from_tensor_slices(tf.range(8.0)).map(lambda x: x + 1.0).repeat().batch(4)

        per_worker = self.coordinator.create_per_worker_dataset(make_dataset)
        iterator = iter(per_worker)

        @tf.function
        def sum_of_a_batch(iterator):
            return tf.reduce_sum(next(iterator))

        sums = [self.coordinator.schedule(sum_of_a_batch, args=(iterator,)) for _ in range(8)]
        self.coordinator.join()
        self.assertLessEqual({float(one.fetch()) for one in sums}, {10.0, 26.0})

    def test_errors_of_closures_are_raised(self):
        @tf.function
        def fails():
            return tf.linalg.inv(tf.zeros([2, 2]))

        with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "not invertible"):
            self.coordinator.schedule(fails)
            self.coordinator.join()
        self.assertEqual(float(self.run_steps(tf.function(lambda: tf.constant(2.0)), (), 1)[0]), 2)

    def test_z_training_goes_on_when_a_worker_is_killed_and_started_again(self):
        _, steps, train, batch = self.train_function()
        losses = self.run_steps(train, batch, 10)
        number = next(i for i, task in enumerate(self.cluster.tasks)
                      if (task.job, task.task) == ("worker", 1))
        killed = self.cluster.tasks[number]
        waiting = [self.coordinator.schedule(train, args=batch) for _ in range(30)]
        killed.process.send_signal(signal.SIGKILL)
        killed.process.communicate()
        restarted = servers.Task("tandem", "worker", 1, self.cluster.spec, servers.td_path())
        self.cluster.tasks[number] = restarted
        restarted.wait_until_it_listens()
        self.coordinator.join()
        losses += [float(loss.fetch()) for loss in waiting]
        losses += self.run_steps(train, batch, 20)
        self.assertLess(losses[-1], losses[0] / 10)
        # A closure whose worker died is run again: TensorFlow does not know how far it came.
        self.assertGreaterEqual(steps.numpy(), 60)


if __name__ == "__main__":
    result = unittest.main(verbosity=2, exit=False).result
    # The coordinator's threads would wait for its workers, which have ended.
    sys.stdout.flush()
    os._exit(0 if result.wasSuccessful() else 1)
