"""Cases of what lives between ops: queues, tables, arrays and lists, branches, references."""

import numpy as np
import tensorflow as tf

from exporting import case, floats, run_v1, v1

raw = tf.raw_ops


def write_graph(writer, graph, outputs, feeds=None, **more):
    """Each output by its name, in the order given."""
    feeds = feeds or {}
    with graph.as_default():
        names = [tf.identity(output, name=f"out{i}").name for i, output in enumerate(outputs)]
    writer.write(graph.as_graph_def(), feeds, run_v1(graph, names, feeds), **more)


def one_after_the_other(steps):
    """The results of calls, each made after the one before has run."""
    results, before = [], []
    for step in steps:
        with tf.control_dependencies(before):
            result = step()
        if isinstance(result, tf.Operation):
            before = [result]
        else:
            tensors = tf.nest.flatten(result)
            before = [tensors[0].op]
            results += tensors
    return results


@case
def queues(writer):
    """Queues filled and emptied: in order, by priority, padded, many at once."""
    graph = tf.Graph()
    outputs = []
    with graph.as_default():
        types = [tf.float32, tf.int64]
        fifo = raw.FIFOQueueV2(component_types=types, shapes=[[2], []], capacity=10)
        outputs += one_after_the_other([
            lambda: raw.QueueSizeV2(handle=fifo),
            lambda: raw.QueueEnqueueV2(handle=fifo, components=[tf.constant([1.0, 2.0]),
                                                                tf.constant(7, tf.int64)]),
            lambda: raw.QueueEnqueueManyV2(handle=fifo, components=[
                tf.constant(floats(4, 2)), tf.constant([1, 2, 3, 4], tf.int64)]),
            lambda: raw.QueueSizeV2(handle=fifo),
            lambda: raw.QueueDequeueV2(handle=fifo, component_types=types),
            lambda: raw.QueueDequeueManyV2(handle=fifo, n=2, component_types=types),
            lambda: raw.QueueIsClosedV2(handle=fifo),
            lambda: raw.QueueDequeueUpToV2(handle=fifo, n=2, component_types=types),
            lambda: raw.QueueSizeV2(handle=fifo),
        ])
        ranked = raw.PriorityQueueV2(component_types=[tf.string], shapes=[[]], capacity=10)
        outputs += one_after_the_other([
            lambda: raw.QueueEnqueueManyV2(handle=ranked, components=[
                tf.constant([5, -1, 5, 3], tf.int64), tf.constant(["a", "b", "c", "d"])]),
            lambda: raw.QueueDequeueManyV2(handle=ranked, n=4,
                                           component_types=[tf.int64, tf.string]),
        ])
        padded = raw.PaddingFIFOQueueV2(component_types=[tf.int32], shapes=[[None]], capacity=10)
        outputs += one_after_the_other([
            lambda: raw.QueueEnqueueV2(handle=padded, components=[tf.constant([1, 2])]),
            lambda: raw.QueueEnqueueV2(handle=padded, components=[tf.constant([3, 4, 5])]),
            lambda: raw.QueueEnqueueV2(handle=padded, components=[tf.constant([], tf.int32)]),
            lambda: raw.QueueDequeueManyV2(handle=padded, n=3, component_types=[tf.int32]),
        ])
    write_graph(writer, graph, outputs)


@case
def staging_areas(writer):
    """Values staged, looked at and taken out in order; some of a step's stay for the next one."""
    graph = tf.Graph()
    outputs = []
    with graph.as_default():
        types = [tf.float32, tf.string]
        area = dict(shared_name="area", capacity=3, dtypes=types)
        rows = [[tf.constant(floats(2, i + 1, seed=i)), tf.constant(["a", "bc"])] for i in range(3)]
        outputs += one_after_the_other([
            lambda: raw.StageSize(**area),
            lambda: raw.Stage(values=rows[0], shared_name="area", capacity=3),
            lambda: raw.Stage(values=rows[1], shared_name="area", capacity=3),
            lambda: raw.StagePeek(index=1, **area),
            lambda: raw.Unstage(**area),
            lambda: raw.Stage(values=rows[2], shared_name="area", capacity=3),
            lambda: raw.StageSize(**area),
            lambda: raw.Unstage(**area),
            lambda: raw.StageClear(**area),
            lambda: raw.StageSize(**area),
        ])
    write_graph(writer, graph, outputs)


