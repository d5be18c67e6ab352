"""PyTorch with the package safetensors: from a file to the products with all of its tensors."""

import os
import time

import torch
from safetensors.torch import load_file

import common as c

torch.set_num_threads(c.THREADS)
PATH = os.environ.get("TANDEM_BENCH_SAFETENSORS", "build/bench/weights.safetensors")


def safetensors_load():
    """bench/ours/life/safetensors_load.cpp wrote the file: ours runs first in each pair."""
    x = torch.ones(1, 4096)
    with torch.inference_mode():
        begin = time.perf_counter()
        check = sum(float((x @ w).sum()) for w in load_file(PATH).values())
        took = time.perf_counter() - begin
    return {"value": took * 1e3, "check": check}


c.serve({"safetensors_load": safetensors_load}, f"safetensors with PyTorch {torch.__version__}")
