"""What must not stand in the sources: libraries in the wrong place, headers that one of our
compilers lacks, places of one machine, and debts without a name.
"""

import re

import _sources

# (which files, which includes, why)
INCLUDE_RULES = [
    (r"^(?!tandem/kernels/cpu/onednn/)", r"(^|/)dnnl[a-z_]*\.h(pp)?$",
     "oneDNN is entered only through tandem/kernels/cpu/onednn"),
    (r"^tandem/(?!kernels/cpu/)", r"^hwy/", "Highway belongs to tandem/kernels/cpu"),
    (r"\.h$", r"^absl/", "Abseil stays out of headers"),
    (r"", r"^omp\.h$", "nothing of ours uses OpenMP"),
    (r"^tandem/(?!io/|distribute/|board/)", r"^(google/protobuf|grpcpp|grpc)/",
     "protobuf and gRPC belong to io, board and distribute"),
    (r"", r"^(format|source_location|stop_token|ranges|syncstream|expected|print|generator)$",
     "clang 14 with libstdc++ 12 lacks it or parts of it (docs/compilers.md)"),
]

# (which files, which text, why)
TEXT_RULES = [
    (r"\.(h|cpp|py|sh|cmake|txt)$", r"\b(TODO|FIXME|XXX|HACK)\b", "pay the debt or write it down"),
    (r"\.(h|cpp)$", r"\bstd::(jthread|stop_token|source_location|format\b|views\b|ranges::views)",
     "one of our compilers lacks it (docs/compilers.md)"),
    (r"\.cpp$", r"\bGTEST_SKIP\(\)\s*;", "say why the test is skipped"),
    (r"\.cpp$", r"\bTEST(_F|_P)?\([^)]*\bDISABLED_", "a test that never runs"),
    (r"\.h$", r"^\s*using namespace\b", "a header opens no namespace for its users"),
    (r"\.(h|cpp)$", r"#\s*pragma\s+omp\b", "nothing of ours uses OpenMP"),
    (r"", r"(?<![\w.$}/-])/(home|root|work|Users)/\w", "a path of one machine"),
    (r"", r"index[-_]url|pypi\.org|pythonhosted\.org|download\.pytorch\.org",
     "the address of a package index belongs to the machine's own settings"),
    (r"", r"^deb(-src)? https?:", "the address of a package archive"),
]

# Text files of any kind; others (images, data) are not read.
TEXT = re.compile(r"(^|/)(dev|run|LICENSE|\.[a-z-]+)$|"
                  r"\.(h|in|cpp|py|sh|md|txt|cmake|json|yml|yaml|cfg|toml|supp)$")
# Every header is read once: by the pragma, or by what Highway's repeated includes need instead.
ONCE = re.compile(r"^#pragma once$|^#(if|undef|define).*HIGHWAY.*INCLUDE", re.MULTILINE)


def check(root):
    problems = []
    for name in _sources.files(root):
        if not TEXT.search(name):
            continue
        text = (root / name).read_text(errors="replace")
        for files, pattern, why in TEXT_RULES:
            if not re.search(files, name):
                continue
            # The rules themselves name what they forbid.
            if name.startswith("tests/lint/"):
                continue
            for number, line in enumerate(text.split("\n"), 1):
                match = re.search(pattern, line)
                if match:
                    problems.append(f"{name}:{number}: {match[0].strip()}: {why}")
        if not name.endswith((".h", ".cpp")):
            continue
        for include in _sources.includes(root, name):
            for files, pattern, why in INCLUDE_RULES:
                if re.search(files, name) and re.search(pattern, include.name):
                    problems.append(f"{name}:{include.line}: {include.name}: {why}")
        if name.endswith(".h") and not name.endswith("-inl.h") and not ONCE.search(text):
            problems.append(f"{name}: #pragma once is missing")
    return problems


if __name__ == "__main__":
    _sources.finish(check(_sources.arguments().source))
