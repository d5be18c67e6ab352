"""Compares what api_functions.cpp writes with the real TensorFlow: check_api_functions.py PROGRAM DIR REPORT"""

import ctypes.util
import pathlib
import sys

from api_cases import EXPECTED, add, compare, differentiated, fails, numbers

import keras
import numpy as np
import tensorflow as tf


def tensor_array_cases():
    x = numbers((4, 3))

    def filled(t):
        a = tf.TensorArray(tf.float32, 4, clear_after_read=False)
        for i in range(4):
            a = a.write(3 - i, t[i] * 2.0)
        return a

    def array(size=4, **more):
        return tf.TensorArray(tf.float32, size, clear_after_read=False, **more)

    def unstacked(t):
        a = array().unstack(t)
        return a.read(0) * a.read(2)

    differentiated("ta write", lambda t: filled(t).stack(), x)
    differentiated("ta read", lambda t: filled(t).read(1), x)
    differentiated("ta unstack", unstacked, x)
    differentiated("ta gather", lambda t: filled(t).gather([2, 0]), x)
    differentiated("ta scatter", lambda t: array().scatter([1, 3, 0, 2], t).stack(), x)
    differentiated("ta split concat", lambda t: array(2, infer_shape=False).split(t, [1, 3]).concat() * 3.0, x)

    @tf.function
    def loop(t):
        a = tf.TensorArray(tf.float32, 4)
        for k in tf.range(4):
            a = a.write(k, t[k] * tf.cast(k, tf.float32))
        return a.stack()

    differentiated("ta loop", loop, x)
    growing = tf.TensorArray(tf.int32, 0, dynamic_size=True)
    for i in range(3):
        growing = growing.write(i, i * i)
    add("ta dynamic", [growing.stack(), growing.size()])
    # In functions these are all errors of the value; eagerly one is an out of range.
    EXPECTED["ta outside"] = EXPECTED["ta dtype"] = EXPECTED["ta shape"] = np.asarray(b"INVALID_ARGUMENT")
    fails("ta dtype", lambda: array(2).write(0, tf.constant([1, 2])))
    fails("ta shape", lambda: array(2).write(0, [1.0]).write(1, 2.0))


def operator_case(name, op, x, solves=True):
    add(name, [op.to_dense(), op.matmul(x), op.matmul(x, adjoint=True), op.diag_part(), op.shape_tensor()])
    if solves:
        add(name + " solve", [op.solve(x), op.solve(x, adjoint=True), op.determinant(), op.log_abs_determinant(),
                              op.trace(), op.inverse().to_dense()])


