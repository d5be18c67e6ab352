"""Lets the real TensorFlow place graphs, and writes them with what it says: make_placements.py FILE

FILE is gzipped JSON: for each case the graph, how many CPUs there are, the settings, and either the device of
each node or the error. Three logical CPUs stand for three devices.
"""

import base64
import contextlib
import ctypes
import gzip
import json
import os
import pathlib
import re
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import tensorflow as tf  # noqa: E402
from tensorflow.core.framework import graph_pb2  # noqa: E402
from tensorflow.python.framework import ops  # noqa: E402

v1 = tf.compat.v1
CPUS = 3
PREFIX = "/job:localhost/replica:0/task:0/device:"
LINE = re.compile(r"^(\S+): \((\S+)\): " + PREFIX + r"(\w+:\d+)$")


@contextlib.contextmanager
def stdout_of_c(lines):
    """The placer prints its decisions there."""
    libc = ctypes.CDLL(None)
    sys.stdout.flush()
    libc.fflush(None)
    saved = os.dup(1)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 1)
        try:
            yield
        finally:
            libc.fflush(None)
            os.dup2(saved, 1)
            os.close(saved)
            file.seek(0)
            lines += file.read().decode().splitlines()


def placements(lines):
    found = {}
    for line in lines:
        match = LINE.match(line)
        if match:
            found[match[1]] = match[3]
    return found


def message_of(error):
    """The placer's own words, without what Python adds before and after."""
    text = str(error)
    for start in ("Cannot assign a device", "Cannot colocate nodes", "Nodes were connected",
                  "Cannot place the graph"):
        if start in text:
            text = text[text.index(start):]
            break
    return text.split("\n")[0]


# ---- Cases for a Session ----


def colocate(tensor, *names):
    names = [b"loc:@" + name.encode() for name in names]
    tensor.op._set_attr("_class", v1.AttrValue(list=v1.AttrValue.ListValue(s=names)))


def noise(name):
    """Not a constant: a node of its own that stays."""
    return v1.random_uniform([2], name=name)


def scopes():
    with tf.device("/CPU:1"):
        a = noise("a")
        with tf.device("/CPU:2"):
            b = noise("b")
            with tf.device(None):
                c = noise("c")
        d = noise("d")
    tf.add_n([a, b, c, d], name="sum")


def partial_names():
    with tf.device("/job:localhost"):
        a = noise("a")
        with tf.device("/replica:0/task:0"):
            b = noise("b")
            with tf.device("/device:CPU:2"):
                c = noise("c")
    with tf.device("/device:CPU:*"):
        d = noise("d")
    with tf.device("/cpu:1"):
        with tf.device("/job:localhost"):
            e = noise("e")
    tf.add_n([a, b, c, d, e], name="sum")


def constants_go_with_users():
    one = tf.constant([1.0, 2.0], name="one")
    shared = tf.constant([3.0, 4.0], name="shared")
    apart = tf.constant([5.0, 6.0], name="apart")
    tf.constant([7.0], name="unused")
    placeholder = v1.placeholder(tf.float32, [2], name="placeholder")
    with tf.device("/CPU:1"):
        a = tf.add(one, shared, name="a")
        b = tf.add(apart, shared, name="b")
    with tf.device("/CPU:2"):
        c = tf.add(apart, placeholder, name="c")
    tf.add_n([a, b, c], name="sum")


def control_edges():
    before = tf.constant([1.0], name="before")
    with tf.device("/CPU:1"):
        first = noise("first")
    with tf.control_dependencies([before, first]):
        with tf.device("/CPU:2"):
            tf.identity(noise("x"), name="after")
        gate = tf.no_op(name="gate")
    with tf.control_dependencies([gate]):
        noise("last")


def metadata():
    with tf.device("/CPU:1"):
        x = noise("x")
    with tf.device("/CPU:2"):
        y = noise("y")
    tf.raw_ops.Shape(input=x, name="shape_x")
    tf.raw_ops.Size(input=y, name="size_y")
    tf.raw_ops.Rank(input=y, name="rank_y")
    tf.raw_ops.ShapeN(input=[x, y], name="both")
    with tf.device("/CPU:0"):
        tf.raw_ops.Shape(input=y, name="asked")
    tf.raw_ops.Shape(input=tf.constant([1.0], name="constant"), name="of_constant")


def colocation():
    with tf.device("/CPU:2"):
        a = noise("a")
    b = noise("b")
    colocate(b, "a/RandomUniform")
    c = noise("c")
    colocate(c, "b/RandomUniform")
    d = noise("d")
    colocate(d, "e/RandomUniform")
    with tf.device("/CPU:1"):
        e = noise("e")
    tf.add_n([a, b, c, d, e], name="sum")