def dense_steps(prefix, dtype, reduction, name):
    """An accumulator given gradients of two steps and emptied twice."""
    def op(what, **inputs):
        return getattr(raw, f"{prefix}{what}")(handle=handle, **inputs)

    handle = getattr(raw, prefix + "ConditionalAccumulator")(
        dtype=dtype, shape=[2, None], reduction_type=reduction, shared_name=name)

    def give(step, seed):
        return op("AccumulatorApplyGradient", local_step=tf.constant(step, tf.int64),
                  gradient=tf.cast(floats(2, 3, seed=seed), dtype))

    return [
        lambda: give(0, 0), lambda: give(0, 1), lambda: give(5, 2),
        lambda: op("AccumulatorNumAccumulated"),
        lambda: op("AccumulatorTakeGradient", num_required=2, dtype=dtype),
        lambda: op("AccumulatorNumAccumulated"),
        lambda: give(0, 3),  # late: the accumulator is at step 1
        lambda: op("AccumulatorNumAccumulated"),
        lambda: op("AccumulatorSetGlobalStep", new_global_step=tf.constant(4, tf.int64)),
        lambda: give(3, 4), lambda: give(4, 5),
        lambda: op("AccumulatorTakeGradient", num_required=1, dtype=dtype),
    ]


def sparse_steps(dtype, shape, reduction):
    """Rows: in order, out of order, twice the same, none."""
    handle = raw.SparseConditionalAccumulator(dtype=dtype, shape=shape, reduction_type=reduction)

    def give(indices, seed, known=False):
        return raw.SparseAccumulatorApplyGradient(
            handle=handle, local_step=tf.constant(1, tf.int64),
            gradient_indices=tf.constant(indices, tf.int64),
            gradient_values=tf.cast(floats(len(indices), 2, seed=seed), dtype),
            gradient_shape=tf.constant([6, 2], tf.int64), has_known_shape=known)

    def taken(count):
        return lambda: raw.SparseAccumulatorTakeGradient(handle=handle, num_required=count,
                                                         dtype=dtype)

    return [
        lambda: give([0, 3], 0, True), lambda: give([1, 3, 5], 1), lambda: give([], 2),
        lambda: give([3, 4], 3), lambda: raw.AccumulatorNumAccumulated(handle=handle), taken(3),
        lambda: give([5, 2, 2], 4), lambda: give([2, 5], 5), taken(2),
    ]


@case
def gradient_accumulators(writer):
    graph = tf.Graph()
    outputs = []
    with graph.as_default():
        for prefix in ("", "Resource"):
            for dtype in (tf.float32, tf.half, tf.double):
                for reduction in ("MEAN", "SUM"):
                    outputs += one_after_the_other(dense_steps(
                        prefix, dtype, reduction, f"{prefix}{dtype.name}{reduction}"))
        for dtype in (tf.float32, tf.half, tf.double):
            for reduction, shape in (("MEAN", [6, 2]), ("SUM", [None, None]), ("MEAN", None),
                                     ("SUM", [])):
                outputs += one_after_the_other(sparse_steps(dtype, shape, reduction))
    write_graph(writer, graph, outputs, repeat=0)  # in a second step all gradients would be late


