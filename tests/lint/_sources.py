"""What the checks share: the files of the repository, and the includes of one."""

import argparse
import dataclasses
import functools
import os
import pathlib
import re
import shutil
import subprocess
import sys

# Folders that are made, or that no check reads.
SKIPPED = {".git", "build", ".cache", "__pycache__"}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
CONDITION = re.compile(r"^\s*#\s*(if|ifdef|ifndef|endif)\b")

# The headers of C++20's library that g++ 12 and clang 14 with libstdc++ 12 both can use, without
# those that docs/compilers.md rules out.
STANDARD = set("""
algorithm any array atomic barrier bit bitset cassert cctype cerrno cfenv cfloat charconv chrono
cinttypes climits clocale cmath codecvt compare complex concepts condition_variable coroutine
csetjmp csignal cstdarg cstddef cstdint cstdio cstdlib cstring ctime cuchar cwchar cwctype deque
exception execution filesystem forward_list fstream functional future initializer_list iomanip ios
iosfwd iostream istream iterator latch limits list locale map memory memory_resource mutex new
numbers numeric optional ostream queue random ratio regex scoped_allocator semaphore set
shared_mutex span sstream stack stdexcept streambuf string string_view strstream system_error
thread tuple type_traits typeindex typeinfo unordered_map unordered_set utility valarray variant
vector version
""".split())


@dataclasses.dataclass(frozen=True)
class Include:
    line: int
    name: str
    quoted: bool
    depth: int  # how many #if stand around it


def arguments():
    """Every check takes the source root and the build folder, and reads no other state."""
    parser = argparse.ArgumentParser()
    root = pathlib.Path(__file__).resolve().parents[2]
    parser.add_argument("--source", type=pathlib.Path, default=root)
    parser.add_argument("--build", type=pathlib.Path, default=root / "build")
    parser.add_argument("--cxx", default=os.environ.get("CXX", "g++"))
    return parser.parse_args()


@functools.lru_cache(maxsize=None)
def files(root, *suffixes):
    """Paths relative to the root: what git follows or would follow, else what lies there."""
    names = set()
    if (root / ".git").exists() and shutil.which("git"):
        listed = subprocess.run(["git", "-C", str(root), "ls-files", "-z", "--cached", "--others",
                                 "--exclude-standard"], text=True, capture_output=True)
        names = {name for name in listed.stdout.split("\0") if name}
    if not names:
        for folder, below, found in os.walk(root):
            below[:] = [name for name in below if name not in SKIPPED]
            names.update(os.path.relpath(os.path.join(folder, name), root) for name in found)
    return sorted(name for name in names
                  if (not suffixes or name.endswith(suffixes)) and (root / name).is_file())


def includes(root, name):
    found = []
    depth = 0
    for number, line in enumerate((root / name).read_text(errors="replace").split("\n"), 1):
        condition = CONDITION.match(line)
        if condition:
            depth += -1 if condition[1] == "endif" else 1
        match = INCLUDE.match(line)
        if match:
            found.append(Include(number, match[2], match[1] == '"', depth))
    return found


def public_headers(root):
    """The headers that are installed, by the rule in cmake/TandemPublicHeaders.cmake."""
    rule = (root / "cmake/TandemPublicHeaders.cmake").read_text()
    private = re.search(r'set\(TANDEM_PRIVATE_HEADERS "([^"]+)"\)', rule)[1]
    return [name for name in files(root, ".h")
            if name.startswith("tandem/") and not re.search(private, name)]


def finish(problems):
    """Prints what was found and ends the program."""
    for problem in problems:
        print(problem)
    if problems:
        sys.exit(f"{len(problems)} found")
    print("nothing found")
    sys.exit(0)
