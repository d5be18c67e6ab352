#!/usr/bin/env python3
"""Makes the stored reference values: runs the cases with the real TensorFlow.

    python make_reference.py [--family NAME]... [--filter TEXT] [--check | --show]

Run with a Python that has the TensorFlow pinned in tests/peers.txt. Reads cases/FAMILY.txt and
writes data/FAMILY.jsonl.gz, byte for byte the same for the same TensorFlow on the same kind of
machine. `--check` compares with the stored files instead of writing them, `--show` prints values.
A case that does otherwise than its line says (fails, or does not) stops nothing but is listed,
and nothing is written for its family.
"""

import argparse
import base64
import functools
import inspect
import os
import pathlib
import sys

os.environ.update({
    "CUDA_VISIBLE_DEVICES": "-1",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    # The plain Eigen kernels: their results depend on the machine less than oneDNN's.
    "TF_ENABLE_ONEDNN_OPTS": "0",
})

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import op_def_registry

import case_language
from case_language import COMPLEX, DTYPES, QUANTIZED, CaseError
from records import encode, encode_or_null, packed, unpacked

HERE = pathlib.Path(__file__).resolve().parent
TF_DTYPES = {name: tf.as_dtype(name if name not in ("half", "float", "double", "string") else
                               {"half": tf.float16, "float": tf.float32, "double": tf.float64,
                                "string": tf.string}[name]) for name in DTYPES}
TF_DTYPES.update(resource=tf.resource, variant=tf.variant)
OTHER_ERRORS = [((KeyError, LookupError), "NOT_FOUND"), (NotImplementedError, "UNIMPLEMENTED"),
                ((ValueError, TypeError, OverflowError), "INVALID_ARGUMENT"),
                (RuntimeError, "FAILED_PRECONDITION")]
CODE_NAMES = {value: name for name, value in vars(tf.errors).items()
              if name.isupper() and isinstance(value, int)}


class Mismatch(Exception):
    """TensorFlow did otherwise than the case says."""


class Failure(Exception):
    """TensorFlow refused the call."""

    def __init__(self, code, text):
        super().__init__(text)
        self.code = code


def refusing(call):
    """Calls, and turns whatever TensorFlow throws into a Failure with a canonical code."""
    try:
        return call()
    except tf.errors.OpError as error:
        raise Failure(CODE_NAMES[error.error_code], error.message) from error
    except Exception as error:
        for kinds, code in OTHER_ERRORS:
            if isinstance(error, kinds):
                raise Failure(code, str(error)) from error
        raise


REFERENCES = ("ref", "noref")