def table_steps(table, keys, values, missing, default):
    """A table filled, overwritten, asked, emptied in part and read out, keys sorted."""
    out = dict(table_handle=table)

    def exported():
        found, held = raw.LookupTableExportV2(**out, Tkeys=keys.dtype, Tvalues=values.dtype)
        order = tf.argsort(found)
        return tf.gather(found, order), tf.gather(held, order)

    return [
        lambda: raw.LookupTableSizeV2(**out),
        lambda: raw.LookupTableInsertV2(**out, keys=keys, values=values),
        lambda: raw.LookupTableSizeV2(**out),
        lambda: raw.LookupTableFindV2(**out, keys=tf.concat([keys[:2], missing], 0),
                                      default_value=default),
        lambda: raw.LookupTableInsertV2(**out, keys=keys[1:2], values=values[:1]),
        lambda: raw.LookupTableRemoveV2(**out, keys=tf.concat([keys[:1], missing], 0)),
        lambda: raw.LookupTableSizeV2(**out),
        exported,
        lambda: raw.LookupTableImportV2(**out, keys=keys[:2], values=values[1:3]),
        exported,
    ]


@case
def mutable_tables(writer):
    graph = tf.Graph()
    outputs = []
    with graph.as_default():
        keys, numbers = tf.constant([30, 10, 20], tf.int64), tf.constant([1.5, -2.0, np.nan])
        rows = tf.constant(floats(3, 2))
        outputs += one_after_the_other(table_steps(
            raw.MutableHashTableV2(key_dtype=tf.int64, value_dtype=tf.float32), keys, numbers,
            tf.constant([99], tf.int64), tf.constant(-1.0)))
        outputs += one_after_the_other(table_steps(
            raw.MutableHashTableOfTensorsV2(key_dtype=tf.int64, value_dtype=tf.float32,
                                            value_shape=[2]),
            keys, rows, tf.constant([99], tf.int64), tf.constant([0.0, 9.0])))
        outputs += one_after_the_other(table_steps(
            raw.MutableDenseHashTableV2(empty_key=tf.constant(-1, tf.int64),
                                        deleted_key=tf.constant(-2, tf.int64),
                                        value_dtype=tf.float32, initial_num_buckets=4),
            keys, numbers, tf.constant([99], tf.int64), tf.constant(-1.0))[:-3])
    write_graph(writer, graph, outputs)


def found(table, keys, missing, default):
    asked = tf.reshape(tf.concat([keys[1:2], [missing], keys[:1], keys[2:]], 0), [2, 2])
    return [lambda: raw.LookupTableSizeV2(table_handle=table),
            lambda: raw.LookupTableFindV2(table_handle=table, keys=asked, default_value=default)]


@case
def tables_from_lists(writer):
    """Tables that are filled once, of strings and numbers; the same words again are no error."""
    graph = tf.Graph()
    outputs = []
    with graph.as_default():
        words, numbers = ["b", "", "\u00e4 c"], [7, -1, 1 << 40]
        for keys, values, missing, default in [
                (words, numbers, "none", -9), (numbers, words, 8, "?"), (numbers, [0.5, np.nan, -0.0], 8, 2.0)]:
            typed = [tf.constant(part, tf.int64 if part is numbers else None) for part in (keys, values)]
            table = raw.HashTableV2(key_dtype=typed[0].dtype, value_dtype=typed[1].dtype)
            fill = lambda t=table, k=typed[0], v=typed[1]: raw.InitializeTableV2(table_handle=t, keys=k, values=v)
            outputs += one_after_the_other([fill, fill] + found(
                table, typed[0], tf.constant(missing, typed[0].dtype),
                tf.constant(default, typed[1].dtype)))
    write_graph(writer, graph, outputs)


