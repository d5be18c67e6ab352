"""PyTorch runs ResNet50 as Keras has it, with the exported weights.

Images lie channels last, inference runs under inference_mode, bfloat16 by autocast, as PyTorch's
tuning guide advises for a CPU. Each model is tried as it is, compiled (torch.compile), and compiled
with its weights frozen; of those whose results hold, the fastest counts.
"""

import sys
import time

import numpy as np
import torch
import torch._inductor.config
from torch import nn

import common as c
import models_common

torch.set_num_threads(c.THREADS)
NAMES = ("resnet50_inference", "resnet50_inference_bf16", "resnet50_training",
         "resnet50_training_bf16")
WAYS = ("plain", "compiled", "frozen")


class Convolution(nn.Module):
    def __init__(self, name, weights, stride=1, padding=0):
        super().__init__()
        kernel = weights[f"{name}_conv/kernel"]
        self.conv = nn.Conv2d(*kernel.shape[2:], kernel.shape[0], stride, padding)
        self.bn = nn.BatchNorm2d(kernel.shape[3], eps=1.001e-5, momentum=0.01)
        with torch.no_grad():
            self.conv.weight.copy_(torch.from_numpy(kernel.transpose(3, 2, 0, 1).copy()))
            for target, word in ((self.conv.bias, "conv/bias"), (self.bn.weight, "bn/gamma"),
                                 (self.bn.bias, "bn/beta"), (self.bn.running_mean, "bn/moving_mean"),
                                 (self.bn.running_var, "bn/moving_variance")):
                target.copy_(torch.from_numpy(weights[f"{name}_{word}"]))

    def forward(self, x):
        return self.bn(self.conv(x))


class Block(nn.Module):
    def __init__(self, name, weights, stride, changes):
        super().__init__()
        self.first = Convolution(f"{name}_1", weights, stride)
        self.second = Convolution(f"{name}_2", weights, padding=1)
        self.third = Convolution(f"{name}_3", weights)
        self.side = Convolution(f"{name}_0", weights, stride) if changes else nn.Identity()

    def forward(self, x):
        y = torch.relu(self.second(torch.relu(self.first(x))))
        return torch.relu(self.side(x) + self.third(y))


class ResNet50(nn.Module):
    """ResNet50 v1, strides in the first convolution of a block."""

    def __init__(self, weights):
        super().__init__()
        self.stem = Convolution("conv1", weights, 2, 3)
        self.pool = nn.MaxPool2d(3, 2, 1)
        blocks = []
        for stack, count in enumerate((3, 4, 6, 3), start=2):
            for i in range(count):
                stride = 2 if i == 0 and stack > 2 else 1
                blocks.append(Block(f"conv{stack}_block{i + 1}", weights, stride, i == 0))
        self.blocks = nn.Sequential(*blocks)
        self.top = nn.Linear(2048, 1000)
        with torch.no_grad():
            self.top.weight.copy_(torch.from_numpy(weights["predictions/kernel"].T.copy()))
            self.top.bias.copy_(torch.from_numpy(weights["predictions/bias"]))

    def forward(self, x):
        x = self.pool(torch.relu(self.stem(x)))
        return self.top(self.blocks(x).mean((2, 3)))


class Model:
    """ResNet50 in one of WAYS."""

    def __init__(self, described, way):
        values = list(described.feeds.values())
        self.images = torch.from_numpy(values[0].transpose(0, 3, 1, 2))  # lie channels last
        self.mixed = described.name.endswith("bf16")
        self.trains = bool(described.init)
        with np.load(described.folder / "weights.npz") as weights:
            self.net = ResNet50(dict(weights)).to(memory_format=torch.channels_last)
        self.net.train(self.trains)
        torch._dynamo.reset()
        torch._inductor.config.freezing = way == "frozen"
        self.run = self.net if way == "plain" else torch.compile(self.net)
        if self.trains:
            self.labels = torch.from_numpy(values[1]).long()
            self.optimizer = torch.optim.SGD(self.net.parameters(), lr=1e-3, momentum=0.9, fused=True)

    def logits(self):
        with torch.autocast("cpu", torch.bfloat16, enabled=self.mixed):
            return self.run(self.images).float()

    def step(self):
        if self.trains:
            loss = nn.functional.cross_entropy(self.logits(), self.labels)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            return loss.detach().numpy()
        with torch.inference_mode():
            return torch.softmax(self.logits(), 1).numpy()


def fastest(described):
    """The model in the fastest way; the steps of each are verified."""
    best = None
    for way in WAYS[:2] if described.init else WAYS:
        try:
            model = Model(described, way)
            described.verify(model.step)
        except Exception as error:  # no C++ compiler, say, or too coarse
            if way == "plain":
                raise
            print(f"{described.name}: not {way}: {error}", file=sys.stderr)
            continue
        times = []
        for _ in range(3):
            start = time.perf_counter()
            model.step()
            times.append(time.perf_counter() - start)
        print(f"{described.name}: {way}: {min(times) * 1e3:.0f} ms", file=sys.stderr, flush=True)
        if best is None or min(times) < best[0]:
            best = min(times), way
        del model
    return Model(described, best[1])


if __name__ == "__main__":
    # Memory is that of the plain way, which compiles nothing and so needs the least.
    one_shot = len(sys.argv) > 1
    models_common.main((lambda described: Model(described, "plain")) if one_shot else fastest, NAMES,
                       f"torch {torch.__version__}")
