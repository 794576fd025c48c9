"""The limited time for which a client waits for a consumer that may be deleted."""

from __future__ import annotations

from twinstream.core.consume.absence_timer import BOUND, AbsenceTimer


def test_doubt_lasts_for_a_while_and_no_longer() -> None:
    doubt = AbsenceTimer()
    assert not doubt.is_known
    assert doubt.grow(10.0) is None
    assert doubt.is_known
    assert doubt.grow(10.0 + BOUND - 0.1) is None
    assert "CONSUMER.INFO" in str(doubt.grow(10.0 + BOUND))


def test_an_answer_ends_the_doubt() -> None:
    doubt = AbsenceTimer()
    doubt.grow(10.0)
    doubt.clear()
    assert not doubt.is_known
    assert doubt.grow(10.0 + BOUND) is None
