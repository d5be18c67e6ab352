"""Encoded images for cases: the bytes that decoding ops take, whole or damaged.

Each function takes a random generator, the image's sizes and at last words about the bytes:
`cut=0.7` keeps that share of them, `flip=20` inverts the bits of byte 20 (from the end if negative),
others are the format's own.
"""

import struct
import zlib

import numpy as np


def picture(random, height, width, channels, dtype=np.uint8):
    y, x = np.mgrid[0:height, 0:width]
    waves = [128 + 100 * np.sin(x / 3 + k) * np.cos(y / 5 - k) for k in range(channels)]
    values = np.clip(np.stack(waves, -1) + random.standard_normal((height, width, channels)) * 9, 0, 255)
    return (values * (np.iinfo(dtype).max // 255)).astype(dtype)


def words_of(text):
    """The words that are about damage, and the others."""
    pairs = [word.partition("=")[::2] for word in text.split()]
    return ([(name, value) for name, value in pairs if name in ("cut", "flip")],
            {name: value for name, value in pairs if name not in ("cut", "flip")})


def damaged(contents, damage):
    for name, value in damage:
        if name == "cut":
            contents = contents[:int(len(contents) * float(value))]
        else:
            at = int(value) % len(contents)
            contents = contents[:at] + bytes([contents[at] ^ 255]) + contents[at + 1:]
    return contents


def jpeg(random, height, width, channels, words=""):
    """Words: `progressive`, `full` (chroma is not downsampled), `quality=`."""
    import tensorflow as tf  # the encoder; whatever it gives, both sides decode it

    damage, options = words_of(words)
    contents = tf.io.encode_jpeg(picture(random, height, width, channels), quality=int(options.get("quality", 80)),
                                 progressive="progressive" in options,
                                 chroma_downsampling="full" not in options).numpy()
    return damaged(contents, damage)


def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def filtered(rows, pixel):
    """PNG's rows with each of its five filters in turn."""
    lines = b""
    above = np.zeros(rows.shape[1], np.int32)
    for number, row in enumerate(rows.astype(np.int32)):
        left = np.concatenate([np.zeros(pixel, np.int32), row[:-pixel]])
        corner = np.concatenate([np.zeros(pixel, np.int32), above[:-pixel]])
        guess = left + above - corner
        by_left, by_above, by_corner = abs(guess - left), abs(guess - above), abs(guess - corner)
        paeth = np.where((by_left <= by_above) & (by_left <= by_corner), left,
                         np.where(by_above <= by_corner, above, corner))
        expected = [0 * row, left, above, (left + above) // 2, paeth][number % 5]
        lines += bytes([number % 5]) + ((row - expected) & 255).astype(np.uint8).tobytes()
        above = row
    return lines


def png(random, height, width, color, depth=8, words=""):
    """`color` is PNG's colour type: 0 gray, 2 RGB, 3 palette, 4 gray and alpha, 6 RGBA."""
    damage, options = words_of(words)
    channels = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[color]
    if depth < 8:
        values = random.randint(0, 2 ** depth, (height, width))
        bits = ((values[..., None] >> np.arange(depth - 1, -1, -1)) & 1).reshape(height, -1)
        rows = np.packbits(bits.astype(np.uint8), axis=1)
    elif depth == 16:
        rows = picture(random, height, width, channels, np.uint16).astype(">u2").reshape(height, -1).view(np.uint8)
    else:
        rows = picture(random, height, width, channels).reshape(height, -1)
    body = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, 0))
    if color == 3:
        body += chunk(b"PLTE", random.bytes(3 * 2 ** depth))
        if "transparent" in options:
            body += chunk(b"tRNS", random.bytes(2 ** depth // 2))
    body += chunk(b"IDAT", zlib.compress(filtered(rows, max(1, channels * depth // 8)))) + chunk(b"IEND", b"")
    return damaged(b"\x89PNG\r\n\x1a\n" + body, damage)


def bmp(random, height, width, bits, words=""):
    """A negative height: its rows from above."""
    row = (bits // 8 * width + 3) // 4 * 4
    body = random.bytes(row * abs(height))
    head = struct.pack("<2sIIIIiiHH", b"BM", 54 + len(body), 0, 54, 40, width, height, 1, bits) + bytes(24)
    return damaged(head + body, words_of(words)[0])


def gif(random, name, words=""):
    """One of those that image/gifs.py has."""
    from image.gifs import samples

    return damaged(samples()[name], words_of(words)[0])


MAKERS = {"jpeg": jpeg, "png": png, "bmp": bmp, "gif": gif}
