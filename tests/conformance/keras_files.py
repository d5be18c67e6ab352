"""Models exchanged with the real Keras as .keras and .weights.h5, both ways; see check_keras_files.py."""

import os
import pathlib
import subprocess
import sys

import peer

args = peer.arguments()
args.out.mkdir(parents=True, exist_ok=True)
script = pathlib.Path(__file__).parent / "check_keras_files.py"
environment = dict(os.environ, KERAS_BACKEND="tensorflow", TF_CPP_MIN_LOG_LEVEL="3",
                   CUDA_VISIBLE_DEVICES="")
sys.exit(subprocess.run([args.python, script, args.writer, args.out, args.report, *args.names],
                        env=environment).returncode)
