"""Installs and compiles what a peer's program needs, and says how it is started."""

import functools
import glob
import os
import shutil
import subprocess

from . import sides

UNREACHABLE = 3  # of bench/peers/setup.sh

# Succeeds where a module of Python sees a GPU of NVIDIA's.
SEES_GPU = {"torch": "import torch, sys; sys.exit(not torch.cuda.is_available())",
            "jax": "import jax, sys; sys.exit(jax.default_backend() != 'gpu')"}


def machine_python():
    """This machine's own Python, or the one that TANDEM_BENCH_PYTHON names."""
    return os.environ.get("TANDEM_BENCH_PYTHON", "python3")


@functools.lru_cache(maxsize=None)
def missing_on_machine(module):
    """Why this machine's Python has no such module that sees a GPU; "" if it has."""
    python = shutil.which(machine_python())
    if not python:
        return f"no {module}: there is no {machine_python()}"
    sees = SEES_GPU[module]
    if module == "torch" and os.environ.get("TANDEM_BENCH_TORCH_DEVICE") == "cpu":
        sees = "import torch"
    environment = {**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    done = subprocess.run([python, "-c", sees], env=environment, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode == 0:
        return ""
    if "ModuleNotFoundError" in done.stderr:
        return f"no {module}: {python} has none"
    return f"no {module}: that of {python} finds no GPU"


def missing(program):
    """Why a program that runs by this machine's Python cannot; "" for all others."""
    if not program.module:
        return ""
    if program.native and not shutil.which(os.environ.get("CXX", "c++")):
        return f"no {program.native}: there is no C++ compiler"
    return missing_on_machine(program.module)


def machine_package(module):
    """The folder of a module of this machine's Python."""
    found = subprocess.run(
        [machine_python(), "-c", f"import {module}, os; print(os.path.dirname({module}.__file__))"],
        stdout=subprocess.PIPE, text=True, check=False).stdout.strip()
    if not found:
        raise sides.Failure(f"{machine_python()} has no {module}")
    return found


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
    if program.module == "torch":
        package = machine_package("torch")
    elif program.environment == "torch":
        package = os.path.join(site_packages(root, "torch"), "torch")
    elif not program.environment:
        return [], ["-ljpeg", "-pthread"]
    if "torch" in (program.module, program.environment):
        libraries = os.path.join(package, "lib")
        include = [package + "/include", package + "/include/torch/csrc/api/include"]
        names = ["-ltorch_cpu", "-lc10"]
        if program.module:  # nothing refers to it: it registers the GPU's kernels
            names += ["-Wl,--no-as-needed", "-ltorch_cuda"]
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
    python = machine_python() if program.module else os.path.join(
        root, "build/peers", program.environment, "bin/python")
    return [python, os.path.join(root, "bench/peers", program.script)]
