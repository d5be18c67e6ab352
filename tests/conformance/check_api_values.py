"""Compares what api_values.cpp writes with the real TensorFlow and Keras: check_api_values.py PROGRAM DIR REPORT"""

import pathlib
import sys

from api_cases import add, compare, differentiated, numbers

import keras
import numpy as np
import tensorflow as tf


def math_cases():
    x = numbers((3, 4))
    differentiated("sort", tf.sort, x)
    differentiated("sort axis 0 descending", lambda t: tf.sort(t, 0, "DESCENDING"), x)
    add("sort ints", [tf.sort(tf.constant([3, -1, 2, -2147483647]))])
    add("argsort", [tf.argsort(x), tf.argsort(x, 0, "DESCENDING"), tf.argsort([1, 1, 0])])
    add("meshgrid", tf.meshgrid([1, 2, 3], [4, 5]))
    add("meshgrid ij", tf.meshgrid([1, 2, 3], [4, 5], indexing="ij"))
    add("sequence_mask", [tf.sequence_mask([1, 3, 2]), tf.sequence_mask([[1, 2]], 4)])
    add("unravel_index", [tf.unravel_index([22, 41, 37], [7, 6])])
    add("confusion_matrix", [tf.math.confusion_matrix([1, 2, 4], [2, 2, 4])])
    differentiated("lbeta", lambda t: tf.math.lbeta(tf.abs(t) + 0.1), x)
    differentiated("polyval", lambda t: tf.math.polyval([tf.constant(1.0), tf.constant(-2.0), tf.constant(0.5)], t), x)
    add("monotone", [tf.math.is_non_decreasing([1, 1, 2]), tf.math.is_strictly_increasing([1, 1, 2])])
    add("zero_fraction", [tf.math.zero_fraction([0.0, 1.0, 0.0, 2.0])])
    add("sqrt_n", [tf.math.unsorted_segment_sqrt_n(x, [0, 1, 0], 2)])
    add("scalar_mul", [tf.math.scalar_mul(2.0, x)])
    differentiated("map_fn", lambda t: tf.map_fn(lambda row: tf.cumsum(row) * 2.0, t), x)
    differentiated("scan", lambda t: tf.scan(lambda a, b: a * 0.5 + b, t), x)
    differentiated("foldr", lambda t: tf.foldr(lambda a, b: a * 0.5 + b, t), x)


def linalg_cases():
    x, square = numbers((3, 4)), numbers((3, 3)) + tf.eye(3) * 2.0
    for name, order in {"euclidean": "euclidean", "1": 1, "inf": np.inf, "3": 3}.items():
        differentiated("norm " + name, lambda t, order=order: tf.norm(t, order), x)
        add("norm axis " + name, [tf.norm(x, order, 1), tf.norm(x, order, 0, True)])
    for name, order in {"fro": "fro", "1": 1, "inf": np.inf, "2": 2}.items():
        add("norm matrix " + name, [tf.norm(x, order, [0, 1])])
    differentiated("trace", tf.linalg.trace, square)
    add("matrix_rank", [tf.linalg.matrix_rank([[1.0, 2.0], [2.0, 4.0]])])
    add("pinv", [tf.linalg.pinv(x)])
    add("expm", [tf.linalg.expm(square), tf.linalg.expm(tf.cast(square, tf.float64) * 3.0)])
    lu, p = tf.linalg.lu(square)
    add("lu", [tf.linalg.lu_solve(lu, p, x), tf.linalg.lu_reconstruct(lu, p), tf.linalg.lu_matrix_inverse(lu, p)])
    add("tensor_diag", [tf.linalg.tensor_diag([1, 2]), tf.linalg.tensor_diag_part([[1, 2], [3, 4]])])
    add("eigh_tridiagonal", [tf.linalg.eigh_tridiagonal(tf.constant([1.0, 2.0, 3.0]), tf.constant([0.5, 0.25]))])
    add("normalize", tf.linalg.normalize(x))


