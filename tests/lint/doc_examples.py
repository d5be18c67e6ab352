"""The C++ of the documents that newcomers read first compiles as it stands there.

Every block of DOCUMENTS that is whole (fenced as cpp, or indented) becomes a function of one source, which is compiled without
making an object. Blocks with "…" or that begin in the middle of an expression are left out. What the text supposes to be there is
declared by PREAMBLE.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap

DOCUMENTS = ["README.md", "docs/tensors.md", "docs/data.md", "docs/data-files.md", "docs/functions.md",
             "docs/images.md", "docs/keras.md"]

PREAMBLE = """
#include <cstdio>
#include <iostream>
#include <thread>
#include <tandem/tandem.h>
namespace td = tandem;
template <class... T> void step(const T&...) {}
td::data::Dataset ds, train, test;
td::data::Element batch;
td::Tensor images, labels, image, bytes, tokens, series, targets;
std::vector<std::string> files;
td::GradientTape tape;
std::vector<td::Variable> weights;
td::Tensor loss_of(const td::data::Element&);
td::Tensor expensive(td::Tensor x) { return x; }
"""


def blocks(text):
    """Pairs of a line number and the code that begins there."""
    lines = text.splitlines() + [""]
    at = 0
    while at < len(lines):
        if lines[at].startswith("```"):
            is_cpp = lines[at] == "```cpp"
            end = next(i for i in range(at + 1, len(lines)) if lines[i].startswith("```"))
            if is_cpp:
                yield at + 2, "\n".join(lines[at + 1:end])
            at = end + 1
        elif lines[at].startswith("    ") and (at == 0 or not lines[at - 1].strip()):
            end = at
            while lines[end].startswith("    ") or (not lines[end].strip() and end + 1 < len(lines)
                                                    and lines[end + 1].startswith("    ")):
                end += 1
            yield at + 1, textwrap.dedent("\n".join(lines[at:end]))
            at = end
        else:
            at += 1


def is_whole(code):
    is_cpp = "td::" in code or "#include" in code
    return is_cpp and "…" not in code and code[0] not in ".$["


def as_function(number, document, line, code, usings):
    kept = [text for text in code.splitlines()
            if not text.startswith(("#include", "namespace td"))]
    body = "\n".join(kept).replace("int main()", f"int main_{number}()")
    place = f'{usings}\n#line {line} "{document}"\n'
    if re.search(r"^(int main_|td::Tensor \w+\()[^;]*\{$", body, re.MULTILINE):
        return f"namespace block_{number} {{\n{place}{body}\n}}\n"
    return f"[[maybe_unused]] static void block_{number}() {{\n{place}{body}\n;\n}}\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", type=pathlib.Path, required=True)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--cxx", required=True)
    args = parser.parse_args()
    whole = PREAMBLE
    count = 0
    for document in DOCUMENTS:
        found = 0
        usings = ""  # that a reader has met before
        for line, code in blocks((args.source / document).read_text(encoding="utf-8")):
            if is_whole(code):
                whole += as_function(count + found, document, line, code, usings)
                usings += "".join(re.findall(r"^using namespace .*;", code, re.MULTILINE))
                found += 1
        if found == 0:
            sys.exit(f"{document} has no example any more")
        count += found
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "examples.cpp"
        source.write_text(whole, encoding="utf-8")
        # Of warnings the one that the way in which options are written could draw.
        result = subprocess.run([args.cxx, "-std=c++20", "-Werror=missing-field-initializers",
                                 "-fsyntax-only", f"-I{args.source}",
                                 f"-I{args.build / 'include'}", str(source)], check=False)
    if result.returncode != 0:
        sys.exit("an example of the documents does not compile")
    print(f"{count} examples compile")


if __name__ == "__main__":
    main()
