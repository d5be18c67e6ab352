"""Each member of a public option struct has a default initialiser.

`map(f, {.traced = true})` names the member that matters; g++ with -Wextra warns of every other one
that has no `= …` in its struct (-Wmissing-field-initializers), so that programs built with -Werror
would not compile.
"""

import re

import _sources

STRUCT = re.compile(r"^[ ]*struct (?:TANDEM_EXPORT )?(\w*Options) \{$", re.MULTILINE)

OTHER_DECLARATIONS = ("using ", "friend ", "static ", "struct ", "enum ")

# Members without one that are right so.
EXCEPTIONS = {
    # C has no initialisers.
    ("tandem/device/plugin.h", "TandemDeviceOptions"),
    # Have members that every use must give: leaving one out deserves the warning.
    ("tandem/keras/schedules.h", "DecayOptions"),
    ("tandem/keras/schedules.h", "PolynomialDecayOptions"),
    ("tandem/keras/schedules.h", "CosineDecayOptions"),
    ("tandem/keras/schedules.h", "CosineDecayRestartsOptions"),
}


def body_of(text, begin):
    """What stands at the struct's own level, each inner pair of braces as {}."""
    depth = 1
    kept = ""
    for character in text[begin:]:
        depth += {"{": 1, "}": -1}.get(character, 0)
        if depth == 0:
            break
        if depth == 1 or (depth == 2 and character == "{"):
            kept += character
    return kept


def without_initialiser(body):
    body = re.sub(r"(\)[^;{}=>]*)\{\}", r"\1;", body)  # functions, which end without ";"
    for statement in body.split(";"):
        statement = " ".join(statement.split())
        plain = re.sub(r"\"[^\"]*\"|'[^']*'", "0", statement)
        for commas, instead in ((r"<[^<>]*>", ""), (r"\([^()]+\)", "()")):
            while (shorter := re.sub(commas, instead, plain)) != plain:
                plain = shorter
        is_function = "(" in plain.split("=")[0]
        if not plain or is_function or plain.startswith(OTHER_DECLARATIONS):
            continue
        if any("=" not in name and not name.endswith("}") for name in plain.split(",")):
            yield statement


def check(root):
    problems = []
    for name in _sources.public_headers(root):
        text = re.sub(r"//[^\n]*", "", (root / name).read_text(encoding="utf-8"))
        for match in STRUCT.finditer(text):
            if (name, match[1]) in EXCEPTIONS:
                continue
            line = text.count("\n", 0, match.start()) + 1
            problems += [f"{name}:{line}: {match[1]}: `{member}` has no default initialiser"
                         for member in without_initialiser(body_of(text, match.end()))]
    return problems


if __name__ == "__main__":
    _sources.finish(check(_sources.arguments().source))
