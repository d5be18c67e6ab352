"""Installs and compiles what a peer's program needs, and says how it is started."""

import glob
import os
import subprocess

from . import sides

UNREACHABLE = 3  # of bench/peers/setup.sh


def install(root, environment):
    """Whether the environment is there afterwards; False where the index can't be reached. A C++
    peer that needs no packages has none."""
    if not environment:
        return True
    code = subprocess.call([os.path.join(root, "bench/peers/setup.sh"), environment])
    if code not in (0, UNREACHABLE):
        raise sides.Failure(f"installing {environment} failed")
    return code == 0


def site_packages(root, environment):
    found = glob.glob(os.path.join(root, "build/peers", environment, "lib/python3*/site-packages"))
    if len(found) != 1:
        raise sides.Failure(f"build/peers/{environment} is not an environment")
    return found[0]


def compile_flags(root, program):
    if not program.environment:
        return [], ["-ljpeg", "-pthread"]
    if program.environment == "torch":
        package = os.path.join(site_packages(root, "torch"), "torch")
        libraries = os.path.join(package, "lib")
        include = [package + "/include", package + "/include/torch/csrc/api/include"]
        names = ["-ltorch_cpu", "-lc10"]
    else:
        libraries = package = os.path.join(site_packages(root, "tensorflow"), "tensorflow")
        include = [package + "/include"]
        names = ["-l:libtensorflow_cc.so.2", "-l:libtensorflow_framework.so.2"]
    flags = [word for path in include for word in ("-isystem", path)]
    return flags, [f"-L{libraries}", *names, f"-Wl,-rpath,{libraries}", "-Wl,--allow-shlib-undefined"]


def compiled(root, program):
    """The path of a C++ peer's binary, compiled if it is older than what it is made of."""
    source = os.path.join(root, "bench/peers", program.native + ".cpp")
    binary = os.path.join(root, "build/bench/bin", program.native)
    made_of = [source]
    if program.environment:
        made_of.append(os.path.join(root, "build/peers", program.environment, "pinned"))
    made_of += glob.glob(os.path.join(root, "bench/common/*.h"))
    if os.path.exists(binary) and all(os.path.getmtime(f) < os.path.getmtime(binary) for f in made_of):
        return binary
    os.makedirs(os.path.dirname(binary), exist_ok=True)
    flags, libraries = compile_flags(root, program)
    command = [os.environ.get("CXX", "c++"), "-std=c++20", "-O2", f"-I{root}", *flags, source, "-o", binary]
    if subprocess.call(command + libraries) != 0:
        raise sides.Failure(f"{program.native} does not compile")
    return binary


def command(root, program):
    if program.native:
        return [compiled(root, program)]
    python = os.path.join(root, "build/peers", program.environment, "bin/python")
    return [python, os.path.join(root, "bench/peers", program.script)]