class Call:
    """One op with its inputs and attributes, which can be made eagerly or into a graph."""

    def __init__(self, case):
        self.case = case
        self.definition = op_def_registry.get(case.op)
        if self.definition is None:
            raise Mismatch(f"TensorFlow has no op {case.op}")
        if len(case.inputs) != len(self.definition.input_arg):
            names = ", ".join(arg.name for arg in self.definition.input_arg)
            raise Mismatch(f"{case.op} takes {names}")
        kinds = {attr.name: attr.type for attr in self.definition.attr}
        self.attributes = {}
        for name, text in case.attributes.items():
            if name not in kinds:
                raise Mismatch(f"{case.op} has no attribute {name}; it has {', '.join(kinds)}")
            if name not in python_names(case.op):
                raise Mismatch(f"{case.op} infers its attribute {name}")
            self.attributes[name] = (kinds[name],
                                     case_language.parse_attribute(kinds[name], text))
        self.arrays = [self._arrays(spec, index) for index, spec in enumerate(case.inputs)]
        self.variables = []
        self.initializers = []

    def _arrays(self, spec, index):
        if spec.kind == "list":
            return [case_language.generate(item, self.case.random("input", index, place))
                    for place, item in enumerate(spec.items)]
        return case_language.generate(spec, self.case.random("input", index))

    def keywords(self, in_double=False):
        def convert(kind, value):
            if kind.startswith("list("):
                return [convert(kind[5:-1], item) for item in value]
            if kind == "type":
                return tf.float64 if in_double and value == "float" else TF_DTYPES[value]
            if kind == "shape":
                return tf.TensorShape(value and [None if dim < 0 else dim for dim in value])
            return value
        return {name: convert(*value) for name, value in self.attributes.items()}

    def run(self, inputs, in_double=False):
        """Flat list of outputs. `inputs` has a tensor, or list of tensors, an argument."""
        named = {arg.name: value for arg, value in zip(self.definition.input_arg, inputs)}
        named.update(self.keywords(in_double))
        names = python_names(self.case.op)
        result = getattr(tf.raw_ops, self.case.op)(
            **{names[name]: value for name, value in named.items()})
        return [] if result is None or isinstance(result, tf.Operation) else tf.nest.flatten(result)

    def tensors(self):
        return [self.tensor(index) for index in range(len(self.arrays))]

    def tensor(self, index):
        spec, array = self.case.inputs[index], self.arrays[index]
        if spec.kind == "list":
            return [tf.constant(item) for item in array]
        if spec.kind == "value":
            return tf.constant(array)
        if spec.kind in REFERENCES:
            return self._reference(spec, array)
        handle = tf.raw_ops.VarHandleOp(
            dtype=TF_DTYPES[spec.dtype], shape=spec.shape if spec.generator != "literal" else
            array.shape, shared_name=f"{self.case.id}-{index}-{len(self.variables)}")
        if spec.kind == "var":
            tf.raw_ops.AssignVariableOp(resource=handle, value=tf.constant(array))
        self.variables.append((handle, TF_DTYPES[spec.dtype], spec.kind))
        return handle

    def _reference(self, spec, array):
        reference = tf.raw_ops.VariableV2(dtype=TF_DTYPES[spec.dtype], shape=array.shape)
        if spec.kind == "ref":
            self.initializers.append(tf.raw_ops.Assign(ref=reference, value=tf.constant(array)).op)
        self.variables.append((reference, TF_DTYPES[spec.dtype], spec.kind))
        return reference

    @property
    def uses_references(self):
        return any(spec.kind in REFERENCES for spec in self.case.inputs)

    def inferred(self):
        """The attributes that follow from the inputs: types and list lengths."""
        found = {}
        for arg, spec in zip(self.definition.input_arg, self.case.inputs):
            items = spec.items if spec.kind == "list" else [spec]
            types = [item.dtype if item.kind in ("value", *REFERENCES) else "resource"
                     for item in items]
            if arg.type_attr and types:
                found.setdefault(arg.type_attr, ("type", types[0]))
            if arg.number_attr:
                found.setdefault(arg.number_attr, ("int", len(items)))
            if arg.type_list_attr:
                found.setdefault(arg.type_list_attr, ("list(type)", types))
        return {name: value for name, value in found.items() if name not in self.attributes}


@functools.cache
def python_names(op):
    """How tf.raw_ops spells the arguments of an op: mostly, but not always, as the op does. The
    names that only one side has stand for each other, in order."""
    definition = op_def_registry.get(op)
    there = list(inspect.signature(getattr(tf.raw_ops, op)).parameters)
    there.remove("name")
    inferred = {name for arg in definition.input_arg
                for name in (arg.type_attr, arg.number_attr, arg.type_list_attr)}
    here = [arg.name for arg in definition.input_arg]
    here += [attr.name for attr in definition.attr if attr.name not in inferred]
    only_here = [name for name in here if name not in there]
    only_there = [name for name in there if name not in here]
    if len(only_here) != len(only_there):
        raise Mismatch(f"{op}: cannot match {only_here} with {only_there}")
    return {**{name: name for name in here}, **dict(zip(only_here, only_there))}


