"""A room includes itself and the rooms it depends on, never a higher one.

The one table is the calls of tandem_room() in tandem/ROOM/CMakeLists.txt, and the order of rooms in
tandem/CMakeLists.txt. A room may include what it depends on directly or through another room. The
tool and the umbrella header stand above all rooms.
"""

import re

import _sources


def order(root):
    text = (root / "tandem/CMakeLists.txt").read_text()
    return re.search(r"set\(\s*rooms\s+([^)]*)\)", text)[1].split()


def declarations(root):
    """{room: {keyword: words}} from the calls of tandem_room()."""
    rooms = {}
    for room in order(root):
        text = re.sub(r"#.*", "", (root / f"tandem/{room}/CMakeLists.txt").read_text())
        words = re.search(r"tandem_room\(([^)]*)\)", text)[1].split()
        keywords = {"DEPENDS": [], "LINKS": [], "DEFINES": [], "PRECOMPILE": [],
                    "ALSO_INCLUDES": [], "COLD_FILES": []}
        current = None
        for word in words[1:]:
            if word == "COLD":
                continue
            if word in keywords:
                current = keywords[word]
            else:
                current.append(word)
        if words[0] != room:
            raise ValueError(f"tandem/{room}/CMakeLists.txt declares the room {words[0]}")
        rooms[room] = keywords
    return rooms


def precompiled(root, words):
    """The headers that PRECOMPILE names, those of variables of tandem/CMakeLists.txt too."""
    text = re.sub(r"#.*", "", (root / "tandem/CMakeLists.txt").read_text())
    for word in words:
        variable = re.fullmatch(r"\$\{(\w+)\}", word)
        value = variable and re.search(r"set\(\s*" + variable[1] + r"\s+([^)]*)\)", text)
        yield from value[1].split() if value else [word]


def reachable(room, rooms):
    seen = set()
    waiting = [room]
    while waiting:
        current = waiting.pop()
        if current not in seen:
            seen.add(current)
            waiting.extend(rooms[current]["DEPENDS"])
    return seen


def check(root):
    problems = []
    rooms = declarations(root)
    rank = {room: place for place, room in enumerate(order(root))}
    for room, keywords in rooms.items():
        for other in keywords["DEPENDS"]:
            if rank.get(other, len(rank)) >= rank[room]:
                problems.append(f"tandem/{room}/CMakeLists.txt: {room} can't depend on {other}, "
                                "which isn't below it in tandem/CMakeLists.txt")
    if problems:
        return problems

    allowed = {room: reachable(room, rooms) for room in rooms}
    for room, keywords in rooms.items():
        for header in precompiled(root, keywords["PRECOMPILE"]):
            known = header.startswith(("tandem/", "<"))
            if (not known or header.startswith("tandem/")
                    and header.split("/")[1] not in allowed[room]
                    and header not in keywords["ALSO_INCLUDES"]):
                problems.append(f"tandem/{room}/CMakeLists.txt: {room} can't precompile {header}")
    for name in _sources.files(root, ".h", ".cpp"):
        parts = name.split("/")
        if parts[0] != "tandem" or len(parts) < 3:
            continue
        room = parts[1]
        for include in _sources.includes(root, name):
            target = include.name.split("/")
            if target[0] != "tandem":
                continue
            where = f"{name}:{include.line}"
            if len(target) < 3:
                if room != "cli":
                    problems.append(f"{where}: only programs include {include.name}")
            elif room == "cli":
                continue
            elif room not in rooms:
                problems.append(f"{where}: tandem/CMakeLists.txt doesn't list the room {room}")
            elif (target[1] not in allowed[room]
                  and include.name not in rooms[room]["ALSO_INCLUDES"]):
                problems.append(f"{where}: {room} may include {', '.join(sorted(allowed[room]))}, "
                                f"not {include.name}")
    return problems


if __name__ == "__main__":
    _sources.finish(check(_sources.arguments().source))
