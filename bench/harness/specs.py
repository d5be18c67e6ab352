"""Which rows each benchmark has, against whom, and who measures them."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Program:
    """A peer's program. `environment` is where its packages are (tests/peers.txt); `native` names
    a C++ source in bench/peers, else `script` a Python one. A one-shot program is started again for
    each measurement."""

    environment: str
    script: str = ""
    native: str = ""
    one_shot: bool = False
    ours: bool = False  # our own program a second time, for rows of ours against ours, or as a
    # client of what `environment` has
    module: str = ""  # of this machine's own Python, where it sees a GPU: "torch" or "jax"


@dataclasses.dataclass(frozen=True)
class Peer:
    name: str  # as the result names it
    program: Program
    aim: float = 0  # how far ahead we want to be; 0: no aim
    row: str = ""  # what the program calls the row, if not as we do
    same_graph: bool = True  # not so where ours in float lacks the casts of mixed precision


@dataclasses.dataclass(frozen=True)
class Row:
    name: str
    unit: str
    better: str  # "higher" or "lower"
    peers: tuple
    ours: str = ""  # what our program calls the row, if not as here
    limit: float = 0  # what ours should stay within; 0: no limit
    tolerance: float = 1e-4  # by how much the two sides' `check` may differ, relatively
    one_shot: bool = False  # each of our measurements is a process of its own
    in_mean: bool = True  # whether the geometric mean counts it
    counted: bool = False  # instructions or calls, not time (harness/counted.py)
    mode: str = ""  # an argument for our program: a process of its own measures these rows


@dataclasses.dataclass(frozen=True)
class Bench:
    rows: tuple
    models: str = ""  # the script that exports what is measured, by TensorFlow
    files: bool = False  # whether it reads files (harness/data_files.py)
    mean: Peer | None = None  # against whom the row `geomean` is, if there is one
    gpu: bool = False  # whether our program needs one: it says by `--check` why it has none

    def names(self):
        return [row.name for row in self.rows] + (["geomean"] if self.mean else [])

    def named(self, word):
        """The row of that name, else the rows whose names begin with it, whether or not behind
        `info_`."""
        if word in self.names():
            return [word]
        return [name for name in self.names() if name.removeprefix("info_").startswith(word)]


TENSORFLOW = Program("tensorflow", script="tensorflow_peer.py")
TENSORFLOW_C = Program("tensorflow", native="tf_c_eager")
TENSORFLOW_START = Program("tensorflow", script="tensorflow_start.py", one_shot=True)
TENSORFLOW_SAVED_MODEL = Program("tensorflow", script="tensorflow_saved_model.py", one_shot=True)
TORCH = Program("torch", script="torch_peer.py")
LIBTORCH = Program("torch", native="libtorch_eager")
JAX = Program("jax", script="jax_peer.py")
TENSORFLOW_MODELS = Program("tensorflow", script="tensorflow_models.py")
TENSORFLOW_MODELS_MEMORY = dataclasses.replace(TENSORFLOW_MODELS, one_shot=True)
TORCH_MODELS = Program("torch", script="torch_models.py")
TORCH_MODELS_MEMORY = Program("torch", script="torch_models.py", one_shot=True)
TORCH_MECHANISMS = Program("torch", script="torch_mechanisms.py")
TENSORFLOW_DATA = Program("tensorflow", script="tensorflow_data.py")
TENSORFLOW_DATA_MEMORY = dataclasses.replace(TENSORFLOW_DATA, one_shot=True)
TENSORFLOW_PREPROCESSING = Program("tensorflow", script="tensorflow_preprocessing.py")
TENSORFLOW_SHAPES = Program("tensorflow", script="tensorflow_shapes.py")
TENSORFLOW_SUMMARIES = Program("tensorflow", script="life_summaries.py")
TENSORBOARDX = Program("tensorboard", script="life_tensorboardx.py")
TORCH_DATA = Program("torch", script="torch_data.py")
PLAIN_DATA = Program("", native="plain_data")
TENSORFLOW_LIFE = Program("tensorflow", script="tensorflow_life.py")
TORCH_LIFE = Program("torch", script="torch_life.py")
AGAIN = Program("", ours=True)
AGAIN_MEMORY = Program("", ours=True, one_shot=True)
TORCH_GPU = Program("", script="torch_gpu.py", module="torch")
LIBTORCH_GPU = Program("", native="libtorch_gpu", module="torch")
JAX_GPU = Program("", script="jax_gpu.py", module="jax")
TENSORFLOW_REMOTE = Program("tensorflow", script="tensorflow_remote.py")
TENSORFLOW_SERVERS = Program("tensorflow", ours=True)  # our client, their servers


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
    yield Row("first_step", "ms", "lower", (tensorflow(TENSORFLOW_START, 10),), one_shot=True)
    yield Row("memory", "MB", "lower", (tensorflow(TENSORFLOW_START, 4),), one_shot=True)


def saved_model_load():
    yield Row("saved_model_load", "ms", "lower", (tensorflow(TENSORFLOW_SAVED_MODEL, 8),),
              one_shot=True, tolerance=1e-3)


def resnet50_memory(work, aim):
    return Row(f"resnet50_{work}_memory", "MB", "lower",
               (tensorflow(TENSORFLOW_MODELS_MEMORY, aim), Peer("torch", TORCH_MODELS_MEMORY, aim)),
               one_shot=True, in_mean=False)


def models():
    for work, aim in (("inference", 1.03), ("training", 1.12)):
        yield Row(f"resnet50_{work}", "images/s", "higher",
                  (tensorflow(TENSORFLOW_MODELS, aim), Peer("torch", TORCH_MODELS, aim)),
                  tolerance=1e-3)
    for work, aim in (("inference", 1.25), ("training", 1.4)):
        ours = Peer("tandem float", AGAIN, 1.6, f"resnet50_{work}", same_graph=False)
        yield Row(f"resnet50_{work}_bf16", "images/s", "higher",
                  (tensorflow(TENSORFLOW_MODELS, aim), Peer("torch", TORCH_MODELS), ours),
                  tolerance=0.03)
    for name, aim in (("mobilenetv2", 1.5), ("transformer", 2), ("lstm", 4), ("cnn_training", 3)):
        yield Row(name, "ms", "lower", (tensorflow(TENSORFLOW_MODELS, aim),), tolerance=1e-3)
    yield resnet50_memory("inference", 1 / 0.8)
    yield resnet50_memory("training", 1 / 0.6)


def mechanisms():
    peers = (tensorflow(TENSORFLOW_MODELS),)
    # Our own again, without the pass that the row is for (bench/common/model.h).
    for name, switch in (("batch_norm_folding", "remapping"), ("conv_bias_activation", "remapping"),
                         ("matmul_bias_activation", "remapping"), ("residual_add", "remapping"),
                         ("elementwise_chain", "elementwise_fusion"),
                         ("packed_weights", "packed_weights"),
                         ("fused_attention", "remapping"), ("attention_16", "remapping"),
                         ("attention_64", "remapping"), ("attention_256", "remapping"),
                         ("attention_256_causal", "remapping"), ("attention_1024", "remapping"),
                         ("attention_1024_matmul", "remapping")):
        off = Peer("switched off", AGAIN, 1, f"{name}_without_{switch}")
        yield Row(name, "ms", "lower", (*peers, off), tolerance=1e-2)
    for name in ("primitive_cache", "pointwise_gradient", "fused_lstm", "fused_gru"):
        yield Row(name, "ms", "lower", peers, tolerance=1e-2)
    memory = "attention_1024_memory"
    off = Peer("switched off", AGAIN_MEMORY, 1, "attention_1024_without_remapping_memory")
    yield Row(memory, "MB", "lower", (tensorflow(TENSORFLOW_MODELS_MEMORY), off), one_shot=True)
    memory = "in_place_reuse_memory"
    yield Row("in_place_reuse", "MB", "lower", (tensorflow(TENSORFLOW_MODELS_MEMORY, row=memory),),
              ours=memory, one_shot=True)
    yield Row("loop_iteration", "ns/op", "lower", peers)
    both = (*peers, Peer("torch", TORCH_MECHANISMS))
    for name in ("reduction", "softmax", "layer_norm", "gather"):
        yield Row(name, "MB/s", "higher", both, tolerance=1e-2)
    in_float = Peer("tandem float", AGAIN, 1.3, "mixed_bfloat16_in_float")
    yield Row("mixed_bfloat16", "ms", "lower", (in_float,), tolerance=0.03)
    # Twice the nodes over the nodes: a pass that looks at all nodes for each would make it 4.
    for name in ("growth_wide", "growth_constants", "growth_outputs", "growth_chain"):
        yield Row(name, "x", "lower", (), limit=2.6)
    for name in ("wide_200k", "chain_200k"):
        yield Row(name, "s", "lower", (), limit=5)
    yield Row("info_copy", "MB/s", "higher", ())


def devices():
    for name, limit in (("makespan_vs_best", 1.02), ("makespan_vs_greedy", 0.85),
                        ("makespan_vs_greedy_max", 1.0), ("makespan_vs_optimum", 1.05),
                        ("info_makespan_vs_bound", 0)):
        yield Row(name, "x", "lower", (), limit=limit)
    yield Row("busy_share", "share", "higher", (), limit=0.95)
    yield Row("copies_hidden", "share", "higher", (), limit=0.95)
    yield Row("forecast_error", "share", "lower", (), limit=0.1)
    yield Row("machinery", "x", "lower", (), limit=1.02, counted=True)
    yield Row("profiler_overhead", "share", "lower", (), limit=0.03, counted=True)


def gpu_host():
    # A step that was captured as one graph of the driver's would take at most 4 calls.
    for work in ("mlp", "cnn", "transformer"):
        yield Row(f"{work}_driver_calls", "calls/step", "lower", (), limit=4, counted=True)
        yield Row(f"{work}_kernels", "launches/step", "lower", (), counted=True)
        yield Row(f"{work}_ops", "ops/step", "lower", (), counted=True)
        yield Row(f"{work}_kernels_per_op", "launches/op", "lower", (), counted=True)
        yield Row(f"{work}_graph_launches", "launches/step", "lower", (), counted=True)
        yield Row(f"{work}_bytes_to_gpu", "B/step", "lower", (), counted=True)
        yield Row(f"{work}_bytes_from_gpu", "B/step", "lower", (), counted=True)
    yield Row("eager_instructions", "x", "lower", (), limit=1.5, counted=True)
    yield Row("eager_driver_calls", "calls/op", "lower", (), counted=True)
    yield Row("eager_kernels", "launches/op", "lower", (), counted=True)


def gpu():
    for size in (1024, 2048, 4096, 8192):
        for dtype, tolerance in (("bfloat16", 1e-2), ("float", 1e-4)):
            yield Row(f"{dtype}_{size}", "ms", "lower",
                      (Peer("torch", TORCH_GPU, 0.97), Peer("jax", JAX_GPU)), tolerance=tolerance)
    yield Row("eager_add", "us", "lower", (Peer("libtorch", LIBTORCH_GPU, 1),), limit=3)
    yield Row("mlp", "steps/s", "higher", (Peer("torch", TORCH_GPU, 5), Peer("jax", JAX_GPU)))
    # The GPU's kernels and copies against the driver's own copies of as many bytes.
    for row, plain, aim in (("host_to_device", "plain_host_to_device", 0.95),
                            ("elementwise", "plain_device_to_device", 0.85),
                            ("softmax", "plain_device_to_device", 0.85),
                            ("layer_norm", "plain_device_to_device", 0.85)):
        yield Row(row, "MB/s", "higher", (Peer("plain copy", AGAIN, aim, plain),))
    yield Row("jpeg_busy_share", "share", "higher", (), limit=0.95)
    for row, unit, better, compiled_aim in (("resnet50_training", "images/s", "higher", 1),
                                            ("transformer_training", "ms", "lower", 0)):
        yield Row(row, unit, better,
                  (Peer("torch", TORCH_GPU, 1.1),
                   Peer("torch compiled", TORCH_GPU, compiled_aim, f"{row}_compiled")),
                  tolerance=0.02)


def placement():
    yield Row("nodes_10k", "ms", "lower", (), limit=50)
    yield Row("nodes_100k", "ms", "lower", (), limit=1000)


def data():
    def tf_data(aim):
        return Peer("tf.data", TENSORFLOW_DATA, aim)

    torch = Peer("torch", TORCH_DATA)
    yield Row("jpeg", "images/s", "higher",
              (tf_data(1.35), Peer("decode only", PLAIN_DATA, 0.8)), tolerance=1e-5)
    yield Row("range_map", "elements/s", "higher", (tf_data(50),))
    yield Row("tfrecord", "MB/s", "higher", (tf_data(5), Peer("plain read", PLAIN_DATA, 0.8)))
    yield Row("parse_example", "elements/s", "higher", (tf_data(2),))
    yield Row("shuffle_batch", "elements/s", "higher", (tf_data(3), torch))
    yield Row("padded_batch", "elements/s", "higher", (tf_data(10), torch))
    yield Row("bucket", "elements/s", "higher", (tf_data(10),))
    by_hand = Peer("set by hand", AGAIN, 0.9, "autotune_by_hand")
    yield Row("autotune", "images/s", "higher", (by_hand,))
    short_by_hand = Peer("set by hand", AGAIN, 0.9, "autotune_short_by_hand")
    yield Row("autotune_short", "elements/s", "higher", (short_by_hand,))
    waiting_by_hand = Peer("set by hand", AGAIN, 0.9, "autotune_waiting_by_hand")
    yield Row("autotune_waiting", "images/s", "higher", (waiting_by_hand,))
    yield Row("jpeg_memory", "MB", "lower", (Peer("tf.data", TENSORFLOW_DATA_MEMORY, 4),),
              one_shot=True)


def preprocessing():
    def keras(aim):
        return (Peer("keras", TENSORFLOW_PREPROCESSING, aim),)

    yield Row("augmentation", "images/s", "higher", keras(3), tolerance=1e-3)
    yield Row("augmentation_by_image", "images/s", "higher", keras(3), tolerance=1e-3)
    yield Row("text_vectorization", "MB/s", "higher", keras(5))
    yield Row("text_adapt", "MB/s", "higher", keras(5))


def shapes():
    yield Row("shapes", "images/s", "higher", (tensorflow(TENSORFLOW_SHAPES, 1),))
    # Of the runs of that row.
    yield Row("plans_made", "plans", "lower", (), limit=40)
    yield Row("stall_max", "ms", "lower", (), limit=1)
    yield Row("shapes_vs_fixed", "x", "higher", (), limit=0.8)
    for work in ("mlp_inference", "mlp_training", "cnn_inference", "cnn_training"):
        yield Row(f"info_shapes_vs_fixed_{work}", "x", "higher", ())


def summaries():
    yield Row("scalar", "ns", "lower",
              (tensorflow(TENSORFLOW_SUMMARIES, 20), Peer("tensorboardX", TENSORBOARDX, 20)))
    yield Row("xplane_overhead", "x", "lower", (), limit=1.05)


def checkpoints():
    for row in ("save", "restore"):
        plain = "plain write" if row == "save" else "plain read"
        yield Row(row, "MB/s", "higher",
                  (tensorflow(TENSORFLOW_LIFE, 2), Peer("torch", TORCH_LIFE, 2),
                   Peer(plain, AGAIN, 0.8, plain.replace(" ", "_"))))
    yield Row("restore_once", "MB/s", "higher",
              (tensorflow(TENSORFLOW_LIFE, 2, "restore"), Peer("torch", TORCH_LIFE, 1, "restore")))
    yield Row("async_pause", "share", "lower", (), limit=0.02)
    yield Row("async_steps", "x", "lower", (), limit=1.15)
    yield Row("async_memory", "x", "lower", (), limit=1.5)
    yield Row("safetensors_load", "ms", "lower",
              (Peer("safetensors", Program("torch", script="torch_safetensors.py"), 1),))


def cluster():
    def servers(aim, row):
        return tensorflow(TENSORFLOW_SERVERS, aim, f"{row}_tensorflow")

    yield Row("master_step", "us", "lower", (servers(3, "master_step"),))
    yield Row("ps_step", "us", "lower", (servers(4, "ps_step"),))
    yield Row("ps_pull", "MB/s", "higher",
              (servers(2, "ps_pull"), Peer("plain socket", AGAIN, 0.7, "ps_pull_plain_socket")))
    yield Row("ps_train", "steps/s", "higher", (servers(4, "ps_train_by_sessions"),))
    yield Row("embedding", "steps/s", "higher", (servers(4, "embedding_by_sessions"),))
    yield Row("remote_eager", "us", "lower", (tensorflow(TENSORFLOW_REMOTE, 5),))
    yield Row("replication", "x", "higher", (), limit=0.8)
    yield Row("recovery_replicated", "ms", "lower", (), limit=500)
    yield Row("recovery_durable", "ms", "lower", (), limit=3000)
    yield Row("info_ps_train_by_sessions", "steps/s", "higher", (servers(0, "ps_train_by_sessions"),),
              ours="ps_train_by_sessions")
    yield from scaling()


def scaling():
    """In the order in which servers can stay: those of so many processes are started once."""
    def row(name, unit, better, peers=()):
        return Row(f"info_{name}", unit, better, peers, ours=name, mode="scaling")

    yield row("scaling_round_trip", "ms", "lower")
    for network in ("scaling", "scaling_loopback"):
        for workers in (1, 2, 4, 8):
            for work in ("ps_step", "ps_train"):
                name = f"{network}_{work}_{workers}"
                peer = tensorflow(TENSORFLOW_SERVERS, row=f"{name}_tensorflow")
                yield row(name, "steps/s", "higher", (peer,))


BENCHES = {
    "overhead": Bench(tuple(overhead())),
    "train": Bench(tuple(train())),
    "matmul": Bench(tuple(matmul())),
    "start": Bench(tuple(start())),
    "models": Bench(tuple(models()), models="export_models.py",
                    mean=Peer("tensorflow", TENSORFLOW_MODELS, 1.5)),
    "mechanisms": Bench(tuple(mechanisms()), models="export_mechanisms.py"),
    "devices": Bench(tuple(devices())),
    "gpu_host": Bench(tuple(gpu_host())),
    "gpu": Bench(tuple(gpu()), gpu=True),
    "placement": Bench(tuple(placement())),
    "data": Bench(tuple(data()), files=True),
    "preprocessing": Bench(tuple(preprocessing()), files=True),
    "shapes": Bench(tuple(shapes())),
    "cluster": Bench(tuple(cluster()), models="export_cluster.py"),
    "life": Bench((*checkpoints(), *saved_model_load(), *summaries()),
                  models="export_saved_model.py"),
}
