"""PyTorch: the single operations of `mechanisms`, on the exported variables."""

import numpy as np
import torch

import common as c
import models_common

torch.set_num_threads(c.THREADS)


def reduction(x):
    return x.sum(1)


def softmax(logits):
    return torch.softmax(logits, 1)[0]


def layer_norm(x, scale, offset):
    return torch.nn.functional.layer_norm(x, (x.shape[1],), scale, offset, 1e-3)[0]


def gather(table):
    if not hasattr(gather, "order"):
        order = np.random.default_rng(1).permutation(len(table))[:32768]  # as export_mechanisms.py
        gather.order = torch.from_numpy(order)
    return torch.index_select(table, 0, gather.order)[0]


OPERATIONS = {f.__name__: f for f in (reduction, softmax, layer_norm, gather)}


class Model:
    def __init__(self, described):
        with np.load(described.folder / "weights.npz") as weights:
            self.variables = {name: torch.from_numpy(weights[name]) for name in weights}
        self.operation = OPERATIONS[described.name]

    def step(self):
        with torch.inference_mode():
            return self.operation(**self.variables).numpy()


if __name__ == "__main__":
    models_common.main(Model, sorted(OPERATIONS), f"torch {torch.__version__}")
