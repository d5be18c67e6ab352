"""What the host does for a training step on a GPU, counted by the stand-in for the driver (tests/plugin/cuda_stand_in.cpp)
while the kernels run on the host: no GPU is needed, and no time is measured."""

import functools
import json
import os
import subprocess
import tempfile

from . import instructions

# Short of these steps, first runs still differ from later ones.
FEW, MANY = 16, 48


def _environment(build):
    plugin = os.path.join(build, "tests/cuda/libcuda_on_host.so")
    if not os.path.exists(plugin):
        raise RuntimeError(f"{plugin} is missing: build the target cuda_on_host")
    return {**os.environ, "TANDEM_PLUGINS": plugin, "CUDA_STAND_IN_MIB": "512",
            "CUDA_VISIBLE_DEVICES": "0"}


def _command(build, work, steps):
    return [os.path.join(build, "bench/bin/bench_gpu_host"), work, str(steps)]


def _counts(build, work, steps):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "counts.json")
        environment = {**_environment(build), "CUDA_STAND_IN_COUNTS": path}
        done = subprocess.run(_command(build, work, steps), env=environment, capture_output=True,
                              text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"bench_gpu_host {work} failed:\n{done.stderr}")
        with open(path, encoding="utf-8") as file:
            return json.load(file)


@functools.lru_cache(maxsize=None)
def per_step(build, work):
    """Driver calls, launches of kernels, and bytes to and from the GPU, of one step."""
    few, many = _counts(build, work, FEW), _counts(build, work, MANY)
    return {what: (many[what] - few.get(what, 0)) / (MANY - FEW) for what in many}


def row(work, what):
    def measure(root, build, say):
        del root
        counts = per_step(build, work)
        say(f"{work}: {counts}")
        return counts[what], {"per_step": counts}
    return measure


# The caller's part of an eager call where there are several devices.
DISPATCH = "tandem::run_eagerly_on_devices*"


def eager_instructions(root, build, say):
    """Instructions that the caller of an eager op executes to enqueue it, over those of the whole op on the CPU of a
    runtime without a GPU."""
    del root
    if not instructions.available():
        raise RuntimeError("valgrind is not installed")

    def per_op(work, environment, within=None):
        few, many = (instructions.run(_command(build, work, n), environment=environment, within=within)[0]
                     for n in (20, 60))
        return (many - few) / 40

    on_gpu = per_op("eager", _environment(build), DISPATCH)
    on_cpu = per_op("eager_cpu", {**os.environ})
    say(f"eager: {on_gpu:.0f} instructions to enqueue, {on_cpu:.0f} on the CPU")
    return on_gpu / on_cpu, {"enqueue": on_gpu, "cpu": on_cpu}


ROWS = {"eager_instructions": eager_instructions}
ROWS |= {f"{work}_{what}": row(work, what) for work in ("eager", "mlp", "cnn", "transformer")
        for what in ("driver_calls", "kernels", "graph_launches", "bytes_to_gpu", "bytes_from_gpu")}