@case
def tables_from_files(writer):
    """Vocabularies: lines, their numbers, columns, a part of the file."""
    path = writer.folder / "words.txt"
    path.write_bytes("red 3 0.5\ngreen -7 1.25\nblue 40 -2\n\u00e4 5 1e3\r\nlast 6 0".encode())
    line, number = -2, -1
    graph = tf.Graph()
    outputs = []
    with graph.as_default():
        for key, value, types, options in [
                (0, number, (tf.string, tf.int64), dict(delimiter=" ")), (number, 0, (tf.int64, tf.string), dict(delimiter=" ")),
                (line, number, (tf.string, tf.int64), {}), (line, number, (tf.string, tf.int64), dict(vocab_size=2)),
                (0, 1, (tf.string, tf.int64), dict(delimiter=" ", vocab_size=3)),
                (1, 2, (tf.int64, tf.float32), dict(delimiter=" ", vocab_size=3)),
                (0, number, (tf.string, tf.int64), dict(delimiter=" ", offset=2))]:
            table = raw.HashTableV2(key_dtype=types[0], value_dtype=types[1])
            fill = lambda t=table, k=key, v=value, o=options: raw.InitializeTableFromTextFileV2(
                table_handle=t, filename=str(path), key_index=k, value_index=v, **o)
            keys = {line: ["red 3 0.5", "green -7 1.25", "blue 40 -2"], number: [0, 1, 2], 0: ["red", "green", "\u00e4"],
                    1: [3, -7, 40]}[key]
            keys = tf.constant(keys, types[0])
            missing = tf.constant("none" if types[0] == tf.string else 99, types[0])
            default = tf.constant("?" if types[1] == tf.string else -9, types[1])
            outputs += one_after_the_other([fill] + found(table, keys, missing, default))
    write_graph(writer, graph, outputs)


@case
def tensor_arrays(writer):
    """Arrays written, read, spread out, gathered, joined, split, and their gradients."""
    graph = tf.Graph()
    outputs = []
    x = floats(4, 3)
    with graph.as_default():
        fed = v1.placeholder(tf.float32, [4, 3], name="x")

        def array(size, **more):
            return raw.TensorArrayV3(size=size, dtype=tf.float32, **more)

        handle, flow = array(2, dynamic_size=True, clear_after_read=False)
        flow = raw.TensorArrayWriteV3(handle=handle, index=0, value=fed[0], flow_in=flow)
        flow = raw.TensorArrayWriteV3(handle=handle, index=3, value=fed[1], flow_in=flow)
        flow = raw.TensorArrayScatterV3(handle=handle, indices=[2, 1], value=fed[2:], flow_in=flow)
        outputs += [raw.TensorArraySizeV3(handle=handle, flow_in=flow),
                    raw.TensorArrayReadV3(handle=handle, index=3, flow_in=flow, dtype=tf.float32),
                    raw.TensorArrayGatherV3(handle=handle, indices=[3, 0, 0], flow_in=flow,
                                            dtype=tf.float32)]
        outputs += raw.TensorArrayConcatV3(handle=handle, flow_in=flow, dtype=tf.float32)
        handle, flow = array(3, clear_after_read=False)
        flow = raw.TensorArraySplitV3(handle=handle, value=fed, flow_in=flow,
                                      lengths=tf.constant([1, 0, 3], tf.int64))
        outputs += [raw.TensorArrayReadV3(handle=handle, index=i, flow_in=flow, dtype=tf.float32)
                    for i in range(3)]
        outputs += raw.TensorArrayConcatV3(handle=handle, flow_in=flow, dtype=tf.float32)
        # The gradients of these ops are of the older control flow.
        v1.disable_control_flow_v2()
        outputs += tf.gradients(outputs[1] * outputs[2] + tf.reduce_sum(outputs[-2] ** 2), [fed])
        v1.enable_control_flow_v2()
    write_graph(writer, graph, outputs, {"x:0": x})