def colocation_of_several():
    with tf.device("/CPU:1"):
        a = noise("a")
    b = noise("b")
    c = noise("c")
    colocate(c, "a/RandomUniform", "b/RandomUniform")
    tf.add_n([a, b, c], name="sum")


def colocation_conflict():
    with tf.device("/CPU:1"):
        a = noise("a")
    with tf.device("/CPU:2"):
        b = noise("b")
    colocate(b, "a/RandomUniform")
    tf.add(a, b, name="sum")


def partial_colocation():
    with tf.device("/job:localhost"):
        a = noise("a")
    with tf.device("/device:CPU:2"):
        b = noise("b")
    colocate(b, "a/RandomUniform")
    tf.add(a, b, name="sum")


def resource_variables():
    with tf.device("/CPU:1"):
        v = v1.get_variable("v", [2], use_resource=True, initializer=v1.zeros_initializer())
    w = v1.get_variable("w", [2], use_resource=True, initializer=v1.ones_initializer())
    with tf.device("/CPU:2"):
        update = v.assign_add([1.0, 1.0], name="update")
        product = tf.multiply(v, w, name="product")
    tf.add(update, product, name="sum")


def resource_gather():
    with tf.device("/CPU:2"):
        table = v1.get_variable("table", [10, 4], use_resource=True)
    indices = v1.placeholder(tf.int32, [None], name="indices")
    rows = tf.nn.embedding_lookup(table, indices, name="rows")
    with tf.device("/CPU:1"):
        tf.reduce_sum(rows, name="total")


def resource_conflict():
    with tf.device("/CPU:1"):
        v = v1.get_variable("v", [2], use_resource=True)
    with tf.device("/CPU:2"):
        w = v1.get_variable("w", [2], use_resource=True)
    with ops.colocate_with(w.handle.op, ignore_existing=True):
        with ops.colocate_with(v.handle.op):
            tf.add(noise("x"), 1.0, name="between")


def reference_variables():
    with tf.device("/CPU:1"):
        v = v1.Variable([1.0, 2.0], use_resource=False, name="v")
    with tf.device("/CPU:2"):
        update = v1.assign_add(v, [1.0, 1.0], name="update")
        read = tf.identity(v, name="mine")
    tf.add(update, read, name="sum")


def reference_scatter():
    with tf.device("/CPU:2"):
        v = v1.Variable(tf.zeros([4, 2]), use_resource=False, name="v")
    update = v1.scatter_add(v, [0, 1], tf.ones([2, 2]), name="update")
    with tf.control_dependencies([update]):
        v1.count_up_to(v1.Variable(0, use_resource=False, name="counter"), 10, name="count")


def reference_switch():
    with tf.device("/CPU:1"):
        v = v1.Variable([1.0, 2.0], use_resource=False, name="v")
    p = v1.placeholder(tf.bool, [], name="p")
    tf.identity(v1.cond(p, lambda: v1.assign(v, [0.0, 0.0]), lambda: v1.assign(v, [1.0, 1.0])), name="out")


def queues():
    with tf.device("/CPU:1"):
        queue = v1.FIFOQueue(10, [tf.float32], shapes=[[2]], name="queue")
    with tf.device("/CPU:2"):
        queue.enqueue([noise("x")], name="put")
        taken = queue.dequeue(name="take")
    tf.identity(taken, name="out")
    queue.size(name="size")
    queue.close(name="close")


def tables():
    with tf.device("/CPU:2"):
        table = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(tf.constant([1, 2], tf.int64), tf.constant([3, 4], tf.int64)), -1)
    table.lookup(tf.constant([1, 2], tf.int64), name="find")


def strings():
    with tf.device("/CPU:1"):
        a = tf.strings.as_string(noise("x"), name="a")
    tf.strings.join([a, "b"], name="joined")


def cond_v1():
    with tf.device("/CPU:1"):
        x = noise("x")
    p = v1.placeholder(tf.bool, [], name="p")
    with tf.device("/CPU:2"):
        y = v1.cond(p, lambda: tf.square(x, name="then"), lambda: tf.negative(x, name="else"), name="cond")
    tf.identity(y, name="out")


def while_v1():
    with tf.device("/CPU:1"):
        x = noise("x")
        _, total = v1.while_loop(lambda i, t: i < 3, lambda i, t: (i + 1, t + x), [0, tf.zeros([2])], name="loop")
    tf.identity(total, name="out")


