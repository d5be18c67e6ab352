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
    # Everything includes it: wait for a change of that header that is worth building all anew.
    ("tandem/device/device.h", "LogicalDeviceOptions"),
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
    for statement in body.split(";"):
        statement = " ".join(statement.split())
        if not statement or "=" in statement or statement.endswith("}"):
            continue
        plain = statement
        while (shorter := re.sub(r"<[^<>]*>", "", plain)) != plain:
            plain = shorter
        is_member = "(" not in plain and not plain.startswith(OTHER_DECLARATIONS)
        if is_member:
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
