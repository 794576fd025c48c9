"""Each codec reads what it writes, and refuses everything else with `PayloadError`."""

from __future__ import annotations

import random
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.codecs.examples import CASES
from tests.odd_payloads import odd_payloads
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
    encoded, headers = payloads.encode(value, None, "a")
    found = payloads.decode(encoded, Headers((headers or {}).items()), "orders.1")
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize("name", CASES)
@settings(deadline=None, max_examples=1)
@given(data=st.data())
def test_a_codec_raises_no_foreign_exception(name: str, data: st.DataObject) -> None:
    codec, values = CASES[name]
    payloads: Payloads[Any] = Payloads(NamedCodec(codec))
    encoded, headers = payloads.encode(data.draw(values), None, "a")
    mine = Headers((headers or {}).items())
    for payload in odd_payloads(encoded, 400, random.Random(7)):
        with suppress(PayloadError):
            payloads.decode(payload, mine, "orders.1")
