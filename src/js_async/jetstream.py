"""The JetStream context: streams, publishing and account of one domain."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import twinstream.models
from js_async.api.api import Api
from js_async._coordination_calls import CoordinationCalls
from js_async.api.create_update import check_config, create_or_update_stream, create_stream, update_stream
from js_async.api.stream_lookup import name_by_subject
from js_async.runtime.concurrency import Handler
from js_async.object_store.calls import ObjectCalls
from js_async._publish_calls import PublishCalls
from js_async.client.transport import Transport
from js_async._watch_calls import WatchCalls
from js_async.api.listing import Listing
from js_async.stream import Stream
from twinstream.core.publish.atomic_batch import MAX_MESSAGES
from twinstream.core.deadline import Seconds
from twinstream.errors import BadArgument
from twinstream.core.wire.headers import HeaderValues
from twinstream.core.base.nats_py_names import hint_attributes, hint_keywords
from twinstream.core.publish.request import PublishRequest
from twinstream.core.read.range_read import PAGE_BYTES, PAGE_MESSAGES, RangeRead
from twinstream.core.wire.subjects import ApiSubjects

if TYPE_CHECKING:
    from pathlib import Path

    from js_async.exactly_once.idempotent_writer import By
    from js_async.exactly_once.conditional_writes import SubjectWrites
    from js_async.publish.atomic_batch import AtomicBatch
    from js_async.consumer import Consumer
    from js_async.consume.consume import Order
    from js_async.publish.counters import Counters
    from js_async.consume.message import Message
    from js_async.api.meta import Meta
    from js_async.exactly_once.outbox_relay import OutboxRelay
    from js_async.exactly_once.outbox_store import OutboxStore
    from js_async.exactly_once.processing import Processing
    from js_async.read.range_reader import RangeReader
    from js_async.publish.schedules import Schedules
    from twinstream.core.backup.backup import TransferProgress
    from twinstream.core.exactly_once.outbox import OutboxReport
    from twinstream.core.exactly_once.processing import ProcessReport
    from twinstream.core.consume.pull_request import Priority
    from twinstream.core.read.read_request import Via
    from twinstream.core.exactly_once.conditional_write import AlreadyThere, Stored
    from twinstream.models import AccountInfo, StreamConfig, StreamInfo

__all__ = ["JetStream"]


@hint_attributes
class JetStream(WatchCalls, CoordinationCalls, ObjectCalls, PublishCalls):
    """The JetStream API of an account or domain. Get one from `Connection.jetstream`.

    The `timeout` of a call is in seconds; its default is that of the context, also where the call
    belongs to a stream, a consumer or a message of it.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        domain: str | None = None,
        prefix: str | None = None,
        timeout: Seconds | None = None,
        required_api_level: int | None = None,
    ) -> None:
        subjects = ApiSubjects.of(domain=domain, prefix=prefix)
        super().__init__(Api(transport, subjects, timeout, required_api_level))
        self._own_writes: SubjectWrites | None = None

    @property
    def _writes(self) -> SubjectWrites:
        from js_async.exactly_once.conditional_writes import SubjectWrites

        # No `cached_property`, for the reason told at `_pipeline.UnderWay`. Two of them are as good
        # as one: they only remember what was looked up.
        if self._own_writes is None:
            self._own_writes = SubjectWrites(self._api)
        return self._own_writes

    def __repr__(self) -> str:
        return f"<JetStream {self.prefix} at {self._api.transport.server_info.server_name}>"

    @property
    def prefix(self) -> str:
        """The subject prefix of the API, `$JS.API` without a domain."""
        return self._api.subjects.prefix

    @property
    def meta(self) -> Meta:
        """The calls that change the cluster, for users of the system account."""
        from js_async.api.meta import Meta

        return Meta(self._api)

    async def account_info(self, *, timeout: Seconds | None = None) -> AccountInfo:
        """Return the account's usage and limits."""
        subject = self._api.subjects.account_info()
        answer, deadline = twinstream.models.AccountInfoResponse, self._api.deadline(timeout)
        return await self._api.call(subject, None, answer, deadline)

    # ---- streams

    @hint_keywords
    async def create_stream(
        self, config: StreamConfig, *, pedantic: bool = False, timeout: Seconds | None = None
    ) -> Stream:
        """Create a stream; an equal one that exists is fine.

        With `pedantic` the server refuses a configuration that it would have to change, instead of
        changing it (2.11). Raises `StreamExists` with the differences to one of that name,
        `InvalidConfig`, `SubjectOverlap` or another `JetStreamError`.
        """
        name = _name(config)
        deadline = self._api.deadline(timeout)
        info = await create_stream(self._api, name, config, pedantic, deadline)
        return Stream(self._api, name, info)

    async def update_stream(
        self, config: StreamConfig, *, pedantic: bool = False, timeout: Seconds | None = None
    ) -> Stream:
        """Replace the whole configuration of a stream. Raises `StreamNotFound`."""
        name = _name(config)
        deadline = self._api.deadline(timeout)
        info = await update_stream(self._api, name, config, pedantic, deadline)
        return Stream(self._api, name, info)

    async def create_or_update_stream(
        self, config: StreamConfig, *, timeout: Seconds | None = None
    ) -> Stream:
        """Update a stream, or create it where there is none.

        Other clients may create, update or delete it at the same time: the last write counts, and
        `StreamExists` is raised only when they keep doing so until the timeout.
        """
        name, deadline = _name(config), self._api.deadline(timeout)
        info = await create_or_update_stream(self._api, name, config, deadline)
        return Stream(self._api, name, info)

    async def get_stream(self, name: str, *, timeout: Seconds | None = None) -> Stream:
        """Return a stream that exists. Raises `StreamNotFound`."""
        info = await self._api.stream_info(name, self._api.deadline(timeout))
        return Stream(self._api, name, info)

    def bind_stream(self, name: str) -> Stream:
        """Return a stream without asking the server, where INFO is not permitted."""
        return Stream(self._api, name, None)

    async def stream_name_by_subject(self, subject: str, *, timeout: Seconds | None = None) -> str:
        """Return the name of the one stream that holds a subject.

        Raises `StreamNotFound` when there is none, `BadArgument` when a wildcard finds several.
        """
        return await name_by_subject(self._api, subject, self._api.deadline(timeout))

    async def delete_stream(self, name: str, *, timeout: Seconds | None = None) -> None:
        """Delete a stream with its messages and consumers. Raises `StreamNotFound`."""
        await self.bind_stream(name).delete(timeout=timeout)

    def streams(
        self, subject: str | None = None, *, timeout: Seconds | None = None
    ) -> Listing[StreamInfo]:
        """Iterate over the infos of all streams, or of those that hold `subject`.

        Its `missing` and `offline` tell of those that have no info now. `timeout` is for each page.
        """
        from js_async.api import pager as _paging

        return _paging.StreamInfos(self._api, subject, timeout)

    def stream_names(
        self, subject: str | None = None, *, timeout: Seconds | None = None
    ) -> Listing[str]:
        """Iterate over the names of all streams, or of those that hold `subject`.

        `timeout` is for each page.
        """
        from js_async.api import pager as _paging

        return _paging.StreamNames(self._api, subject, timeout)

    async def restore(
        self,
        path: str | Path,
        *,
        config: StreamConfig | None = None,
        chunk_size: int = 128 * 1024,
        timeout: Seconds = 3600.0,
        on_progress: Callable[[TransferProgress], None] | None = None,
    ) -> Stream:
        """Bring back the stream whose backup is in the folder `path`, under its own name.

        The archive is checked before anything is sent. `config` replaces the settings of the
        backup, other replicas or placement say. `timeout` in seconds is how long the server may
        take to put the stream together when it has everything.

        Raises `StreamExists`, `BadArgument` for a backup that is damaged, `ConnectionLost` when
        the link breaks meanwhile, another `JetStreamError`.
        """
        from js_async.backup.restore import restore

        info = await restore(self._api, path, config, chunk_size, timeout, on_progress)
        return Stream(self._api, info.config.name or "", info)

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
        ahead: bool = False,
        bulk: bool = False,
    ) -> RangeReader:
        """Return a reader of the sequences from `start` up to, not including, `end`.

        It reads in pages of raw parts, complete even where replicas lag. `direct` reads by direct
        get, which needs `allow_direct` on the stream (server 2.11); otherwise an ephemeral consumer
        reads, which work-queue streams refuse. `timeout` in seconds is how long the read may go
        without progress. Nothing is sent before the first page is asked for.

        With `ahead` a page is asked for before the last one is handed over. With `bulk`, which
        needs pyarrow, pages come as Arrow arrays (`ArrowPage.of`) in a fraction of the time; what
        else arrives on the connection then waits for the end of a page.
        """
        from js_async.read.stream_range import open_range

        read = RangeRead(start, end, page_messages=page_messages, page_bytes=page_bytes)
        via: Via = "direct" if direct else "consumer"
        return open_range(
            self._api,
            stream,
            read,
            via,
            filter_subjects,
            timeout=timeout,
            ahead=ahead,
            bulk=bulk,
        )

    # ---- publishing

    def atomic_batch(
        self,
        *,
        id: str | None = None,
        max_messages: int = MAX_MESSAGES,
        timeout: Seconds | None = None,
    ) -> AtomicBatch:
        """Return a batch of messages that are stored all together or not at all (server 2.12).

        Use it in a `with` block. It gets an id of its own unless one is given; `max_messages` is
        1000, the server's limit, unless the server is configured otherwise; `timeout` in seconds
        is for each answer of the server.
        """
        from js_async.publish.atomic_batch import AtomicBatch

        return AtomicBatch(self._api, id, max_messages, timeout)

    # ---- writing by what a subject holds

    async def insert(
        self,
        subject: str,
        data: bytes = b"",
        *,
        headers: HeaderValues | None = None,
        msg_id: str | None = None,
        ttl: Seconds | None = None,
        stream: str | None = None,
        lasting: Seconds | None = None,
        check: bool = True,
        timeout: Seconds | None = None,
    ) -> Stored | AlreadyThere:
        """Store a message unless its subject holds one, whenever that was stored.

        Lost answers are made good by writing again and looking at what is there: `Stored` means
        that this message is in the stream, once. With a `msg_id` of the program's own that holds
        over restarts of the program too.

        Raises `NotPromised` when the stream's settings could let the subject's message go within
        `lasting` seconds (None: ever; or within `ttl`), unless `check` is off; `OutcomeUnknown`
        when `timeout` seconds pass after a lost answer; and what `publish` raises. Give `stream`
        where asking for the streams of a subject is not permitted.
        """
        request = PublishRequest(
            subject=subject,
            data=data,
            headers=headers,
            msg_id=msg_id,
            expected_stream=stream,
            ttl=ttl,
        )
        return await self._writes.insert(request, check=check, lasting=lasting, timeout=timeout)

    async def update(
        self,
        subject: str,
        data: bytes,
        expected_seq: int,
        *,
        headers: HeaderValues | None = None,
        msg_id: str | None = None,
        ttl: Seconds | None = None,
        stream: str | None = None,
        check: bool = True,
        timeout: Seconds | None = None,
    ) -> Stored:
        """Replace the last message of a subject if that is still the one at `expected_seq`.

        Raises `WrongLastSequence` when another writer was faster, `OutcomeUnknown` when that
        cannot be told after a lost answer, `NotPromised` when the stream's settings refuse a
        second message of a subject, and what `publish` raises. The rest is as in `insert`.
        """
        request = PublishRequest(
            subject=subject,
            data=data,
            headers=headers,
            msg_id=msg_id,
            expected_stream=stream,
            ttl=ttl,
        )
        return await self._writes.update(request, expected_seq, check=check, timeout=timeout)

    async def upsert(
        self,
        subject: str,
        data: bytes = b"",
        *,
        headers: HeaderValues | None = None,
        msg_id: str | None = None,
        ttl: Seconds | None = None,
        stream: str | None = None,
        check: bool = True,
        timeout: Seconds | None = None,
    ) -> Stored:
        """Store a message in the place of whatever its subject holds.

        A repeat after a lost answer never overwrites what another writer stored in between.

        Raises `NotPromised` when the stream's settings keep older messages of a subject or refuse
        new ones, `OutcomeUnknown`, and what `publish` raises. The rest is as in `insert`.
        """
        request = PublishRequest(
            subject=subject,
            data=data,
            headers=headers,
            msg_id=msg_id,
            expected_stream=stream,
            ttl=ttl,
        )
        return await self._writes.upsert(request, check=check, timeout=timeout)

    async def counters(self, stream: str) -> Counters:
        """Return the counters of a stream with `allow_msg_counter` (server 2.12).

        Raises `BadArgument` for another stream, `StreamNotFound`, `Unsupported`.
        """
        from js_async.publish.counters import Counters

        return await Counters._open(self._api, stream)

    def outbox(
        self,
        store: OutboxStore,
        *,
        stream: str,
        by: By,
        poll: Seconds = 0.5,
        timeout: Seconds = 5.0,
        on_report: Callable[[OutboxReport], None] | None = None,
    ) -> OutboxRelay:
        """Return the relay that stores the events of an outbox in a stream, each once.

        `by="subject"`: each event has a subject of its own, and the stream refuses a second
        message of it for ever. `by="id"`: the stream's duplicate window refuses repeats, and
        beyond the window what was stored is looked up. The outbox is looked into every `poll`
        seconds; an attempt may take `timeout` seconds.

        The relay raises `NotPromised` where the stream's settings do not give that.
        """
        from js_async.exactly_once.outbox_relay import OutboxRelay

        return OutboxRelay(
            self,
            self._writes.streams,
            store,
            stream,
            by,
            poll=poll,
            timeout=timeout,
            on_report=on_report,
        )

    def process(
        self,
        consumer: Consumer,
        handler: Handler[Message],
        *,
        into: str,
        by: By,
        name: str | None = None,
        concurrency: int = 1,
        order: Order = "none",
        priority: Priority | None = None,
        stop_after: int | None = None,
        retry: Seconds | Sequence[Seconds] = (1, 5, 30),
        timeout: Seconds = 5.0,
        on_report: Callable[[ProcessReport], None] | None = None,
    ) -> Processing:
        """Call a handler for each message, and store what it returns in the stream `into`, once.

        The handler returns None, a `PublishRequest` or several. Each gets an identity made of
        `name` (the consumer's), the input's stream and sequence, and its place; `{id}` in its
        subject becomes that. When all are stored the input is acknowledged, and confirmed. After an
        error out of the handler the message comes again in `retry` seconds, by delivery; after
        `Reject` it does not. `by` is as in `outbox`; an attempt may take `timeout` seconds;
        `concurrency`, `order`, `priority` and `stop_after` are as in `Consumer.consume`.

        Starting raises `NotPromised` where the settings let doubles or losses through.
        """
        from js_async.exactly_once.processing import Processing

        return Processing(
            self,
            self._api,
            self._writes.streams,
            consumer,
            handler,
            into,
            by,
            name=name,
            concurrency=concurrency,
            order=order,
            priority=priority,
            stop_after=stop_after,
            retry=retry,
            timeout=timeout,
            on_report=on_report,
        )

    async def schedules(self, stream: str) -> Schedules:
        """Return the schedules of a stream with `allow_msg_schedules` (server 2.12).

        Raises `BadArgument` for another stream, `StreamNotFound`, `Unsupported`.
        """
        from js_async.publish.schedules import Schedules

        return await Schedules._open(self._api, stream)


def _name(config: StreamConfig) -> str:
    check_config(config, twinstream.models.StreamConfig)
    if not config.name:
        raise BadArgument("the stream configuration has no name")
    return config.name
