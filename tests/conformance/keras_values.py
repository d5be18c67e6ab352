"""Layers, losses, metrics and optimizers against the real Keras; see check_keras_values.py."""

import pathlib
import subprocess
import sys

import peer

args = peer.arguments()
args.out.mkdir(parents=True, exist_ok=True)
script = pathlib.Path(__file__).parent / "check_keras_values.py"
sys.exit(subprocess.run([args.python, script, args.writer, args.out, args.report]).returncode)
