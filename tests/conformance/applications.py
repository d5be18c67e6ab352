"""Architectures of keras.applications with weights of the real Keras; see check_applications.py."""

import pathlib
import shutil
import subprocess
import sys

import peer

args = peer.arguments()
shutil.rmtree(args.out, ignore_errors=True)
args.out.mkdir(parents=True)
script = pathlib.Path(__file__).parent / "check_applications.py"
sys.exit(subprocess.run([args.python, script, args.writer, args.out, args.report]).returncode)
