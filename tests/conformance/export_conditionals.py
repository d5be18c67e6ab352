"""Cases of conditionals as TensorFlow 2 writes them: If and Case, their gradients, in loops and functions."""

import numpy as np
import tensorflow as tf

from exporting import case, floats, run_v1, v1


def write_function(writer, function, *inputs):
    concrete = tf.function(function).get_concrete_function(
        *[tf.TensorSpec(i.shape, i.dtype) for i in map(np.asarray, inputs)])
    writer.write(concrete.graph.as_graph_def(), dict(zip([t.name for t in concrete.inputs], inputs)),
                 dict(zip([t.name for t in concrete.outputs], concrete(*map(tf.constant, inputs)))))


def write_graph(writer, build, feeds):
    """A graph with control flow by functions, whose gradients tf.gradients adds."""
    v1.enable_control_flow_v2()
    try:
        graph = tf.Graph()
        with graph.as_default():
            inputs = [v1.placeholder(i.dtype, i.shape, name=n) for n, i in feeds.items()]
            fetches = [tf.identity(t).name for t in build(*inputs)]
    finally:
        v1.disable_control_flow_v2()
    feeds = {f"{name}:0": value for name, value in feeds.items()}
    writer.write(graph.as_graph_def(), feeds, run_v1(graph, fetches, feeds))


def choose(index, x):
    return tf.switch_case(index, [lambda: x * 2.0, lambda: tf.sin(x) * x, lambda: tf.exp(x) + x * x])


def halve_or_bend(x):
    """Each branch keeps a value for its gradient."""
    return tf.cond(tf.reduce_sum(x) > 0.0, lambda: tf.sin(x) * x, lambda: tf.exp(x) / 2.0)


@case
def switch_case(writer):
    def build(index, x):
        # Indices out of range mean the last branch.
        ys = [choose(index + offset, x) for offset in (-2, -1, 0, 1, 2)]
        return ys + [tf.gradients(y, x)[0] for y in ys]

    write_graph(writer, build, {"index": np.array(1, np.int32), "x": floats(2)})


@case
def switch_case_with_state(writer):
    def build(index, x):
        return [tf.switch_case(index, [lambda: x * 2.0, lambda: x + 0.0 * tf.random.uniform([])])]

    write_graph(writer, build, {"index": np.array(1, np.int32), "x": floats(2)})


@case
def function_switch_case(writer):
    def f(index, x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = choose(index, x) * choose(index - 1, x)
        return y, tape.gradient(y, x)

    write_function(writer, f, np.array(2, np.int32), floats(2))


@case
def cond_gradient(writer):
    def build(x):
        y, z = halve_or_bend(x), halve_or_bend(-x)
        return [y, z, tf.gradients(y, x)[0], tf.gradients(z, x)[0]]

    write_graph(writer, build, {"x": floats(2)})


@case
def cond_in_while_gradient(writer):
    def build(x):
        def body(i, t):
            bent = tf.cond(tf.reduce_sum(t) > 1.0, lambda: tf.sin(t) * t, lambda: t + x * x)
            return i + 1, bent

        y = tf.while_loop(lambda i, _: i < 4, body, [0, x])[1]
        return [y, tf.gradients(y, x)[0]]

    write_graph(writer, build, {"x": floats(2)})


@case
def function_cond_gradient(writer):
    def f(x):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y, z = halve_or_bend(x), halve_or_bend(-x)
        return y, z, tape.gradient(y, x), tape.gradient(z, x)

    write_function(writer, f, floats(2))


@case
def function_loop_cond_gradient(writer):
    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x
            for _ in tf.range(4):
                if tf.reduce_sum(y) > 1.0:
                    y = tf.sin(y) * y
                else:
                    y = y + x * x
        return y, tape.gradient(y, x)

    write_function(writer, f, floats(2))


@case
def second_cond_gradient(writer):
    """Gradients of what the branches keep meet: optionals are added."""
    def f(x):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = halve_or_bend(x) * halve_or_bend(-x)
            first = inner.gradient(y, x)
        return first, outer.gradient(first, x)

    write_function(writer, f, floats(2))


@case
def second_switch_case_gradient(writer):
    def f(index, x):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = choose(index, x)
            first = inner.gradient(y, x)
        return first, outer.gradient(first, x)

    write_function(writer, f, np.array(1, np.int32), floats(2))


@case
def second_loop_cond_gradient(writer):
    def f(x):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = x
                for _ in tf.range(3):
                    y = halve_or_bend(y)
            first = inner.gradient(y, x)
        return first, outer.gradient(first, x)

    write_function(writer, f, floats(2))


@case
def optionals(writer):
    """The ops by themselves; what FakeParam holds does not matter, its size does."""
    def build(x):
        full = tf.raw_ops.OptionalFromValue(components=[x, tf.constant([3, 4])])
        both = tf.cond(tf.reduce_sum(x) > 100.0, lambda: tf.raw_ops.OptionalNone(), lambda: full)
        values = tf.raw_ops.OptionalGetValue(optional=tf.add_n([both, full]), output_shapes=[[2], [None]],
                                             output_types=[tf.float32, tf.int32])
        zeros = tf.raw_ops.OptionalGetValue(optional=tf.raw_ops.ZerosLike(x=full), output_shapes=[[2], [2]],
                                            output_types=[tf.float32, tf.int32])
        fake = tf.raw_ops.FakeParam(dtype=tf.float32, shape=tf.TensorShape([None, 3]))
        return [*values, *zeros, tf.raw_ops.OptionalHasValue(optional=both),
                tf.raw_ops.OptionalHasValue(optional=tf.raw_ops.OptionalNone()), tf.shape(fake)]

    write_graph(writer, build, {"x": floats(2)})
