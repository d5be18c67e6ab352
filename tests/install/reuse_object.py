"""A compiler launcher that takes an object over from another build of the same sources.

  reuse_object.py BUILD SOURCE -- COMPILER ARGUMENT...

Where BUILD compiled the same file by the same command (but for include paths inside the two build
folders and the names of the outputs), its object is copied; else the compiler runs. Without this
the test of add_subdirectory would compile the whole library a second time.
"""

import json
import os
import pathlib
import shlex
import shutil
import sys


def flags(command):
    """What decides the object's content: all but outputs, include folders, precompiled headers."""
    kept = []
    skip = False
    for part in command:
        if skip:
            skip = False
        elif part in ("-o", "-MF", "-MT", "-MQ", "-isystem", "-include"):
            skip = True
        elif not part.startswith(("-I", "-MD", "-MMD", "-Winvalid-pch", "-fpch-preprocess")):
            kept.append(part)
    return kept


def value_after(command, option):
    return command[command.index(option) + 1] if option in command else None


def known_object(build, source, command):
    database = build / "compile_commands.json"
    file = value_after(command, "-c")
    if file is None or not file.startswith(str(source)) or not database.exists():
        return None
    for entry in json.loads(database.read_text()):
        if entry["file"] == file:
            other = shlex.split(entry["command"])
            start = next(i for i, part in enumerate(other) if part == command[0])
            if flags(other[start:]) == flags(command):
                return pathlib.Path(entry["directory"]) / value_after(other, "-o")
    return None


def main():
    build, source = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    command = sys.argv[4:]
    known = known_object(build, source, command) if "-o" in command else None
    if known is None or not known.exists():
        os.execvp(command[0], command)
    output = value_after(command, "-o")
    shutil.copyfile(known, output)
    dependencies = value_after(command, "-MF")
    if dependencies is not None:
        pathlib.Path(dependencies).write_text(f"{output}:\n")


if __name__ == "__main__":
    main()
