"""Compares what keras_values.cpp writes with the real Keras: check_keras_values.py PROGRAM DIR REPORT"""

import os
import pathlib
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"

import keras
import numpy as np
import tensorflow as tf
from api_cases import EXPECTED, compare

k = keras.layers


def numbers(shape, seed=0.0):
    count = int(np.prod(shape))
    return tf.constant(np.sin(1.7 * np.arange(count) + 0.3 + seed).astype(np.float32).reshape(shape))


def add(name, *results):
    for i, result in enumerate(results):
        EXPECTED[f"{name} {i}"] = np.asarray(result)


def layer(name, made, *inputs, **arguments):
    """The result, and the gradients towards inputs and weights, which get the values of `numbers`."""
    made.build(*[x.shape for x in inputs]) if len(inputs) > 1 else made.build(inputs[0].shape)
    for i, weight in enumerate(made.weights):
        weight.assign(numbers(weight.shape, 10 + i))
    with tf.GradientTape() as tape:
        for x in inputs:
            tape.watch(x)
        y = made(*inputs, **arguments)
        loss = tf.reduce_sum(tf.square(y))
    sources = [x for x in inputs if x.dtype.is_floating] + [w.value for w in made.trainable_weights]
    gradients = [tf.convert_to_tensor(g) for g in tape.gradient(loss, sources)]
    add(name, y, *gradients)


def layers():
    x3, x4, x5 = numbers((2, 7, 3)), numbers((2, 5, 7, 3)), numbers((1, 4, 5, 6, 2))
    for kind in ("Average", "Max"):
        layer(f"Adaptive{kind}Pooling1D", getattr(k, f"Adaptive{kind}Pooling1D")(3), x3)
        layer(f"Adaptive{kind}Pooling2D", getattr(k, f"Adaptive{kind}Pooling2D")((2, 3)), x4)
        layer(f"Adaptive{kind}Pooling3D", getattr(k, f"Adaptive{kind}Pooling3D")(2), x5)
    layer("EinsumDense", k.EinsumDense("abc,cd->abd", (None, 4), bias_axes="d", activation="tanh"), x3)
    layer("EinsumDense dots", k.EinsumDense("...x,xy->...y", 4, bias_axes="y"), x3)
    layer("EinsumDense heads", k.EinsumDense("abc,cde->abde", (None, 2, 3), bias_axes="de"), x3)
    layer("GroupQueryAttention", k.GroupQueryAttention(4, 4, 2), x3, numbers((2, 5, 3), 3))
    layer("GroupQueryAttention causal", k.GroupQueryAttention(4, 2, 1), x3, x3, use_causal_mask=True)
    embedding = k.ReversibleEmbedding(6, 3, logit_soft_cap=5.0)
    embedding.build((2, 3))
    embedding.weights[0].assign(numbers((6, 3), 10))
    add("ReversibleEmbedding", embedding(tf.constant([[1, 5], [0, 2]])), embedding(numbers((2, 4, 3)), reverse=True))
    normal = k.SpectralNormalization(k.Dense(4))
    normal.build((2, 3))
    normal.layer.kernel.assign(numbers((3, 4), 10))
    normal.vector_u.assign(numbers((1, 4), 11))
    add("SpectralNormalization", normal(numbers((2, 3)), training=True), normal.layer.kernel, normal.vector_u)
    add("HashedCrossing", k.HashedCrossing(5)((tf.constant(["A", "B", "A"]), tf.constant([101, 101, 102]))),
        k.HashedCrossing(4, output_mode="one_hot")((tf.constant([["A"], ["B"]]), tf.constant([[1], [2]]))))
    image = tf.abs(numbers((2, 8, 8, 3))) * 255.0
    add("colors", k.RandomSaturation((0.3, 0.3))(tf.abs(numbers((2, 8, 8, 3))), training=True),
        k.RandomColorDegeneration((0.4, 0.4))(image, training=True),
        k.RandomSharpness((0.8, 0.8))(image, training=True), k.RandomPosterization((3, 3))(image, training=True),
        k.Solarization(0.0, 0.0)(image, training=True), k.AutoContrast()(image, training=True),
        k.Equalization()(image, training=True), k.RandomHue((0.0, 0.0))(image, training=True),
        k.RandomGaussianBlur(1.0, 3, 1.0, seed=1)(image, training=False),
        k.RandomShear(0.0, 0.0)(image, training=True))


