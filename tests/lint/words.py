"""Words that the project does not use: each has a term of the field, which the message names.

Comments, messages, identifiers and documents are read alike. Comments are sentences that stand alone: one that begins with
"Of" or "The same" needs the line above it.
"""

import re

import _sources

# (pattern, what to write instead). Identifiers are split at underscores and capitals first.
WORDS = [
    (r"tells?|telling|told", "report, notify, describe, determine"),
    (r"whoever", "the caller, the consumer, a thread that"),
    (r"(?<!CURLOPT )nobody", "nothing, no thread, unknown"),
    (r"anew", "again, start over, recreate"),
    (r"mend(s|ed|ing)?", "fix, repair"),
    (r"brought", "uploaded, converted, added"),
    (r"(gives?|gave|given|giving) (it |them )?back", "return, release"),
    (r"(hands?|handed) on", "forward, pass"),
    (r"stumbl(e|es|ed|ing)", "fail, find"),
    (r"rehears(e|es|ed|al|ing)", "simulate"),
    (r"leftovers?", "stale files"),
    (r"uncomputed", "unmaterialized"),
    (r"one in the other", "nested"),
]
# Searched in the line as it stands.
IDENTIFIERS = [
    (r"\b(gone|goes) round\b", "iterate, run for N iterations"),
    (r"\bk(Most|Least)[A-Z]\w*", "kMax, kMin"),
    (r"\b\w*(LateCall|BroughtConstants|HollowBuffer|MemoryKeeper|TwoViews|UnfinishedFile|BackAndForth|FunctionDraws)\w*",
     "docs/glossary.md"),
]
FRAGMENT = re.compile(r"//+ (Of(?! course)|The same(?= (of|for|with|in|from|by|where|as)\b)|As above)\b")

# The successors of old names are declared with the old names beside them, the change log speaks of the past, and the checks
# themselves name what they forbid.
EXEMPT = re.compile(r"^tests/lint/|^CHANGELOG\.md$|^tandem/deprecated\.h$|deprecated_names_test\.cpp$|^docs/ops\.md$")
OLD_NAME = re.compile(r"\[\[deprecated")


def spoken(line):
    """The line with its identifiers as words: `told_once` and `ToldOnce` become `told once`."""
    line = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", line)
    return line.replace("_", " ")


def check(root):
    words = [(re.compile(rf"\b({pattern})\b", re.IGNORECASE), instead) for pattern, instead in WORDS]
    names = [(re.compile(pattern), instead) for pattern, instead in IDENTIFIERS]
    problems = []
    for name in _sources.files(root, ".h", ".cpp", ".md", ".py"):
        if EXEMPT.search(name):
            continue
        before = ""
        for number, line in enumerate((root / name).read_text(errors="replace").split("\n"), 1):
            old = OLD_NAME.search(line) or OLD_NAME.search(before)
            found = [(word.search(spoken(line)), instead) for word, instead in words]
            if not old:
                found += [(word.search(line), instead) for word, instead in names]
            for match, instead in found:
                if match:
                    problems.append(f"{name}:{number}: {match[0]}: write {instead}")
            # A line of comment below another one continues its sentence.
            fragment = FRAGMENT.match(line.strip()) if not before.strip().startswith("//") else None
            if fragment and name.endswith((".h", ".cpp")):
                problems.append(f"{name}:{number}: {fragment[0]}: a comment that stands alone")
            before = line
    return problems


if __name__ == "__main__":
    _sources.finish(check(_sources.arguments().source))