def encode_attributes(attributes):
    return {name: {"type": kind, "value": value} for name, (kind, value) in attributes.items()}


def is_differentiable(array):
    return array.dtype.kind in "fc" or array.dtype == DTYPES["bfloat16"]


def random_like(random, array):
    """An upstream gradient for an output."""
    values = random.standard_normal(array.shape)
    if case_language.NAMES.get(array.dtype) in COMPLEX:
        values = values + 1j * random.standard_normal(array.shape)
    return np.asarray(values).astype(array.dtype)


def dense(gradient):
    return None if gradient is None else tf.convert_to_tensor(gradient)


def values(tensors):
    return [None if tensor is None else tensor.numpy() for tensor in tensors]


def as_arrays(tensors):
    """Numpy values; string scalars, which numpy() gives as bytes, become arrays too."""
    result = []
    for tensor in tensors:
        value = tensor.numpy()
        if isinstance(value, bytes):
            boxed = np.empty((), dtype=object)
            boxed[()] = value
            value = boxed
        value = np.asarray(value)
        if tensor.dtype.name in QUANTIZED:  # which numpy() gives as plain integers
            value = np.ascontiguousarray(value).view(DTYPES[tensor.dtype.name]).reshape(value.shape)
        result.append(value)
    return result


def plain_shape(shape):
    return None if shape.rank is None else [-1 if dim is None else dim for dim in shape.as_list()]