def preprocessing():
    sound, image = numbers((2, 600, 2)), tf.abs(numbers((2, 11, 14, 3))) * 255.0
    for mode in ("log", "magnitude", "psd", "real", "imag", "stft"):
        add("STFTSpectrogram " + mode, k.STFTSpectrogram(mode, 64, window="hamming")(sound))
    add("STFTSpectrogram", k.STFTSpectrogram("magnitude", 50, 20, 64, periodic=True, scaling="spectrum",
                                             padding="same", expand_dims=True)(sound),
        k.STFTSpectrogram("stft", 32, data_format="channels_last", scaling=None, window="boxcar")(sound),
        k.STFTSpectrogram("psd", 32, expand_dims=True)(sound))
    # Angles of almost nothing are noise, so that they count by their magnitude.
    angle = k.STFTSpectrogram("angle", 16)(sound)
    add("STFTSpectrogram angle", *(f(angle) * k.STFTSpectrogram("magnitude", 16)(sound) for f in (tf.sin, tf.cos)))
    for i, (window, periodic) in enumerate((("hann", True), ("blackman", False), ("bartlett", True))):
        add(f"STFT {i}", keras.initializers.STFT("imag", window, "density", periodic)((9, 1, 9)))
    add("MelSpectrogram", k.MelSpectrogram(256, 64, num_mel_bins=12)(sound[..., 0]),
        k.MelSpectrogram(128, 50, 100, window="hamming", power_to_db=False, mag_exp=1.0, max_freq=6000.0,
                         num_mel_bins=8)(sound[0, :, 0]))
    clahe = k.ContrastLimitedAdaptiveHistogramEqualization
    add("CLAHE", clahe()(image), clahe(tile_grid_size=(2, 3), clip_limit=1.5)(image),
        clahe(value_range=(0.0, 1.0), tile_grid_size=(4, 4), clip_limit=0.0)(image[0] / 255.0))
    add("RandomElasticTransform", k.RandomElasticTransform(0.0)(image, training=True),
        k.RandomElasticTransform(seed=1)(image, training=False))
    boxes = tf.constant([[[10, 20, 100, 150], [5, 6, 20, 25], [0, 0, 5, 5]]], tf.float32)
    labels = tf.constant([[1, 2, 3]])
    for i, count in enumerate((2, 5)):
        limited = k.MaxNumBoundingBoxes(count, bounding_box_format="xyxy")(
            {"images": image[:1], "bounding_boxes": {"boxes": boxes, "labels": labels}})
        add(f"MaxNumBoundingBoxes {i}", limited["bounding_boxes"]["boxes"], limited["bounding_boxes"]["labels"])
    for i, size in enumerate(((6, 20), (20, 6), (22, 28))):
        add(f"Resizing {i}", k.Resizing(*size, pad_to_aspect_ratio=True, fill_value=7.0)(image),
            k.Resizing(*size, pad_to_aspect_ratio=True, interpolation="nearest")(image[0]))
    words = np.array([["a", "b", "a", "d"], ["b", "c", "?", "a"]])
    for i, (count, pad, mask) in enumerate(((None, False, None), (9, True, None), (3, True, ""))):
        made = k.StringLookup(output_mode="tf_idf", max_tokens=count, pad_to_max_tokens=pad, mask_token=mask)
        made.adapt(words)
        given = k.StringLookup(output_mode="tf_idf", vocabulary=["a", "b"], idf_weights=[0.5, 0.25],
                               max_tokens=count, pad_to_max_tokens=pad)
        numbers_ = k.IntegerLookup(output_mode="tf_idf", max_tokens=count, pad_to_max_tokens=pad)
        numbers_.adapt(np.array([1, 5, 5, 9, 1, 5]))
        add(f"tf_idf {i}", made(words), given(words), numbers_(np.array([[1, 5, 77], [9, 9, 1]])))
    for i, mode in enumerate(("multi_hot", "count", "one_hot")):
        made = k.StringLookup(output_mode=mode, max_tokens=9, pad_to_max_tokens=True, vocabulary=["a", "b"])
        texts = k.TextVectorization(output_mode=mode, max_tokens=9, pad_to_max_tokens=True,
                                    vocabulary=["a", "b"]) if mode != "one_hot" else made
        add(f"padded {i}", made(words), texts(np.array(["a b a", "c"]) if mode != "one_hot" else words))


def bounding_boxes():
    b = keras.utils.bounding_boxes
    boxes = tf.constant([[[10, 20, 100, 150], [5, 6, 20, 25], [-4, 0, 5, 300]]], tf.float32)
    others = tf.constant([[[12, 22, 90, 130], [500, 600, 700, 800], [-1, -1, -1, -1]]], tf.float32)
    for source in ("xyxy", "yxyx", "xywh", "center_xywh", "center_yxhw"):
        for target in ("yxyx", "xywh", "center_xywh", "center_yxhw", "rel_xyxy", "rel_yxyx", "rel_xywh",
                       "rel_center_xywh"):
            there = b.convert_format(boxes, source, target, 200, 300)
            back = b.convert_format(there, target, source, 200, 300)
            add(f"convert {source} {target}", there, back)
    cut = b.clip_to_image_size({"boxes": boxes, "labels": tf.constant([[1, 2, 3]])}, 100, 8)
    add("boxes", cut["boxes"], cut["labels"], b.crop(boxes, 10, 5, 50, 60), b.pad(boxes, 3, 4),
        b.affine_transform(boxes, tf.constant([30.0]), tf.constant([0.1]), tf.constant([-0.2]), tf.constant([1.5]),
                           tf.constant([5.0]), tf.constant([-7.0]), 200, 300, 0.4, 0.6),
        b.encode_box_to_deltas(boxes[0], tf.gather(others, [0, 1, 1], axis=1), "xyxy", "xywh", variance=[0.1, 0.1, 0.2, 0.2]),
        b.decode_deltas_to_boxes(boxes[0], others / 1000.0, "xyxy", "rel_yxyx", "center_xywh", image_shape=(200, 300, 3)),
        b.compute_iou(boxes, others, "xyxy"), b.compute_iou(boxes[0], others[0], "xyxy", use_masking=True),
        b.compute_iou(boxes / 300, others / 300, "rel_yxyx", image_shape=(200, 300, 3)),
        b.compute_ciou(boxes, others, "xywh"))


