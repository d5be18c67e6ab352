"""PyTorch: torch.save and torch.load of as many tensors, until they would survive a crash."""

import os

import common as c
import life

import torch

torch.set_num_threads(c.THREADS)

PATH = life.path("torch.pt")
STATE = {}


def tensors():
    if not STATE:
        for i in range(life.VARIABLES):
            STATE[f"v{i}"] = torch.full((life.elements(),), float(i + 1))
    return STATE


def check(state):
    return float(sum(t[0].item() for t in state.values()))


def save():
    state = tensors()
    life.remove("torch")
    seconds = life.timed(lambda: (torch.save(state, PATH), life.sync("torch")))
    return {"value": life.megabytes() / seconds, "check": check(state)}


def restore():
    """Into tensors that are there, as a model's load_state_dict does."""
    state = tensors()
    if not os.path.exists(PATH):
        torch.save(state, PATH)

    def load():
        for name, value in torch.load(PATH, weights_only=True, mmap=True).items():
            state[name].copy_(value)

    seconds = life.timed(load)
    return {"value": life.megabytes() / seconds, "check": check(state)}


c.serve({"save": save, "restore": restore}, f"PyTorch {torch.__version__}")
