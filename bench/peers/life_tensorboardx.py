"""A scalar summary by tensorboardX, whose writer has a thread of its own too."""

import shutil
import tempfile

import common as c

import tensorboardX


def scalar():
    folder = tempfile.mkdtemp(prefix="bench_scalar_")
    writer = tensorboardX.SummaryWriter(folder)
    steps = 0

    def loop(n):
        nonlocal steps
        for _ in range(n):
            writer.add_scalar("loss", 0.5, steps)
            steps += 1

    value = c.seconds_per_call(loop) * 1e9
    writer.close()
    shutil.rmtree(folder)
    return {"value": value}


if __name__ == "__main__":
    c.serve({"scalar": scalar}, f"tensorboardX {tensorboardX.__version__}")
