"""Includes stand in groups: own header, C, C++ standard, third-party, tandem, the file's own tree.

.clang-format sorts them so. This check needs no clang-format, and also sees to what sorting can't:
our headers are included by their path from the root, in quotes inside the library and the tests.
"""

import re

import _sources

C_HEADER = re.compile(r"^((sys|linux|netinet|arpa|net)/)?[a-z0-9_]+\.h$")
# Headers that look like C's and belong to libraries.
LIBRARIES = {"png.h", "zlib.h", "jpeglib.h", "dnnl.h", "zstd.h", "omp.h"}
NAMES = ["its own header", "C", "C++ standard", "third-party", "tandem", "its own tree"]


def group(include):
    if include.name.startswith("tandem/"):
        return 4
    if include.quoted:
        return 5
    if include.name in _sources.STANDARD:
        return 2
    if C_HEADER.match(include.name) and include.name not in LIBRARIES:
        return 1
    return 3


def own_header(root, name):
    """What a source, or a test of it, may include first."""
    stem = re.sub(r"(_test|_internal_test)?\.cpp$", "", name)
    if name.startswith("tests/unit/"):
        stem = stem.replace("tests/unit/", "tandem/", 1)
        last = stem.rsplit("/", 1)[1]
        return {f"{name.removesuffix('.cpp')}.h"} | {
            header for header in _sources.files(root, ".h")
            if header.startswith("tandem/") and header.endswith(f"/{last}.h")}
    folder, _, last = stem.rpartition("/")
    hidden = f"{folder}/internal/{last}.h"  # of a source whose header is not for users
    return {hidden} if (root / hidden).is_file() else {f"{stem}.h"}


def check(root):
    problems = []
    for name in _sources.files(root, ".h", ".cpp"):
        own = own_header(root, name) if name.endswith(".cpp") else set()
        last = 0
        for place, include in enumerate(_sources.includes(root, name)):
            where = f"{name}:{include.line}"
            if include.depth > 0:
                continue
            current = 0 if place == 0 and include.name in own else group(include)
            if current < last:
                problems.append(f"{where}: {include.name} ({NAMES[current]}) stands after "
                                f"{NAMES[last]}")
            last = max(last, current)
            if name.startswith("tandem/"):
                if include.name.startswith("tandem/") and not include.quoted:
                    problems.append(f"{where}: write \"{include.name}\" in quotes")
                if include.quoted and not include.name.startswith("tandem/"):
                    problems.append(f"{where}: include by the path from the root, "
                                    f"not \"{include.name}\"")
        expected = next(iter(own), None)
        if name.startswith("tandem/") and expected and (root / expected).is_file():
            first = _sources.includes(root, name)[:1]
            if not first or first[0].name != expected:
                problems.append(f"{name}: the first include must be \"{expected}\"")
    return problems


if __name__ == "__main__":
    _sources.finish(check(_sources.arguments().source))
