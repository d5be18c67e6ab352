"""What the host does for a training step on a GPU, counted by the stand-in for the driver (tests/plugin/cuda_stand_in.cpp)
while the kernels run on the host: no GPU is needed, and no time is measured."""

import functools
import json
import os
import subprocess

from . import instructions

STEPS = 20
ADDITIONS = 1000


def _environment(build):
    plugin = os.path.join(build, "tests/cuda/libcuda_on_host.so")
    driver = os.path.join(build, "tests/plugin/libcuda_stand_in.so")
    for library in (plugin, driver):
        if not os.path.exists(library):
            raise RuntimeError(f"{library} is missing: build the target cuda_on_host")
    return {**os.environ, "TANDEM_PLUGINS": plugin, "CUDA_STAND_IN": driver, "CUDA_STAND_IN_MIB": "512",
            "CUDA_VISIBLE_DEVICES": "0", "TANDEM_CUDA_HOST_READ_LIMIT": "65536",
            "TANDEM_CACHE_DIR": os.path.join(build, "bench/gpu_host_cache")}


def _command(build, work, steps):
    return [os.path.join(build, "bench/bin/bench_gpu_host"), work, str(steps)]


@functools.lru_cache(maxsize=None)
def per_step(build, work):
    """Ops of one step, and what it asks of the driver once it is captured: calls, launches of kernels, and bytes to and
    from the GPU."""
    steps = ADDITIONS if work == "eager" else STEPS
    done = subprocess.run(_command(build, work, steps), env=_environment(build), capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        raise RuntimeError(f"bench_gpu_host {work} failed:\n{done.stderr}")
    answer = json.loads(done.stdout.splitlines()[-1])
    ops, loss, steps = (answer.pop(name) for name in ("ops", "loss", "steps"))
    return {"ops": ops, "loss": loss, **{what: count / steps for what, count in answer.items()}}


def row(work, what):
    def measure(root, build, say):
        del root
        counts = per_step(build, work)
        say(f"{work}: {counts}")
        return counts[what], {"per_step": counts}
    return measure


def kernels_per_op(work):
    def measure(root, build, say):
        del root
        counts = per_step(build, work)
        say(f"{work}: {counts['kernels']:.1f} kernels for {counts['ops']} ops")
        return counts["kernels"] / counts["ops"], {"per_step": counts}
    return measure


# What the calling thread does, from the operator on.
ADDING = "bench::counted_additions*"


def eager_instructions(root, build, say):
    """Instructions that the caller of an eager op executes to enqueue it, over those of the whole op on the CPU of a
    runtime without a GPU."""
    del root
    if not instructions.available():
        raise RuntimeError("valgrind is not installed")

    def per_op(work, environment):
        few, many = (instructions.run(_command(build, work, n), environment=environment, within=ADDING)[0]
                     for n in (8, 8 + ADDITIONS))
        return (many - few) / ADDITIONS

    on_gpu = per_op("eager", _environment(build))
    on_cpu = per_op("eager_cpu", {**os.environ})
    say(f"eager: {on_gpu:.0f} instructions to enqueue, {on_cpu:.0f} on the CPU")
    return on_gpu / on_cpu, {"enqueue": on_gpu, "cpu": on_cpu}


TRAINED = ("mlp", "cnn", "transformer")
ROWS = {"eager_instructions": eager_instructions}
ROWS |= {f"{work}_{what}": row(work, what) for work in ("eager", *TRAINED)
         for what in ("driver_calls", "kernels", "graph_launches", "bytes_to_gpu", "bytes_from_gpu")}
ROWS |= {f"{work}_ops": row(work, "ops") for work in TRAINED}
ROWS |= {f"{work}_kernels_per_op": kernels_per_op(work) for work in TRAINED}
