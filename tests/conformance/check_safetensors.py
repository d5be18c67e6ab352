"""Writes safetensors files with the real package, has them read and written by safetensors.cpp, and reads
those; files that the package refuses must be refused too.

    check_safetensors.py PROGRAM DIR REPORT
"""

import json
import pathlib
import struct
import subprocess
import sys

import ml_dtypes
import numpy as np

try:
    import safetensors
    from safetensors import numpy as package
except ImportError:
    print("skipped: the package safetensors is missing; ./dev peers tensorflow installs it")
    sys.exit(77)

DTYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", ml_dtypes.bfloat16]


def arrays():
    rng = np.random.default_rng(1)
    found = {}
    for dtype in DTYPES:
        numbers = 50 * rng.standard_normal((3, 4)) + 60
        found[f"of {np.dtype(dtype).name}"] = numbers > 60 if dtype == "?" else numbers.astype(dtype)
    found["scalar"] = np.array(2.5, np.float32)
    found["empty"] = np.zeros((0, 3), np.int64)
    found["name: \u00e4\"\\"] = np.arange(3.0)
    found["large"] = rng.standard_normal((300, 1000)).astype(np.float32)
    return found


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def raw(header, data, length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def entry(begin, end, shape=(1,), dtype="F32"):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end]}


# What the format forbids, each with a file that is otherwise whole.
REFUSED = {
    "empty": b"",
    "short": b"\x01\x00",
    "header longer than the file": raw({"a": entry(0, 4)}, bytes(4), 1000),
    "header over 100 MB": raw(b"{}", b"", 100_000_001),
    "header near 2^64": raw(b"{}", b"", 2**64 - 4),
    "no JSON": raw(b"{nonsense", b""),
    "no object": raw(b"[1, 2, 3]", b""),
    "begins with a space": raw(b" " + json.dumps({"a": entry(0, 4)}).encode(), bytes(4)),
    "no UTF-8": raw(b'{"\xff": 1}', b""),
    "keys twice": raw(b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},'
                      b'"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}', bytes(8)),
    "overlap": raw({"a": entry(0, 4), "b": entry(2, 6)}, bytes(6)),
    "the same bytes": raw({"a": entry(0, 4), "b": entry(0, 4)}, bytes(4)),
    "hole": raw({"a": entry(0, 4), "b": entry(8, 12)}, bytes(12)),
    "hole at the beginning": raw({"a": entry(4, 8)}, bytes(8)),
    "bytes behind": raw({"a": entry(0, 4)}, bytes(8)),
    "beyond the end": raw({"a": entry(0, 8, (2,))}, bytes(4)),
    "backwards": raw({"a": entry(4, 0)}, bytes(4)),
    "too small for its shape": raw({"a": entry(0, 4, (2,))}, bytes(4)),
    "shape that overflows": raw({"a": entry(0, 4, (2**40, 2**40))}, bytes(4)),
    "negative size": raw({"a": entry(0, 4, (-1,))}, bytes(4)),
    "negative offset": raw({"a": entry(-4, 0)}, bytes(4)),
    "unknown dtype": raw({"a": entry(0, 4, dtype="Q32")}, bytes(4)),
    "metadata that is no text": raw({"__metadata__": {"a": 1}, "a": entry(0, 4)}, bytes(4)),
    "deep": raw(b"{" + b'"a":{' * 5000 + b"}" * 5001, b""),
}
# The package lets the last of equal keys win, which the format's text forbids.
OURS_ALONE = {"keys twice", "begins with a space"}


def main():
    program, folder, report = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
    cases, failed = 0, 0

    def expect(name, good, why=""):
        nonlocal cases, failed
        cases += 1
        if not good:
            failed += 1
            print(f"FAILED {name}: {why}")

    theirs = arrays()
    metadata = {"format": "np", "b": "\u00e4"}
    package.save_file(theirs, folder / "theirs.safetensors", metadata)
    subprocess.run([program, folder / "theirs.safetensors", folder / "ours.safetensors"], check=True,
                   stdout=subprocess.DEVNULL)
    found = package.load_file(folder / "ours.safetensors")
    for name in sorted(theirs.keys() | found.keys()):
        expect(f"one file: {name}", name in theirs and name in found and same(found[name], theirs[name]))
    with safetensors.safe_open(folder / "ours.safetensors", "np") as ours:
        expect("metadata", ours.metadata() == metadata, ours.metadata())

    # Spread over files, and together again.
    index = subprocess.run([program, folder / "theirs.safetensors", folder / "spread.safetensors", "100000"],
                           check=True, capture_output=True, text=True, errors="replace").stdout.strip()
    names = json.loads(pathlib.Path(index).read_text())["weight_map"]
    spread = {}
    for file in sorted(set(names.values())):
        spread.update(package.load_file(folder / file))
    expect("spread", len(set(names.values())) > 1 and spread.keys() == theirs.keys() and
           all(same(spread[n], theirs[n]) for n in theirs))
    subprocess.run([program, index, folder / "joined.safetensors"], check=True, stdout=subprocess.DEVNULL)
    joined = package.load_file(folder / "joined.safetensors")
    expect("joined", joined.keys() == theirs.keys() and all(same(joined[n], theirs[n]) for n in theirs))

    # An index that leads out of its folder.
    for shard in ("../theirs.safetensors", "/etc/passwd", "a/b.safetensors", "", ".."):
        path = folder / "evil.safetensors.index.json"
        path.write_text(json.dumps({"weight_map": {"a": shard}}))
        said = subprocess.run([program, path, folder / "out.safetensors"], capture_output=True, text=True, errors="replace")
        expect(f"index to {shard!r}", said.returncode == 1 and "no name of a file" in said.stderr, said.stderr)

    for name, content in REFUSED.items():
        path = folder / "refused.safetensors"
        path.write_bytes(content)
        (folder / "out.safetensors").unlink(missing_ok=True)
        said = subprocess.run([program, path, folder / "out.safetensors"], capture_output=True, text=True, errors="replace")
        expect(name, said.returncode == 1 and str(path) in said.stderr, f"{said.returncode} {said.stderr}")
        expect(f"{name}: nothing left", not (folder / "out.safetensors").exists())
        try:
            package.load_file(path)
            refused = False
        except Exception:
            refused = True
        expect(f"{name}: the package", refused or name in OURS_ALONE, "takes it")
    print(f"conformance: {cases} cases, {failed} failed")
    with open(report, "a", encoding="utf-8") as out:
        out.write(f"{cases} {failed}\n")
    return 1 if failed else 0


sys.exit(main())
