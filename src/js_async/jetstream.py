"""The JetStream context: streams, publishing and account of one domain."""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final

import twinstream.models
from js_async.api.api import Api
from js_async.api.create_update import (
    check_config,
    create_or_update_stream,
    create_stream,
    update_stream,
)
from js_async.api.stream_lookup import name_by_subject
from js_async.client.transport import Transport
from js_async.consumer import Consumer
from js_async.publish.limits import limits_of
from js_async.publish.publish import publish
from js_async.runtime.concurrency import Handler
from js_async.runtime.opening import Opening, opening
from js_async.stream import Stream
from twinstream.core.base.nats_py_names import hint_attributes, hint_keywords
from twinstream.core.deadline import Seconds, finite_seconds
from twinstream.core.publish.limits import BATCH_MESSAGES, INGEST_WINDOW, WINDOW, WINDOW_BYTES
from twinstream.core.publish.request import Publishable, PublishRequest, Rollup, request_of
from twinstream.core.publish.retry import retry_policy
from twinstream.core.publish.ttl import Ttl
from twinstream.core.read.page_limits import PAGE_BYTES, PAGE_MESSAGES
from twinstream.core.wire.headers import HeaderValues
from twinstream.core.wire.subjects import ApiSubjects, check_name
from twinstream.core.workers.retry import RETRY, Retry
from twinstream.errors import BadArgument
from twinstream.models import PubAck

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from pathlib import Path

    from js_async.api.listing import Listing
    from js_async.api.meta import Meta
    from js_async.consume.advisories import Events
    from js_async.consume.consume import Order
    from js_async.consume.message import Message
    from js_async.consume.ordered import OrderedMessages
    from js_async.coordination.coordination import Coordination
    from js_async.exactly_once.conditional_writes import SubjectWrites
    from js_async.exactly_once.idempotent_writer import By
    from js_async.exactly_once.outbox_relay import OutboxRelay
    from js_async.exactly_once.outbox_store import OutboxStore
    from js_async.exactly_once.processing import Processing
    from js_async.features.counters import Counters
    from js_async.features.schedules import Schedules
    from js_async.publish.atomic_batch import AtomicBatch
    from js_async.publish.fast_ingest import FastIngest
    from js_async.publish.publish_many import PublishMany
    from js_async.publish.publisher import Publisher
    from js_async.read.range_reader import RangeReader
    from js_async.workers.dead_letters import DeadLetters
    from js_async.workers.settings import KeyOf
    from js_async.workers.worker import Worker
    from twinstream.core.api.advisories import EventKind
    from twinstream.core.api.health import Health, Thresholds
    from twinstream.core.backup.backup import TransferProgress
    from twinstream.core.connect.connection_events import MessagesDropped
    from twinstream.core.consume.pull_request import Priority
    from twinstream.core.consume.reports import PullReport, WorkReport
    from twinstream.core.exactly_once.conditional_write import AlreadyThere, Stored
    from twinstream.core.exactly_once.outbox import OutboxReport
    from twinstream.core.exactly_once.processing import ProcessReport
    from twinstream.core.publish.fast_ingest import Gaps
    from twinstream.core.read.read_request import Via
    from twinstream.models import (
        AccountInfo,
        ConsumerConfig,
        DeliverPolicy,
        DeliverPolicyWord,
        ReplayPolicy,
        StreamConfig,
        StreamInfo,
    )

__all__ = ["JetStream"]


