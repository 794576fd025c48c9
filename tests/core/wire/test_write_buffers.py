"""Buffers for bytes to send: the bytes are unchanged, and long pieces are not copied."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from twinstream.core.wire.write_buffers import LONG, behind, to_write

SIZES = st.lists(st.sampled_from((0, 1, 40, LONG, LONG + 1, 2 * LONG)), max_size=8)


def pieces_of(sizes: list[int]) -> list[bytes]:
    return [bytes([at]) * size for at, size in enumerate(sizes)]


@given(SIZES)
def test_short_neighbours_are_joined_and_long_pieces_stay_where_they_are(sizes: list[int]) -> None:
    pieces = pieces_of(sizes)
    found = to_write(pieces, sum(sizes))
    assert b"".join(found) == b"".join(pieces)
    if sum(sizes) <= LONG:
        assert len(found) == 1
        return
    long = [piece for piece in pieces if len(piece) > LONG]
    assert [each.obj for each in found if len(each) > LONG and each.obj in long] == long
    short = [len(each.obj) <= LONG for each in map(memoryview, pieces)]
    runs = sum(now and not before for before, now in zip([False, *short], short, strict=False))
    assert len(found) == len(long) + runs


@given(SIZES, st.data())
def test_what_is_left_follows_what_was_sent(sizes: list[int], data: st.DataObject) -> None:
    whole = b"".join(pieces_of(sizes))
    count = data.draw(st.integers(0, len(whole)))
    left = behind(to_write(pieces_of(sizes), len(whole)), count)
    assert b"".join(left) == whole[count:]


def test_a_wrong_size_costs_a_copy_and_loses_nothing() -> None:
    pieces = pieces_of([3, 2 * LONG, 5])
    assert b"".join(to_write(pieces, 0)) == b"".join(pieces)
