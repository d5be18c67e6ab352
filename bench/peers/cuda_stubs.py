#!/usr/bin/env python3
"""Stand-ins for the CUDA libraries that PyTorch's Linux wheel names but never calls on a CPU.

The only Linux wheel of PyTorch on the public index is the CUDA build. Its CPU code is complete,
but loading it asks for gigabytes of CUDA libraries. This script compiles, for each shared library
that the wheel needs and the environment lacks, an empty one that defines the wanted names with
their versions, and puts it where the wheel looks. Calling one of them stops the process, so
nothing can be measured through a stand-in by mistake.

usage: cuda_stubs.py TORCH_LIB_DIRECTORY
"""

import collections
import os
import re
import subprocess
import sys
import tempfile

# Wanted names without a symbol version are distinguished by how they begin.
UNVERSIONED = {
    "libnccl.so.2": r"(p?nccl)[A-Z]",
    "libcusparseLt.so.0": r"cusparseLt",
    "libcufile.so.0": r"cuFile",
}

# Opened by the wheel when a GPU is used first. A stand-in for what they need (the driver's own
# library among it) would make the wheel believe that there is a driver.
OPENED_LATE = {"libtorch_cuda_linalg.so"}


def readelf(option, path):
    run = subprocess.run(["readelf", "-W", option, path], capture_output=True, text=True, check=True)
    return run.stdout


def needed(path):
    return re.findall(r"\(NEEDED\).*\[(.*)\]", readelf("-d", path))


def version_files(path):
    """Symbol version -> the library that the version is expected from."""
    owner, result = None, {}
    for line in readelf("-V", path).splitlines():
        if match := re.search(r"File: (\S+)", line):
            owner = match[1]
        elif owner and (match := re.search(r"Name: (\S+)", line)):
            result[match[1]] = owner
    return result


def undefined(path):
    """(name, version or None) of what `path` expects from other libraries."""
    for line in readelf("--dyn-syms", path).splitlines():
        fields = line.split()
        if len(fields) >= 8 and fields[6] == "UND":
            name, _, version = fields[7].partition("@")
            yield name, version.lstrip("@") or None


def main():
    directory = os.path.abspath(sys.argv[1])
    libraries = [
        os.path.join(directory, name)
        for name in sorted(os.listdir(directory))
        if re.match(r"lib(torch|c10|shm).*\.so$", name) and name not in OPENED_LATE
    ]
    site = os.path.dirname(os.path.dirname(directory))
    present = set(os.listdir(directory))
    for _, _, names in os.walk(os.path.join(site, "nvidia")):
        present.update(names)

    wanted = collections.defaultdict(lambda: collections.defaultdict(set))
    for library in libraries:
        missing = {
            name
            for name in needed(library)
            if name not in present and re.match(r"lib(cu|nv|nccl)", name)
        }
        for name in missing:
            wanted[name]  # an entry even where no symbol is asked for
        owner = version_files(library)
        for symbol, version in undefined(library):
            if version is not None:
                if owner.get(version) in missing:
                    wanted[owner[version]][version].add(symbol)
                continue
            for name, pattern in UNVERSIONED.items():
                if name in missing and re.match(pattern, symbol):
                    wanted[name][None].add(symbol)

    for name, versions in sorted(wanted.items()):
        with tempfile.TemporaryDirectory() as scratch:
            source = os.path.join(scratch, "stub.c")
            script = os.path.join(scratch, "stub.map")
            symbols = sorted(set().union(*versions.values())) if versions else []
            with open(source, "w") as out:
                for symbol in symbols:
                    out.write(f"void {symbol}(void) {{ __builtin_trap(); }}\n")
            command = ["cc", "-shared", "-fPIC", "-o", os.path.join(directory, name)]
            command += [f"-Wl,-soname,{name}", source]
            named = {v: s for v, s in versions.items() if v is not None}
            if named:
                with open(script, "w") as out:
                    for version, members in named.items():
                        out.write(f"{version} {{ global: {'; '.join(sorted(members))}; }};\n")
                command.append(f"-Wl,--version-script={script}")
            subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