def signal_cases():
    s = tf.signal
    for n in (7, 8):
        add(f"windows {n}", [s.hann_window(n), s.hann_window(n, False), s.hamming_window(n), s.kaiser_window(n, 4.0),
                             s.vorbis_window(n)])
    add("kaiser_bessel_derived_window", [s.kaiser_bessel_derived_window(8, 4.0)])
    x = numbers((2, 16))
    differentiated("frame", lambda t: s.frame(t, 4, 3), x)
    add("frame pad", [s.frame(x, 5, 3, True, 1.0), s.frame(x, 1, 1, axis=0)])
    differentiated("overlap_and_add", lambda t: s.overlap_and_add(t, 3), numbers((2, 4, 5)))
    spectrum = s.stft(x, 8, 4)
    add("stft", [tf.math.real(spectrum), tf.math.imag(spectrum)])
    add("inverse_stft", [s.inverse_stft(spectrum, 8, 4, window_fn=s.inverse_stft_window_fn(4))])
    for kind in range(1, 5):
        differentiated(f"dct {kind}", lambda t, kind=kind: s.dct(t, kind), x)
        add(f"idct {kind}", [s.idct(x, kind)])
        if kind > 1:
            add(f"dct ortho {kind}", [s.dct(x, kind, norm="ortho")])
    add("mdct", [s.mdct(x, 8), s.mdct(x, 8, norm="ortho")])
    add("inverse_mdct", [s.inverse_mdct(s.mdct(x, 8))])
    add("fftshift", [s.fftshift(x), s.ifftshift(x, [1])])
    add("mel", [s.linear_to_mel_weight_matrix(10, 33)])
    add("mfcc", [s.mfccs_from_log_mel_spectrograms(x)])


def nn_cases():
    x, image = numbers((2, 6, 3)), numbers((1, 6, 6, 2))
    differentiated("crelu", tf.nn.crelu, x)
    differentiated("log_poisson_loss",
                   lambda t: tf.nn.log_poisson_loss(tf.abs(numbers((2, 6, 3), 1)) * 3.0, t, True), x)
    differentiated("weighted_cross_entropy",
                   lambda t: tf.nn.weighted_cross_entropy_with_logits(tf.abs(numbers((2, 6, 3), 1)), t, 2.0), x)
    add("weighted_moments", tf.nn.weighted_moments(x, [0, 1], tf.abs(numbers((2, 6, 1), 1))))
    count, total, squares, _ = tf.nn.sufficient_statistics(x, [0, 1])
    add("sufficient_statistics", [count, total, squares, *tf.nn.normalize_moments(count, total, squares, None)])
    differentiated("conv1d", lambda t: tf.nn.conv1d(t, numbers((3, 3, 2), 2), 2, "SAME"), x)
    add("conv1d_transpose", [tf.nn.conv1d_transpose(x, numbers((3, 2, 3), 2), [2, 12, 2], 2)])
    add("convolution", [tf.nn.convolution(image, numbers((2, 2, 2, 3), 1), 1, "VALID", dilations=2)])
    add("atrous_conv2d", [tf.nn.atrous_conv2d(image, numbers((2, 2, 2, 3), 1), 2, "SAME")])
    add("pools", [tf.nn.max_pool(image, 2, 2, "SAME"), tf.nn.avg_pool1d(x, 2, 2, "VALID"),
                  tf.nn.pool(image, [3, 3], "AVG", [1, 1], "VALID")])
    add("max_pool_with_argmax", tf.nn.max_pool_with_argmax(image, 2, 2, "SAME"))
    ones = [1, 1, 1, 1]
    add("morphology", [tf.nn.dilation2d(image, numbers((2, 2, 2)), ones, "SAME", "NHWC", ones),
                       tf.nn.erosion2d(image, numbers((2, 2, 2)), ones, "SAME", "NHWC", ones)])
    ids = tf.SparseTensor([[0, 0], [0, 1], [2, 0]], tf.constant([1, 0, 2], tf.int64), [3, 2])
    weights = tf.SparseTensor(ids.indices, [0.5, 2.0, 1.5], ids.dense_shape)
    table = numbers((3, 4))
    for combiner in ("mean", "sum", "sqrtn"):
        add("safe_embedding " + combiner, [tf.nn.safe_embedding_lookup_sparse(table, ids, None, combiner),
                                           tf.nn.safe_embedding_lookup_sparse(table, ids, weights, combiner)])
    add("collapse_repeated", tf.nn.collapse_repeated([[1, 1, 2, 2, 1], [1, 1, 1, 2, 3]], [5, 4]))