class Maker:
    """Makes the record of one case."""

    def __init__(self, case):
        self.case = case
        self.call = Call(case)
        self.flags = case.flags
        self.refusal = ""

    def record(self):
        case, call = self.case, self.call
        record = {"id": case.id, "line": case.line, "op": case.op,
                  "attributes": encode_attributes(call.attributes),
                  "inferred": encode_attributes(call.inferred()),
                  "inputs": [self._encode_input(spec, array)
                             for spec, array in zip(case.inputs, call.arrays)]}
        for flag in ("tol", "atol", "ulps"):
            if flag in self.flags:
                record[flag] = float(self.flags[flag])
        for flag in ("exact", "nonumeric", "anycode"):
            if flag in self.flags:
                record[flag] = True
        if "ignore" in self.flags:
            record["ignore"] = [int(index) for index in self.flags["ignore"].split(",")]
        if "numeric" in self.flags:
            record["numeric"] = self.flags["numeric"]
        if "fails" in self.flags:
            record["error"] = self._failure()
        elif "graph" in self.flags:
            record["runs"] = self._graph_runs()
        else:
            self._run(record)
        if "noshape" not in self.flags and not call.uses_references:
            self._shapes(record)
        return record

    def _encode_input(self, spec, array):
        def value_of(spec, array):
            return {**encode(array), "literal": True} if spec.is_literal else encode(array)

        if spec.kind == "list":
            return {"list": [value_of(item, each) for item, each in zip(spec.items, array)]}
        if spec.kind == "value":
            return value_of(spec, array)
        value = encode(array)
        if spec.kind in ("novar", "noref"):
            value.pop("data")
        return {"reference" if spec.kind in REFERENCES else "variable": value}

    def _failure(self):
        wanted = self.flags["fails"]
        wanted = "INVALID_ARGUMENT" if wanted is True else wanted.upper()
        try:
            if self.call.uses_references:
                outputs = refusing(self._run_with_references)
            else:
                outputs = refusing(lambda: as_arrays(self.call.run(self.call.tensors())))
        except Failure as failure:
            if failure.code != wanted:
                raise Mismatch(f"fails with {failure.code}: {failure}") from None
            self.refusal = str(failure)
            return failure.code
        raise Mismatch(f"does not fail, but gives {outputs}")

    def _graph_runs(self):
        """Outputs of the first, second, ... run of a fresh session: for stateful ops."""
        with tf.Graph().as_default():
            outputs = self.call.run(self.call.tensors())
            with tf.compat.v1.Session() as session:
                runs = [refusing(lambda: session.run(outputs))
                        for _ in range(int(self.flags.get("runs", 2)))]
        return [[encode(output) for output in run] for run in runs]

    def _run_with_references(self):
        """Outputs and variables' values; references are of graphs alone."""
        call = self.call
        config = tf.compat.v1.ConfigProto()
        config.graph_options.rewrite_options.disable_meta_optimizer = True
        with tf.Graph().as_default():
            outputs = call.run(call.tensors())
            ready = [tf.raw_ops.IsVariableInitialized(ref=ref) for ref, _, _ in call.variables]
            with tf.compat.v1.Session(config=config) as session:
                session.run(call.initializers)
                values = session.run(outputs)
                return values, [
                    session.run(ref) if session.run(is_ready) else None
                    for (ref, _, _), is_ready in zip(call.variables, ready)]

    def _run(self, record):
        call = self.call
        if call.uses_references:
            try:
                outputs, variables = refusing(self._run_with_references)
            except Failure as failure:
                raise Mismatch(f"fails with {failure.code}: {failure}") from None
            record["outputs"] = [encode(np.asarray(output)) for output in outputs]
            record["variables"] = [encode_or_null(value) for value in variables]
            return
        inputs = call.tensors()
        try:
            if "grad" in self.flags or "grad2" in self.flags:
                outputs = refusing(lambda: self._differentiate(inputs, record))
            else:
                outputs = as_arrays(refusing(lambda: call.run(inputs)))
        except Failure as failure:
            raise Mismatch(f"fails with {failure.code}: {failure}") from None
        record["outputs"] = [encode(output) for output in outputs]
        for index in record.get("ignore", []):
            record["outputs"][index].pop("data")
        if call.variables:
            record["variables"] = [
                encode_or_null(tf.raw_ops.ReadVariableOp(resource=handle, dtype=dtype).numpy()
                               if self._initialized(handle) else None)
                for handle, dtype, _ in call.variables]

    @staticmethod
    def _initialized(handle):
        return bool(tf.raw_ops.VarIsInitializedOp(resource=handle).numpy())

    def _differentiate(self, inputs, record):
        flat = tf.nest.flatten(inputs)
        arrays = as_arrays(flat)
        watched = [index for index, array in enumerate(arrays) if is_differentiable(array)]
        sources = [flat[index] for index in watched]
        if not sources:
            raise Mismatch("nothing to differentiate")
        with tf.GradientTape(persistent=True) as outer:
            outer.watch(sources)
            with tf.GradientTape(persistent=True) as tape:
                tape.watch(sources)
                outputs = self.call.run(inputs)
            arrays = as_arrays(outputs)
            upstream = self._upstream(arrays)
            upstream_tensors = [None if array is None else tf.constant(array) for array in upstream]
            chosen = [index for index, array in enumerate(upstream) if array is not None]
            outer.watch([upstream_tensors[index] for index in chosen])
            gradients = [dense(gradient) for gradient in tape.gradient(
                [outputs[index] for index in chosen], sources,
                output_gradients=[upstream_tensors[index] for index in chosen])]
        if all(gradient is None for gradient in gradients):
            raise Mismatch("TensorFlow has no gradient of it")
        record["upstream"] = [encode_or_null(array) for array in upstream]
        record["gradients"] = self._spread(len(flat), watched, values(gradients))
        self._numeric_check(inputs, upstream, watched, gradients)
        if "grad2" in self.flags:
            record["second"] = self._second(outer, sources, gradients, upstream_tensors, chosen,
                                            len(flat), watched)
        return arrays

    def _upstream(self, arrays):
        only = self.flags.get("upstream")
        chosen = None if only is None else {int(index) for index in only.split(",")}
        return [random_like(self.case.random("upstream", index), array)
                if is_differentiable(array) and (chosen is None or index in chosen) else None
                for index, array in enumerate(arrays)]

    @staticmethod
    def _spread(count, watched, gradients):
        result = [None] * count
        for index, gradient in zip(watched, gradients):
            result[index] = encode_or_null(gradient)
        return result

    def _second(self, outer, sources, gradients, upstream, chosen, count, watched):
        """Gradients of the gradients, towards the inputs and towards the upstream gradients."""
        made = [place for place, gradient in enumerate(gradients) if gradient is not None]
        upstream2 = {place: random_like(self.case.random("second", place), gradients[place].numpy())
                     for place in made}
        targets = sources + [upstream[index] for index in chosen]
        results = values([dense(result) for result in outer.gradient(
            [gradients[place] for place in made], targets,
            output_gradients=[tf.constant(upstream2[place]) for place in made])])
        towards_upstream = [None] * len(upstream)
        for index, result in zip(chosen, results[len(sources):]):
            towards_upstream[index] = encode_or_null(result)
        return {"upstream": self._spread(count, watched, [upstream2.get(place) for place in
                                                          range(len(sources))]),
                "gradients": self._spread(count, watched, results[:len(sources)]),
                "towards_upstream": towards_upstream}

    def _numeric_check(self, inputs, upstream, watched, gradients):
        """TensorFlow's own gradient against central differences in double: where they differ,
        the case must say `nonumeric`, so that our test knows not to try."""
        flat = tf.nest.flatten(inputs)
        names = {case_language.NAMES[array.dtype] for array in
                 [*(flat[index].numpy() for index in watched),
                  *(array for array in upstream if array is not None)]}
        if "nonumeric" in self.flags or not names <= {"float", "double"}:
            return
        in_double = self.flags.get("numeric") != "float"
        step, tolerance = (1e-6, 1e-5) if in_double else (1e-2, 3e-2)
        dtype = np.float64 if in_double else np.float32
        arrays = [array.astype(dtype) if index in watched else array
                  for index, array in enumerate(as_arrays(flat))]
        weights = [None if array is None else array.astype(np.float64) for array in upstream]

        def loss(changed):
            packed_inputs = tf.nest.pack_sequence_as(inputs, [tf.constant(a) for a in changed])
            outputs = as_arrays(self.call.run(packed_inputs, in_double))
            return sum(np.sum(weight * output.astype(np.float64))
                       for weight, output in zip(weights, outputs) if weight is not None)

        for index, gradient in zip(watched, gradients):
            expected = np.zeros(arrays[index].shape)
            for place in np.ndindex(arrays[index].shape):
                ends = []
                for sign in (1, -1):
                    changed = list(arrays)
                    changed[index] = arrays[index].copy()
                    changed[index][place] += sign * step
                    ends.append(loss(changed))
                expected[place] = (ends[0] - ends[1]) / (2 * step)
            actual = np.zeros_like(expected) if gradient is None else gradient.numpy()
            scale = max(1.0, float(np.max(np.abs(expected), initial=0)))
            worst = float(np.max(np.abs(expected - actual), initial=0))
            if not worst <= tolerance * scale:
                raise Mismatch(f"gradient of input {index} differs from numeric by {worst}: "
                               f"say nonumeric\n{actual}\n{expected}")

    def _shapes(self, record):
        """What TensorFlow's shape function says with all shapes known, with ranks known, and with
        nothing known; literal inputs are constants, whose values it may use."""
        found = {}
        for knowledge in ("full", "rank", "none"):
            try:
                found[knowledge] = refusing(lambda: self._infer(knowledge))
            except Failure as failure:
                found[knowledge] = failure.code
        if "error" not in record and any(isinstance(shapes, str) for shapes in found.values()):
            raise Mismatch(f"the shape function fails: {found}")
        record["shapes"] = found

    def _infer(self, knowledge):
        def symbol(spec, array):
            if spec.is_literal or array.dtype == object:
                return tf.constant(array)
            shape = {"full": array.shape, "rank": [None] * array.ndim, "none": None}[knowledge]
            return tf.compat.v1.placeholder(tf.as_dtype(array.dtype), shape)

        with tf.Graph().as_default():
            inputs = []
            for index, (spec, array) in enumerate(zip(self.case.inputs, self.call.arrays)):
                if spec.kind == "list":
                    inputs.append([symbol(item, each) for item, each in zip(spec.items, array)])
                elif spec.kind == "value":
                    inputs.append(symbol(spec, array))
                else:
                    inputs.append(self.call.tensor(index))
            return [plain_shape(output.shape) for output in self.call.run(inputs)]


