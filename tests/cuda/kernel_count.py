#!/usr/bin/env python3
"""Counts the kernels in libtandem_cuda.so by cuobjdump: for each architecture that it was compiled for it has the code
of every kernel that its host code launches, and of no other.

usage: kernel_count.py --library FILE --architectures LIST [--cuobjdump FILE]... [--report FILE]

LIST is CMake's CMAKE_CUDA_ARCHITECTURES. The first cuobjdump that is there is used. Exit codes: 0 all are there, 1 some
are not, 77 there is no cuobjdump."""

import argparse
import collections
import re
import shutil
import subprocess
import sys
import tempfile


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def launched(library):
    """The kernels that the host code registers with the driver: by their mangled names, which are among its constants
    as no other function's is."""
    with tempfile.NamedTemporaryFile() as file:
        output_of("objcopy", "--output-target=binary", "--only-section=.rodata", library, file.name)
        constants = file.read()
    # Before the first of them there may be any other constant.
    return {name.decode() for name in re.findall(rb"_Z[A-Za-z0-9_$.]+(?=\0)", constants)}


def compiled(listing):
    """Kernels by architecture, from what `cuobjdump --dump-resource-usage` prints."""
    kernels, architecture = collections.defaultdict(set), None
    for line in listing.splitlines():
        if found := re.match(r"\s*arch = (sm_\w+)", line):
            architecture = found[1]
        elif found := re.match(r"\s*Function ([^:\s]+):", line):
            kernels[architecture].add(found[1])
    return kernels


def code_and_ptx(architectures):
    """What a list such as "80-real;90-virtual;100" asks for."""
    code, ptx = set(), set()
    for entry in filter(None, architectures.split(";")):
        number, _, kind = entry.partition("-")
        if kind != "virtual":
            code.add(f"sm_{number}")
        if kind != "real":
            ptx.add(f"sm_{number}")
    return code, ptx


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", required=True)
    parser.add_argument("--architectures", required=True)
    parser.add_argument("--cuobjdump", action="append", default=[])
    parser.add_argument("--report")
    options = parser.parse_args()
    tool = next(filter(None, map(shutil.which, ["cuobjdump", *options.cuobjdump])), None)
    if not tool:
        print("skipped: no cuobjdump, which `./dev peers cuda` installs")
        return 77
    wanted = launched(options.library)
    kernels = compiled(output_of(tool, "--dump-resource-usage", options.library))
    code, ptx = code_and_ptx(options.architectures)
    missing = [] if wanted else ["no kernel is launched by the library's host code"]
    for architecture in sorted(code | set(kernels)):
        there = kernels.get(architecture, set())
        print(f"{architecture}: {len(there)} kernels")
        missing += [f"{architecture}: no code for {name}" for name in sorted(wanted - there)]
        missing += [f"{architecture}: nothing launches {name}" for name in sorted(there - wanted)]
    files = output_of(tool, "--list-ptx", options.library)
    missing += [f"{architecture}: no PTX" for architecture in sorted(ptx) if f".{architecture}." not in files]
    if options.report:
        with open(options.report, "w", encoding="utf-8") as report:
            report.write(f"{len(wanted)} {len(missing)}\n")
    print("\n".join(missing), end="\n" if missing else "")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
