"""Checkpoints of objects exchanged with the real TensorFlow, both ways; see
check_object_checkpoints.py."""

import pathlib
import shutil
import subprocess
import sys

import peer

args = peer.arguments()
shutil.rmtree(args.out, ignore_errors=True)
subprocess.run([args.writer, "save", args.out], check=True)
script = pathlib.Path(__file__).parent / "check_object_checkpoints.py"
sys.exit(subprocess.run([args.python, script, args.writer, args.out, args.report]).returncode)
