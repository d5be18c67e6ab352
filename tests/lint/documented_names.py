"""Files that the documents name exist, and so do the identifiers of docs/architecture.md.

A file is a word with a slash and an extension, relative to the repository's root or to tandem/. An identifier is a word in
backticks that is CamelCase, or snake_case with an underscore; it exists if a header or source below tandem/ holds it.
"""

import re

import _sources

FILE = re.compile(r"(?<![\w/.$<{*-])(?:(?:tandem|docs|tests|bench|examples|cmake|core|fs|device|graph|placement|runtime|ops|"
                  r"kernels|autodiff|io|data|keras|cli)/)[\w/.-]*\.(?:h|cpp|md|py|txt|json|cmake|gz)(?![\w*/-])")
IDENTIFIER = re.compile(r"`(?:td::)?(?:\w+::)*([A-Z][a-z0-9]+(?:[A-Z][a-z0-9]*)+|[a-z]+(?:_[a-z0-9]+)+)(?:\(\))?`")
# Words in backticks that are not ours.
FOREIGN = {"inter_op", "intra_op"}
# Files that the build makes.
GENERATED = {"tandem/core/version.h"}
# Where identifiers are checked too.
WITH_IDENTIFIERS = ["docs/architecture.md"]


def documents(root):
    return [name for name in _sources.files(root, ".md")
            if name.startswith("docs/") or name in ("README.md", "CONTRIBUTING.md")]


def check(root):
    problems = []
    for name in documents(root):
        for number, line in enumerate((root / name).read_text().split("\n"), 1):
            for path in FILE.findall(line):
                # Made-up names of examples are written in capitals: ops/NAME.cpp.
                if re.search(r"[A-Z]{3}", path.split(".")[0]) and "README" not in path:
                    continue
                if path not in GENERATED and not any((root / base / path).exists() for base in ("", "tandem")):
                    problems.append(f"{name}:{number}: {path}: there is no such file")
    code = None
    for name in WITH_IDENTIFIERS:
        if not (root / name).exists():
            continue
        for number, line in enumerate((root / name).read_text().split("\n"), 1):
            for word in IDENTIFIER.findall(line):
                if code is None:
                    code = set()
                    for source in _sources.files(root, ".h", ".cpp"):
                        if source.startswith("tandem/"):
                            code.update(re.findall(r"\w+", (root / source).read_text(errors="replace")))
                if word not in code and word not in FOREIGN:
                    problems.append(f"{name}:{number}: {word}: no source below tandem/ holds it")
    return problems


if __name__ == "__main__":
    _sources.finish(check(_sources.arguments().source))
