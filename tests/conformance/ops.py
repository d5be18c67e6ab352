#!/usr/bin/env python3
"""Runs the cases of tests/reference/cases with the real TensorFlow now, and compares ours with what it says.

    ops.py --python PYTHON --test REFERENCE_TEST --out FOLDER --report FILE

PYTHON is that of TensorFlow's environment (./dev peers tensorflow). Where it is missing the values that are
stored in tests/reference/data serve, and a line says so. Exit code: that of the comparison.
"""
import argparse
import concurrent.futures
import os
import pathlib
import shutil
import subprocess
import sys

REFERENCE = pathlib.Path(__file__).resolve().parent.parent / "reference"


def ask_tensorflow(python, family, out):
    command = [python, str(REFERENCE / "make_reference.py"), "--out", str(out), "--family", family]
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
    return subprocess.run(command, capture_output=True, text=True, env=environment)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", required=True)
    parser.add_argument("--test", required=True)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--report", required=True)
    options = parser.parse_args()

    data = REFERENCE / "data"
    if not os.access(options.python, os.X_OK):
        print(f"conformance: no TensorFlow at {options.python} (./dev peers tensorflow installs it): "
              "its stored values serve", flush=True)
    else:
        shutil.rmtree(options.out, ignore_errors=True)
        options.out.mkdir(parents=True)
        shutil.copy(REFERENCE / "pending.txt", options.out.parent)
        families = sorted(path.stem for path in (REFERENCE / "cases").glob("*.txt"))
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            answers = list(pool.map(lambda f: ask_tensorflow(options.python, f, options.out), families))
        for family, answer in zip(families, answers):
            if answer.returncode != 0:
                print(f"conformance: TensorFlow's answers for {family} could not be had:")
                print(answer.stdout + answer.stderr[-2000:])
                return 1
            print("tensorflow: " + answer.stdout.splitlines()[0], flush=True)
        data = options.out
    # Cases name files from the repository's root on.
    return subprocess.run([options.test, "--data", str(data), "--report", options.report],
                          cwd=REFERENCE.parent.parent).returncode


if __name__ == "__main__":
    sys.exit(main())
