"""What tests against the real TensorFlow share: their arguments, and what to do where it is missing."""

import argparse
import pathlib
import sys

SKIPPED = 77


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--python", required=True, type=pathlib.Path,
                        help="that of TensorFlow's environment (./dev peers tensorflow)")
    parser.add_argument("--writer", required=True, help="the program that writes what is compared")
    parser.add_argument("--library", required=True, help="libtandem.so")
    parser.add_argument("--td", help="the tool, where a test runs it")
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--report", required=True)
    parser.add_argument("names", nargs="*", help="cases; all if left out")
    args = parser.parse_args()
    require(args.python)
    return args


def require(python):
    """Ends the test as skipped, and says why, where TensorFlow's Python is missing."""
    if not python.exists():
        print(f"skipped: TensorFlow's environment is missing ({python}); ./dev peers tensorflow installs it")
        sys.exit(SKIPPED)
