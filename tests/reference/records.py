"""How values are written into the stored reference files (the format is in README.md)."""

import base64
import gzip
import io
import json

import numpy as np

from case_language import NAMES


def encode(array):
    """A tensor as a record: dtype, shape, and its little-endian bytes in base64."""
    array = np.asarray(array)
    record = {"dtype": NAMES[array.dtype] if array.dtype != object else "string",
              "shape": list(array.shape)}
    if array.dtype == object:
        record["strings"] = [base64.b64encode(item).decode() for item in array.reshape(-1)]
    else:
        little = np.ascontiguousarray(array)
        if little.dtype.byteorder == ">":
            little = little.astype(little.dtype.newbyteorder("<"))
        record["data"] = base64.b64encode(little.tobytes()).decode()
    return record


def encode_or_null(array):
    return None if array is None else encode(array)


def dump_line(record):
    return json.dumps(record, separators=(",", ":"), sort_keys=False, allow_nan=False) + "\n"


def packed(records):
    """The bytes of a file of records; equal records give equal bytes."""
    buffer = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=buffer, compresslevel=9, mtime=0) as stream:
        for record in records:
            stream.write(dump_line(record).encode())
    return buffer.getvalue()


def unpacked(path):
    with gzip.open(path, "rt") as stream:
        return [json.loads(line) for line in stream]
