"""PyTorch on a GPU: products, training steps and an MLP, with the work of bench/ours/gpu.

It runs by this machine's own Python, whose PyTorch has CUDA. `ROW_compiled` is a row under torch.compile.
TANDEM_BENCH_SMALL=1 makes the work as small as ours is then; TANDEM_BENCH_TORCH_DEVICE=cpu names another device, with which the
two sides' values can be compared where there is no GPU.
"""

import math
import os

import numpy as np
import torch
from torch import nn

import common as c

DEVICE = os.environ.get("TANDEM_BENCH_TORCH_DEVICE", "cuda")
SMALL = os.environ.get("TANDEM_BENCH_SMALL") == "1"
PERIOD = 1048573
IMAGES_SEED, SEQUENCE_SEED = 21, 22
BLOCK_SCALE = 0.2
SECONDS = 0 if SMALL else 0.5

# As in bench/ours/gpu/sizes.h.
PRODUCT_SCALE = 128 if SMALL else 1
IMAGES, SIDE, FILTERS, CLASSES = (2, 32, 2, 10) if SMALL else (256, 224, 64, 1000)
BLOCKS = (1, 1, 1, 1) if SMALL else (3, 4, 6, 3)
LAYERS, WIDTH, HEADS, TOKENS, SEQUENCES = (2, 16, 2, 8, 2) if SMALL else (24, 1024, 16, 512, 16)
MLP_SAMPLES = 64 if SMALL else c.MLP_SAMPLES

torch.set_num_threads(c.THREADS)


def wait():
    if DEVICE == "cuda":
        torch.cuda.synchronize()


def tiled(shape, seed):
    count = math.prod(shape)
    values = np.resize(c.uniform((min(count, PERIOD),), seed), count)
    return torch.from_numpy(values.reshape(shape))


def hashed(text):
    """FNV-1a."""
    h = 2166136261
    for byte in text.encode():
        h = (h ^ byte) * 16777619 % 2**32
    return h


def kernel(shape, fan_in, name, number=0):
    """What ours gives to a kernel of this layer, in our layout."""
    return (tiled(shape, hashed(name) + number) - 0.5) * 2 * np.float32(math.sqrt(6 / fan_in))


def seconds_per_step(step, warm_up=3):
    for _ in range(warm_up):
        step()
    wait()
    start = c.time.perf_counter()
    step()
    wait()
    steps = 1 + int(SECONDS / (c.time.perf_counter() - start))
    start = c.time.perf_counter()
    for _ in range(steps):
        step()
    wait()
    return (c.time.perf_counter() - start) / steps


