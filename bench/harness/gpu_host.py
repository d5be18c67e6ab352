"""What the host does for a training step on a GPU, counted by the stand-in for the driver (tests/plugin/cuda_stand_in.cpp)
while the kernels run on the host: no GPU is needed, and no time is measured."""

import functools
import json
import os
import subprocess
import tempfile

# Short of these steps, first runs still differ from later ones.
FEW, MANY = 4, 8


def _counts(build, work, steps):
    plugin = os.path.join(build, "tests/cuda/libcuda_on_host.so")
    if not os.path.exists(plugin):
        raise RuntimeError(f"{plugin} is missing: build the target cuda_on_host")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "counts.json")
        environment = {**os.environ, "TANDEM_PLUGINS": plugin, "CUDA_STAND_IN_MIB": "512",
                       "CUDA_VISIBLE_DEVICES": "0", "CUDA_STAND_IN_COUNTS": path}
        done = subprocess.run([os.path.join(build, "bench/bin/bench_gpu_host"), work, str(steps)],
                              env=environment, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"bench_gpu_host {work} failed:\n{done.stderr}")
        with open(path, encoding="utf-8") as file:
            return json.load(file)


@functools.lru_cache(maxsize=None)
def per_step(build, work):
    """Driver calls, launches of kernels, and bytes to and from the GPU, of one step."""
    few, many = _counts(build, work, FEW), _counts(build, work, MANY)
    return {what: (many[what] - few[what]) / (MANY - FEW) for what in many}


def row(work, what):
    def measure(root, build, say):
        del root
        counts = per_step(build, work)
        say(f"{work}: {counts}")
        return counts[what], {"per_step": counts}
    return measure


ROWS = {f"{work}_{what}": row(work, what) for work in ("eager", "mlp", "cnn")
        for what in ("driver_calls", "kernels", "bytes_to_gpu", "bytes_from_gpu")}
