# Generated from src/js_async/jetstream.py by codegen/twin.py. Edit that file instead.
"""The JetStream context: streams, publishing and account of one domain."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from js_core.deadline import Seconds
from js_core.errors import BadArgument, StreamNotFound
from js_core.headers import HeaderValues
from js_core.publish import PublishFailure, PublishRequest
from js_core.range_read import PAGE_BYTES, PAGE_MESSAGES, RangeRead
from js_core.subjects import ApiSubjects
from js_models import (
    AccountInfo,
    AccountInfoResponse,
    ConsumerConfig,
    PubAck,
    StreamConfig,
    StreamCreateResponse,
    StreamDeleteResponse,
    StreamInfo,
    StreamInfoResponse,
    StreamUpdateResponse,
)
from js_sync import _paging
from js_sync._api import Api
from js_sync._io import Stream as Generated
from js_sync._page_sources import ConsumerPages, DirectPages
from js_sync._transport import Transport
from js_sync.consumer import Consumer
from js_sync.publisher import Publisher
from js_sync.range_reader import RangeReader
from js_sync.stream import Stream

__all__ = ["JetStream"]


class JetStream:
    """The JetStream API of an account or domain. Get one from `Connection.jetstream`."""

    def __init__(
        self,
        transport: Transport,
        *,
        domain: str | None = None,
        prefix: str | None = None,
        timeout: Seconds | None = None,
    ) -> None:
        self._api: Final = Api(transport, ApiSubjects.of(domain=domain, prefix=prefix), timeout)
        self._publisher: Final = Publisher(self._api)

    @property
    def prefix(self) -> str:
        """The subject prefix of the API, `$JS.API` without a domain."""
        return self._api.subjects.prefix

    def account_info(self) -> AccountInfo:
        """Return the account's usage and limits."""
        subject = self._api.subjects.account_info()
        return self._api.call(subject, None, AccountInfoResponse)

    # ---- streams

    def create_stream(self, config: StreamConfig) -> Stream:
        """Create a stream; an equal one that exists is fine.

        Raises `StreamExists` for one with another configuration, `InvalidConfig`,
        `SubjectOverlap` or another `JetStreamError`.
        """
        subject = self._api.subjects.stream("CREATE", _name(config))
        return self._stream(self._api.call(subject, config, StreamCreateResponse))

    def update_stream(self, config: StreamConfig) -> Stream:
        """Replace the whole configuration of a stream. Raises `StreamNotFound`."""
        subject = self._api.subjects.stream("UPDATE", _name(config))
        return self._stream(self._api.call(subject, config, StreamUpdateResponse))

    def create_or_update_stream(self, config: StreamConfig) -> Stream:
        """Update a stream, or create it where there is none."""
        try:
            return self.update_stream(config)
        except StreamNotFound:
            return self.create_stream(config)

    def get_stream(self, name: str) -> Stream:
        """Return a stream that exists. Raises `StreamNotFound`."""
        subject = self._api.subjects.stream("INFO", name)
        return self._stream(self._api.call(subject, None, StreamInfoResponse))

    def delete_stream(self, name: str) -> None:
        """Delete a stream with its messages and consumers. Raises `StreamNotFound`."""
        subject = self._api.subjects.stream("DELETE", name)
        self._api.call(subject, None, StreamDeleteResponse)

    def streams(self, subject: str | None = None) -> Generated[StreamInfo]:
        """Iterate over the infos of all streams, or of those that hold `subject`; in pages."""
        return _paging.streams(self._api, subject)

    def stream_names(self, subject: str | None = None) -> Generated[str]:
        """Iterate over the names of all streams, or of those that hold `subject`; in pages."""
        return _paging.stream_names(self._api, subject)

    def _stream(self, info: StreamInfo) -> Stream:
        return Stream(self._api, info)

    # ---- consumers, without asking for the stream first

    def create_consumer(self, stream: str, config: ConsumerConfig) -> Consumer:
        """Create a consumer; see `Stream.create_consumer`."""
        return Consumer.create(self._api, stream, config, "create")

    def create_or_update_consumer(self, stream: str, config: ConsumerConfig) -> Consumer:
        """Create a consumer or change the one of that name."""
        return Consumer.create(self._api, stream, config, "")

    def update_consumer(self, stream: str, config: ConsumerConfig) -> Consumer:
        """Change a consumer that exists. Raises `ConsumerNotFound`."""
        return Consumer.create(self._api, stream, config, "update")

    def get_consumer(self, stream: str, name: str) -> Consumer:
        """Return a consumer that exists. Raises `ConsumerNotFound`."""
        return Consumer.get(self._api, stream, name)

    def bind_consumer(self, stream: str, name: str) -> Consumer:
        """Return a consumer without asking the server, where INFO is not permitted."""
        return Consumer(self._api, stream, name, None)

    def delete_consumer(self, stream: str, name: str) -> None:
        """Delete a consumer. Raises `ConsumerNotFound`."""
        Consumer(self._api, stream, name, None).delete()

    # ---- ranges

    def range_reader(
        self,
        stream: str,
        start: int,
        end: int,
        *,
        filter_subjects: Sequence[str] = (),
        direct: bool = True,
        timeout: float = 120.0,
        page_messages: int = PAGE_MESSAGES,
        page_bytes: int = PAGE_BYTES,
    ) -> RangeReader:
        """Return a reader of the sequences from `start` up to, not including, `end`.

        It reads in pages of raw parts, complete even where replicas lag. `direct` reads by direct
        get, which needs `allow_direct` on the stream (server 2.11); otherwise an ephemeral consumer
        reads, which work-queue streams refuse. `timeout` in seconds is how long the read may go
        without progress. Nothing is sent before the first page is asked for.
        """
        read = RangeRead(start, end, page_messages=page_messages, page_bytes=page_bytes)
        make = DirectPages if direct else ConsumerPages
        return RangeReader(
            self._api,
            stream,
            read,
            make(self._api, stream, filter_subjects),
            # Direct get filters by one subject or not at all; the leader is asked for the same.
            filters=() if direct and len(filter_subjects) > 1 else filter_subjects,
            timeout=timeout,
        )

    # ---- publishing

    def publish(
        self,
        subject: str,
        data: bytes = b"",
        *,
        headers: HeaderValues | None = None,
        msg_id: str | None = None,
        expected_stream: str | None = None,
        expected_last_seq: int | None = None,
        expected_last_msg_id: str | None = None,
        expected_last_subject_seq: int | None = None,
        ttl: Seconds | None = None,
        timeout: Seconds | None = None,
    ) -> PubAck:
        """Store a message and return the stream's acknowledgement.

        `msg_id` makes a repeat within the stream's duplicate window harmless: its acknowledgement
        has `duplicate` set and the first one's sequence. The `expected_…` arguments are
        conditions under which alone the message is stored; `ttl` is its life in whole seconds
        (server 2.11). `timeout` in seconds spans everything.

        Raises `NoResponders` when no stream holds the subject, `WrongLastSequence`,
        `WrongLastMessageId`, `WrongStream`, `StoreRefused`, `MessageExists`, another
        `JetStreamError`, `BadArgument`, or `RequestTimeout` (whether it was stored is unknown).
        """
        request = PublishRequest(
            subject=subject,
            data=data,
            headers=headers,
            msg_id=msg_id,
            expected_stream=expected_stream,
            expected_last_seq=expected_last_seq,
            expected_last_msg_id=expected_last_msg_id,
            expected_last_subject_seq=expected_last_subject_seq,
            ttl=ttl,
        )
        return self._publisher.publish(request, timeout)

    def publish_many(
        self,
        requests: Iterable[PublishRequest],
        *,
        window: int = 4000,
        timeout: Seconds | None = None,
    ) -> Generated[PubAck | PublishFailure]:
        """Publish without waiting for each acknowledgement; iterate over the outcomes in order.

        At most `window` messages are under way; `timeout` in seconds is how long the oldest of
        them may take. An outcome is the acknowledgement or a `PublishFailure` with the error.
        """
        if window < 1:
            raise BadArgument(f"window must be from 1 up, got {window}")
        return self._publisher.publish_many(requests, window, timeout)


def _name(config: StreamConfig) -> str:
    if not config.name:
        raise BadArgument("the stream configuration has no name")
    return config.name