@case
def tensor_lists(writer):
    """Lists gathered, scattered, joined, split, grown and concatenated with each other."""
    graph = tf.Graph()
    x = floats(4, 3)
    with graph.as_default():
        fed = v1.placeholder(tf.float32, [4, 3], name="x")
        row = tf.constant([3])
        listed = raw.TensorListFromTensor(tensor=fed, element_shape=row)

        def stacked(handle):
            return raw.TensorListStack(input_handle=handle, element_shape=row,
                                       element_dtype=tf.float32)

        gathered = raw.TensorListGather(input_handle=listed, indices=[3, 0, 3], element_shape=row,
                                        element_dtype=tf.float32)
        grown = raw.TensorListResize(input_handle=listed, size=6)
        scattered = raw.TensorListScatter(tensor=fed, indices=[2, 0, 3, 1], element_shape=row)
        spread = raw.TensorListScatterV2(tensor=fed[:2], indices=[4, 1], element_shape=row,
                                         num_elements=6)
        into = raw.TensorListScatterIntoExistingList(input_handle=listed, tensor=fed[:2] * 2.0,
                                                     indices=[3, 1])
        split = raw.TensorListSplit(tensor=fed, element_shape=tf.constant([-1, 3]),
                                    lengths=tf.constant([1, 0, 3], tf.int64))
        joined = raw.TensorListConcatV2(input_handle=split, element_shape=tf.constant([-1, 3]),
                                        leading_dims=tf.constant([], tf.int64),
                                        element_dtype=tf.float32)
        older = raw.TensorListConcat(input_handle=split, element_dtype=tf.float32,
                                     element_shape=[None, 3])
        both = raw.TensorListConcatLists(input_a=tf.stack([listed, scattered]),
                                         input_b=tf.stack([scattered, listed]),
                                         element_dtype=tf.float32)
        pushed = raw.TensorListPushBackBatch(input_handles=tf.stack([listed, scattered]),
                                             tensor=fed[:2])
        outputs = [gathered, stacked(grown), stacked(scattered), stacked(spread), stacked(into),
                   *joined, *older, stacked(both[0]), stacked(both[1]), stacked(pushed[0]),
                   stacked(pushed[1])]
        outputs += [raw.TensorListLength(input_handle=handle) for handle in (grown, spread, split)]
        outputs += tf.gradients(tf.reduce_sum(gathered ** 2) + tf.reduce_sum(joined[0] ** 3), [fed])
    write_graph(writer, graph, outputs, {"x:0": x})


@case
def stateful_branches(writer):
    """If, which may write a variable in the branch taken."""
    graph = tf.Graph()
    with graph.as_default():
        x = v1.placeholder(tf.float32, [3], name="x")
        v = raw.VarHandleOp(dtype=tf.float32, shape=[3], shared_name="v")
        with tf.control_dependencies([raw.AssignVariableOp(resource=v, value=x)]):
            small = tf.reduce_sum(x) < 0.0
        written = []
        for cond in (small, tf.logical_not(small)):

            @tf.function
            def add(handle, value):
                raw.AssignAddVariableOp(resource=handle, value=value)
                return raw.ReadVariableOp(resource=handle, dtype=tf.float32)

            @tf.function
            def keep(handle, value):
                return raw.ReadVariableOp(resource=handle, dtype=tf.float32) * 2.0 - value

            specs = [tf.TensorSpec([], tf.resource), tf.TensorSpec([3], tf.float32)]
            with tf.control_dependencies(written[-1:]):
                written.append(tf.raw_ops.If(
                    cond=cond, input=[v, x], Tout=[tf.float32],
                    then_branch=add.get_concrete_function(*specs),
                    else_branch=keep.get_concrete_function(*specs), output_shapes=[[3]])[0])
    write_graph(writer, graph, written, {"x:0": np.array([1, -0.5, 2], np.float32)})


@case
def references(writer):
    """References through Switch, Merge and a loop's frames."""
    graph = tf.Graph()
    with graph.as_default():
        x = v1.placeholder(tf.float32, [3], name="x")
        ref = raw.VariableV2(shape=[3], dtype=tf.float32, container="", shared_name="r")
        assigned = raw.Assign(ref=ref, value=x)
        with tf.control_dependencies([assigned.op]):
            chosen = tf.reduce_sum(x) > 0.0
        off, on = raw.RefSwitch(data=assigned, pred=chosen)
        left = raw.AssignAdd(ref=on, value=x)
        right = raw.AssignSub(ref=off, value=x)
        merged = raw.RefMerge(inputs=[right, left])
        inside = raw.RefEnter(data=merged.output, frame_name="frame", is_constant=False)
        outside = raw.RefExit(data=inside)
        outputs = [outside * 2.0, merged.value_index]
    write_graph(writer, graph, outputs, {"x:0": np.array([1, -0.5, 2], np.float32)})
