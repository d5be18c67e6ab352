"""The graphs that a benchmark measures: exported once by TensorFlow, kept under build/bench/graphs."""

import hashlib
import os
import shutil
import subprocess

from . import sides


def version(root, script):
    """Changes with the exporter and with the TensorFlow that exports."""
    with open(os.path.join(root, "tests/peers.txt")) as pins:
        reported = [line for line in pins if line.startswith("tensorflow ")]
    for path in (script, os.path.join(os.path.dirname(script), "exporting.py")):
        with open(path) as source:
            reported.append(source.read())
    return hashlib.sha256("".join(reported).encode()).hexdigest()[:12]


def exported(root, script, install, say):
    """The folder of the graphs. `install()` says whether TensorFlow is there; it is asked only if
    they are not exported yet."""
    script = os.path.join(root, "bench/peers", script)
    folder = os.path.join(root, "build/bench/graphs", os.path.basename(script).removesuffix(".py"))
    ready = os.path.join(folder, version(root, script))
    if os.path.isdir(ready):
        return ready
    if not install():
        raise sides.Failure("the graphs to be measured are TensorFlow's, and it can't be installed")
    say("exporting graphs with TensorFlow")
    shutil.rmtree(folder, ignore_errors=True)  # those of other versions
    os.makedirs(folder)
    python = os.path.join(root, "build/peers/tensorflow/bin/python")
    with open(os.path.join(folder, "export.log"), "w") as log:
        if subprocess.call([python, script, ready + ".part"], stderr=log) != 0:
            raise sides.Failure(f"the export failed, see {log.name}")
    os.rename(ready + ".part", ready)
    return ready