def while_across_devices():
    x = noise("x")

    def body(i, t):
        with tf.device("/CPU:2"):
            t = tf.multiply(t, x, name="there")
        with tf.device("/CPU:1"):
            return i + 1, tf.add(t, 1.0, name="back")

    _, total = v1.while_loop(lambda i, t: i < 3, body, [0, tf.zeros([2])], name="loop")
    tf.identity(total, name="out")


def gradients():
    with tf.device("/CPU:1"):
        w = v1.get_variable("w", [3, 2], use_resource=True)
        x = v1.placeholder(tf.float32, [4, 3], name="x")
        y = tf.matmul(x, w, name="y")
    with tf.device("/CPU:2"):
        loss = tf.reduce_sum(tf.square(y), name="loss")
    v1.gradients(loss, [w], colocate_gradients_with_ops=True)


def gradients_of_references():
    with tf.device("/CPU:1"):
        w = v1.Variable(tf.ones([3, 2]), use_resource=False, name="w")
    x = v1.placeholder(tf.float32, [4, 3], name="x")
    loss = tf.reduce_mean(tf.nn.relu(tf.matmul(x, w)), name="loss")
    v1.train.GradientDescentOptimizer(0.1).minimize(loss, colocate_gradients_with_ops=True)


def optimizer():
    with tf.device("/CPU:2"):
        w = v1.get_variable("w", [3, 2], use_resource=True)
    with tf.device("/CPU:1"):
        b = v1.get_variable("b", [2], use_resource=True)
    x = v1.placeholder(tf.float32, [4, 3], name="x")
    loss = tf.reduce_mean(tf.square(tf.matmul(x, w) + b), name="loss")
    v1.train.AdamOptimizer(0.1).minimize(loss)


def gradients_of_while():
    with tf.device("/CPU:1"):
        x = v1.placeholder(tf.float32, [2], name="x")
    _, total = v1.while_loop(lambda i, t: i < 3, lambda i, t: (i + 1, t * x), [0, x], name="loop")
    v1.gradients(tf.reduce_sum(total), [x], colocate_gradients_with_ops=True)


def convolution_model():
    x = v1.placeholder(tf.float32, [2, 8, 8, 3], name="x")
    with tf.device("/CPU:1"):
        kernel = v1.get_variable("kernel", [3, 3, 3, 4], use_resource=True)
        h = tf.nn.relu(tf.nn.conv2d(x, kernel, 1, "SAME", name="conv"))
    with tf.device("/CPU:2"):
        h = tf.nn.max_pool2d(h, 2, 2, "VALID", name="pool")
    h = tf.reshape(h, [2, -1])
    logits = tf.matmul(h, v1.get_variable("dense", [64, 5], use_resource=True), name="logits")
    labels = tf.constant([1, 2], name="labels")
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    v1.train.GradientDescentOptimizer(0.1).minimize(loss)


def split_and_join():
    with tf.device("/CPU:1"):
        x = v1.placeholder(tf.float32, [None, 6], name="x")
        parts = tf.split(x, 3, axis=1, name="parts")
    done = []
    for i, part in enumerate(parts):
        with tf.device(f"/CPU:{i}"):
            done.append(tf.exp(part, name=f"part_{i}"))
    tf.concat(done, 1, name="joined")


def missing_cpu():
    with tf.device("/CPU:9"):
        a = noise("a")
    tf.identity(a, name="b")


def missing_gpu():
    with tf.device("/GPU:0"):
        a = noise("a")
    with tf.device("/CPU:1"):
        tf.identity(a, name="b")


def missing_type():
    with tf.device("/device:XPU:1"):
        noise("a")


def missing_job():
    with tf.device("/job:worker/task:0/CPU:0"):
        noise("a")


def missing_device_of_a_variable():
    with tf.device("/GPU:1"):
        v = v1.get_variable("v", [2], use_resource=True)
    with tf.device("/CPU:1"):
        v.assign_add([1.0, 1.0], name="update")


SESSION = [
    scopes, partial_names, constants_go_with_users, control_edges, metadata, colocation,
    colocation_of_several, partial_colocation, resource_variables, resource_gather, reference_variables,
    reference_scatter, reference_switch, queues, tables, strings, cond_v1, while_v1, while_across_devices, gradients,
    gradients_of_references, optimizer, gradients_of_while, convolution_model, split_and_join,
]
# With soft placement off and on.
BOTH = [colocation_conflict, resource_conflict, missing_cpu, missing_gpu, missing_type, missing_job,
        missing_device_of_a_variable]