def show(record, maker):
    print(record["line"])
    if "error" in record:
        print("   ", record["error"], maker.refusal)
    print("    shapes", record.get("shapes"))

    def decoded(value):
        if value is None or "data" not in value:
            return value
        return np.frombuffer(base64.b64decode(value["data"]),
                             DTYPES[value["dtype"]]).reshape(value["shape"])
    for key in ("inputs", "outputs", "gradients", "variables"):
        for index, value in enumerate(record.get(key, [])):
            print("   ", key, index, str(decoded(value)).replace("\n", "\n        "))
    for run in record.get("runs", []):
        print("    run", [decoded(value) for value in run])


def make_family(path, arguments):
    records, problems = [], []
    for case in case_language.read_cases(path):
        if arguments.filter and arguments.filter not in case.line:
            continue
        if arguments.verbose:
            print(case.line, file=sys.stderr, flush=True)
        try:
            maker = Maker(case)
            records.append(maker.record())
            if arguments.show:
                show(records[-1], maker)
        except (Mismatch, CaseError) as mismatch:
            problems.append(f"{path.stem}: {case.line}\n    {str(mismatch)[:600]}")
    header = {"format": 1, "family": path.stem, "tensorflow": tf.__version__, "cases": len(records)}
    return [header, *records], problems


