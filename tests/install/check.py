"""Builds and runs a program against Tandem in one of the ways that are offered.

  check.py ... tree                    installs, and moves the tree to show that it can be moved
  check.py ... find_package FILE       CMake, shared library
  check.py ... static FILE             CMake, archive
  check.py ... pkg_config FILE         compiler and pkg-config alone
  check.py ... add_subdirectory FILE   the sources as a part of the program's project
  check.py ... document FILE           the program, CMakeLists.txt and commands of README.md

A program passes if it exits with 0 and its last line is `ok`; README's, if that is its gradient.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys

SIZE_LIMIT = 30_000_000

# What many projects build with: neither our headers nor the use that documents show may warn.
# CMake includes an installed package as a system's, so that of the headers only the pkg-config case
# says something.
WARNINGS = ["-Wall", "-Wextra", "-Wshadow", "-Werror"]


def run(*command, **options):
    print("+", *command, flush=True)
    subprocess.run([str(part) for part in command], check=True, **options)


def run_program(program, last="ok", cwd=None, **environment):
    print("+", program, flush=True)
    result = subprocess.run([str(program)], env={**os.environ, **environment}, text=True,
                            stdout=subprocess.PIPE, cwd=cwd)
    print(result.stdout, end="")
    if result.returncode != 0:
        sys.exit(f"{program} exited with {result.returncode}")
    if not result.stdout.endswith(f"{last}\n"):
        sys.exit(f"the last line of {program} is not '{last}'")


def install_tree(args, scratch):
    shutil.rmtree(scratch, ignore_errors=True)
    staged = scratch / "staged"
    run("cmake", "--install", args.build, "--component", "tandem", "--prefix", staged, "--strip",
        stdout=subprocess.DEVNULL)
    files = [path for path in staged.rglob("*") if path.is_file() and not path.is_symlink()]
    size = sum(path.stat().st_size for path in files)
    print(f"installed: {len(files)} files, {size / 1e6:.1f} MB")
    if size > SIZE_LIMIT:
        sys.exit(f"above the limit of {SIZE_LIMIT / 1e6:.0f} MB")
    if (args.build / "lib/libtandem.a").exists():
        run("cmake", "--install", args.build, "--component", "static", "--prefix", staged,
            stdout=subprocess.DEVNULL)
    # A path of this tree in an installed file would break as soon as the tree is moved.
    for path in staged.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            for folder in (args.source, args.build, staged):
                if str(folder).encode() + b"/" in content:
                    sys.exit(f"{path.relative_to(staged)} contains the path {folder}")
    staged.rename(scratch / "moved")


def cmake_program(args, folder, *settings):
    """Builds the consumer project as it is configured by the settings."""
    run("cmake", "-S", args.source / "tests/install/consumer", "-B", folder, "-G", "Ninja",
        "-DCMAKE_BUILD_TYPE=Release", f"-DCMAKE_CXX_COMPILER={args.cxx}",
        f"-DPROGRAM={args.program}", f"-DHOW={args.case}", *settings, stdout=subprocess.DEVNULL)
    run("cmake", "--build", folder)
    return folder / "program"


def follow_document(args, prefix, folder):
    """Does word for word what README.md says, where the home folder has Tandem installed."""
    text = args.program.read_text(encoding="utf-8")

    def blocks(language):
        return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)

    (folder / "program.cpp").write_text(blocks("cpp")[0], encoding="utf-8")
    (folder / "CMakeLists.txt").write_text(blocks("cmake")[0], encoding="utf-8")
    home = folder / "home"
    home.mkdir()
    (home / "tandem").symlink_to(prefix)
    ways = blocks("sh")
    for commands, program in zip(ways, ["build/program", "program"], strict=True):
        lines = [line for line in commands.splitlines() if not line.startswith("./dev ")]
        run("bash", "-ec", "\n".join(lines), cwd=folder,
            env={**os.environ, "HOME": str(home), "CXX": args.cxx})
        run_program(folder / program, "[2. 4. 6.]", cwd=args.source)


def uses_shared_library(program):
    needed = subprocess.run(["readelf", "-d", str(program)], check=True, text=True,
                            stdout=subprocess.PIPE).stdout
    return "libtandem.so" in needed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", type=pathlib.Path, required=True)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--cxx", required=True)
    parser.add_argument("case", choices=["tree", "find_package", "capital", "static", "pkg_config",
                                         "add_subdirectory", "document"])
    parser.add_argument("program", type=pathlib.Path, nargs="?")
    args = parser.parse_args()

    scratch = args.build / "install-test"
    if args.case == "tree":
        return install_tree(args, scratch)

    prefix = scratch / "moved"
    folder = scratch / f"{args.case}-{args.program.stem}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    if args.case == "document":
        return follow_document(args, prefix, folder)
    if args.case == "pkg_config":
        flags = subprocess.run(
            ["pkg-config", "--cflags", "--libs", "tandem"], check=True, text=True,
            stdout=subprocess.PIPE,
            env={**os.environ, "PKG_CONFIG_PATH": str(prefix / "lib/pkgconfig")}).stdout.split()
        program = folder / "program"
        run(args.cxx, "-std=c++20", "-O1", *WARNINGS, args.program, "-o", program, *flags)
        run_program(program, LD_LIBRARY_PATH=str(prefix / "lib"))
        return None

    if args.case == "add_subdirectory":
        # The library's own objects are taken over from this build where the nested project would
        # compile them by the same command, so the test costs seconds (see reuse_object.py).
        launcher = [sys.executable, "-S", str(args.source / "tests/install/reuse_object.py"),
                    str(args.build), str(args.source), "--"]
        program = cmake_program(
            args, folder, f"-DTANDEM_SOURCE={args.source}", "-DTANDEM_WARNINGS_AS_ERRORS=ON",
            "-DCMAKE_CXX_FLAGS_RELEASE=-O2 -DNDEBUG",
            "-DCMAKE_CXX_COMPILER_LAUNCHER=" + ";".join(launcher))
    else:
        program = cmake_program(args, folder, f"-DCMAKE_PREFIX_PATH={prefix}")
    if uses_shared_library(program) == (args.case == "static"):
        sys.exit("the program is linked with the wrong library")
    run_program(program)
    return None


if __name__ == "__main__":
    main()