def session_case(build, soft):
    graph = tf.Graph()
    with graph.as_default():
        v1.set_random_seed(1)
        build()
        target = tf.no_op(name="target_of_the_run")
        definition = graph.as_graph_def()
        config = v1.ConfigProto(device_count={"CPU": CPUS}, allow_soft_placement=soft, log_device_placement=True)
        lines = []
        case = {"graph": base64.b64encode(definition.SerializeToString(deterministic=True)).decode(),
                "cpus": CPUS, "soft": soft}
        try:
            with stdout_of_c(lines), v1.Session(config=config) as session:
                session.run(target)
            case["devices"] = placements(lines)
        except tf.errors.InvalidArgumentError as error:
            case["error"] = message_of(error)
    return case


# ---- Cases for tf.function ----


def function_scopes():
    @tf.function
    def f(x, y):
        with tf.device("/CPU:1"):
            a = tf.multiply(x, 2.0, name="a")
        with tf.device("/CPU:2"):
            b = tf.add(y, 3.0, name="b")
        return tf.add(a, b, name="sum")

    return f, [tf.ones([2]), tf.ones([2])], {}


def function_arguments():
    @tf.function
    def f(x, y, z):
        with tf.device("/CPU:1"):
            a = tf.exp(x, name="a")
            b = tf.add(a, y, name="b")
        return tf.add(tf.add(y, z, name="c"), b, name="d")

    with tf.device("/CPU:2"):
        z = tf.ones([2])
    return f, [tf.ones([2]), tf.ones([2]), z], {}


def function_variables():
    with tf.device("/CPU:1"):
        v = tf.Variable([1.0, 2.0])
    with tf.device("/CPU:2"):
        w = tf.Variable([1.0, 2.0])

    @tf.function
    def f(x):
        v.assign_add(x)
        return tf.multiply(v + x, w, name="product")

    return f, [tf.ones([2])], {id(v.handle): "CPU:1", id(w.handle): "CPU:2"}


def function_step():
    with tf.device("/CPU:2"):
        w = tf.Variable(tf.ones([3, 2]))

    @tf.function
    def f(x):
        with tf.GradientTape() as tape:
            with tf.device("/CPU:1"):
                h = tf.matmul(x, w, name="h")
            loss = tf.reduce_sum(tf.square(h), name="loss")
        w.assign_sub(0.1 * tape.gradient(loss, w))
        return loss

    return f, [tf.ones([4, 3])], {id(w.handle): "CPU:2"}


def function_on_missing_device():
    @tf.function
    def f(x):
        with tf.device("/GPU:0"):
            a = tf.exp(x, name="a")
        return tf.identity(a, name="b")

    return f, [tf.ones([2])], {}


FUNCTIONS = [function_scopes, function_arguments, function_variables, function_step, function_on_missing_device]


def function_case(build):
    ignored, lines = [], []
    with stdout_of_c(ignored):
        f, inputs, known = build()
        concrete = f.get_concrete_function(*inputs)
    definition = concrete.graph.as_graph_def()
    # Arguments are where their values are.
    fixed = {}
    for value, inner in zip(inputs, concrete.graph.inputs):
        fixed[inner.op.name] = value.device.removeprefix(PREFIX)
    for captured, inner in concrete.graph.captures:
        fixed[inner.op.name] = known[id(captured)]
    with stdout_of_c(lines):
        concrete(*inputs)
    names = {node.name for node in definition.node}
    return {"graph": base64.b64encode(definition.SerializeToString(deterministic=True)).decode(), "cpus": CPUS,
            "soft": True, "default": "/device:CPU:0", "fixed": fixed,
            "devices": {name: device for name, device in placements(lines).items() if name in names},
            # Arguments that are captured have other names there.
            "some": True}


def main():
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * CPUS)
    tf.debugging.set_log_device_placement(True)  # must be said before the first op
    cases = {build.__name__: function_case(build) for build in FUNCTIONS}
    v1.disable_control_flow_v2()
    v1.disable_eager_execution()
    for build in SESSION:
        cases[build.__name__] = session_case(build, soft=False)
    for build in BOTH:
        cases[build.__name__] = session_case(build, soft=False)
        cases[build.__name__ + "_soft"] = session_case(build, soft=True)
    text = json.dumps({"tensorflow": tf.__version__, "cases": cases}, sort_keys=True)
    pathlib.Path(sys.argv[1]).write_bytes(gzip.compress(text.encode(), mtime=0))
    print(f"{len(cases)} graphs placed by TensorFlow {tf.__version__}")


if __name__ == "__main__":
    main()
