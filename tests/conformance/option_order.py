"""Keras' option structs have their members in the order of Keras' arguments, in which C++ wants them
to be named; see check_option_order.py."""

import argparse
import pathlib
import subprocess
import sys

import peer

parser = argparse.ArgumentParser()
parser.add_argument("--python", required=True, type=pathlib.Path,
                    help="that of TensorFlow's environment (./dev peers tensorflow)")
args = parser.parse_args()
peer.require(args.python)
script = pathlib.Path(__file__).parent / "check_option_order.py"
sys.exit(subprocess.run([args.python, script]).returncode)
