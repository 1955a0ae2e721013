"""Ways to damage a file."""

from __future__ import annotations

import random
import struct
import zlib

_EXTREMES = (0, 1, 0x7F, 0x80, 0xFE, 0xFF)
_NUMBERS = (0, 1, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 0x80000000, 100_000)


def mutate(data: bytes, rng: random.Random, other: bytes = b"") -> bytes:
    """One to four kinds of damage, now and then on a file whose checksums are made right again."""
    result = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        rng.choice(_KINDS)(result, rng, other)
    if data.startswith(_PNG) and rng.random() < 0.7:
        return _right_checksums(bytes(result))
    return bytes(result)


def _flip(data: bytearray, rng: random.Random, other: bytes) -> None:
    for _ in range(rng.choice((1, 2, 8, 40))):
        if data:
            data[_place(data, rng)] ^= 1 << rng.randrange(8)


def _extremes(data: bytearray, rng: random.Random, other: bytes) -> None:
    for _ in range(rng.choice((1, 2, 5))):
        if data:
            data[_place(data, rng)] = rng.choice(_EXTREMES)


def _number(data: bytearray, rng: random.Random, other: bytes) -> None:
    """A length or an offset that is far too large."""
    form = rng.choice(("<H", ">H", "<I", ">I"))
    size = struct.calcsize(form)
    if len(data) > size:
        at = min(_place(data, rng), len(data) - size)
        number = rng.choice(_NUMBERS) & (256**size - 1)
        data[at : at + size] = struct.pack(form, number)


def _cut(data: bytearray, rng: random.Random, other: bytes) -> None:
    del data[rng.randrange(len(data) + 1) :]


def _drop(data: bytearray, rng: random.Random, other: bytes) -> None:
    at = rng.randrange(len(data) + 1)
    del data[at : at + rng.choice((1, 4, 100))]


def _repeat(data: bytearray, rng: random.Random, other: bytes) -> None:
    at = rng.randrange(len(data) + 1)
    piece = data[at : at + rng.choice((1, 4, 64, 1000))]
    data[at:at] = piece * rng.choice((1, 2, 50))


def _insert(data: bytearray, rng: random.Random, other: bytes) -> None:
    at = rng.randrange(len(data) + 1)
    data[at:at] = rng.randbytes(rng.choice((1, 4, 64)))


def _splice(data: bytearray, rng: random.Random, other: bytes) -> None:
    at = rng.randrange(len(data) + 1)
    data[at:] = other[rng.randrange(len(other) + 1) :]


_KINDS = (
    _flip,
    _flip,
    _extremes,
    _extremes,
    _number,
    _number,
    _cut,
    _drop,
    _repeat,
    _insert,
    _splice,
)


def _place(data: bytearray, rng: random.Random) -> int:
    """Headers are short and matter most: half of the damage goes to the first bytes."""
    return rng.randrange(min(len(data), 128) if rng.random() < 0.5 else len(data))


_PNG = b"\x89PNG\r\n\x1a\n"


def _right_checksums(data: bytes) -> bytes:
    """PNG chunks with fitting CRCs, or the damage would never get past the first check."""
    result, at = bytearray(data[:8]), 8
    while at + 12 <= len(data):
        length = struct.unpack(">I", data[at : at + 4])[0]
        end = at + 8 + length
        if end + 4 > len(data):
            break
        body = data[at + 4 : end]
        result += data[at : at + 4] + body + struct.pack(">I", zlib.crc32(body))
        at = end + 4
    return bytes(result + data[at:])