def image_cases():
    a, b = tf.abs(numbers((2, 16, 16, 3))), tf.abs(numbers((2, 16, 16, 3), 0.2))
    i = tf.image
    add("colours", [i.rgb_to_yiq(a), i.yiq_to_rgb(a), i.rgb_to_yuv(a), i.yuv_to_rgb(a)])
    add("psnr", [i.psnr(a, b, 1.0)])
    add("ssim", [i.ssim(a, b, 1.0)])
    add("ssim_multiscale", [i.ssim_multiscale(a, b, 1.0, (0.5, 0.5), filter_size=4)])


def parts(ragged):
    return [ragged.flat_values, ragged.row_splits]


def ragged_cases():
    words = tf.constant([b"hello w\xc3\xb6rld", b"", b"a b c"])
    split = tf.strings.split(words)
    add("split", parts(split))
    add("bytes_split", parts(tf.strings.bytes_split(words)))
    add("unicode_split", parts(tf.strings.unicode_split(words, "UTF-8")))
    add("ngrams", parts(tf.strings.ngrams(split, 2)))
    add("unicode_encode", [tf.strings.unicode_encode(tf.strings.unicode_decode(words, "UTF-8"), "UTF-16-BE")])
    add("ragged range", parts(tf.ragged.range([0, 5, 8], [3, 3, 12])))
    add("segment ids", [tf.ragged.row_splits_to_segment_ids(tf.constant([0, 3, 3, 5])),
                        tf.ragged.segment_ids_to_row_splits(tf.constant([0, 0, 0, 2, 3, 3, 3]))])
    x = tf.ragged.constant([[1.0, 2, 3], [], [4]])
    add("ragged reduce", [tf.reduce_sum(x, 1), tf.reduce_max(x, 1)])
    add("ragged concat", parts(tf.concat([x, x], 1)))
    add("ragged sparse", [x.to_sparse().indices, x.to_sparse().values])
    add("bounding_shape", [x.bounding_shape()])


def sparse_cases():
    a = tf.sparse.from_dense([[0.0, 1.0, 0.0], [2.0, 0.0, 3.0]])
    b = tf.sparse.from_dense([[-1.0, 0.5, 0.0], [0.0, 0.0, 4.0]])
    dense = tf.sparse.to_dense
    add("sparse transpose", [dense(tf.sparse.transpose(a))])
    add("sparse expand_dims", [dense(tf.sparse.expand_dims(a, 1))])
    add("sparse eye", [dense(tf.sparse.eye(2, 3))])
    add("sparse maximum", [dense(tf.sparse.maximum(a, b)), dense(tf.sparse.minimum(a, b))])
    add("sparse split", [dense(part) for part in tf.sparse.split(a, 2, 1)])
    counts = tf.sparse.bincount(tf.constant([[1, 1, 3], [0, 1, 1]]), axis=-1)
    add("sparse bincount", [counts.indices, counts.values, counts.dense_shape])


def random_cases():
    g = tf.random.Generator.from_seed(7, alg="philox")
    add("generator", [g.normal([3]), g.uniform([2, 2]), g.uniform([3], 0, 10, tf.int32), g.truncated_normal([3]),
                      g.make_seeds(2)])
    add("random split", [tf.random.split([1, 2], 3)])
    add("fold_in", [tf.random.fold_in([1, 2], 5)])
    add("stateless_categorical", [tf.random.stateless_categorical([[0.1, 0.5, 0.4]], 5, [1, 2])])
    r = keras.random
    add("keras random", [r.normal([4], seed=3), r.uniform([4], seed=3), r.randint([4], 0, 9, seed=3),
                         r.truncated_normal([4], seed=3), r.shuffle(tf.range(6), 0, seed=3),
                         r.dropout(tf.ones([8]), 0.5, seed=3)])
    dropout, noise = keras.layers.Dropout(0.5, seed=3), keras.layers.GaussianNoise(1.0, seed=3)
    ones = tf.ones([8])
    add("random layers", [dropout(ones, training=True), dropout(ones, training=True), noise(ones, training=True)])


