"""PyTorch: training loops and matrix products."""

import torch

import common as c

torch.set_num_threads(c.THREADS)


def trainer(model, data, batch, units):
    images, targets = map(torch.from_numpy, data)
    targets = targets.long()
    if images.ndim == 4:
        images = images.permute(0, 3, 1, 2).contiguous()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, eps=1e-7, fused=True)
    cross_entropy = torch.nn.CrossEntropyLoss()
    steps = len(images) // batch

    def epoch():
        order = torch.randperm(len(images))
        for i in range(steps):
            chosen = order[i * batch : (i + 1) * batch]
            loss = cross_entropy(model(images[chosen]), targets[chosen])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    def evaluate():
        with torch.inference_mode():
            return cross_entropy(model(images), targets).item()

    return c.Trainer(data, epoch, evaluate, units).run


def mlp():
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(784, c.MLP_HIDDEN),
        torch.nn.ReLU(),
        torch.nn.Linear(c.MLP_HIDDEN, c.CLASSES),
    )
    return trainer(model, c.mlp_data(), c.MLP_BATCH, c.MLP_SAMPLES // c.MLP_BATCH)


def cnn():
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(1, c.CNN_FILTERS, 3),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(2),
        torch.nn.Flatten(),
        torch.nn.Linear(13 * 13 * c.CNN_FILTERS, c.CLASSES),
    )
    return trainer(model, c.cnn_data(), c.CNN_BATCH, c.CNN_SAMPLES)


def matmul(dtype, n):
    def make():
        a = torch.from_numpy(c.uniform((n, n), c.LEFT_SEED)).to(dtype)
        b = torch.from_numpy(c.uniform((n, n), c.RIGHT_SEED)).to(dtype)
        out = torch.empty((n, n), dtype=dtype)

        def loop(times):
            with torch.inference_mode():
                for _ in range(times):
                    torch.mm(a, b, out=out)

        def run():
            value = c.seconds_per_call(loop) * 1e3
            return {"value": value, "check": out[n // 3, n // 2].item()}

        return run

    return make


ROWS = {"mlp": mlp, "cnn": cnn}
for size in (512, 1024, 2048):
    ROWS[f"float_{size}"] = matmul(torch.float32, size)
    ROWS[f"bfloat16_{size}"] = matmul(torch.bfloat16, size)

if __name__ == "__main__":
    c.serve({name: c.Lazy(make) for name, make in ROWS.items()}, f"torch {torch.__version__}")
