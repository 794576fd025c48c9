"""A page of stored messages as Arrow arrays. pyarrow is imported on first use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from attrs import frozen

from twinstream.errors import InvalidResponse

if TYPE_CHECKING:
    import pyarrow as pa

    from twinstream.core.read.page import StoredPage
    from twinstream.core.read.range_read import RangeRead

__all__ = ["ArrowPage"]

_MOST_SIGNED: Final = 2**63 - 1


@frozen
class ArrowPage:
    """Messages in the order of their sequences, as arrays of one length.

    `seqs` are signed 64-bit integers. In a page with a sequence from 2**63 up they are unsigned,
    because the server counts to 2**64 - 1. `times` are nanoseconds in UTC. `subjects`, `headers`
    and `payloads` are bytes as in `StoredPage`. `pending` is the number of messages after the last
    one, as the server reported it in a response that was read in bulk; else 0.
    """

    seqs: pa.Array
    subjects: pa.Array
    times: pa.Array
    headers: pa.Array
    payloads: pa.Array
    pending: int = 0

    def __len__(self) -> int:
        return len(self.seqs)

    @classmethod
    def of(cls, page: StoredPage) -> ArrowPage:
        """Return a `StoredPage` as arrays: the messages of its blocks, then those of its lists."""
        import pyarrow as pa

        pages = list(page.blocks)
        if page.seqs or not pages:
            pages.append(_listed(page))
        if len(pages) == 1:
            return pages[0]
        return cls(
            _joined([each.seqs for each in pages]),
            pa.concat_arrays([each.subjects for each in pages]),
            pa.concat_arrays([each.times for each in pages]),
            pa.concat_arrays([each.headers for each in pages]),
            pa.concat_arrays([each.payloads for each in pages]),
        )

    def accepted(self, read: RangeRead) -> ArrowPage:
        """Report the messages to `read` and return those that belong to its range."""
        if read.accept_run(self.seqs[0].as_py(), self.seqs[-1].as_py(), len(self)):
            return self
        import pyarrow as pa

        mask = pa.array([read.accept(seq) for seq in self.seqs.to_pylist()], pa.bool_())
        return self.where(mask)

    def where(self, mask: pa.Array) -> ArrowPage:
        """Return the messages for which `mask` is true."""
        return ArrowPage(
            self.seqs.filter(mask),
            self.subjects.filter(mask),
            self.times.filter(mask),
            self.headers.filter(mask),
            self.payloads.filter(mask),
            self.pending,
        )


def _listed(page: StoredPage) -> ArrowPage:
    import pyarrow as pa

    signed = not page.seqs or page.seqs[-1] <= _MOST_SIGNED
    return ArrowPage(
        pa.array(page.seqs, pa.int64() if signed else pa.uint64()),
        pa.array(page.subjects, pa.binary()),
        _times(page.times),
        pa.array(page.headers, pa.binary()),
        pa.array(page.payloads, pa.binary()),
    )


def _joined(seqs: list[pa.Array]) -> pa.Array:
    import pyarrow as pa

    if all(each.type == seqs[0].type for each in seqs):
        return pa.concat_arrays(seqs)
    return pa.concat_arrays([each.cast(pa.uint64()) for each in seqs])


def _times(times: Sequence[bytes | int]) -> pa.Array:
    """Return the times of messages, in nanoseconds or as text, as a column of timestamps."""
    import pyarrow as pa

    moment = pa.timestamp("ns", "UTC")
    # A page contains one kind: integers if a consumer delivered it, else text.
    if times and isinstance(times[0], int):
        return pa.array(times, pa.int64()).cast(moment)
    try:
        return pa.array(times, pa.binary()).cast(pa.string()).cast(moment)
    except pa.ArrowInvalid as error:
        raise InvalidResponse(f"a stored message has an invalid time: {error}") from error