def keras_ops_cases():
    ops = keras.ops
    x, y, ints = numbers((3, 4)), numbers((3, 4), 1), tf.constant([[7, -3, 2], [0, 5, 6]])
    for name in ("abs arccos arcsinh arctanh cbrt ceil deg2rad exp2 expm1 i0 rad2deg isfinite isneginf signbit sinc "
                 "trunc hard_swish log_sigmoid silu selu").split():
        add("ops " + name, [getattr(ops, name)(x)])
    for name in "log10 log2 log1p sqrt".split():
        add("ops " + name, [getattr(ops, name)(tf.abs(ints) + 1)])
    for name in ("add subtract multiply divide floor_divide mod maximum hypot logaddexp arctan2 heaviside fmax greater "
                 "isclose").split():
        add("ops " + name, [getattr(ops, name)(x, y)])
        add("ops " + name + " mixed", [getattr(ops, name)(tf.cast(x * 3.0, tf.int32), y)])
    a, b = tf.constant([12, 18, 0]), tf.constant([8, 27, 5])
    add("ops gcd", [ops.gcd(a, b), ops.lcm(a, b)])
    add("ops ints", [ops.divide(ints, 2), ops.add(ints, 0.5), ops.multiply(ints, ints), ops.sqrt(ops.abs(ints)),
                     ops.power(ints, 2)])
    add("ops round", [ops.round(x, 2), ops.clip(x, -0.5, 0.5), ops.nan_to_num(x / 0.0)])


def keras_array_cases():
    ops = keras.ops
    x, cube, ints = numbers((3, 4)), numbers((2, 3, 4)), tf.constant([[7, -3, 2], [0, 5, 6]])
    add("ops made", [ops.linspace(0.0, 1, 5), ops.linspace(0.0, 1, 5, False), ops.logspace(0.0, 2, 4),
                     ops.geomspace(1.0, 8, 4), ops.tri(3, 4, 1), ops.vander(tf.constant([1.0, 2, 3])), ops.bartlett(5),
                     ops.blackman(5), ops.hamming(5), ops.hanning(5), ops.kaiser(5, 3.0)])
    add("ops moved", [ops.swapaxes(cube, 0, 2), ops.moveaxis(cube, 0, -1), ops.flip(x), ops.rot90(x), ops.rot90(x, 3),
                      ops.roll(x, 2), ops.roll(x, 1, 1), ops.repeat(x, 2, 1), ops.diag(tf.constant([1, 2]), 1),
                      ops.diagonal(x, 1), ops.tril(x, -1), ops.triu(x, 1), ops.tile(x, [2])])
    add("ops joined", [ops.append(x, ints), ops.hstack([tf.constant([1, 2]), tf.constant([3])]),
                       ops.vstack([tf.constant([1, 2]), tf.constant([3, 4])]),
                       ops.dstack([tf.constant([1, 2]), tf.constant([3, 4])])])
    five = tf.constant([1, 2, 3, 4, 5])
    add("ops array_split", ops.array_split(five, 2))
    add("ops split", ops.split(five, [1, 3]))
    add("ops taken", [ops.take(x, [0, -1], 1), ops.take(x, [5, -1]), ops.take_along_axis(x, ops.argsort(x, 0), 0),
                      ops.take_along_axis(x, ops.argsort(x, 1), 1), ops.slice_update(x, [1, 1], tf.ones((2, 2))),
                      ops.unique(ints), ops.isin(ints, tf.constant([2, 7])), ops.digitize(x, np.array([-0.5, 0.0, 0.5])),
                      ops.searchsorted(tf.constant([1, 3, 5]), tf.constant([3, 4]), "right"),
                      ops.one_hot(tf.constant([0, 2]), 3), ops.multi_hot(tf.constant([[0, 2], [1, 1]]), 3)])
    add("ops nonzero", ops.nonzero(ints))
    holes = ops.where(x > 0.5, np.nan, x)
    for name in "mean sum std var median prod max all".split():
        f = getattr(ops, name)
        add("ops " + name, [f(x), f(cube, (0, 2), keepdims=True), f(ints, 1)])
    for name in "nanmax nanmean nansum nanvar".split():
        add("ops " + name, [getattr(ops, name)(holes, 1)])
    a, b = tf.constant([1.0, 2, 3]), tf.constant([0.0, 1, 0.5])
    add("ops reduced", [ops.quantile(x, [0.25, 0.5], 1), ops.percentile(x, 30.0), ops.argmax(x), ops.argmin(x, 1),
                        ops.cumsum(x), ops.cumprod(x, 1), ops.diff(x), ops.trapezoid(x), ops.corrcoef(x),
                        ops.correlate(a, b, "same"), ops.correlate(a, b, "full"),
                        ops.average(x, 1, tf.constant([1.0, 2, 3, 4])), ops.bincount(tf.constant([1, 1, 3])),
                        ops.count_nonzero(ints, 1)])