def compare_with_stored(path, records):
    if not path.exists():
        return [f"{path.name} is not there"]
    stored = {record.get("id"): record for record in unpacked(path)}
    fresh = {record.get("id"): record for record in records}
    return [f"{path.name}: {(fresh.get(key) or stored[key]).get('line', 'header')}"
            for key in {**stored, **fresh} if fresh.get(key) != stored.get(key)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--family", action="append", help="only these files of cases")
    parser.add_argument("--filter", help="only cases whose line has this text; nothing is written")
    parser.add_argument("--check", action="store_true", help="compare with the stored files")
    parser.add_argument("--out", type=pathlib.Path, default=HERE / "data",
                        help="the folder to write (default: the stored files)")
    parser.add_argument("--show", action="store_true", help="print the values")
    parser.add_argument("--verbose", action="store_true", help="name each case before it runs")
    arguments = parser.parse_args()
    arguments.out = arguments.out.resolve()
    os.chdir(HERE.parent.parent)  # cases name files from there
    tf.config.threading.set_inter_op_parallelism_threads(1)
    tf.config.threading.set_intra_op_parallelism_threads(1)
    total, failed = 0, False
    for path in sorted((HERE / "cases").glob("*.txt")):
        if arguments.family and path.stem not in arguments.family:
            continue
        records, problems = make_family(path, arguments)
        stored = arguments.out / f"{path.stem}.jsonl.gz"
        if arguments.check and not problems:
            problems = compare_with_stored(stored, records)
        size = ""
        if not problems and not arguments.check and not arguments.filter:
            data = packed(records)
            stored.parent.mkdir(parents=True, exist_ok=True)
            stored.write_bytes(data)
            size = f", {len(data):,} bytes"
        for problem in problems:
            print(problem)
        print(f"{path.stem}: {len(records) - 1} cases, {len(problems)} problems{size}", flush=True)
        total += len(records) - 1
        failed |= bool(problems)
    print(f"{total} cases with TensorFlow {tf.__version__}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