def operator_cases():
    la, x, full = tf.linalg, numbers((3, 2), 1), numbers((3, 3)) + tf.eye(3) * 3.0
    matrix = la.LinearOperatorFullMatrix(full, is_non_singular=True)
    operator_case("operator full", matrix, x)
    operator_case("operator diag", la.LinearOperatorDiag([1.0, -2.0, 3.0]), x)
    operator_case("operator identity", la.LinearOperatorIdentity(3), x)
    operator_case("operator scaled", la.LinearOperatorScaledIdentity(3, tf.constant(2.5)), x)
    operator_case("operator zeros", la.LinearOperatorZeros(3), x, False)
    operator_case("operator tril", la.LinearOperatorLowerTriangular(full), x)
    operator_case("operator tridiag",
                  la.LinearOperatorTridiag(tf.constant([[1.0, 2.0, 0.0], [4.0, 5.0, 6.0], [0.0, 1.0, 2.0]])), x)
    operator_case("operator toeplitz", la.LinearOperatorToeplitz([4.0, 2.0, 3.0], [4.0, 0.5, 1.5]), x)
    operator_case("operator householder", la.LinearOperatorHouseholder(tf.constant([1.0, 2.0, -1.0])), x)
    operator_case("operator permutation", la.LinearOperatorPermutation(tf.constant([2, 0, 1])), x)
    spectrum = tf.complex(tf.constant([6.0, 2.0, 2.0]), tf.constant([0.0, 1.0, -1.0]))
    operator_case("operator circulant", la.LinearOperatorCirculant(spectrum, tf.float32), x)
    plane = tf.complex(tf.constant([[5.0, 2.0], [3.0, 4.0]]), tf.zeros([2, 2]))
    operator_case("operator circulant2", la.LinearOperatorCirculant2D(plane, tf.float32), numbers((4, 2)))
    volume = tf.complex(tf.abs(numbers((2, 1, 2))) + 1.0, tf.zeros([2, 1, 2]))
    operator_case("operator circulant3", la.LinearOperatorCirculant3D(volume, tf.float32), numbers((4, 2)))
    operator_case("operator adjoint", la.LinearOperatorAdjoint(matrix), x)
    operator_case("operator inversion", la.LinearOperatorInversion(matrix), x)
    diag = la.LinearOperatorDiag([1.0, -2.0, 3.0], is_non_singular=True)
    operator_case("operator composition", la.LinearOperatorComposition([matrix, diag]), x)
    small = la.LinearOperatorFullMatrix([[2.0, 1.0], [0.5, 3.0]], is_non_singular=True)
    operator_case("operator kronecker", la.LinearOperatorKronecker([small, matrix]), numbers((6, 2)))
    operator_case("operator block_diag", la.LinearOperatorBlockDiag([small, matrix]), numbers((5, 2)))
    operator_case("operator block_lower", la.LinearOperatorBlockLowerTriangular(
        [[small], [la.LinearOperatorFullMatrix(numbers((3, 2), 2)), matrix]]), numbers((5, 2)))
    operator_case("operator low_rank", la.LinearOperatorLowRankUpdate(
        la.LinearOperatorDiag([4.0, 5.0, 6.0], is_positive_definite=True), numbers((3, 2), 3), tf.constant([1.0, 2.0])), x)
    operator_case("operator batch", la.LinearOperatorFullMatrix(numbers((2, 3, 3)) + tf.eye(3) * 3.0),
                  numbers((2, 3, 2), 1))
    positive = la.LinearOperatorFullMatrix(tf.matmul(full, full, transpose_b=True), is_self_adjoint=True,
                                           is_positive_definite=True)
    add("operator cholesky", [positive.cholesky().to_dense(), positive.eigvals(), positive.cond(),
                              positive.add_to_tensor(x[:, 0:1])])
    add("conjugate_gradient", [la.experimental.conjugate_gradient(positive, tf.constant([1.0, 2.0, 3.0])).x])
    differentiated("operator gradient", lambda t: la.LinearOperatorToeplitz(t[0], t[1]).matmul(x),
                   tf.constant([[4.0, 2.0, 3.0], [4.0, 0.5, 1.5]]))
    fails("operator shapes", lambda: matrix.matmul(numbers((2, 2))))


def signal_cases():
    x = numbers((2, 6, 4))
    c = tf.complex(x, numbers((2, 6, 4), 2))

    # TensorFlow registers no CPU kernel for these; NumPy computes them.
    def parts(t):
        return np.stack([t.real, t.imag]).astype(np.float32)

    f, x64, c64 = np.fft, x.numpy().astype(np.float64), c.numpy().astype(np.complex128)
    add("fftnd", [parts(f.fftn(c64)), parts(f.fftn(c64, axes=[1, 2])), parts(f.fftn(c64, axes=[2, 1], norm="ortho")),
                  parts(f.ifftn(c64, axes=[1, 2])), parts(f.ifftn(c64, norm="forward"))])
    add("rfftnd", [parts(f.rfftn(x64, axes=[1, 2])), parts(f.rfftn(x64)), parts(f.rfftn(x64, axes=[1, 2], norm="forward"))])
    add("irfftnd", [x])
    wav = tf.audio.encode_wav(tf.clip_by_value(numbers((8, 2)) * 1.2, -1.0, 1.0), 16000)
    add("encode_wav", [tf.io.encode_base64(wav)])
    sound, rate = tf.audio.decode_wav(wav)
    add("decode_wav", [sound, rate, tf.audio.decode_wav(wav, 1, 10)[0]])
    fails("decode_wav bytes", lambda: tf.audio.decode_wav("RIFFnothing"))


