"""GIF images written byte by byte, for the reference answers and the fuzz corpus."""

import numpy as np


def lzw(indices, bits):
    """The data blocks of one frame; its first code size is `bits` + 1."""
    clear, end = 1 << bits, (1 << bits) + 1
    out, held, count = bytearray(), 0, 0

    def put(code):
        nonlocal held, count
        held |= code << count
        count += width
        while count >= 8:
            out.append(held & 255)
            held >>= 8
            count -= 8

    width, table = bits + 1, {(i,): i for i in range(clear)}
    put(clear)
    run, next_code = (), end + 1
    for index in indices:
        if run + (index,) in table:
            run += (index,)
            continue
        put(table[run])
        if next_code == 4096:
            put(clear)
            width, next_code, table = bits + 1, end + 1, {(i,): i for i in range(clear)}
        else:
            table[run + (index,)] = next_code
            if next_code == 1 << width:
                width += 1
            next_code += 1
        run = (index,)
    put(table[run])
    put(end)
    if count:
        out.append(held & 255)
    blocks = b"".join(bytes([len(out[i:i + 255])]) + out[i:i + 255] for i in range(0, len(out), 255))
    return bytes([bits]) + blocks + b"\0"


def palette(colors, salt=0):
    return np.random.RandomState(colors + salt).bytes(3 * colors)


def frame(height, width, left=0, top=0, colors=16, own=False, transparent=None, interlaced=False, salt=0, used=None):
    """A frame of random indices below `used`, with runs."""
    random = np.random.RandomState(height * 31 + width + salt)
    indices = np.repeat(random.randint(0, used or colors, (height, (width + 2) // 3)), 3, 1)[:, :width]
    bits = colors.bit_length() - 1
    control = b"" if transparent is None else b"!\xf9\4\1\5\0" + bytes([transparent, 0])
    u2 = lambda v: v.to_bytes(2, "little")
    flags = (0x80 | bits - 1 if own else 0) | (0x40 if interlaced else 0)
    if interlaced:
        indices = np.concatenate([indices[first::step] for first, step in ((0, 8), (4, 8), (2, 4), (1, 2))])
    return control + b"," + u2(left) + u2(top) + u2(width) + u2(height) + bytes([flags]) + \
        (palette(colors, 1) if own else b"") + lzw(indices.ravel().tolist(), max(bits, 2))


def gif(frames, height, width, colors=16, shared=True, end=b";"):
    u2 = lambda v: v.to_bytes(2, "little")
    flags = 0x80 | colors.bit_length() - 2 if shared else 0
    return b"GIF89a" + u2(width) + u2(height) + bytes([flags, 0, 0]) + (palette(colors) if shared else b"") + \
        b"".join(frames) + end


def samples():
    """Name to bytes."""
    whole = [frame(7, 9, salt=i) for i in range(3)]
    comment = b"!\xfe\3abc\0"
    return {
        "one": gif(whole[:1], 7, 9),
        "three": gif(whole, 7, 9),
        "interlaced": gif([frame(19, 5, interlaced=True)], 19, 5),
        "long": gif([frame(60, 200, colors=256, salt=4, used=7)], 60, 200, 256),
        "two colors": gif([frame(5, 6, colors=2)], 5, 6, 2),
        "own colors": gif([frame(4, 6, own=True, colors=8), frame(4, 6, own=True, colors=4)], 4, 6, shared=False),
        "parts": gif([whole[0], frame(3, 4, 2, 3, transparent=5), frame(2, 2, 7, 5, salt=1)], 7, 9),
        "transparent": gif([frame(6, 6, transparent=3), frame(6, 6, transparent=9, salt=2)], 6, 6),
        "first in a corner": gif([frame(3, 4, 2, 1), frame(7, 9, salt=3)], 7, 9),
        "outside": gif([frame(5, 5, 3, 4), frame(4, 6, 30, 40)], 50, 50),
        "comments": gif([comment, whole[0], comment, whole[1]], 7, 9),
        "no end": gif(whole[:2], 7, 9, end=b""),
        "cut": gif(whole, 7, 9)[:-25],
        "cut at once": gif(whole[:1], 7, 9)[:-25],
        "no colors": gif(whole[:1], 7, 9, shared=False),
        "color outside": gif([frame(7, 9, colors=16, used=16)], 7, 9, 4),
        "no frame": gif([], 7, 9),
        "no pixels": gif([frame(7, 9), b",\0\0\0\0\0\0\5\0\0\2\0"], 7, 9),
        "header": b"GIF89a",
        "huge": gif([b",\0\0\0\0\xff\xff\xff\xff\0\2\2\x44\1\0"], 7, 9),
    }


if __name__ == "__main__":
    import pathlib
    corpus = pathlib.Path(__file__).resolve().parents[2] / "fuzz/corpus/gif_fuzz"
    corpus.mkdir(exist_ok=True)
    for number, contents in enumerate(v for v in samples().values() if len(v) < 2000):
        (corpus / f"{number:02}.gif").write_bytes(contents)
