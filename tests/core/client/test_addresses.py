"""The order in which the addresses of a host name are tried."""

from __future__ import annotations

import pytest

from twinstream.core.client.addresses import resolvable, spread

FOUND = [(6, "a"), (6, "b"), (4, "c"), (4, "d"), (4, "e")]


def test_without_shuffling_the_order_is_the_resolvers() -> None:
    assert spread(FOUND, None) == FOUND
    assert spread([], None) == []


def test_families_take_turns_and_each_is_shuffled() -> None:
    found = spread(FOUND, lambda group: group.reverse())
    assert found == [(6, "b"), (4, "e"), (6, "a"), (4, "d"), (4, "c")]
    assert spread([], list.reverse) == []
    assert FOUND[0] == (6, "a")


@pytest.mark.parametrize(
    ("host", "given"),
    [("127.0.0.1", b"127.0.0.1"), ("localhost", "localhost"), ("::1", "::1"), ("é1.2", "é1.2")],
)
def test_numbers_need_no_codec_and_names_stay_text(host: str, given: str | bytes) -> None:
    assert resolvable(host) == given