WEBP = (
    "UklGRlQAAABXRUJQVlA4IEgAAAAQAgCdASoJAAcAAUAmJbACdLoAAwhBG_RgAP79KEzWWmCS7b2WJtRtDPln_eQr_iQkuzXlfiaA"
    "T_y59nI3Z_4od_ZM_7_r8AA",
    "UklGRjYAAABXRUJQVlA4TCoAAAAvCIABALkyRPQ_duWP6H9AQds2TMiUP8q3IZgOBWkbsLDdiQkAxMpx-ww",
    "UklGRjgAAABXRUJQVlA4TCwAAAAvCIABELkyRPQ_duWP6H9AQds2TMiUP8q3IZgOBWkbsLDdGfYJAEgrh7PPAA",
    "UklGRoQAAABXRUJQVlA4WAoAAAAQAAAACAAABgAAQUxQSB8AAAABRyAQSCTy2x9kh4jIDGQBJmMYSyyx5P9lENH_WCMvAFZQOCA-"
    "AAAA0AEAnQEqCQAHAAKAQiWwAnQA9DGLeUAA_vfYHIKzrERTaosmJdz_Mp-O5mcz_n8bbDtcXf3FXrv_imoAAAA")


def webp_cases():
    if not ctypes.util.find_library("webp"):
        return
    for i, text in enumerate(WEBP):
        data = tf.io.decode_base64(text)
        add(f"decode_webp {i}", [tf.image.decode_webp(data, channels) for channels in (0, 3 if i < 2 else 4)])
        fails(f"decode_webp channels {i}", lambda: tf.image.decode_webp(data, 4 if i < 2 else 3))


def quantization_cases():
    q, x, g = tf.quantization, numbers((2, 6)), numbers((2, 6), 1)
    add("fake_quant args gradient", [q.fake_quant_with_min_max_args_gradient(g, x, -0.5, 0.8)])
    add("fake_quant vars gradient", q.fake_quant_with_min_max_vars_gradient(g, x, -0.5, 0.8, num_bits=4))
    add("fake_quant channels gradient", q.fake_quant_with_min_max_vars_per_channel_gradient(
        g, x, tf.fill([6], -0.5), tf.fill([6], 0.7)))
    add("quantize_v2", [q.quantize_and_dequantize_v2(x, -0.5, 0.8, range_given=True)])
    a, b = q.quantize(tf.abs(x), 0.0, 1.0, tf.quint8), q.quantize(tf.abs(g) * 2.0, 0.0, 2.0, tf.quint8)
    joined = q.quantized_concat(0, [a.output, b.output], [a.output_min, b.output_min], [a.output_max, b.output_max])
    add("quantized_concat", [tf.cast(joined[0], tf.int32), joined[1], joined[2]])


def io_cases():
    sparse = tf.sparse.from_dense([[0.0, 1.0, 0.0], [2.0, 0.0, 3.0]])
    back = tf.io.deserialize_many_sparse(tf.io.serialize_many_sparse(sparse), tf.float32)
    add("deserialize_many_sparse", [back.indices, back.values, back.dense_shape])
    one = tf.io.serialize_sparse(sparse)
    stacked = tf.io.deserialize_many_sparse(tf.stack([one, one]), tf.float32)
    add("deserialize_sparse", [stacked.indices, stacked.values, stacked.dense_shape])
    text = """{"features": {"feature": {"a": {"int64List": {"value": [1, "2"]}},
        "b": {"floatList": {"value": [0.5]}}, "c": {"bytesList": {"value": ["aGk="]}}}}}"""
    parsed = tf.io.parse_example(tf.io.decode_json_example([text]), {
        "a": tf.io.FixedLenFeature([2], tf.int64), "b": tf.io.FixedLenFeature([1], tf.float32),
        "c": tf.io.FixedLenFeature([1], tf.string)})
    add("decode_json_example", [parsed["a"], parsed["b"], parsed["c"]])
    places = tf.train.Example(features=tf.train.Features(feature={
        "ix": tf.train.Feature(int64_list=tf.train.Int64List(value=[3, 1])),
        "v": tf.train.Feature(float_list=tf.train.FloatList(value=[0.5, 1.5]))})).SerializeToString()
    merged = tf.io.parse_example([places, places], {"s": tf.io.SparseFeature("ix", "v", tf.float32, 5)})["s"]
    add("SparseFeature", [merged.indices, merged.values, merged.dense_shape])
    table = tf.lookup.experimental.DenseHashTable(tf.int64, tf.int64, -1, -2, -3)
    table.insert(tf.constant([1, 2, 3], tf.int64), tf.constant([10, 20, 30], tf.int64))
    table.erase(tf.constant([2], tf.int64))
    add("dense table", [table.lookup(tf.constant([1, 2, 3, 4], tf.int64)), table.size()])
    w = tf.Variable([1.0, 2.0])
    ema = tf.train.ExponentialMovingAverage(0.9)
    for _ in range(3):
        ema.apply([w])
        w.assign_add([1.0, -0.5])
    ema.apply([w])
    add("moving average", [ema.average(w)])


