"""Cases of collectives between two CPUs of one process."""

import numpy as np
import tensorflow as tf

from exporting import case, floats, v1

TWO_CPUS = {"TANDEM_LOGICAL_DEVICES": "CPU:0=2"}


class Members:
    """A graph with a member of each group on each of two CPUs."""

    def __init__(self):
        self.graph = tf.Graph()
        self.feeds = {}
        self.fetches = []
        self.instance = 0

    def inputs(self, values):
        """A placeholder for each of the values."""
        made = []
        for value in values:
            name = f"x{len(self.feeds)}"
            made.append(v1.placeholder(value.dtype, value.shape, name=name))
            self.feeds[f"{name}:0"] = value
        return made

    def add(self, values, *members):
        """A group, whose members are functions of (input, group_size, group_key, instance_key)."""
        self.instance += 1
        inputs = self.inputs(values)
        for i, member in enumerate(members):
            with tf.device(f"/CPU:{i}"):
                result = member(inputs[i] if i < len(inputs) else None,
                                {"group_size": 2, "group_key": 1, "instance_key": self.instance})
                self.fetches.append(tf.identity(result, name=f"y{len(self.fetches)}").name)

    def write(self, writer):
        config = v1.ConfigProto(device_count={"CPU": 2})
        options = v1.RunOptions()
        options.experimental.collective_graph_key = 1
        with v1.Session(graph=self.graph, config=config) as session:
            expected = session.run(self.fetches, self.feeds, options=options)
        writer.write(self.graph.as_graph_def(), self.feeds, dict(zip(self.fetches, expected)),
                     environment=TWO_CPUS)


def two(dtype, shape, seed=0):
    if np.issubdtype(dtype, np.integer):
        return [np.random.default_rng(seed + i).integers(-9, 9, shape).astype(dtype) for i in range(2)]
    return [floats(*shape, seed=seed + i).astype(dtype) for i in range(2)]


@case
def collective_reductions(writer):
    members = Members()
    with members.graph.as_default():
        for dtype in (np.float32, np.float64, np.float16, np.int32, np.int64):
            for merge_op, final_op in (("Add", "Id"), ("Add", "Div"), ("Mul", "Id"), ("Max", "Id"), ("Min", "Id")):
                def reduce(x, keys):
                    return tf.raw_ops.CollectiveReduceV2(input=x, ordering_token=[], merge_op=merge_op,
                                                         final_op=final_op, **keys)
                members.add(two(dtype, (3, 5)), reduce, reduce)
    members.write(writer)


@case
def collective_gathers(writer):
    members = Members()
    with members.graph.as_default():
        def gather(x, keys):
            return tf.raw_ops.CollectiveGatherV2(input=x, ordering_token=[], **keys)
        for dtype in (np.float32, np.float64, np.float16, np.int32, np.int64):
            members.add(two(dtype, (3, 2)), gather, gather)
    members.write(writer)


@case
def collective_broadcasts(writer):
    members = Members()
    with members.graph.as_default():
        for dtype in (np.float32, np.float64, np.float16, np.int32, np.int64, np.bool_):
            def send(x, keys):
                return tf.raw_ops.CollectiveBcastSendV2(input=x, **keys)

            def receive(_, keys):
                return tf.raw_ops.CollectiveBcastRecvV2(T=tf.as_dtype(dtype), shape=[3, 2], **keys)
            values = two(dtype, (3, 2))[:1] if dtype != np.bool_ else [floats(3, 2) > 0]
            members.add(values, send, receive)
    members.write(writer)


@case
def collectives_in_a_chain(writer):
    """Each CPU's next member needs what its last one gave: as layers of a data parallel step."""
    members = Members()
    with members.graph.as_default():
        x = members.inputs(two(np.float32, (4, 4), seed=3))
        for instance in range(1, 6):
            for i in range(2):
                with tf.device(f"/CPU:{i}"):
                    x[i] = tf.raw_ops.CollectiveReduceV2(
                        input=tf.sin(x[i]) * (i + 1), group_size=2, group_key=1, instance_key=instance,
                        ordering_token=[], merge_op="Add", final_op="Div")
        for i in range(2):
            with tf.device(f"/CPU:{i}"):
                members.fetches.append(tf.identity(x[i], name=f"y{i}").name)
    members.write(writer)


@case
def older_collectives(writer):
    """The forms whose sizes and keys are attributes."""
    members = Members()
    with members.graph.as_default():
        def reduce(x, keys):
            return tf.raw_ops.CollectiveReduce(input=x, merge_op="Add", final_op="Div", subdiv_offsets=[0], **keys)

        def gather(x, keys):
            return tf.raw_ops.CollectiveGather(input=x, shape=[6, 2], **keys)

        def send(x, keys):
            return tf.raw_ops.CollectiveBcastSend(input=x, shape=[3, 2], **keys)

        def receive(_, keys):
            return tf.raw_ops.CollectiveBcastRecv(T=tf.float32, shape=[3, 2], **keys)
        values = two(np.float32, (3, 2))
        members.add(values, reduce, reduce)
        members.add(values, gather, gather)
        members.add(values[:1], send, receive)
    members.write(writer)
