"""The order in which the addresses of a name are tried."""

from __future__ import annotations

from twinstream.core.connect.addresses import spread

FOUND = [(6, "a"), (6, "b"), (4, "c"), (4, "d"), (4, "e")]


def test_without_shuffling_the_order_is_the_resolvers() -> None:
    assert spread(FOUND, None) == FOUND
    assert spread([], None) == []


def test_families_take_turns_and_each_is_shuffled() -> None:
    found = spread(FOUND, lambda group: group.reverse())
    assert found == [(6, "b"), (4, "e"), (6, "a"), (4, "d"), (4, "c")]
    assert spread([], list.reverse) == []
    assert FOUND[0] == (6, "a")
