"""Writes image_dataset.txt: what the real Keras makes of the folder of image_dataset_test.cpp.

Run with TensorFlow 2.21: python make_image_dataset.py > image_dataset.txt
A case begins with "= name"; then its classes, its files, and a line for each image in the order of
the dataset: label, shape, and ten of its values.
"""
import contextlib
import io
import os
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf
from keras.utils import image_dataset_from_directory

FILES = [
    ("b_birds/three.png", 6, 9, 3), ("b_birds/one.PNG", 5, 5, 1), ("b_birds/deep/two.png", 12, 7, 4),
    ("a_apes/9.png", 8, 8, 3), ("a_apes/10.png", 4, 16, 3), ("a_apes/notes.txt", 0, 0, 0),
    ("c_cats/x.png", 10, 10, 3), ("c_cats/y.png", 7, 5, 3), (".hidden/z.png", 3, 3, 3),
]


def pixels(number, height, width, channels):
    y, x, c = np.meshgrid(np.arange(height), np.arange(width), np.arange(channels), indexing="ij")
    return ((number * 31 + y * 17 + x * 29 + c * 53) % 256).astype(np.uint8)


def make(folder):
    for number, (name, height, width, channels) in enumerate(FILES):
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        data = tf.io.encode_png(pixels(number, height, width, channels)).numpy() if height else b"no image"
        open(path, "wb").write(data)


def values(array):
    flat = array.reshape(-1)
    return " ".join("%.9g" % flat[i * (len(flat) - 1) // 9] for i in range(10))


def case(folder, name, **options):
    print("=", name)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            dataset = image_dataset_from_directory(folder, **options)
        print("classes", " ".join(dataset.class_names or []))
        print("files", " ".join(os.path.relpath(p, folder) for p in dataset.file_paths))
        if options.get("batch_size", 32) is not None:
            dataset = dataset.unbatch()
        for element in dataset:
            image, label = element if isinstance(element, tuple) else (element, None)
            reported = "-" if label is None else "%s:%s" % (label.dtype.name, label.numpy().tolist())
            print(reported.replace(" ", ""), "x".join(map(str, image.shape)), values(image.numpy()))
    except Exception as error:
        print("!", str(error).replace(folder, "DIR").replace("\n", " "))


with tempfile.TemporaryDirectory() as folder:
    make(folder)
    small = dict(image_size=(4, 6))
    case(folder, "plain", shuffle=False, **small)
    case(folder, "shuffled", seed=7, batch_size=3, **small)
    case(folder, "shuffled_single", seed=123456, batch_size=None, **small)
    case(folder, "categorical", shuffle=False, label_mode="categorical", interpolation="nearest", **small)
    case(folder, "binary", shuffle=False, label_mode="binary", class_names=["c_cats", "a_apes"], **small)
    case(folder, "no_labels", shuffle=False, labels=None, color_mode="grayscale", **small)
    case(folder, "no_mode", seed=3, label_mode=None, color_mode="rgba", **small)
    case(folder, "list", shuffle=False, labels=[4, 5, 5, 4, 7, 7, 5, 4], **small)
    case(folder, "training", seed=11, validation_split=0.4, subset="training", **small)
    case(folder, "validation", seed=11, validation_split=0.4, subset="validation", **small)
    case(folder, "crop", shuffle=False, crop_to_aspect_ratio=True, **small)
    case(folder, "crop_bicubic", shuffle=False, crop_to_aspect_ratio=True, interpolation="bicubic", image_size=(9, 5))
    case(folder, "pad", shuffle=False, pad_to_aspect_ratio=True, **small)
    case(folder, "area", shuffle=False, interpolation="Area", **small)
    case(folder, "lanczos", shuffle=False, interpolation="lanczos3", **small)
    case(folder, "wrong_mode", label_mode="one_hot")
    case(folder, "wrong_color", color_mode="bgr")
    case(folder, "wrong_method", interpolation="cubic")
    case(folder, "wrong_classes", class_names=["a_apes", "dogs"])
    case(folder, "wrong_count", labels=[1, 2, 3])
    case(folder, "classes_without", labels=None, class_names=["a_apes"])
    case(folder, "classes_with_list", labels=[1, 2], class_names=["a_apes"])
    case(folder, "three_binary", label_mode="binary")
    case(folder, "split_alone", validation_split=0.5)
    case(folder, "split_large", validation_split=1.5, subset="training", seed=1)
    case(folder, "split_no_seed", validation_split=0.5, subset="training")
    case(folder, "wrong_subset", validation_split=0.5, subset="test", seed=1)
    case(folder, "both_aspects", crop_to_aspect_ratio=True, pad_to_aspect_ratio=True)
    case(folder, "none_found", class_names=["b_birds"], validation_split=0.1, subset="training", seed=1)
