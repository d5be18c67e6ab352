"""Writes graphs of ours and lets the real TensorFlow run them; see check_exports.py."""

import pathlib
import shutil
import subprocess
import sys

import peer

args = peer.arguments()
shutil.rmtree(args.out, ignore_errors=True)
subprocess.run([args.writer, args.out], check=True)
script = pathlib.Path(__file__).parent / "check_exports.py"
sys.exit(subprocess.run([args.python, script, args.out, args.report]).returncode)
