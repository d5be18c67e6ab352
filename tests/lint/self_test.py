"""Shows that each check finds what it looks for: one tree per rule, with one thing wrong in it."""

import pathlib
import sys
import tempfile

import _sources
import documented_names
import forbidden
import include_direction
import include_order
import option_members
import public_headers
import words

GOOD = {
    "cmake/TandemPublicHeaders.cmake": 'set(TANDEM_PRIVATE_HEADERS "/internal/|^tandem/cli/")\n',
    "tandem/CMakeLists.txt": "set(modules\n    low\n    kernels\n    middle\n    high)\n",
    "tandem/low/CMakeLists.txt": "tandem_module(low)\n",
    "tandem/kernels/CMakeLists.txt": "tandem_module(kernels DEPENDS low)\n",
    "tandem/middle/CMakeLists.txt": "tandem_module(middle DEPENDS low LINKS Some::lib)\n",
    "tandem/high/CMakeLists.txt": "tandem_module(\n  high\n  DEPENDS middle)  # and what is below\n",
    "tandem/low/a.h": "#pragma once\n\n#include <vector>\n",
    "tandem/low/a.cpp": '#include "tandem/low/a.h"\n\n#include <sys/mman.h>\n\n#include <map>\n\n'
                        '#include <png.h>\n\n#include "tandem/low/internal/b.h"\n',
    "tandem/low/internal/b.h": "#pragma once\n\n#include <png.h>\n",
    "tandem/high/c.h": '#pragma once\n\n#include "tandem/low/a.h"\n',
    "tandem/high/options.h": "#pragma once\nstruct Options {\n  int a = 0;  ///< one; two\n"
                             "  struct In {\n    int b = 1;\n  } in = {};\n"
                             "  bool operator==(const Options&) const = default;\n"
                             "  int sum() const;\n  int twice() const { return 2 * a; }\n};\n",
    "tests/unit/low/a_test.cpp": '#include "tandem/low/a.h"\n\n#include <gtest/gtest.h>\n\n'
                                 '#include "tandem/high/c.h"\n',
    "tests/devices/a_test.cpp": '#include "tandem/low/a.h"\n\n#include <gtest/gtest.h>\n',
    "tandem/low/b.cpp": '#include "tandem/low/internal/b.h"\n\n#include <map>\n',
    "tests/unit/low/low_util.h": "#pragma once\n",
    "tests/unit/low/low_util.cpp": '#include "tests/unit/low/low_util.h"\n\n#include <map>\n',
    "tandem/kernels/cpu/k.cpp": '#include "tandem/low/a.h"\n\n#define HWY_TARGET_INCLUDE "k.cpp"\n'
                                "#include <hwy/foreach_target.h>\n#include <hwy/highway.h>\n",
    "README.md": "Look under build/bin and /usr/include.\n",
}

