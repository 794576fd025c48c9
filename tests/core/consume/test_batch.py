"""Batches, the results of fetches."""

from __future__ import annotations

import pytest

from twinstream.core.consume.batch import Batch, BatchEnd


def test_a_batch_is_a_sequence() -> None:
    batch = Batch(["a", "b", "c"], BatchEnd.EXPIRED, "408 Request Timeout")
    assert (len(batch), batch[0], batch[-1], batch[1:]) == (3, "a", "c", ["b", "c"])
    assert list(batch) == ["a", "b", "c"]
    assert "b" in batch
    assert not Batch([], BatchEnd.NO_MESSAGES)
    assert repr(batch) == "<Batch of 3: expired>"
    with pytest.raises(IndexError):
        batch[3]
