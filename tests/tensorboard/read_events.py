"""Reads the runs that write_logs wrote with TensorBoard's own reader: read_events.py LOGS."""

import io
import pathlib
import sys
import wave

from tensorboard.backend.event_processing import event_accumulator
from tensorboard.util import tensor_util

LOGS = pathlib.Path(sys.argv[1])


def run(name):
    accumulator = event_accumulator.EventAccumulator(str(LOGS / name), size_guidance={"tensors": 0})
    accumulator.Reload()
    return accumulator


def tensors(accumulator, tag):
    return [(event.step, tensor_util.make_ndarray(event.tensor_proto)) for event in accumulator.Tensors(tag)]


def plugin(accumulator, tag):
    return accumulator.SummaryMetadata(tag).plugin_data.plugin_name


def equal(found, wanted):
    assert found == wanted, f"{found!r} instead of {wanted!r}"


def check_kinds():
    kinds = run("kinds")
    losses = tensors(kinds, "loss")
    equal([step for step, _ in losses], list(range(20)))
    assert abs(losses[5][1] - 2.718281828 ** -1) < 1e-6
    equal(kinds.SummaryMetadata("loss").summary_description, "falls *exponentially*")
    waves = tensors(kinds, "waves")
    equal(waves[0][1].shape, (30, 3))
    equal(waves[0][1][:, 2].sum(), 500)
    picture = tensors(kinds, "gradient")[0][1]
    equal(list(picture[:2]), [b"16", b"16"])
    assert len(picture) == 4 and picture[2].startswith(b"\x89PNG")
    clip = tensors(kinds, "tone")[0][1]
    equal(clip.shape, (1, 2))
    with wave.open(io.BytesIO(clip[0, 0])) as sound:
        equal((sound.getframerate(), sound.getnchannels(), sound.getnframes()), (8000, 1, 4000))
    equal(tensors(kinds, "note")[0][1], b"**bold** words")
    equal([plugin(kinds, tag) for tag in ("loss", "waves", "gradient", "tone", "note")],
          ["scalars", "histograms", "images", "audio", "text"])


def check_function():
    function = run("function")
    equal([(step, float(value)) for step, value in tensors(function, "sum")],
          [(0, 1.75), (2, 0.4375), (4, 0.109375)])
    assert any(node.op == "Sum" for node in graph_of(function).node)


def graph_of(accumulator):
    return accumulator.Graph()


def check_fit():
    train, validation = run("fit/train"), run("fit/validation")
    tags = set(train.Tags()["tensors"])
    for tag in ("epoch_loss", "epoch_accuracy", "epoch_learning_rate", "epoch_steps_per_second",
                "batch_loss", "batch_accuracy", "batch_steps_per_second", "conv/kernel/histogram",
                "conv/kernel/image", "dense/bias/histogram", "conv/kernel/gradient",
                "conv/activation", "dense/activation", "keras", "batch_12"):
        assert tag in tags, f"no {tag} in {sorted(tags)}"
    equal([step for step, _ in tensors(train, "epoch_loss")], [0, 1])
    equal([step for step, _ in tensors(train, "batch_loss")][:3], [4, 8, 12])
    assert tensors(train, "epoch_accuracy")[1][1] > 0.2
    equal(plugin(train, "keras"), "graph_keras_model")
    tags = set(validation.Tags()["tensors"])
    assert {"epoch_loss", "evaluation_loss_vs_iterations"} <= tags, sorted(tags)
    names = {node.op for node in graph_of(train).node}
    assert "Conv2D" in names or "Conv2DBackpropFilter" in names, sorted(names)


check_kinds()
check_function()
check_fit()
print("events: read by EventAccumulator")
