"""The files that `data` reads, the same on both sides: made once by our programs, kept under
build/bench/data until the sources that make them change."""

import hashlib
import os
import shutil
import subprocess

from . import sides

PHOTOS = ("512", "375", "500")  # how many, height, width
SOURCES = ("examples/photos.h", "bench/common/pipelines.h", "bench/common/samples.h",
           "bench/ours/data.cpp")


def version(root):
    reported = hashlib.sha256(" ".join(PHOTOS).encode())
    for path in SOURCES:
        with open(os.path.join(root, path), "rb") as source:
            reported.update(source.read())
    return reported.hexdigest()[:12]


def made(root, build, say):
    """The folder of the files."""
    folder = os.path.join(root, "build/bench/data")
    ready = os.path.join(folder, version(root))
    if os.path.isdir(ready):
        return ready
    commands = [[os.path.join(build, "bin/cut_photos"), ready + ".part/photos", *PHOTOS],
                [os.path.join(build, "bench/bin/bench_data"), "--records", ready + ".part"]]
    for program, *_ in commands:
        if not os.path.exists(program):
            raise sides.Failure(f"{program}, which makes the files to be read, is missing")
    say("making the files to be read")
    shutil.rmtree(folder, ignore_errors=True)  # those of other versions
    os.makedirs(folder)
    for command in commands:
        if subprocess.call(command, cwd=root, stdout=subprocess.DEVNULL) != 0:
            raise sides.Failure(f"{command[0]} failed")
    os.rename(ready + ".part", ready)
    return ready
