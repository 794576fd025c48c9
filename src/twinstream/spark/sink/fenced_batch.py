"""Publish one atomic batch: a ledger entry and the rows that it records."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from attrs import evolve

from twinstream.core.publish.request import publish_headers
from twinstream.core.wire.response import read_answer
from twinstream.errors import InvalidResponse
from twinstream.records.headers import Headers
from twinstream.records.publish_request import PublishRequest
from twinstream.spark.sink.ledger_entry import Entry
from twinstream.spark.sink.rows import OutMessage

if TYPE_CHECKING:
    from js_sync import Connection

__all__ = ["FencedBatch"]


class FencedBatch:
    """A ledger entry and its rows, which the server stores together or not at all.

    `before` is the sequence of the ledger's previous entry, or 0 without one. The server refuses
    the batch if the ledger has a newer entry.
    """

    def __init__(
        self, stream: str, subject: str, entry: Entry, before: int, rows: Sequence[OutMessage]
    ) -> None:
        self._stream: Final = stream
        self._subject: Final = subject
        self._entry: Final = entry
        self._before: Final = before
        self._rows: Final = rows

    def send(self, nc: Connection, timeout: float) -> Entry:
        """Send the batch once, and return the entry with its sequence.

        Wait for the responses to the first and to the last message, for up to `timeout` seconds
        each. Raises `WrongLastSequence` if the sequence of the ledger's newest entry is not
        `before`.
        """
        batch, rows = uuid.uuid4().hex, self._rows
        fence = PublishRequest(
            subject=self._subject,
            data=self._entry.to_json(),
            headers=_place(batch, 1),
            expected_stream=self._stream,
            expected_last_subject_seq=self._before,
        )
        _send(nc, fence, timeout)
        for number, row in enumerate(rows[:-1], 2):
            request = _request(row, _place(batch, number))
            nc.publish(row.subject, row.data, headers=_header_map(request))
        commit = {**_place(batch, len(rows) + 1), "Nats-Batch-Commit": "1"}
        answer = _send(nc, _request(rows[-1], commit), timeout)
        # The acknowledgement has the sequence of the last message. The entry is the first message.
        last: object = answer.get("seq")
        if type(last) is not int:
            raise InvalidResponse(
                f"{rows[-1].subject}: the batch was not acknowledged: {answer!r:.80}"
            )
        seq = last - len(rows)
        return evolve(self._entry, seq=seq)


def _send(nc: Connection, request: PublishRequest, timeout: float) -> dict[str, Any]:
    headers = _header_map(request)
    answer = nc.request(request.subject, request.data, headers=headers, timeout=timeout)
    # The response is empty for a message that the server stages until the batch is committed.
    return read_answer(answer.data, request.subject) if answer.data else {}


def _place(batch: str, number: int) -> dict[str, str]:
    return {"Nats-Batch-Id": batch, "Nats-Batch-Sequence": str(number)}


def _request(row: OutMessage, place: Mapping[str, str]) -> PublishRequest:
    headers: dict[str, Any] = {**(row.headers or {}), **place}
    return PublishRequest(subject=row.subject, data=row.data, headers=headers, ttl=row.ttl)


def _header_map(request: PublishRequest) -> Headers:
    return Headers.parse(publish_headers(request))
