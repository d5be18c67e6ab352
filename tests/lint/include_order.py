"""Includes stand in groups: own header, C, C++ standard, third-party, tandem, the file's own tree.

.clang-format sorts them so. This check needs no clang-format, and also sees to what sorting can't:
our headers are included by their path from the root, in quotes inside the library and the tests.
"""

import pathlib
import re

import _sources

C_HEADER = re.compile(r"^((sys|linux|netinet|arpa|net)/)?[a-z0-9_]+\.h$")
# Headers that look like C's and belong to libraries.
LIBRARIES = {"png.h", "gif_lib.h", "zlib.h", "jpeglib.h", "dnnl.h", "zstd.h", "omp.h"}
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


def own_headers(root, name):
    """What a source, or a test of it, may include first: headers of its own name."""
    folder, file = name.rsplit("/", 1)
    header = re.sub(r"(_test)?\.cpp$", ".h", file)
    own = {f"{folder}/{header}", f"{folder}/internal/{header}"}
    if name.startswith("tandem/"):
        own |= {f"tandem/{name.split('/')[1]}/{header}"} if "/internal/" not in name else set()
    if name.startswith("tests/unit/"):
        module = f"tandem/{name.split('/')[2]}/"
        own |= {path for path in _sources.files(root, f"/{header}") if path.startswith(module)}
    return {path for path in own if (root / path).is_file()}


def check(root):
    problems = []
    for name in _sources.files(root, ".h", ".cpp"):
        own = own_headers(root, name) if name.endswith(".cpp") else set()
        last = 0
        for place, include in enumerate(_sources.includes(root, name)):
            where = f"{name}:{include.line}"
            if include.depth > 0:
                continue
            # A header of the file's name elsewhere counts too, without the name's "_test" as well:
            # clang-format puts it first.
            stem = pathlib.PurePath(name).stem
            named = pathlib.PurePath(include.name).stem in (stem, stem.removesuffix("_test"))
            current = 0 if place == 0 and (include.name in own or named) else group(include)
            if include.name == "hwy/foreach_target.h":
                # It compiles the rest of the file once a target, so what stands before it, under
                # guards of its own, is a block apart.
                last = 0
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
        if name.startswith("tandem/") and own:
            first = _sources.includes(root, name)[:1]
            if not first or first[0].name not in own:
                problems.append(f"{name}: the first include must be \"{sorted(own)[0]}\"")
    return problems


if __name__ == "__main__":
    _sources.finish(check(_sources.arguments().source))
