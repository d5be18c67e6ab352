""".npz files exchanged with the real NumPy, both ways; see check_npz.py."""

import pathlib
import subprocess
import sys

import peer

args = peer.arguments()
args.out.mkdir(parents=True, exist_ok=True)
script = pathlib.Path(__file__).parent / "check_npz.py"
sys.exit(subprocess.run([args.python, script, args.writer, args.out, args.report]).returncode)
