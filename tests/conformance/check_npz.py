"""Writes .npz files with NumPy, has them read and written again by npz.cpp, and reads them back.

    check_npz.py PROGRAM DIR REPORT
"""

import pathlib
import subprocess
import sys

import numpy as np

DTYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"]


def arrays():
    """Every dtype, and forms that are stored in other ways: orders, strides, nothing, one."""
    rng = np.random.default_rng(1)
    found = {}
    for dtype in DTYPES:
        values = 100 * rng.standard_normal((3, 4)) + 100
        found[f"of {dtype}"] = (values > 100 if dtype == "?" else values.astype(dtype))
    found["scalar"] = np.array(2.5, np.float32)
    found["empty"] = np.zeros((0, 3), np.int64)
    found["special"] = np.array([np.nan, np.inf, -np.inf, -0.0, 5e-324])
    found["columns first"] = np.asfortranarray(rng.standard_normal((3, 4, 5)))
    found["strides"] = np.arange(24, dtype=np.int32).reshape(4, 6)[::2, ::-1]
    found["big endian"] = np.arange(5, dtype=">i4")
    found["strings"] = np.array([[b"a", b"long\xff\x00one"], [b"", b"bc"]])
    found["folder/name: \u00e4"] = np.arange(3.0)
    found["large"] = rng.standard_normal((300, 1000)).astype(np.float32)
    return found


def same(ours, theirs):
    return (ours.dtype == theirs.dtype.newbyteorder("=") and ours.shape == theirs.shape
            and ours.tobytes() == theirs.astype(ours.dtype).tobytes())


def main():
    program, folder, report = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
    cases, failed = 0, 0
    for save in (np.savez, np.savez_compressed):
        theirs = arrays()
        save(folder / "theirs.npz", **theirs)
        subprocess.run([program, folder / "theirs.npz", folder / "ours.npz"], check=True)
        with np.load(folder / "ours.npz", allow_pickle=False) as ours:
            found = {name: ours[name] for name in ours.files}
        for name in sorted(theirs.keys() | found.keys()):
            cases += 1
            if name in theirs and name in found and same(found[name], theirs[name]):
                continue
            failed += 1
            print(f"FAILED {save.__name__} {name}: {found.get(name)!r}, not {theirs.get(name)!r}")
    print(f"conformance: {cases} cases, {failed} failed")
    with open(report, "a", encoding="utf-8") as out:
        out.write(f"{cases} {failed}\n")
    return 1 if failed else 0


sys.exit(main())
