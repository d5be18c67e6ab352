#!/usr/bin/env python3
"""Writes docs/api.md: every public name of TensorFlow and Keras, ours beside it or the reason why not.

    make_api_doc.py --compile "g++ -std=c++20 -I. -Ibuild/include"             # writes the page
    make_api_doc.py --compile … --check [--report FILE]                        # fails if the page is not what would be written

The names stand in tests/conformance/api_names.json; `--tensorflow` remakes that file with the TensorFlow of the
Python that runs the script. A name counts as ours if `using` of it compiles: the path is TensorFlow's with :: for
the dots, or what tests/conformance/api_notes.txt says. A line there is

    tf.bool = td::boolean              ours has another name
    tf.image.decode_webp : REASON      not here, and why; * stands for any characters
    tf.distribute.* @ REASON           not counted here

`--report` receives the line "NAMES MISSING", which `./dev test` adds up.
"""
import argparse
import fnmatch
import json
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
NAMES = HERE / "api_names.json"
NOTES = HERE / "api_notes.txt"
PAGE = ROOT / "docs" / "api.md"

MODULES = {
    "tf": ["math", "nn", "linalg", "image", "strings", "signal", "random", "sparse", "ragged", "bitwise", "data", "io",
           "debugging", "config", "distribute", "train", "saved_model", "summary", "lookup", "quantization"],
    "keras": ["layers", "losses", "metrics", "optimizers", "callbacks", "initializers", "regularizers", "constraints",
              "activations", "ops", "random", "utils", "applications", "datasets"],
}

HEAD = """# Which names of TensorFlow and Keras are there?

Made by tests/conformance/make_api_doc.py from the real packages ({versions}); not edited by hand. Each name that is
listed as ours compiles in every test run. A name of TensorFlow is found by the same path: `tf.math.reduce_std` is
`td::math::reduce_std`, `keras.layers.Dense` is `td::keras::layers::Dense`; where the path differs, the table says so.
`<tandem/tandem.h>` has all of them.

"""


def python_names():
    import keras
    import tensorflow as tf
    found = {"versions": f"TensorFlow {tf.__version__}, Keras {keras.__version__}", "names": {}}
    roots = {"tf": tf, "keras": keras}
    for root, modules in MODULES.items():
        paths = [(root, roots[root])] if root == "tf" else []
        paths += [(f"{root}.{name}", getattr(roots[root], name)) for name in modules]
        for path, module in paths:
            found["names"][path] = {
                name: "module" if type(getattr(module, name)).__name__ in ("module", "KerasLazyLoader") else "name"
                for name in sorted(dir(module)) if not name.startswith("_")
            }
    return found


class Notes:
    def __init__(self):
        self.paths, self.missing, self.elsewhere = {}, [], []
        for number, line in enumerate(NOTES.read_text(encoding="utf-8").splitlines(), 1):
            if not line.strip() or line.startswith("#"):
                continue
            match = re.fullmatch(r"(\S+) ([=:@]) (.+)", line)
            if not match:
                sys.exit(f"{NOTES}:{number}: neither NAME = OURS, NAME : REASON nor NAME @ REASON")
            name, kind, text = match.groups()
            if kind == "=":
                self.paths[name] = text
            else:
                (self.missing if kind == ":" else self.elsewhere).append((name, text))

    @staticmethod
    def find(table, name):
        return next((text for pattern, text in table if fnmatch.fnmatchcase(name, pattern)), None)


def cpp_path(name):
    root, _, rest = name.partition(".")
    return "::".join(["td" if root == "tf" else "td::keras", *rest.split(".")])


def using_line(number, path, kind):
    path = path.replace("td::", "tandem::", 1)
    if kind == "module":
        return f"namespace n{number} {{ namespace ours = {path}; }}"
    return f"namespace n{number} {{ using {path}; }}"


def compiled(command, claims):
    """Which of the claims, (path, kind) pairs, compile."""
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "names.cpp"
        lines = ["#include <tandem/tandem.h>"] + [using_line(i, *claim) for i, claim in enumerate(claims)]
        source.write_text("\n".join(lines) + "\n", encoding="utf-8")
        answer = subprocess.run([*shlex.split(command), "-fsyntax-only", "-fmax-errors=0", "-Wno-deprecated-declarations",
                                 str(source)], capture_output=True, text=True, cwd=ROOT)
    wrong = set()
    for line in answer.stderr.splitlines():
        match = re.match(r"(\S+?):(\d+):\d+: (?:fatal )?error: ", line)
        if not match:
            continue
        if not match[1].endswith("names.cpp"):
            sys.exit("a header does not compile: " + line)
        wrong.add(int(match[2]) - 2)
    if answer.returncode != 0 and not wrong:
        sys.exit(answer.stderr[-4000:])
    return [i not in wrong for i in range(len(claims))]


