"""Record, line and CSV files exchanged with the real TensorFlow, both ways; see check_records.py."""

import pathlib
import shutil
import subprocess
import sys

import peer

args = peer.arguments()
shutil.rmtree(args.out, ignore_errors=True)
args.out.mkdir(parents=True)
subprocess.run([args.writer, "write", args.out], check=True)
script = pathlib.Path(__file__).parent / "check_records.py"
sys.exit(subprocess.run([args.python, script, args.writer, args.out, args.report]).returncode)