def keras_network_cases():
    ops = keras.ops
    x, y, image = numbers((3, 4)), numbers((4, 2), 1), numbers((2, 6, 6, 3))
    add("ops products", [ops.matmul(x, y), ops.dot(x, y), ops.inner(x, numbers((2, 4))),
                         ops.outer(tf.constant([1, 2]), tf.constant([3, 4])), ops.kron(x, y),
                         ops.cross(numbers((2, 3)), numbers((2, 3), 1)), ops.trace(x, 1), ops.vdot(x, x)])
    square = numbers((3, 3)) + tf.eye(3) * 2.0
    add("ops linalg", [ops.norm(x), ops.norm(x, 2, 1), ops.normalize(x), ops.normalize(x, 0, 3),
                       ops.solve_triangular(square, numbers((3, 2)))])
    add("ops conv", [ops.conv(image, numbers((3, 3, 3, 2), 1), 2, "same"),
                     ops.conv_transpose(image, numbers((3, 3, 2, 3), 1), 2, "same"),
                     ops.conv_transpose(image, numbers((3, 3, 2, 3), 1), 2, "valid"),
                     ops.depthwise_conv(image, numbers((3, 3, 3, 1), 1)), ops.max_pool(image, 2),
                     ops.average_pool(image, 2, padding="same"), ops.adaptive_average_pool(image, 4),
                     ops.adaptive_max_pool(image, (2, 3))])
    columns = ops.unfold(numbers((1, 2, 5, 5)), 3)
    add("ops unfold", [columns, ops.fold(columns, 5, 3)])
    q, k, v = numbers((2, 4, 2, 3)), numbers((2, 4, 2, 3), 1), numbers((2, 4, 2, 3), 2)
    add("ops normalized", [ops.layer_normalization(x, tf.ones(4), tf.zeros(4)), ops.rms_normalization(x),
                           ops.dot_product_attention(q, k, v), ops.dot_product_attention(q, k, v, is_causal=True),
                           ops.batch_normalization(x, tf.zeros(4), tf.ones(4) * 2.0, -1)])
    p = tf.nn.softmax(x)
    add("ops losses", [ops.binary_crossentropy(tf.cast(x > 0, tf.float32), p),
                       ops.categorical_crossentropy(tf.one_hot([0, 2, 1], 4), p),
                       ops.sparse_categorical_crossentropy(tf.constant([0, 2, 1]), p)])
    spectrum = ops.stft(numbers((2, 32)), 8, 4, 16)
    add("ops stft", [*spectrum, ops.istft(spectrum, 8, 4, 16)])


def keras_training_cases():
    o = keras.optimizers
    every = {"Lion": o.Lion(0.01), "Lamb": o.Lamb(0.01), "Adafactor": o.Adafactor(0.01), "Muon": o.Muon(0.01),
             "Ftrl": o.Ftrl(0.1, l1_regularization_strength=0.01, l2_regularization_strength=0.02)}
    for name, optimizer in every.items():
        w, b = keras.Variable(numbers((3, 4))), keras.Variable(numbers((4,), 1))
        for step in range(3):
            optimizer.apply_gradients([(numbers((3, 4), 2 + step), w), (numbers((4,), 5 + step), b)])
        add("optimizer " + name, [w.numpy(), b.numpy()])
    c, x = keras.constraints, numbers((3, 4))
    add("constraints", [c.MaxNorm(0.5)(x), c.MinMaxNorm(0.2, 0.6, 0.5)(x), c.NonNeg()(x), c.UnitNorm()(x)])


def adapted(layer, data):
    layer.adapt(data)
    return layer


