#!/usr/bin/env python3
"""Writes docs/ops.md from the registry (`td ops --json`), the stored cases and TensorFlow's list of ops.

    make_ops_doc.py --td build/bin/td             # writes the page
    make_ops_doc.py --td build/bin/td --check     # fails if the page is not what would be written

TensorFlow's ops stand in tests/conformance/tensorflow_ops.txt; `--tensorflow` remakes that file with the
TensorFlow of the Python that runs the script.
"""
import argparse
import collections
import gzip
import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
NAMES = HERE / "tensorflow_ops.txt"
PAGE = ROOT / "docs" / "ops.md"

HEAD = """# Ops

Made by tests/conformance/make_ops_doc.py from the registry, the stored cases and TensorFlow's list; not edited by
hand. `td ops NAME` prints a declaration with its kernels. The C++ functions that call ops are declared, family by
family, in tandem/ops/*.h; `<tandem/tandem.h>` has all of them.

- *dtypes*: those of the op's first type attribute that a CPU kernel takes; empty where the op has none.
- *CUDA*: those that a CUDA kernel takes, or "yes" where there are no dtypes to name. Kernels that look at no element, such as
  Reshape's, serve every device. Which of them have run on which GPU is said in docs/gpu.
- *gradient*: yes, or blank where none flows through the op or none is known.
- *cases*: calls of this op that are compared with the real TensorFlow and pass (values, dtypes, shapes, errors and, where
  there are, gradients), eager and traced. An op without cases of its own is tested by programs and graphs that use it.

"""

ORDER = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "half", "bfloat16", "float",
         "double", "complex64", "complex128", "string", "resource", "variant"]
SHORT = [
    ("numbers", set(ORDER[1:15])),
    ("reals", set(ORDER[1:13])),
    ("ints", set(ORDER[1:9])),
    ("floats", {"half", "bfloat16", "float", "double"}),
    ("complex", {"complex64", "complex128"}),
]


def runs_on(kernel, kernel_class):
    return kernel["kernel_class"] in (kernel_class, "*")


def dtypes(op, kernel_class):
    """The dtypes that kernels of the class take, "yes" for a kernel of an op without any, or "" without kernels."""
    kernels = [kernel for kernel in op["kernels"] if runs_on(kernel, kernel_class)]
    if not kernels:
        return ""
    types = [attr for attr in op["attrs"] if attr["kind"] in ("type", "list(type)")]
    if not types:
        return "" if kernel_class == "cpu" else "yes"
    allowed = types[0].get("allowed")
    found = set()
    for kernel in kernels:
        # A kernel that says nothing of the attribute takes what the op does.
        taken = kernel.get("types", {}).get(types[0]["name"], allowed)
        if taken is None:
            return "all"
        found |= set(taken)
    if allowed is not None:
        found &= set(allowed)
    words = []
    for word, members in SHORT:
        if members <= found:
            words.append(word)
            found -= members
    words += [name for name in ORDER if name in found] + sorted(found - set(ORDER))
    return " ".join(words)


def stored_cases():
    counts = collections.Counter()
    for path in sorted((ROOT / "tests" / "reference" / "data").glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            if "family" not in json.loads(next(lines)):
                continue
            for line in lines:
                counts[json.loads(line)["op"]] += 1
    return counts


def tensorflow_ops():
    import tensorflow  # noqa: F401  registers its ops
    from tensorflow.core.framework import op_def_pb2
    from tensorflow.python.client import pywrap_tf_session
    ops = op_def_pb2.OpList()
    ops.ParseFromString(pywrap_tf_session.TF_GetBuffer(pywrap_tf_session.TF_GetAllOpList()))
    return sorted(op.name for op in ops.op if not op.name.startswith("_"))


def page(ops):
    cases = stored_cases()
    known = NAMES.read_text(encoding="utf-8").split()
    ops = [op for op in ops if op["kernels"]]
    ours = {op["name"] for op in ops}
    on_gpus = sum(any(runs_on(kernel, "cuda") for kernel in op["kernels"]) for op in ops)
    lines = [HEAD, f"## The {len(ops)} ops there are\n\n", f"{on_gpus} of them have CUDA kernels.\n\n",
             "| op | dtypes | CUDA | gradient | cases |\n| --- | --- | --- | --- | ---: |\n"]
    gradient = {True: "yes", False: ""}
    for op in ops:
        lines.append(f"| {op['name']} | {dtypes(op, 'cpu')} | {dtypes(op, 'cuda')} | {gradient[op['gradient']]} | {cases[op['name']]} |\n")
    missing = [name for name in known if name not in ours]
    lines.append(f"\n## The {len(missing)} ops of TensorFlow that are not here\n\n")
    row = ""
    for name in missing:
        if len(row) + len(name) + 2 > 118:
            lines.append(row.rstrip() + "\n")
            row = ""
        row += name + (", " if name != missing[-1] else ".")
    lines.append(row + "\n")
    return "".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--td", help="the tool, for the registry")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--tensorflow", action="store_true", help="remake the list of TensorFlow's ops")
    options = parser.parse_args()
    if options.tensorflow:
        NAMES.write_text("\n".join(tensorflow_ops()) + "\n", encoding="utf-8")
        return 0
    listed = subprocess.run([options.td, "ops", "--json"], check=True, capture_output=True, text=True).stdout
    ops = json.loads(listed)
    # The executor itself is what runs a function's arguments and results.
    bare = [op["name"] for op in ops if not any(runs_on(kernel, "cpu") for kernel in op["kernels"]) and op["name"] not in ("_Arg", "_Retval")]
    if bare:
        print("declared without a CPU kernel: " + ", ".join(bare))
        return 1
    text = page(ops)
    if not options.check:
        PAGE.write_text(text, encoding="utf-8")
        return 0
    if PAGE.read_text(encoding="utf-8") != text:
        print("docs/ops.md is not what the registry and the cases say; run tests/conformance/make_ops_doc.py --td build/bin/td")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
