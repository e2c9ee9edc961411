"""The ways in which files get damaged or are made to hurt."""

import random
import re
import struct
from typing import Any

TOKENS = (
    b"0",
    b"-1",
    b"1e999",
    b"nan",
    b"1000000000000",
    b"9" * 30,
    b"\x00",
    b"\xff\xfe",
    b"\n",
    b"\r",
    b",",
    b'"',
    b"#",
)
VALUES = (None, True, -1, 0, 1, 2**31, 2**63, 10**400, 1e308, -0.0, "", "x", "../x", [], [[]], {}, {"own": "os.system"})


def mutate(data: bytes, chance: random.Random) -> bytes:
    """Change bytes in one to four of the ways in which files get damaged or are made to hurt."""
    for _ in range(chance.choice((1, 1, 2, 4))):
        data = chance.choice((_flip, _cut, _drop, _repeat, _insert, _overwrite, _renumber, _resize))(data, chance)
    return data


def _place(data: bytes, chance: random.Random) -> int:
    return chance.randrange(len(data) + 1)


def _flip(data: bytes, chance: random.Random) -> bytes:
    if not data:
        return data
    changed = bytearray(data)
    changed[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def _cut(data: bytes, chance: random.Random) -> bytes:
    return data[: _place(data, chance)]


def _drop(data: bytes, chance: random.Random) -> bytes:
    begin = _place(data, chance)
    return data[:begin] + data[begin + chance.randrange(1, 30) :]


def _repeat(data: bytes, chance: random.Random) -> bytes:
    begin = _place(data, chance)
    end = min(len(data), begin + chance.randrange(1, 60))
    return data[:end] + data[begin:end] * chance.choice((1, 3, 200)) + data[end:]


def _insert(data: bytes, chance: random.Random) -> bytes:
    begin = _place(data, chance)
    return data[:begin] + chance.choice(TOKENS) + data[begin:]


def _overwrite(data: bytes, chance: random.Random) -> bytes:
    begin, noise = _place(data, chance), chance.randbytes(chance.choice((1, 4, 8)))
    return data[:begin] + noise + data[begin + len(noise) :]


def _renumber(data: bytes, chance: random.Random) -> bytes:
    """Put another number in place of one that is spelled out."""
    found = list(re.finditer(rb"[0-9]+", data[:100_000]))
    if not found:
        return data
    number = chance.choice(found)
    return data[: number.start()] + chance.choice(TOKENS) + data[number.end() :]


def _resize(data: bytes, chance: random.Random) -> bytes:
    """Put an extreme number where a size may be."""
    size = struct.pack(chance.choice(("<I", "<Q", ">I", "<H")), chance.choice((0, 1, 0xFFFF, 0x7FFF)))
    begin = _place(data, chance)
    return data[:begin] + size + data[begin + len(size) :]


def change_document(document: Any, chance: random.Random) -> None:
    """Change one entry, somewhere: another value, another key, none."""
    while True:
        keys = list(document) if isinstance(document, dict) else list(range(len(document)))
        if not keys:
            return
        key = chance.choice(keys)
        inner = document[key]
        if isinstance(inner, dict | list) and inner and chance.random() < 0.8:
            document = inner
            continue
        if chance.random() < 0.2:
            del document[key]
        else:
            document[key] = chance.choice((*VALUES, [inner] * 3, {"a": inner}))
        return
