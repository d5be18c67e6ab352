"""run.py PYTHON TEST: the test by a Python that has TensorFlow; 77, with the reason, without one."""

import os
import subprocess
import sys

SKIPPED = 77


def main():
    python, test = sys.argv[1:]
    if not os.path.exists(python):
        print(f"skipped: there is no TensorFlow in {python} (./dev peers tensorflow)")
        return SKIPPED
    return subprocess.run([python, test], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
