"""Each installed header compiles alone, with the standard library and other installed headers.

The headers are laid out as an installation would have them, so that one which needs a header that
isn't installed fails. A header whose own text and whose includes have not changed since it passed
is not compiled again.
"""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import shutil
import subprocess

import _sources

# -Wshadow and the rest are for our code; these must hold in the code of every user.
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]


# Of C's library, for the one header that C programs include too.
C_STANDARD = {"tandem/device/plugin.h": {"stddef.h", "stdint.h"}}


def outside_the_standard(root, headers):
    made = {"tandem/core/version.h"}
    problems = []
    for name in headers:
        known = made.union(headers, C_STANDARD.get(name, ()))
        for include in _sources.includes(root, name):
            if include.name not in known and include.name not in _sources.STANDARD:
                problems.append(f"{name}:{include.line}: {include.name} is neither of the standard "
                                "library nor an installed header")
    return problems


def lay_out(root, build, headers, folder):
    shutil.rmtree(folder, ignore_errors=True)
    for name in headers:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(root / name, folder / name)
    version = "tandem/core/version.h"
    if (build / "include" / version).is_file():
        (folder / version).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(build / "include" / version, folder / version)


def digest(folder, name, compiler):
    """Of the header, all that it includes from here, and the compiler."""
    seen = set()
    waiting = [name]
    while waiting:
        current = waiting.pop()
        if current not in seen and (folder / current).is_file():
            seen.add(current)
            waiting.extend(include.name for include in _sources.includes(folder, current))
    whole = hashlib.sha256(compiler.encode())
    for part in sorted(seen):
        whole.update(part.encode() + b"\0" + (folder / part).read_bytes() + b"\0")
    return whole.hexdigest()


def compile_alone(cxx, folder, name):
    # Twice, so that a header without a guard fails.
    text = f"#include <{name}>\n#include <{name}>\n"
    result = subprocess.run([cxx, "-std=c++20", *WARNINGS, "-fsyntax-only", "-I", str(folder), "-x",
                             "c++", "-"], input=text, text=True, capture_output=True)
    return name, result.returncode, result.stderr


def check(root, build, cxx):
    headers = _sources.public_headers(root)
    problems = outside_the_standard(root, headers)
    folder = build / "lint/include"
    lay_out(root, build, headers, folder)
    compiler = subprocess.run([cxx, "--version"], text=True, capture_output=True, check=True).stdout

    store = build / "lint/public_headers.json"
    passed = set(json.loads(store.read_text())) if store.exists() else set()
    digests = {name: digest(folder, name, compiler) for name in headers}
    waiting = [name for name in headers if digests[name] not in passed]
    failed = set()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for name, status, text in pool.map(lambda name: compile_alone(cxx, folder, name), waiting):
            if status != 0:
                failed.add(name)
                problems.append(f"{name} does not compile alone:\n{text}")
    store.write_text(json.dumps(sorted({digests[name] for name in headers if name not in failed})))
    print(f"{len(headers)} installed headers, {len(waiting)} compiled now")
    return problems


if __name__ == "__main__":
    args = _sources.arguments()
    _sources.finish(check(args.source, pathlib.Path(args.build), args.cxx))
