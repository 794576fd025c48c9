"""Payloads that do not fit: damaged, of wrong types, deep, huge or in another encoding."""

from __future__ import annotations

import json
import random


def odd_payloads(good: bytes, count: int, rng: random.Random) -> list[bytes]:
    """Return `count` payloads, most of them made of `good`. Some may fit."""
    made = [
        *(b"", b"null", b"[]", b"{}", b'"', b"0", b"-", b"NaN", b"Infinity", b"1e999", b"\xff\xfe"),
        *(b"[" * 100_000, b'{"a":' * 100_000, b"9" * 10_000, b'"\\ud800"', b"\xef\xbb\xbf{}"),
        *("{}".encode(each) for each in ("utf-16", "utf-32", "utf-16-be")),
        *(b'{"number":"1","number":2}', b"x" * 500_000, good + b"x", good + good),
        json.dumps({"number": [[]] * 1000, "x": "1", "name": {}}).encode(),
    ]
    while len(made) < count:
        part = bytearray(good)
        for _ in range(rng.randrange(1, 4)):
            place = rng.randrange(len(part) + 1)
            match rng.randrange(4):
                case 0:
                    del part[place:]
                case 1:
                    part[place:place] = rng.choice([b'"', b"{", b"[", b"1", b"\x00", b"\xc3"])
                case 2:
                    part[place : place + 1] = bytes([rng.randrange(256)])
                case _:
                    part[place : place + 3] = b""
        made.append(bytes(part))
    return made
