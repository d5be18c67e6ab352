#!/usr/bin/env python3
"""Writes functions.jsonl.gz: what the functions of tf.image answer, for the test beside this.

    python make_reference.py

A record: `call` (the function), `args` (numbers and names by tf.image's names), `inputs` and `outputs` (tensors), or
`error` where TensorFlow refuses; `tol` is relative and absolute, 0 for equal bits.
"""

import os
import pathlib
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")

import numpy as np
import tensorflow as tf

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

sys.path.insert(0, str(HERE))

from gifs import samples  # noqa: E402
from records import encode, packed  # noqa: E402

IM = tf.image
RAW = tf.raw_ops
records = []


def picture(height, width, channels, dtype=np.uint8, salt=0):
    random = np.random.RandomState(height * 1000 + width * 10 + channels + salt)
    y, x = np.mgrid[0:height, 0:width]
    waves = [128 + 100 * np.sin(x / 3 + k) * np.cos(y / 5 - k) for k in range(channels)]
    values = np.clip(np.stack(waves, -1) + random.randn(height, width, channels) * 9, 0, 255)
    if dtype == np.uint8:
        return values.astype(np.uint8)
    if np.issubdtype(dtype, np.integer):
        return (values / 256 * np.iinfo(dtype).max).astype(dtype)
    return (values / 255).astype(dtype)


def add(call, function, inputs, tol=0, **args):
    record = {"call": call, "args": args, "inputs": [
        encode(np.array(i, dtype=object) if isinstance(i, bytes) else i) for i in inputs]}
    try:
        outputs = function(*[tf.constant(i) for i in inputs], **args)
        outputs = outputs if isinstance(outputs, (list, tuple)) else [outputs]
        record["outputs"] = [encode(np.asarray(o.numpy(), dtype=object) if o.dtype == tf.string
                                    else o.numpy()) for o in outputs]
        record["tol"] = tol
    except (tf.errors.NotFoundError, tf.errors.UnimplementedError):
        return  # TensorFlow has no kernel for this dtype, which says nothing of ours
    except (tf.errors.OpError, ValueError, AssertionError) as error:
        record["error"] = type(error).__name__
    records.append(record)


def decode_jpeg(contents, **args):
    return RAW.DecodeJpeg(contents=contents, **args)


