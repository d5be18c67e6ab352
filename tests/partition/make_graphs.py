"""Stores small cases that tests/conformance exported: make_graphs.py EXPORTED_FOLDER

Takes graph and inputs; what TensorFlow computed is not needed, since parts are compared with the whole.
"""

import gzip
import json
import pathlib
import shutil
import sys

LARGEST = 400_000  # bytes of a case
WITH_FILES = {"tables_from_files"}  # graphs that name files of the machine that made them


def store(case, out):
    description = json.loads((case / "case.json").read_text())
    files = [case / description["graph"], *(case / f for f in description["feeds"].values())]
    if case.name in WITH_FILES or sum(f.stat().st_size for f in files) > LARGEST:
        return False
    out.mkdir(parents=True, exist_ok=True)
    for file in files[1:]:
        shutil.copy(file, out / file.name)
    packed = files[0].name + ".gz"
    (out / packed).write_bytes(gzip.compress(files[0].read_bytes(), mtime=0))
    kept = {key: description[key] for key in ("graph", "feeds", "targets", "inits", "steps")
            if key in description}
    kept["graph"] = packed
    kept["expected"] = list(description["expected"])
    (out / "case.json").write_text(json.dumps(kept, indent=1) + "\n")
    return True


def main():
    graphs = pathlib.Path(__file__).parent / "graphs"
    for case in sorted(path.parent for path in pathlib.Path(sys.argv[1]).glob("*/case.json")):
        print(f"{'stored' if store(case, graphs / case.name) else 'left out'} {case.name}")


if __name__ == "__main__":
    main()