def survey(command):
    stored, notes = json.loads(NAMES.read_text(encoding="utf-8")), Notes()
    rows, claims = [], []
    for module, names in stored["names"].items():
        for name, kind in names.items():
            full = f"{module}.{name}"
            if Notes.find(notes.elsewhere, full):
                continue
            path = notes.paths.get(full, cpp_path(full))
            rows.append((module, full))
            # "a::b of …" and expressions are claims about the first word alone.
            claims.append((path.split()[0], kind))
    there = compiled(command, claims)
    table = {}
    for (module, full), (path, _), fine in zip(rows, claims, there):
        given = notes.paths.get(full, path)
        reason = Notes.find(notes.missing, full)
        if not fine and full in notes.paths:
            sys.exit(f"{NOTES}: {full} = {given} does not compile")
        if fine and reason and full not in notes.paths and not any("*" in p for p, _ in notes.missing if fnmatch.fnmatchcase(full, p)):
            sys.exit(f"{NOTES}: {full} is said to be missing, but {path} is there")
        table.setdefault(module, []).append((full, given if fine else None, reason))
    return stored["versions"], table, notes


def page(versions, table, notes):
    lines = [HEAD.format(versions=versions), "| module | names | here |\n| --- | ---: | ---: |\n"]
    for module, rows in table.items():
        here = sum(1 for _, ours, _ in rows if ours)
        lines.append(f"| {module} | {len(rows)} | {here} ({100 * here // len(rows)} %) |\n")
    for module, rows in table.items():
        lines.append(f"\n## {module}\n\n")
        same = [full.rsplit(".", 1)[1] for full, ours, _ in rows if ours == cpp_path(full)]
        other = [(full, ours) for full, ours, _ in rows if ours and ours != cpp_path(full)]
        missing = [(full, reason) for full, ours, reason in rows if not ours]
        if same:
            lines.append(wrapped(f"By the same path, `{cpp_path(module)}::`: ", same))
        if other:
            lines.append("\n| theirs | ours |\n| --- | --- |\n")
            lines += [f"| {full} | `{ours}` |\n" for full, ours in other]
        if missing:
            reasons = {}
            for full, reason in missing:
                reasons.setdefault(reason or "not there yet", []).append(full.rsplit(".", 1)[1])
            lines.append("\nNot here:\n\n")
            for reason, names in reasons.items():
                lines.append(wrapped(f"- {reason}: ", names))
    if notes.elsewhere:
        lines.append("\n## Not counted\n\n")
        lines += [f"- {pattern}: {reason}\n" for pattern, reason in notes.elsewhere]
    return "".join(lines)


def wrapped(start, names):
    text, row = "", start
    for i, name in enumerate(names):
        word = name + (", " if i + 1 < len(names) else ".")
        if len(row) + len(word) > 118:
            text += row.rstrip() + "\n"
            row = "  " if start.startswith("-") else ""
        row += word
    return text + row + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compile", default="g++ -std=c++20 -I. -Ibuild/include", help="a compiler and its options")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--report")
    parser.add_argument("--tensorflow", action="store_true", help="remake the list of names")
    options = parser.parse_args()
    if options.tensorflow:
        NAMES.write_text(json.dumps(python_names(), indent=0, sort_keys=True) + "\n", encoding="utf-8")
        return 0
    versions, table, notes = survey(options.compile)
    rows = [row for module in table.values() for row in module]
    missing = sum(1 for _, ours, _ in rows if not ours)
    if options.report:
        with open(options.report, "a", encoding="utf-8") as report:
            report.write(f"{len(rows)} {missing}\n")
    print(f"api: {len(rows)} names, {missing} missing")
    text = page(versions, table, notes)
    if not options.check:
        PAGE.write_text(text, encoding="utf-8")
        return 0
    if not PAGE.is_file() or PAGE.read_text(encoding="utf-8") != text:
        print("docs/api.md is not what the headers and the lists say; run tests/conformance/make_api_doc.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