def codecs():
    jpegs = [tf.io.encode_jpeg(picture(17, 33, c), quality=80, progressive=p, chroma_downsampling=d).numpy()
             for c in (1, 3) for p in (False, True) for d in (True, False)]
    for contents in jpegs:
        for channels in (0, 1, 3):
            for ratio in (1, 2, 4, 8):
                add("decode_jpeg", decode_jpeg, [contents], channels=channels, ratio=ratio)
            add("decode_jpeg", decode_jpeg, [contents], channels=channels, fancy_upscaling=False)
            add("decode_jpeg", decode_jpeg, [contents], channels=channels, dct_method="INTEGER_ACCURATE")
        for window in ([0, 0, 17, 33], [5, 11, 8, 13], [16, 32, 1, 1], [0, 0, 18, 1], [-1, 0, 2, 2], [0, 0, 0, 1]):
            add("decode_and_crop_jpeg", IM.decode_and_crop_jpeg, [contents, np.array(window, np.int32)])
        add("extract_jpeg_shape", IM.extract_jpeg_shape, [contents])
        for part in (0.2, 0.7, 0.95):
            cut = contents[:int(len(contents) * part)]
            for recover in (False, True):
                for fraction in (1.0, 0.5, 0.0):
                    add("decode_jpeg", decode_jpeg, [cut], try_recover_truncated=recover,
                        acceptable_fraction=fraction)
    add("decode_jpeg", decode_jpeg, [jpegs[0]], dct_method="INTEGER_FAST")
    for bad in ({"channels": 4}, {"channels": 2}, {"ratio": 3}, {"dct_method": "FLOAT"}):
        add("decode_jpeg", decode_jpeg, [jpegs[0]], **bad)
    for junk in (b"", b"\xff", b"\xff\xd8\xff", b"\xff\xd8\xff\xe0" + bytes(50), b"no image at all"):
        add("decode_jpeg", decode_jpeg, [junk])
        add("decode_png", IM.decode_png, [junk])
        add("decode_bmp", IM.decode_bmp, [junk])
        add("decode_image", IM.decode_image, [junk])
    for channels in (1, 3):
        for options in ({}, {"quality": 20}, {"quality": 0}, {"quality": 100}, {"progressive": True},
                        {"optimize_size": True}, {"chroma_downsampling": False}, {"density_unit": "cm"},
                        {"x_density": 72, "y_density": 96}, {"xmp_metadata": "<x/>"}, {"quality": 101}):
            add("encode_jpeg", tf.io.encode_jpeg, [picture(9, 20, channels)], **options)
    for shape in ((0, 4, 3), (4, 4, 2), (4, 4, 4)):
        add("encode_jpeg", tf.io.encode_jpeg, [np.zeros(shape, np.uint8)])
    for dtype in (np.uint8, np.uint16):
        for channels in (1, 2, 3, 4):
            contents = tf.io.encode_png(picture(7, 11, channels, dtype)).numpy()
            for wanted in (0, 1, 3, 4):
                for out in ("uint8", "uint16"):
                    add("decode_png", lambda c, channels, dtype: IM.decode_png(c, channels, tf.as_dtype(dtype)),
                        [contents], channels=wanted, dtype=out)
            for out in ("uint8", "uint16", "float", "half", "int32"):
                add("decode_image", lambda c, dtype: IM.decode_image(
                    c, dtype={"float": tf.float32, "half": tf.float16}.get(dtype) or tf.as_dtype(dtype)),
                    [contents], dtype=out)
            add("decode_png", IM.decode_png, [contents[:len(contents) // 2]])
    for out in ("uint8", "uint16", "float"):
        add("decode_image", lambda c, dtype: IM.decode_image(c, dtype=tf.float32 if dtype == "float" else tf.as_dtype(dtype)),
            [jpegs[4]], dtype=out)

    def bmp(height, width, bits, cut=0):
        row = (bits // 8 * width + 3) // 4 * 4
        body = np.random.RandomState(bits + width).bytes(row * abs(height))
        i4 = lambda v: int(v).to_bytes(4, "little", signed=True)
        head = b"BM" + i4(54 + len(body)) + i4(0) + i4(54) + i4(40) + i4(width) + i4(height) + b"\1\0" + \
            bits.to_bytes(2, "little") + bytes(24)
        return (head + body)[:54 + len(body) - cut]
    for bits in (8, 24, 32, 16):
        for height in (3, -3):
            for channels in (0, 1, 3, 4):
                add("decode_bmp", IM.decode_bmp, [bmp(height, 5, bits)], channels=channels)
    add("decode_image", IM.decode_image, [bmp(3, 5, 24)])
    for contents in (bmp(3, 5, 24, 1), bmp(3, 5, 24)[:31], bmp(3, 5, 24)[:18] + b"\xff\xff\xff\x7f" * 2 + bmp(3, 5, 24)[26:]):
        add("decode_bmp", IM.decode_bmp, [contents])


def gifs():
    for name, contents in samples().items():
        add("decode_gif", tf.io.decode_gif, [contents])
        add("decode_png", IM.decode_png, [contents])
        for expand in (True, False):
            for out in ("uint8", "uint16", "float", "half"):
                if name == "three" or (name != "long" and out == "uint8"):
                    add("decode_image", lambda c, dtype, expand_animations: IM.decode_image(
                        c, dtype={"float": tf.float32, "half": tf.float16}.get(dtype) or tf.as_dtype(dtype),
                        expand_animations=expand_animations), [contents], dtype=out, expand_animations=expand)
    for channels in (0, 1, 3, 4):
        add("decode_image", IM.decode_image, [samples()["one"]], channels=channels)
        add("decode_png", IM.decode_png, [samples()["one"]], channels=channels)
    add("decode_gif", tf.io.decode_gif, [tf.io.encode_png(picture(3, 4, 3)).numpy()])
    add("decode_bmp", IM.decode_bmp, [samples()["one"]])


def sizes():
    methods = ("bilinear", "nearest", "bicubic", "area", "lanczos3", "lanczos5", "gaussian", "mitchellcubic")
    for method in methods:
        for size in ([5, 7], [20, 31], [9, 4]):
            for antialias in (False, True):
                add("resize", IM.resize, [picture(12, 17, 3)], 1e-5, size=size, method=method, antialias=antialias)
        add("resize", IM.resize, [picture(12, 17, 3, np.float32)], 1e-5, size=[30, 9], method=method,
            preserve_aspect_ratio=True)
        add("resize", IM.resize, [picture(12, 17, 3)[None].repeat(2, 0)], 1e-5, size=[6, 6], method=method)
    for size, method in (([0, 3], "area"), ([-1, 3], "bilinear"), ([3], "bilinear"), ([3, 3, 3], "nearest"), ([3, 3], "other")):
        add("resize", IM.resize, [picture(4, 4, 3)], size=size, method=method)
    add("resize", IM.resize, [picture(4, 4, 1)[..., 0]], size=[2, 2])
    for target in ((20, 9), (6, 30), (12, 17), (0, 3)):
        pair = {"target_height": target[0], "target_width": target[1]}
        add("resize_with_pad", IM.resize_with_pad, [picture(12, 17, 3)], 1e-5, **pair)
        add("resize_with_crop_or_pad", IM.resize_with_crop_or_pad, [picture(12, 17, 3)], **pair)
        add("resize_with_crop_or_pad", IM.resize_with_crop_or_pad, [picture(13, 16, 1, np.float32)[None]], **pair)
    names = ("offset_height", "offset_width", "target_height", "target_width")
    for box in ((0, 0, 6, 7), (2, 3, 4, 4), (2, 3, 5, 4), (-1, 0, 2, 2), (0, 0, 0, 2)):
        add("crop_to_bounding_box", IM.crop_to_bounding_box, [picture(6, 7, 2)], **dict(zip(names, box)))
    for box in ((0, 0, 6, 7), (2, 3, 9, 12), (2, 3, 7, 12), (-1, 0, 9, 9)):
        add("pad_to_bounding_box", IM.pad_to_bounding_box, [picture(6, 7, 2)], **dict(zip(names, box)))
    for fraction in (1.0, 0.5, 0.33, 0.87, 0.0, 1.5):
        add("central_crop", IM.central_crop, [picture(13, 16, 3)], central_fraction=fraction)
        add("central_crop", IM.central_crop, [picture(13, 16, 3)[None]], central_fraction=fraction)
    for image in (picture(5, 6, 3), picture(5, 6, 3, np.float32)[None].repeat(2, 0), picture(5, 6, 1)[..., 0]):
        for name in ("flip_left_right", "flip_up_down", "transpose"):
            add(name, getattr(IM, name), [image])
        for k in (-1, 0, 1, 2, 3, 6):
            add("rot90", IM.rot90, [image], k=k)


def values():
    kinds = (np.uint8, np.uint16, np.int16, np.int32, np.float32, np.float64, np.float16)
    for kind in kinds:
        image = picture(6, 5, 3, kind)
        tol = 2e-3 if kind == np.float16 else 2e-6
        for target in ("uint8", "int8", "uint16", "int16", "int32", "float", "double", "half"):
            if kind == np.float16 and target in ("int32", "uint16"):  # TensorFlow's scale is infinite
                continue
            for saturate in (False, True):
                add("convert_image_dtype", lambda i, dtype, saturate: IM.convert_image_dtype(
                    i, {"float": tf.float32, "double": tf.float64, "half": tf.float16}.get(dtype) or tf.as_dtype(dtype), saturate),
                    [image], tol, dtype=target, saturate=saturate)
        for name, key, amounts in (("adjust_brightness", "delta", (0.2, -0.4)), ("adjust_contrast", "contrast_factor", (0.5, 1.8)),
                                   ("adjust_hue", "delta", (0.2, -0.3)), ("adjust_saturation", "saturation_factor", (0.3, 1.7)),
                                   ("adjust_gamma", "gamma", (0.5, 2.2))):
            for amount in amounts:
                add(name, getattr(IM, name), [image], 1 if np.issubdtype(kind, np.integer) else 10 * tol, **{key: amount})
        add("rgb_to_grayscale", IM.rgb_to_grayscale, [image], 1 if np.issubdtype(kind, np.integer) else tol)
        add("grayscale_to_rgb", IM.grayscale_to_rgb, [image[..., :1]])
        add("per_image_standardization", IM.per_image_standardization, [image], 1e-5)
    add("adjust_hue", IM.adjust_hue, [picture(2, 2, 3)], delta=1.5)
    add("adjust_gamma", IM.adjust_gamma, [picture(2, 2, 3)], gamma=-1.0)
    add("grayscale_to_rgb", IM.grayscale_to_rgb, [picture(2, 2, 3)])
    add("per_image_standardization", IM.per_image_standardization, [picture(3, 3, 3)[None] * 0 + 7], 1e-5)
    add("per_image_standardization", IM.per_image_standardization, [picture(3, 3, 1)[..., 0]])
    for kind in (np.uint8, np.float32):
        for quality in (0, 30, 95, 101):
            add("adjust_jpeg_quality", IM.adjust_jpeg_quality, [picture(16, 9, 3, kind)], 1e-6, jpeg_quality=quality)
    add("rgb_to_hsv", IM.rgb_to_hsv, [picture(4, 5, 3, np.float32)], 1e-6)
    add("hsv_to_rgb", IM.hsv_to_rgb, [picture(4, 5, 3, np.float32)], 1e-6)
    for image in (picture(6, 7, 3, np.float32), picture(6, 7, 3, np.float32)[None].repeat(2, 0)):
        add("total_variation", IM.total_variation, [image], 1e-5)
    for batch in (picture(6, 7, 3, np.float32)[None].repeat(2, 0), picture(3, 2, 1, np.float64)[None]):
        add("image_gradients", IM.image_gradients, [batch], 1e-6)
        add("sobel_edges", IM.sobel_edges, [batch], 1e-5)
        boxes = np.array([[[0.1, 0.2, 0.8, 0.9]]] * batch.shape[0], np.float32)
        add("draw_bounding_boxes", IM.draw_bounding_boxes,
            [batch.astype(np.float32), boxes, np.array([[0.5] * batch.shape[3]], np.float32)], 1e-6)
    add("image_gradients", IM.image_gradients, [picture(6, 7, 3, np.float32)])


def draws():
    tf.random.set_seed(7)
    image, batch = picture(6, 7, 3), picture(6, 7, 3, np.float32)[None].repeat(9, 0)
    for seed in range(4):
        for name, args in (("random_flip_left_right", {}), ("random_flip_up_down", {}), ("random_brightness", {"max_delta": 0.3}),
                           ("random_contrast", {"lower": 0.4, "upper": 1.6}), ("random_hue", {"max_delta": 0.2}),
                           ("random_saturation", {"lower": 0.4, "upper": 1.6}), ("random_crop", {"size": [3, 4, 3]}),
                           ("random_jpeg_quality", {"min_jpeg_quality": 5, "max_jpeg_quality": 95})):
            tf.random.set_seed(7)
            add(name, getattr(IM, name), [image], 0 if "flip" in name or "crop" in name else 1, seed=seed, **args)
        for name in ("random_flip_left_right", "random_flip_up_down"):
            tf.random.set_seed(7)
            add(name, getattr(IM, name), [batch], seed=seed)
    for name, args in (("random_brightness", {"max_delta": -0.3}), ("random_contrast", {"lower": 2.0, "upper": 1.6}),
                       ("random_hue", {"max_delta": 0.7}), ("random_saturation", {"lower": -0.4, "upper": 1.6}),
                       ("random_crop", {"size": [9, 4, 3]}), ("random_jpeg_quality", {"min_jpeg_quality": 5, "max_jpeg_quality": 5})):
        add(name, getattr(IM, name), [image], seed=1, **args)


def stateless_draws():
    image, batch = picture(6, 7, 3), picture(6, 7, 3, np.float32)[None].repeat(9, 0)
    kinds = (("flip_left_right", {}), ("flip_up_down", {}), ("brightness", {"max_delta": 0.3}),
             ("contrast", {"lower": 0.4, "upper": 1.6}), ("hue", {"max_delta": 0.2}), ("saturation", {"lower": 0.4, "upper": 1.6}),
             ("crop", {"size": [3, 4, 3]}), ("jpeg_quality", {"min_jpeg_quality": 5, "max_jpeg_quality": 95}))
    for seed in ([0, 0], [1, 2], [-3, 4], [2**40, 7]):
        for name, args in kinds:
            function = getattr(IM, "stateless_random_" + name)
            tol = 0 if "flip" in name or name == "crop" else 1
            add("stateless_random_" + name, function, [image], tol, seed=seed, **args)
            if "flip" in name:
                add("stateless_random_" + name, function, [batch], seed=seed)
    for name, args in (("brightness", {"max_delta": -0.3}), ("contrast", {"lower": 2.0, "upper": 1.6}), ("hue", {"max_delta": 0.7}),
                       ("saturation", {"lower": -0.4, "upper": 1.6}), ("crop", {"size": [9, 4, 3]}),
                       ("jpeg_quality", {"min_jpeg_quality": 5, "max_jpeg_quality": 5}), ("flip_up_down", {"seed": [1]})):
        add("stateless_random_" + name, getattr(IM, "stateless_random_" + name), [image], **{"seed": [1, 2], **args})


codecs()
gifs()
sizes()
values()
draws()
stateless_draws()
header = {"format": 1, "file": "functions", "tensorflow": tf.__version__, "records": len(records)}
path = HERE / "functions.jsonl.gz"
path.write_bytes(packed([header] + records))
print(len(records), "records,", sum("error" in r for r in records), "of them errors,", path.stat().st_size, "bytes")