def losses():
    l = keras.losses
    y, p = tf.constant([0, 2, 1, 2]), tf.nn.softmax(numbers((4, 3)))
    add("losses", l.CategoricalGeneralizedCrossEntropy()(y, p), l.categorical_generalized_cross_entropy(y, p, 0.3),
        l.Circle(gamma=2.0)(y, tf.math.l2_normalize(numbers((4, 5)), 1)),
        l.circle(y, tf.math.l2_normalize(numbers((4, 5)), 1), gamma=2.0),
        l.CTC()(tf.constant([[1, 2, 0], [2, 2, 1]]), numbers((2, 8, 4))),
        l.ctc(tf.constant([[1, 2, 0], [2, 2, 1]]), numbers((2, 8, 4))))


def metrics():
    m = keras.metrics
    labels, scores = tf.constant([0.0, 0.0, 1.0, 1.0, 1.0, 0.0]), tf.constant([0.0, 0.3, 0.8, 0.4, 0.9, 0.6])
    for name, made in {"a": m.SensitivityAtSpecificity(0.5), "b": m.SpecificityAtSensitivity(0.5),
                       "c": m.PrecisionAtRecall(0.6), "d": m.RecallAtPrecision(0.8),
                       "e": m.PrecisionAtRecall(0.3, num_thresholds=1)}.items():
        made.update_state(labels, scores, sample_weight=tf.constant([1.0, 2.0, 1.0, 1.0, 2.0, 1.0]))
        add("points " + name, made.result())


def optimizers():
    o = keras.optimizers
    every = {"ScheduleFreeAdamW": o.ScheduleFreeAdamW(0.01, warmup_steps=2, weight_decay=0.1),
             "accumulation": o.Adam(0.01, gradient_accumulation_steps=2, weight_decay=0.1, clipnorm=1.0),
             "average": o.SGD(0.1, momentum=0.9, use_ema=True, ema_momentum=0.8, ema_overwrite_frequency=3),
             "scale": o.RMSprop(0.01, loss_scale_factor=4.0)}
    for name, optimizer in every.items():
        w, b = keras.Variable(numbers((3, 4))), keras.Variable(numbers((4,), 1))
        for step in range(5):
            optimizer.apply_gradients([(numbers((3, 4), 2 + step), w), (numbers((4,), 5 + step), b)])
        add("optimizer " + name, w, b, optimizer.iterations)
    dense = k.Dense(3, kernel_constraint=keras.constraints.MaxNorm(0.5), bias_constraint="non_neg")
    dense.build((2, 4))
    for i, weight in enumerate(dense.weights):
        weight.assign(numbers(weight.shape, 10 + i))
    o.SGD(0.1).apply_gradients([(numbers((4, 3), 1), dense.kernel), (numbers((3,), 2), dense.bias)])
    add("constraints", dense.kernel, dense.bias)
    r = keras.regularizers
    add("regularizers", r.OrthogonalRegularizer(0.1)(numbers((3, 4))),
        r.OrthogonalRegularizer(0.1, "columns")(numbers((3, 4))))


def applications():
    x = tf.abs(numbers((2, 4, 4, 3))) * 255.0
    u = keras.applications.imagenet_utils
    add("preprocess_input", *(u.preprocess_input(x, mode=mode) for mode in ("caffe", "tf", "torch")),
        u.preprocess_input(tf.transpose(x, (0, 3, 1, 2)), data_format="channels_first", mode="torch"))


def differs(ours, theirs):
    if ours.shape != theirs.shape:
        return f"shape {ours.shape} instead of {theirs.shape}"
    if ours.dtype != theirs.dtype:
        return f"dtype {ours.dtype} instead of {theirs.dtype}"
    if theirs.dtype.kind in "fc":
        if np.allclose(ours, theirs, rtol=3e-4, atol=1e-4, equal_nan=True):
            return None
        return f"{ours.ravel()[:6]} instead of {theirs.ravel()[:6]}"
    return None if np.array_equal(ours, theirs) else f"{ours.ravel()[:8]} instead of {theirs.ravel()[:8]}"


def main():
    program, folder, report = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
    for cases in (layers, preprocessing, bounding_boxes, losses, metrics, optimizers, applications):
        cases()
    return compare(program, folder, report, differs=differs)


sys.exit(main())
