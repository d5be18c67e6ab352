"""Which rows each benchmark has, against whom, and who measures them."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Program:
    """A peer's program. `environment` is where its packages are (tests/peers.txt); `native` names
    a C++ source in bench/peers, else `script` a Python one."""

    environment: str
    script: str = ""
    native: str = ""
    one_shot: bool = False


@dataclasses.dataclass(frozen=True)
class Peer:
    name: str  # as the result tells it
    program: Program
    aim: float = 0  # how far ahead we want to be; 0: no aim
    row: str = ""  # what the program calls the row, if not as we do


@dataclasses.dataclass(frozen=True)
class Row:
    name: str
    unit: str
    better: str  # "higher" or "lower"
    peers: tuple
    ours: str = ""  # what our program calls the row, if not as here
    limit: float = 0  # what ours should stay within; 0: no limit
    tolerance: float = 1e-4  # by how much the two sides' `check` may differ, relatively


@dataclasses.dataclass(frozen=True)
class Bench:
    rows: tuple
    one_shot: bool = False  # each measurement is a process of its own


TENSORFLOW = Program("tensorflow", script="tensorflow_peer.py")
TENSORFLOW_C = Program("tensorflow", native="tf_c_eager")
TENSORFLOW_START = Program("tensorflow", script="tensorflow_start.py", one_shot=True)
TORCH = Program("torch", script="torch_peer.py")
LIBTORCH = Program("torch", native="libtorch_eager")
JAX = Program("jax", script="jax_peer.py")


def tensorflow(program, aim=0, row=""):
    return Peer("tensorflow", program, aim, row)


def overhead():
    yield Row("eager_add", "us", "lower",
              (Peer("libtorch", LIBTORCH, 1.7), tensorflow(TENSORFLOW_C, 10)))
    yield Row("graph_chain", "ns/op", "lower", (tensorflow(TENSORFLOW_C, 3),))
    yield Row("graph_wide", "ns/op", "lower", (tensorflow(TENSORFLOW_C, 4),))
    yield Row("function_call", "us", "lower", (tensorflow(TENSORFLOW), Peer("jax", JAX)),
              limit=1.5)
    for shape in ("chain", "wide"):
        row = f"info_graph_{shape}_single"
        yield Row(row, "ns/op", "lower", (tensorflow(TENSORFLOW_C),), ours=f"graph_{shape}")


def train():
    yield Row("mlp", "steps/s", "higher",
              (tensorflow(TENSORFLOW, 12), Peer("torch", TORCH, 4), Peer("jax", JAX, 1.6)))
    yield Row("cnn", "images/s", "higher",
              (tensorflow(TENSORFLOW, 2.2), Peer("torch", TORCH, 4), Peer("jax", JAX)))
    yield Row("info_mlp_tuned", "steps/s", "higher", (tensorflow(TENSORFLOW),), ours="mlp")


def matmul():
    for dtype, tolerance in (("float", 1e-4), ("bfloat16", 1e-2)):
        for size in (512, 1024, 2048):
            peers = (tensorflow(TENSORFLOW, 0.95), Peer("torch", TORCH, 0.95), Peer("jax", JAX, 0.95))
            yield Row(f"{dtype}_{size}", "ms", "lower", peers, tolerance=tolerance)


def start():
    yield Row("first_step", "ms", "lower", (tensorflow(TENSORFLOW_START, 10),))
    yield Row("memory", "MB", "lower", (tensorflow(TENSORFLOW_START, 4),))


BENCHES = {
    "overhead": Bench(tuple(overhead())),
    "train": Bench(tuple(train())),
    "matmul": Bench(tuple(matmul())),
    "start": Bench(tuple(start()), one_shot=True),
}
