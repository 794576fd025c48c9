"""Tokens: unique, written with 62 different characters."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from twinstream.core.wire.tokens import Tokens, base62


@given(st.integers(0, 2**128))
def test_tokens_are_written_in_62_digits(number: int) -> None:
    digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    text = base62(number)
    assert sum(digits.index(d) * 62**n for n, d in enumerate(reversed(text))) == number


def test_tokens_never_repeat() -> None:
    one, two = Tokens(b"\1" * 16), Tokens(b"\2" * 16, "_IN")
    made = [make() for make in (one.next, one.inbox, one.name) for _ in range(100)]
    assert len(set(made)) == 300
    assert two.inbox().startswith("_IN.")
    assert one.inbox().startswith("_INBOX.")
    assert one.inbox().split(".")[1] != two.inbox().split(".")[1]
    assert one.name() != two.name()
