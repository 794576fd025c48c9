"""Each codec reads what it writes, and refuses everything else with `PayloadError`."""

from __future__ import annotations

import json
import random
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.codecs.examples import CASES
from twinstream.codecs.named_codec import NamedCodec
from twinstream.core.payloads.payloads import Payloads
from twinstream.errors import PayloadError
from twinstream.records.headers import Headers


@pytest.mark.parametrize("name", CASES)
@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_a_codec_reads_what_it_writes(name: str, data: st.DataObject) -> None:
    codec, values = CASES[name]
    payloads = Payloads(NamedCodec(codec))
    value = data.draw(values)
    encoded, headers = payloads.encode(value, None)
    found = payloads.decode(encoded, Headers((headers or {}).items()), "orders.1")
    assert found == value
    assert type(found) is type(value)


def odd_payloads(good: bytes, count: int, rng: random.Random) -> list[bytes]:
    """Return payloads that are damaged, of wrong types, deep, huge or in another encoding."""
    fixed = [
        *(b"", b"null", b"[]", b"{}", b'"', b"0", b"-", b"NaN", b"Infinity", b"1e999", b"\xff\xfe"),
        *(b"[" * 100_000, b'{"a":' * 100_000, b"9" * 10_000, b'"\\ud800"', b"\xef\xbb\xbf{}"),
        *("{}".encode(each) for each in ("utf-16", "utf-32", "utf-16-be")),
        *(b'{"number":"1","number":2}', b"x" * 1_000_000, good + b"x", good + good),
        json.dumps({"number": [[]] * 1000, "x": "1", "name": {}}).encode(),
    ]
    made = list(fixed)
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


@pytest.mark.parametrize("name", CASES)
@settings(deadline=None, max_examples=1)
@given(data=st.data())
def test_a_codec_raises_no_foreign_exception(name: str, data: st.DataObject) -> None:
    codec, values = CASES[name]
    payloads: Payloads[Any] = Payloads(NamedCodec(codec))
    encoded, headers = payloads.encode(data.draw(values), None)
    mine = Headers((headers or {}).items())
    for payload in odd_payloads(encoded, 400, random.Random(7)):
        with suppress(PayloadError):
            payloads.decode(payload, mine, "orders.1")