# (check, file, its text, what the message must hold)
CASES = [
    ("direction", "tandem/low/x.cpp", '#include "tandem/high/c.h"\n', "low may include low"),
    ("direction", "tandem/low/CMakeLists.txt", "tandem_module(low DEPENDS high)\n", "can't depend"),
    ("direction", "tandem/low/CMakeLists.txt", "tandem_module(low PRECOMPILE tandem/high/c.h)\n",
     "can't precompile"),
    ("direction", "tandem/low/CMakeLists.txt", "tandem_module(low PRECOMPILE ${NOWHERE})\n",
     "can't precompile"),
    ("direction", "tandem/attic/x.h", '#include "tandem/low/a.h"\n', "doesn't list the module attic"),
    ("direction", "tandem/high/x.cpp", '#include "tandem/tandem.h"\n', "only programs"),
    ("order", "tandem/low/x.cpp", "#include <png.h>\n\n#include <map>\n", "stands after third"),
    ("order", "tandem/low/x.cpp", '#include "tandem/low/a.h"\n\n#include <map>\n', "stands after"),
    ("order", "tandem/low/a.cpp", '#include <map>\n\n#include "tandem/low/a.h"\n', "first include"),
    ("order", "tandem/low/x.cpp", "#include <map>\n\n#include <stdint.h>\n", "stands after C++"),
    ("order", "tandem/low/x.cpp", '#include "a.h"\n', "path from the root"),
    ("order", "tandem/low/x.cpp", "#include <tandem/low/a.h>\n", "in quotes"),
    ("forbidden", "tandem/low/x.cpp", "#include <oneapi/dnnl/dnnl.hpp>\n", "oneDNN"),
    ("forbidden", "tandem/low/x.cpp", "#include <hwy/highway.h>\n", "Highway"),
    ("forbidden", "tandem/low/x.h", "#pragma once\n#include <absl/strings/str_cat.h>\n", "Abseil"),
    ("forbidden", "tandem/low/x.cpp", "#include <omp.h>\n", "OpenMP"),
    ("forbidden", "tandem/low/x.cpp", "#include <source_location>\n", "clang 14"),
    ("forbidden", "tandem/low/x.cpp", "std::jthread worker;\n", "one of our compilers"),
    ("forbidden", "tandem/low/x.cpp", "// TO" "DO: later\n", "debt"),
    ("forbidden", "tandem/low/x.h", "int x();\n", "#pragma once"),
    ("forbidden", "tandem/low/x.h", "#pragma once\nusing namespace std;\n", "opens no namespace"),
    ("forbidden", "tests/unit/low/x_test.cpp", "  GTEST_" "SKIP();\n", "why the test is skipped"),
    ("forbidden", "tests/unit/low/x_test.cpp", "TEST(A, DIS" "ABLED_B) {}\n", "never runs"),
    ("forbidden", "README.md", "See /ho" "me/someone/notes.\n", "path of one machine"),
    ("forbidden", "setup.sh", "pip install --index" "-url=x\n", "package index"),
    ("options", "tandem/low/x.h", "struct XOptions {\n  std::vector<int> a;\n};\n",
     "`std::vector<int> a`"),
    ("options", "tandem/low/x.h",
     "struct Options {\n  int a = 0;  // {\n  std::function<int()> b;\n};\n",
     "`std::function<int()> b`"),
    ("options", "tandem/low/x.h",
     "struct Options {\n  struct In {\n    int c = 0;\n  };\n  In b;\n};\n", "`In b`"),
    ("options", "tandem/low/x.h",
     "struct Options {\n  int f() const { return 1; }\n  std::vector<int> a;\n};\n",
     "`std::vector<int> a`"),
    ("options", "tandem/low/x.h", "struct Options {\n  int a = f(1, 2), b;\n};\n",
     "`int a = f(1, 2), b`"),
    ("words", "tandem/low/x.h", "#pragma once\n// It to" "ld the tape.\n", "write report"),
    ("words", "tandem/low/x.cpp", "void To" "ldOnce();\n", "write report"),
    ("words", "tandem/low/x.cpp", "constexpr int kMo" "stThings = 1;\n", "write kMax"),
    ("words", "tandem/low/x.cpp", "// O" "f one row.\nint rows();\n", "stands alone"),
    ("words", "docs/x.md", "The iteration begins a" "new.\n", "start over"),
    ("names", "docs/architecture.md", "See `low/no_such_file.h` and docs/none.md.\n", "no such file"),
    ("names", "docs/architecture.md", "A `NoSuchClass` does it.\n", "no source"),
    ("headers", "tandem/low/x.h", "#pragma once\n\n#include <png.h>\n", "neither of the standard"),
    ("headers", "tandem/low/x.h", '#pragma once\n\n#include "tandem/low/internal/b.h"\n', "neither"),
    ("headers", "tandem/low/x.h", "#pragma once\n\nstd::vector<int> x();\n", "compile alone"),
    ("headers", "tandem/low/x.h", "inline int x() { return 1; }\n", "compile alone"),
]


def run(check, root, cxx):
    if check == "direction":
        return include_direction.check(root)
    if check == "order":
        return include_order.check(root)
    if check == "forbidden":
        return forbidden.check(root)
    if check == "options":
        return option_members.check(root)
    if check == "words":
        return words.check(root)
    if check == "names":
        return documented_names.check(root)
    (root / "build/lint").mkdir(parents=True, exist_ok=True)
    return public_headers.check(root, root / "build", cxx)


def problems_of(check, changed, cxx):
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, text in {**GOOD, **changed}.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        return run(check, root, cxx)


def main():
    cxx = _sources.arguments().cxx
    wrong = 0
    for check in ("direction", "order", "forbidden", "options", "words", "names", "headers"):
        for problem in problems_of(check, {}, cxx):
            wrong += 1
            print(f"{check}: the good tree is found wrong: {problem}")
    for check, name, text, message in CASES:
        found = problems_of(check, {name: text}, cxx)
        if not any(message in problem for problem in found):
            wrong += 1
            print(f"{check}: {text!r} in {name} gives {found}, not '{message}'")
    print(f"{len(CASES)} cases, {wrong} wrong")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