def product(dtype, n):
    def run():
        a = tiled((n, n), c.LEFT_SEED).to(DEVICE).to(dtype)
        b = tiled((n, n), c.RIGHT_SEED).to(DEVICE).to(dtype)
        out = torch.empty((n, n), dtype=dtype, device=DEVICE)

        def loop(times):
            with torch.inference_mode():
                for _ in range(times):
                    torch.mm(a, b, out=out)
                wait()

        value = c.seconds_per_call(loop) * 1e3
        return {"value": value, "check": out[n // 3, n // 2].item()}

    return run


class Convolution(nn.Module):
    def __init__(self, name, inputs, filters, size, stride=1, padding=0, scale=1.0):
        super().__init__()
        self.conv = nn.Conv2d(inputs, filters, size, stride, padding)
        self.bn = nn.BatchNorm2d(filters, eps=1.001e-5, momentum=0.01)
        made = kernel((size, size, inputs, filters), size * size * inputs, name + "_conv")
        with torch.no_grad():
            self.conv.weight.copy_(made.permute(3, 2, 0, 1))
            self.conv.bias.zero_()
            self.bn.weight.fill_(scale)

    def forward(self, x):
        return self.bn(self.conv(x))


class Block(nn.Module):
    def __init__(self, name, inputs, filters, stride, widens):
        super().__init__()
        self.first = Convolution(f"{name}_1", inputs, filters, 1, stride)
        self.second = Convolution(f"{name}_2", filters, filters, 3, padding=1)
        self.third = Convolution(f"{name}_3", filters, 4 * filters, 1, scale=BLOCK_SCALE)
        self.side = Convolution(f"{name}_0", inputs, 4 * filters, 1, stride) if widens else nn.Identity()

    def forward(self, x):
        y = torch.relu(self.second(torch.relu(self.first(x))))
        return torch.relu(self.side(x) + self.third(y))


class ResNet50(nn.Module):
    """ResNet50 as Keras has it: strides in the first convolution of a block."""

    def __init__(self):
        super().__init__()
        self.stem = Convolution("conv1", 3, FILTERS, 7, 2, 3)
        self.pool = nn.MaxPool2d(3, 2, 1)
        blocks, inputs, filters = [], FILTERS, FILTERS
        for stage, count in enumerate(BLOCKS):
            for i in range(count):
                stride = 2 if i == 0 and stage > 0 else 1
                blocks.append(Block(f"conv{stage + 2}_block{i + 1}", inputs, filters, stride, i == 0))
                inputs = 4 * filters
            filters *= 2
        self.blocks = nn.Sequential(*blocks)
        self.top = nn.Linear(inputs, CLASSES)
        with torch.no_grad():
            self.top.weight.copy_(kernel((inputs, CLASSES), inputs, "predictions").T)
            self.top.bias.zero_()

    def forward(self, x):
        x = self.pool(torch.relu(self.stem(x)))
        x = self.blocks(x).mean((2, 3))
        with torch.autocast(DEVICE, enabled=False):
            return self.top(x.float())


def transformer():
    layers = []
    for i in range(LAYERS):
        layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, dropout=0.0, activation="gelu", batch_first=True)
        name, size = f"layer{i}", WIDTH // HEADS
        with torch.no_grad():
            # Weights 0, 2, 4 are the kernels of query, key and value, [width, heads, size]; 6 is [heads, size, width].
            parts = [kernel((WIDTH, HEADS, size), WIDTH, name + "_attention", number).reshape(WIDTH, WIDTH).T
                     for number in (0, 2, 4)]
            layer.self_attn.in_proj_weight.copy_(torch.cat(parts))
            layer.self_attn.in_proj_bias.zero_()
            output = kernel((HEADS, size, WIDTH), WIDTH, name + "_attention", 6).reshape(WIDTH, WIDTH)
            layer.self_attn.out_proj.weight.copy_(output.T)
            layer.self_attn.out_proj.bias.zero_()
            for part, word, inner, outer in ((layer.linear1, "_inner", WIDTH, 4 * WIDTH),
                                             (layer.linear2, "_outer", 4 * WIDTH, WIDTH)):
                part.weight.copy_(kernel((inner, outer), inner, name + word).T)
                part.bias.zero_()
        layers.append(layer)
    return nn.Sequential(*layers)


class Training:
    """Steps in bfloat16 by autocast, on a batch in the GPU's memory."""

    def __init__(self, net, optimizer, x, target, loss_of, compiled):
        self.net = net.to(DEVICE).train()
        self.optimizer = optimizer(self.net.parameters(), fused=True)
        self.x, self.target, self.loss_of = x.to(DEVICE), target.to(DEVICE), loss_of
        torch._dynamo.reset()
        self.forward = torch.compile(self.net) if compiled else self.net
        self.loss = None
        self.first_loss = self.step().item()

    def step(self):
        with torch.autocast(DEVICE, torch.bfloat16):
            output = self.forward(self.x)
        self.loss = self.loss_of(output.float(), self.target)
        self.optimizer.zero_grad()
        self.loss.backward()
        self.optimizer.step()
        return self.loss.detach()


def resnet50_training(compiled):
    net = ResNet50().to(memory_format=torch.channels_last)
    x = tiled((IMAGES, SIDE, SIDE, 3), IMAGES_SEED).permute(0, 3, 1, 2)  # lies channels last
    labels = torch.arange(IMAGES) * 37 % CLASSES
    return Training(net, lambda p, **fused: torch.optim.SGD(p, lr=1e-3, momentum=0.9, **fused), x, labels,
                    nn.functional.cross_entropy, compiled)


def transformer_training(compiled):
    x = tiled((SEQUENCES, TOKENS, WIDTH), SEQUENCE_SEED)
    return Training(transformer(), lambda p, **fused: torch.optim.Adam(p, lr=1e-4, eps=1e-7, **fused), x, x,
                    nn.functional.mse_loss, compiled)


class Trainings:
    """The model of the row measured last: two large ones need not fit in a GPU's memory."""

    def __init__(self):
        self.key = self.held = None

    def measure(self, make, compiled, measured):
        def run():
            if self.key != (make, compiled):
                self.key = self.held = None
                if DEVICE == "cuda":
                    torch.cuda.empty_cache()
                self.held = make(compiled)
                self.key = (make, compiled)
            value = measured(seconds_per_step(self.held.step))
            return {"value": value, "check": self.held.first_loss, "loss": self.held.loss.item()}
        return run


def mlp():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(784, c.MLP_HIDDEN), nn.ReLU(), nn.Linear(c.MLP_HIDDEN, c.CLASSES)).to(DEVICE)
    images, targets = (torch.from_numpy(a).to(DEVICE) for a in c.samples(MLP_SAMPLES, (784,)))
    targets = targets.long()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, eps=1e-7, fused=True)
    cross_entropy = nn.CrossEntropyLoss()
    steps = MLP_SAMPLES // c.MLP_BATCH

    def epoch():
        order = torch.randperm(MLP_SAMPLES, device=DEVICE)
        for i in range(steps):
            chosen = order[i * c.MLP_BATCH : (i + 1) * c.MLP_BATCH]
            loss = cross_entropy(model(images[chosen]), targets[chosen])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    def run():
        value = steps / seconds_per_step(epoch)
        with torch.inference_mode():
            loss = cross_entropy(model(images), targets).item()
        if not loss < (3 if SMALL else c.LEARNT):
            raise RuntimeError(f"does not learn: the loss is {loss}")
        return {"value": value, "loss": loss}

    return run


def rows():
    held = Trainings()
    made = {"mlp": c.Lazy(mlp)}
    for size in (1024, 2048, 4096, 8192):
        made[f"float_{size}"] = product(torch.float32, size // PRODUCT_SCALE)
        made[f"bfloat16_{size}"] = product(torch.bfloat16, size // PRODUCT_SCALE)
    for compiled in (False, True):
        end = "_compiled" if compiled else ""
        made[f"resnet50_training{end}"] = held.measure(resnet50_training, compiled, lambda s: IMAGES / s)
        made[f"transformer_training{end}"] = held.measure(transformer_training, compiled, lambda s: 1e3 * s)
    return made


if __name__ == "__main__":
    about = torch.cuda.get_device_name() if DEVICE == "cuda" else DEVICE
    c.serve(rows(), f"torch {torch.__version__} on {about}")
