"""A module includes itself and the modules it depends on, never a higher one.

The one table is the calls of tandem_module() in tandem/MODULE/CMakeLists.txt, and the order of modules in
tandem/CMakeLists.txt. A module may include what it depends on directly or through another module. The
tool and the umbrella header stand above all modules.
"""

import re

import _sources


def order(root):
    text = (root / "tandem/CMakeLists.txt").read_text()
    return re.search(r"set\(\s*modules\s+([^)]*)\)", text)[1].split()


def declarations(root):
    """{module: {keyword: words}} from the calls of tandem_module()."""
    modules = {}
    for module in order(root):
        text = re.sub(r"#.*", "", (root / f"tandem/{module}/CMakeLists.txt").read_text())
        words = re.search(r"tandem_module\(([^)]*)\)", text)[1].split()
        keywords = {"DEPENDS": [], "LINKS": [], "DEFINES": [], "PRECOMPILE": [],
                    "ALSO_INCLUDES": [], "COLD_FILES": []}
        current = None
        for word in words[1:]:
            if word in ("COLD", "APART"):
                continue
            if word in keywords:
                current = keywords[word]
            else:
                current.append(word)
        if words[0] != module:
            raise ValueError(f"tandem/{module}/CMakeLists.txt declares the module {words[0]}")
        modules[module] = keywords
    return modules


def precompiled(root, words):
    """The headers that PRECOMPILE names, those of variables of tandem/CMakeLists.txt too."""
    text = re.sub(r"#.*", "", (root / "tandem/CMakeLists.txt").read_text())
    for word in words:
        variable = re.fullmatch(r"\$\{(\w+)\}", word)
        value = variable and re.search(r"set\(\s*" + variable[1] + r"\s+([^)]*)\)", text)
        yield from value[1].split() if value else [word]


def reachable(module, modules):
    seen = set()
    waiting = [module]
    while waiting:
        current = waiting.pop()
        if current not in seen:
            seen.add(current)
            waiting.extend(modules[current]["DEPENDS"])
    return seen


def check(root):
    problems = []
    modules = declarations(root)
    rank = {module: place for place, module in enumerate(order(root))}
    for module, keywords in modules.items():
        for other in keywords["DEPENDS"]:
            if rank.get(other, len(rank)) >= rank[module]:
                problems.append(f"tandem/{module}/CMakeLists.txt: {module} can't depend on {other}, "
                                "which isn't below it in tandem/CMakeLists.txt")
    if problems:
        return problems

    allowed = {module: reachable(module, modules) for module in modules}
    for module, keywords in modules.items():
        for header in precompiled(root, keywords["PRECOMPILE"]):
            known = header.startswith(("tandem/", "<"))
            if (not known or header.startswith("tandem/")
                    and header.split("/")[1] not in allowed[module]
                    and header not in keywords["ALSO_INCLUDES"]):
                problems.append(f"tandem/{module}/CMakeLists.txt: {module} can't precompile {header}")
    for name in _sources.files(root, ".h", ".cpp"):
        parts = name.split("/")
        if parts[0] != "tandem" or len(parts) < 3:
            continue
        module = parts[1]
        for include in _sources.includes(root, name):
            target = include.name.split("/")
            if target[0] != "tandem":
                continue
            where = f"{name}:{include.line}"
            if len(target) < 3:
                if module != "cli":
                    problems.append(f"{where}: only programs include {include.name}")
            elif module == "cli":
                continue
            elif module not in modules:
                problems.append(f"{where}: tandem/CMakeLists.txt doesn't list the module {module}")
            elif (target[1] not in allowed[module]
                  and include.name not in modules[module]["ALSO_INCLUDES"]):
                problems.append(f"{where}: {module} may include {', '.join(sorted(allowed[module]))}, "
                                f"not {include.name}")
    return problems


if __name__ == "__main__":
    _sources.finish(check(_sources.arguments().source))
