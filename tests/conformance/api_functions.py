"""Arrays of tensors, linear operators and other things made of ops, against the real TensorFlow."""

import pathlib
import subprocess
import sys

import peer

args = peer.arguments()
args.out.mkdir(parents=True, exist_ok=True)
script = pathlib.Path(__file__).parent / "check_api_functions.py"
sys.exit(subprocess.run([args.python, script, args.writer, args.out, args.report]).returncode)