def keras_preprocessing_cases():
    k, x = keras.layers, numbers((6, 3))
    add("layer Normalization", [adapted(k.Normalization(), x)(x), adapted(k.Normalization(axis=None), x)(x),
                                k.Normalization(axis=None, mean=1.0, variance=4.0)(x)])
    add("layer Discretization", [k.Discretization([-0.5, 0.0, 0.5])(x),
                                 adapted(k.Discretization(num_bins=4), numbers((50,)))(x)])
    ids = tf.constant([[0, 2], [1, 1]])
    add("layer CategoryEncoding", [k.CategoryEncoding(3)(ids), k.CategoryEncoding(3, "count")(ids)])
    words = tf.constant(["a", "b", "c", "b", ""])
    add("layer Hashing", [k.Hashing(7)(words), k.Hashing(7, salt=3)(words)])
    add("layer StringLookup", [adapted(k.StringLookup(), words)(tf.constant(["b", "zz", "c"])),
                               k.StringLookup(vocabulary=["a", "b"], output_mode="multi_hot")(
                                   tf.constant([["b", "zz"], ["a", "a"]]))])
    add("layer IntegerLookup", [adapted(k.IntegerLookup(), tf.constant([10, 20, 20, 30]))(tf.constant([20, 7, 10]))])
    texts, queries = tf.constant(["The cat, sat!", "the dog sat on the MAT"]), tf.constant(["the bird sat", "on"])
    add("layer TextVectorization", [
        adapted(layer, texts)(queries)
        for layer in (k.TextVectorization(), k.TextVectorization(ngrams=2, output_mode="count"),
                      k.TextVectorization(output_mode="tf_idf"),
                      k.TextVectorization(max_tokens=4, output_sequence_length=3))])
    image = tf.abs(numbers((2, 8, 8, 3)))
    add("layer Resizing", [k.Resizing(4, 6)(image), k.Resizing(5, 5, interpolation="nearest")(image),
                           k.CenterCrop(4, 6)(image)])
    add("utils", [keras.utils.to_categorical([0, 2]).astype("float32"), keras.utils.normalize(x.numpy())])


def keras_augmentation_cases():
    k, image = keras.layers, tf.abs(numbers((2, 8, 8, 3)))
    every = [k.RandomRotation((0.1, 0.1)), k.RandomTranslation((0.2, 0.2), (0.1, 0.1)),
             k.RandomZoom((0.3, 0.3), (-0.2, -0.2)), k.RandomBrightness((0.002, 0.002))]
    add("layer Random", [*(layer(image, training=True) for layer in every), image, image])


def keras_metric_cases():
    m = keras.metrics
    t, p = tf.one_hot([0, 2, 1, 1], 3), tf.nn.softmax(numbers((4, 3)) * 3.0)
    cases = [(m.MeanIoU(3), [0, 1, 2, 1], [0, 2, 2, 1]), (m.IoU(3, [2]), [0, 1, 2, 1], [0, 2, 2, 1]),
             (m.BinaryIoU(), [0.0, 1, 1, 0], [0.1, 0.2, 0.8, 0.7]), (m.F1Score(), t, p),
             (m.F1Score(average="macro"), t, p), (m.F1Score(average="micro", threshold=0.4), t, p),
             (m.FBetaScore(average="weighted", beta=2.0), t, p), (m.R2Score(), numbers((4, 3)), numbers((4, 3), 0.2)),
             (m.PearsonCorrelation(), numbers((4, 3)), numbers((4, 3), 0.5)),
             (m.ConcordanceCorrelation(), numbers((4, 3)), numbers((4, 3), 0.5))]
    for metric, y_true, y_pred in cases:
        metric.update_state(y_true, y_pred)
    add("metrics", [*(np.asarray(case[0].result(), np.float32) for case in cases), m.categorical_accuracy(t, p),
                    m.top_k_categorical_accuracy(t, p, 2), m.binary_accuracy(t, p)])


def main():
    program, folder, report = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
    math_cases()
    linalg_cases()
    signal_cases()
    nn_cases()
    image_cases()
    ragged_cases()
    sparse_cases()
    random_cases()
    keras_ops_cases()
    keras_array_cases()
    keras_network_cases()
    keras_training_cases()
    keras_preprocessing_cases()
    keras_augmentation_cases()
    keras_metric_cases()
    return compare(program, folder, report)


sys.exit(main())
