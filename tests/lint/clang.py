"""The library, the tool and the examples are C++ that clang takes too, without a warning.

They are built by g++, and what only clang sees (locks by its thread-safety analysis, names that shadow others, initialisers that it
calls ambiguous) would otherwise be found by the next person who builds with clang. Code is checked, not generated: the build in BUILD/clang
has for a compiler a script that leaves out that part. A second run checks what has changed.
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys

# CMake's own tries and precompiled headers are compiled in earnest.
COMPILER = """#!/bin/sh
case " $* " in
*" -c {source}/tandem/"*.cpp\\ * | *" -c {source}/examples/"*.cpp\\ *)
  {clang} "$@" -fsyntax-only || exit
  while [ "$1" != -o ]; do shift; done
  : >"$2" ;;
*) exec {clang} "$@" ;;
esac
"""


def write_compiler(path, clang, source):
    text = COMPILER.format(clang=clang, source=source)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)
        path.chmod(0o755)


def configure(source, folder, compiler):
    subprocess.run(
        ["cmake", "-S", str(source), "-B", str(folder), "-G", "Ninja", f"-DCMAKE_CXX_COMPILER={compiler}",
         "-DCMAKE_BUILD_TYPE=Release", "-DTANDEM_BUILD_TESTS=OFF", "-DTANDEM_BUILD_BENCHES=OFF", "-DTANDEM_CCACHE=OFF",
         "-DCMAKE_CUDA_COMPILER="],
        check=True, stdout=subprocess.DEVNULL)


def objects(folder):
    """What ninja makes of the library's, the tool's and the examples' sources."""
    listed = subprocess.run(["ninja", "-C", str(folder), "-t", "targets", "all"], check=True, capture_output=True, text=True)
    return re.findall(r"^((?:tandem|examples)/\S+\.cpp\.o): ", listed.stdout, re.MULTILINE)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--cxx", help="not used: the compiler is clang++")
    arguments = parser.parse_args()
    clang = shutil.which("clang++")
    if not clang:
        print("skipped: there is no clang++ (Debian's package clang)")
        return 77
    folder = arguments.build.resolve() / "clang"
    folder.mkdir(parents=True, exist_ok=True)
    compiler = folder / "clang_syntax"
    write_compiler(compiler, clang, arguments.source.resolve())
    if not (folder / "build.ninja").exists():
        configure(arguments.source, folder, compiler)
    files = objects(folder)
    if len(files) < 500:
        print(f"ninja lists {len(files)} sources only, so this check no longer finds them")
        return 1
    ran = subprocess.run(["ninja", "-C", str(folder), "-k", "0", *files], capture_output=True, text=True)
    if ran.returncode != 0:
        errors = [line for line in ran.stdout.splitlines() if not re.match(r"\[\d+/\d+\] |ninja: Entering", line)]
        print("\n".join(errors))
    print(f"{len(files)} sources")
    return 1 if ran.returncode != 0 else 0


if __name__ == "__main__":
    sys.exit(main())