def write_files(folder):
    (folder / "rows1.csv").write_text('a,b,c,d,y\n1,0.5,x,3000000000,0\n2,,"y, z",4,1\n3,1.5,,5,1\n')
    (folder / "rows2.csv").write_text("a,b,c,d,y\n4,2.5,w,6,0\n5,3,v,7,0\n")
    for kind, count in (("good", 3), ("bad", 2)):
        (folder / "texts" / kind).mkdir(parents=True, exist_ok=True)
        (folder / "sounds" / kind).mkdir(parents=True, exist_ok=True)
        for i in range(count):
            (folder / "texts" / kind / f"{i}.txt").write_text(f"{kind} number {i}")
            tf.io.write_file(str(folder / "sounds" / kind / f"{i}.wav"),
                             tf.audio.encode_wav(numbers((4 + 2 * i, 1), i), 8000))


def add_all(name, dataset):
    add(name, [part for element in dataset for part in tf.nest.flatten(element)])


def data_cases(folder):
    u, pattern = keras.utils, str(folder / "*.csv")
    labelled = tf.data.experimental.make_csv_dataset(pattern, 2, label_name="y", num_epochs=1, shuffle=False)
    add("csv", [part for features, label in labelled for part in [*(features[n] for n in "abcd"), label]])
    selected = tf.data.experimental.make_csv_dataset(
        pattern, 3, select_columns=["c", "a"], num_epochs=2, shuffle=False, num_rows_for_inference=1)
    add("csv select", [row[n] for row in selected for n in "ac"])
    fails("csv label", lambda: tf.data.experimental.make_csv_dataset(pattern, 2, label_name="q"))
    texts = str(folder / "texts")
    add_all("text", u.text_dataset_from_directory(texts, batch_size=2, max_length=5, seed=3, verbose=False))
    add_all("text split", u.text_dataset_from_directory(
        texts, label_mode="categorical", batch_size=None, shuffle=False, validation_split=0.4, subset="validation",
        verbose=False))
    fails("text mode", lambda: u.text_dataset_from_directory(texts, label_mode="words", verbose=False))
    add_all("audio", u.audio_dataset_from_directory(
        str(folder / "sounds"), batch_size=2, output_sequence_length=6, shuffle=False, verbose=False))
    series, targets = numbers((20, 2)).numpy(), np.arange(20, dtype=np.int32)
    window = u.timeseries_dataset_from_array
    add_all("timeseries", window(series, None, 5, batch_size=4))
    add_all("timeseries targets", window(series, targets, 4, sequence_stride=3, sampling_rate=2, batch_size=2))
    add_all("timeseries shuffled", window(series, targets, 3, batch_size=4, shuffle=True, seed=7, start_index=2,
                                          end_index=18))
    add_all("timeseries single", window(series, None, 6, batch_size=None).take(3))
    fails("timeseries stride", lambda: window(series, None, 6, sequence_stride=0))


def main():
    program, folder, report = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
    tensor_array_cases()
    operator_cases()
    signal_cases()
    webp_cases()
    quantization_cases()
    io_cases()
    files = folder / "data"
    files.mkdir(parents=True, exist_ok=True)
    write_files(files)
    data_cases(files)
    return compare(program, folder, report, files)


sys.exit(main())
