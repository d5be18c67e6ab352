"""Exports what the row saved_model_load loads: ResNet50 of Keras as a SavedModel, and an input.

usage: export_saved_model.py FOLDER
"""

import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np


def main():
    folder = sys.argv[1]
    keras.utils.set_random_seed(1)
    os.makedirs(folder)
    model = keras.applications.ResNet50(weights=None)
    model.export(os.path.join(folder, "resnet50"), verbose=False)
    x = np.random.default_rng(1).uniform(-1, 1, (1, 224, 224, 3)).astype(np.float32)
    np.save(os.path.join(folder, "x.npy"), x)


main()