@hint_attributes
class JetStream:
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
        self._api: Final = Api(transport, subjects, timeout, required_api_level)
        self._own_writes: SubjectWrites | None = None

    @property
    def _writes(self) -> SubjectWrites:
        from js_async.exactly_once.conditional_writes import SubjectWrites

        # No `cached_property`: `publish.inflight.UnderWay` tells why. Two of them are as good
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
        from js_async.api import pager

        return pager.StreamInfos(self._api, subject, timeout)

    def stream_names(
        self, subject: str | None = None, *, timeout: Seconds | None = None
    ) -> Listing[str]:
        """Iterate over the names of all streams, or of those that hold `subject`.

        `timeout` is for each page.
        """
        from js_async.api import pager

        return pager.StreamNames(self._api, subject, timeout)

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

    # ---- consumers

    async def create_consumer(
        self,
        stream: str,
        config: ConsumerConfig,
        *,
        pedantic: bool = False,
        timeout: Seconds | None = None,
    ) -> Consumer:
        """Create a consumer; see `Stream.create_consumer`."""
        return await Consumer.create(
            self._api, stream, config, "create", pedantic=pedantic, timeout=timeout
        )

    async def create_or_update_consumer(
        self, stream: str, config: ConsumerConfig, *, timeout: Seconds | None = None
    ) -> Consumer:
        """Create a consumer or change the one of that name."""
        return await Consumer.create(self._api, stream, config, "", timeout=timeout)

    async def update_consumer(
        self,
        stream: str,
        config: ConsumerConfig,
        *,
        pedantic: bool = False,
        timeout: Seconds | None = None,
    ) -> Consumer:
        """Change a consumer that exists. Raises `ConsumerNotFound`."""
        return await Consumer.create(
            self._api, stream, config, "update", pedantic=pedantic, timeout=timeout
        )

    async def get_consumer(
        self, stream: str, name: str, *, timeout: Seconds | None = None
    ) -> Consumer:
        """Return a consumer that exists. Raises `ConsumerNotFound`."""
        return await Consumer.get(self._api, stream, name, timeout)

    def bind_consumer(self, stream: str, name: str) -> Consumer:
        """Return a consumer without asking the server, where INFO is not permitted."""
        return Consumer(self._api, stream, name, None)

    async def delete_consumer(
        self, stream: str, name: str, *, timeout: Seconds | None = None
    ) -> None:
        """Delete a consumer. Raises `ConsumerNotFound`."""
        await Consumer(self._api, stream, name, None).delete(timeout=timeout)

    def ordered(
        self,
        stream: str,
        *,
        subjects: str | Sequence[str] | None = None,
        deliver_policy: DeliverPolicy | DeliverPolicyWord | None = None,
        start_seq: int | None = None,
        start_time: datetime | None = None,
        headers_only: bool = False,
        replay_policy: ReplayPolicy | str | None = None,
        stop_after: int | None = None,
        max_messages: int | None = None,
        max_bytes: int | None = None,
        expires: Seconds = 30.0,
        heartbeat: Seconds | None = 5.0,
        inactive_threshold: Seconds | None = None,
        metadata: Mapping[str, str] | None = None,
        name_prefix: str | None = None,
        max_reset_attempts: int | None = None,
        on_report: Callable[[PullReport], None] | None = None,
    ) -> OrderedMessages:
        """Return a read of a stream in order, without asking for it first; see `Stream.ordered`."""
        return Stream(self._api, stream, None).ordered(
            subjects=subjects,
            deliver_policy=deliver_policy,
            start_seq=start_seq,
            start_time=start_time,
            headers_only=headers_only,
            replay_policy=replay_policy,
            stop_after=stop_after,
            max_messages=max_messages,
            max_bytes=max_bytes,
            expires=expires,
            heartbeat=heartbeat,
            inactive_threshold=inactive_threshold,
            metadata=metadata,
            name_prefix=name_prefix,
            max_reset_attempts=max_reset_attempts,
            on_report=on_report,
        )

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
        from twinstream.core.read.range_read import RangeRead

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

    @hint_keywords
    async def publish(
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
        expected_last_subject_seq_subject: str | None = None,
        rollup: Rollup | None = None,
        ttl: Ttl | None = None,
        timeout: Seconds | None = None,
        retries: int | None = None,
        retry_wait: Seconds = 0.25,
    ) -> PubAck:
        """Store a message and return the stream's acknowledgement.

        `msg_id` makes a repeat within the stream's duplicate window harmless: its acknowledgement
        has `duplicate` set and the first one's sequence. An id that is empty, or begins or ends
        with blanks, is refused: the server would take it for another one. The `expected_…`
        arguments are conditions under which alone the message is stored; the last sequence of the
        subject may be that of another one, or of a filter (`expected_last_subject_seq_subject`).
        `rollup` removes what the subject (`"sub"`) or the stream (`"all"`) held before; `ttl` is
        the message's life in whole seconds, or `"never"` to keep it beyond the stream's `max_age`;
        a stream with `subject_delete_marker_ttl` raises a shorter one to that (all 2.11).

        When nobody takes the message it is sent again up to `retries` times, `retry_wait` seconds
        apart; by default twice, and until the timeout where its stream has no leader now. After a
        time-out or a broken link that happens only where a `msg_id` or an expectation keeps it
        from being stored twice. `timeout` in seconds spans everything.

        Raises `NoStream`, `NoLeader`, `JetStreamOff` or another `NoResponders` when no stream took
        it; `WrongLastSequence`, `WrongLastMessageId`, `WrongStream`, `StoreRefused`,
        `MessageExists` or another `JetStreamError`; `PermissionDenied`, `BadArgument`;
        `RequestTimeout`, `ConnectionLost`, `ConnectionClosed`, `BadAnswer` or `OutcomeUnknown`
        when it may be stored and may be not.
        """
        request = request_of(
            (
                subject,
                data,
                headers,
                msg_id,
                expected_stream,
                expected_last_seq,
                expected_last_msg_id,
                expected_last_subject_seq,
                expected_last_subject_seq_subject,
                rollup,
                ttl,
            )
        )
        return await publish(self._api, request, retry_policy(retries, retry_wait), timeout)

    def publish_many(
        self,
        requests: Iterable[Publishable] | AsyncIterable[Publishable],
        *,
        window: int = WINDOW,
        window_bytes: int = WINDOW_BYTES,
        timeout: Seconds | None = None,
        retries: int | None = None,
        retry_wait: Seconds = 0.25,
        raise_failures: bool = True,
    ) -> PublishMany:
        """Publish without waiting for each acknowledgement; iterate over the outcomes in order.

        A message is a `PublishRequest`, or a pair of subject and data where that is all there is.
        At most `window` messages and `window_bytes` bytes are under way. `timeout` in seconds is
        for each message. An outcome is the acknowledgement or a `PublishFailure` with the error.
        Messages are sent again as by `publish`, which may change their order.

        Failures whose `error` the program did not read raise `PublishFailures`: at the end of the
        `with` block or at `close`, without either at the end of the iteration. With
        `raise_failures=False` the program alone looks after them.
        """
        from js_async.publish.publish_many import PublishMany

        limits = limits_of(self._api, window, timeout, window_bytes, retries, retry_wait)
        return PublishMany(self._api, requests, limits, raise_failures)

    def publisher(
        self,
        *,
        window: int = WINDOW,
        window_bytes: int = WINDOW_BYTES,
        timeout: Seconds | None = None,
        retries: int | None = None,
        retry_wait: Seconds = 0.25,
        raise_failures: bool = True,
    ) -> Publisher:
        """Return a publisher that sends one by one and waits only when its window is full.

        The arguments are those of `publish_many`.
        """
        from js_async.publish.publisher import Publisher

        limits = limits_of(self._api, window, timeout, window_bytes, retries, retry_wait)
        return Publisher(self._api, limits, raise_failures)

    def fast_ingest(
        self,
        stream: str,
        requests: Iterable[Publishable] | AsyncIterable[Publishable],
        *,
        gaps: Gaps = "fail",
        window: int = INGEST_WINDOW,
        window_bytes: int = WINDOW_BYTES,
        timeout: Seconds | None = None,
        retries: int | None = None,
        retry_wait: Seconds = 0.25,
        raise_failures: bool = True,
    ) -> FastIngest:
        """Publish into a stream with `allow_batched`, acknowledged in intervals (server 2.14).

        Messages are given as to `publish_many`. Iterate over the outcomes, in order: `Ingested`,
        which has no sequence as none is told, or a `PublishFailure`. At most `window` messages and
        `window_bytes` bytes are under way.

        After a message that fails, those behind it are sent again, in their order. With
        `gaps="ok"` the stream goes on behind one that failed or got lost, and `Ingested` says
        only that the server is past a message. After `timeout` seconds without an answer, or a
        broken link, what is not acknowledged fails with `OutcomeUnknown`, unless it has a `msg_id`
        and no condition: then it is sent again. The connection's `on_call` is not told of these
        messages, as they are not acknowledged one by one.

        Iterating raises `Unsupported` before server 2.14, `BadArgument` where the stream does not
        allow it, `StreamNotFound`.
        """
        from js_async.publish.fast_ingest import FastIngest
        from twinstream.core.publish.fast_ingest import check_gaps

        limits = limits_of(self._api, window, timeout, window_bytes, retries, retry_wait)
        name = check_name(stream, "stream")
        return FastIngest(self._api, name, requests, check_gaps(gaps), limits, raise_failures)

    def atomic_batch(
        self,
        *,
        id: str | None = None,
        max_messages: int = BATCH_MESSAGES,
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
        from js_async.features.counters import Counters

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
            self._api,
            self._writes,
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
            self._api,
            self._writes,
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
        from js_async.features.schedules import Schedules

        return await Schedules._open(self._api, stream)

    # ---- events, dead letters, workers

    def events(
        self,
        *,
        stream: str | None = None,
        consumer: str | None = None,
        kinds: Iterable[EventKind] | None = None,
        max_pending: int = 65_536,
        on_drop: Callable[[MessagesDropped], None] | None = None,
    ) -> Opening[Events]:
        """Iterate over advisories and metrics from now on, typed; close it when done.

        Only those of a stream, a consumer, or some `kinds`: classes of `twinstream.models` such as
        `MaxDeliver`, or words such as "max_deliver". At most `max_pending` events wait to be
        taken; what comes then is dropped, told by the next event and to `on_drop`.
        """
        from js_async.consume.advisories import listen
        from twinstream.core.api.advisories import event_subjects

        subjects = event_subjects(stream, consumer, kinds)
        return opening(listen(self._api.transport, subjects, max_pending, on_drop))

    def dead_letters(
        self,
        stream: str,
        *,
        consumer: str | None = None,
        letters: str | None = None,
        failures: str | None = None,
        prefix: str | None = None,
        on_report: Callable[[PullReport], None] | None = None,
    ) -> DeadLetters:
        """Return the dead letters of a stream, or of one of its consumers.

        `letters` is the stream that holds them (`STREAM-dead`, below the subjects `prefix`,
        `dead.STREAM`), `failures` the one that captures the advisories (`STREAM-failures`). Nothing
        is sent before `prepare`, or before it is entered as a context manager.
        """
        from js_async.workers.dead_letters import DeadLetters
        from twinstream.core.workers.dead_letter import Names

        names = Names.of(stream, consumer, letters, failures, prefix)
        return DeadLetters(self._api, names, on_report)

    def worker(
        self,
        stream: str,
        consumer: str | ConsumerConfig,
        handler: Handler[Message],
        *,
        concurrency: int = 1,
        order: KeyOf = "none",
        retry: Retry = RETRY,
        dead_letters: DeadLetters | None = None,
        max_messages: int | None = None,
        priority: Priority | None = None,
        on_report: Callable[[WorkReport], None] | None = None,
    ) -> Worker:
        """Return a worker that calls a handler for each message of a consumer.

        The consumer is named, or made from its configuration. Up to `concurrency` handlers run at
        once; those of one subject, or of one key that the function `order` returns, run one after
        the other, and "total" is one for all. The server is told that work goes on meanwhile.

        When a handler returns, its message is acknowledged. When it raises, the message is tried
        again as `retry` says; `TryLater` says when, and `Reject` gives the message up, as the last
        attempt does. What is given up becomes one of the `dead_letters`, if given, and is
        terminated. The worker holds at most `max_messages`, by default two for each handler, or
        500 where there is an order, and as many again are on their way to it. Those that go back
        to the server at the end count as delivered.

        `priority` is for a consumer with priority groups: with the policy `pinned_client` one
        worker has all messages, and others stand by.
        """
        from js_async.workers.settings import WorkSettings
        from js_async.workers.worker import Worker

        settings = WorkSettings(
            concurrency=concurrency,
            order=order,
            retry=retry,
            dead_letters=dead_letters,
            max_messages=max_messages,
            priority=priority,
            on_report=on_report,
        )
        return Worker(self._api, stream, consumer, handler, settings)

    # ---- health and coordination

    async def health(
        self,
        *,
        stream: str | None = None,
        interval: Seconds = 2.0,
        thresholds: Thresholds | None = None,
    ) -> Health:
        """Return findings about all streams, or one, and their consumers.

        They are looked at twice, `interval` seconds apart, to see what moves, and judged by
        `thresholds`, those of a plain `Thresholds()` by default. One that nobody can tell of is a
        finding. Raises `StreamNotFound` for a `stream` that is not there.
        """
        from js_async.features.health import health
        from twinstream.core.api.health import THRESHOLDS

        pause = finite_seconds(interval, "interval")
        chosen = THRESHOLDS if thresholds is None else thresholds
        return await health(self._api, stream, pause, chosen)

    async def coordination(
        self, stream: str, *, create: bool = False, replicas: int = 1, owner: str | None = None
    ) -> Coordination:
        """Return what makes locks, semaphores, rate limits and leaders, kept in a stream.

        `create` makes the stream where there is none, with so many `replicas`. `owner` is shown to
        those who look who holds something; host and process unless given. Raises `NotPromised`,
        which names the settings that break a promise, `StreamNotFound`, `SubjectOverlap`,
        `Unsupported` (before server 2.11) or another `JetStreamError`.
        """
        from js_async.coordination.coordination import open_coordination

        return await open_coordination(self._api, stream, create, replicas, owner)


def _name(config: StreamConfig) -> str:
    check_config(config, twinstream.models.StreamConfig)
    if not config.name:
        raise BadArgument("the stream configuration has no name")
    return config.name
