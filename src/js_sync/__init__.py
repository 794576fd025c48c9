# Generated from src/js_async/__init__.py by codegen/twin.py. Edit that file instead.
"""One of the two forms of the SDK: for programs that block, or for event loops.

Both have the same names. Start with `connect`. Every name is imported on first use: a program
pays at its start for what it uses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from twinstream.core.base.lazy_imports import on_demand
from js_sync._index import MODULES

if TYPE_CHECKING:
    from twinstream.core.consume.metadata import Metadata
    from twinstream.core.api.advisories import Event
    from twinstream.core.read.arrow import arrow_schema
    from twinstream.core.error_details.atomic_outcome import AtomicOutcome
    from twinstream.core.connect.auth import Credentials
    from twinstream.core.backup.backup import Backup, TransferProgress
    from twinstream.core.consume.batch import Batch, BatchEnd
    from twinstream.core.api.instrumentation import Call
    from twinstream.core.coordination.coordination import coordination_config
    from twinstream.core.publish.copied_headers import copied_headers
    from twinstream.core.publish.counters import Counter
    from twinstream.core.workers.dead_letter import DeadLetter
    from twinstream.core.error_details.config_diff import Difference
    from twinstream.errors import (
        AcknowledgementError,
        AlreadyAcknowledged,
        AtomicBatchFailed,
        AtomicBatchUnknown,
        AuthenticationFailed,
        BadAnswer,
        BadArgument,
        BadPayload,
        BadPull,
        ConnectionClosed,
        ConnectionFailed,
        ConnectionLost,
        ConsumerDeleted,
        ConsumerExists,
        ConsumerIsPush,
        ConsumerNotFound,
        InvalidConfig,
        IterationEnded,
        JetStreamError,
        JetStreamNotEnabled,
        JetStreamOff,
        LeaseLost,
        MessageExists,
        MessageIdInProcess,
        MessageNotFound,
        NoLeader,
        NoResponders,
        NoStream,
        NotAcknowledgeable,
        NotPromised,
        NotStarted,
        OutcomeUnknown,
        PermissionDenied,
        ProtocolError,
        PublishFailures,
        PullError,
        PullRefused,
        RequestTimeout,
        ServerError,
        StoreRefused,
        StreamExists,
        StreamNotFound,
        SubjectOverlap,
        SubjectTaken,
        TwinstreamError,
        Unsupported,
        WrongHandler,
        WrongLastMessageId,
        WrongLastSequence,
        WrongOwner,
        WrongStream,
    )
    from twinstream.core.connect.connection_events import (
        Closed,
        Connected,
        ConnectionEvent,
        Disconnected,
        LameDuck,
        MessagesDropped,
        ServerReported,
        ServersDiscovered,
    )
    from twinstream.core.publish.fast_ingest import Ingested
    from twinstream.core.connect.handshake import ServerInfo
    from twinstream.core.wire.headers import Headers
    from twinstream.core.api.health import Finding, Health, Thresholds
    from twinstream.core.error_details.guarantee_gap import Hole
    from twinstream.core.coordination.lease_record import SlotRecord
    from twinstream.core.object_store.changes import KEEP, Swept
    from twinstream.core.object_store.chunks import ObjectProgress
    from twinstream.core.object_store.config import ObjectStoreStatus
    from twinstream.core.object_store.errors import (
        BadObjectInfo,
        DigestMismatch,
        LinkError,
        NotAnObjectStore,
        ObjectChanged,
        ObjectDeleted,
        ObjectExists,
        ObjectIncomplete,
        ObjectNotFound,
        ObjectStoreNotFound,
        PutFailed,
    )
    from twinstream.core.object_store.info import ObjectMeta
    from twinstream.core.connect.options import ConnectOptions
    from twinstream.core.exactly_once.outbox import OutboxEvent, OutboxReport
    from twinstream.core.exactly_once.processing import ProcessReport, Reject
    from twinstream.core.publish.request import PublishFailure, PublishRequest
    from twinstream.core.consume.pull_request import Priority
    from twinstream.core.read.read_report import ReadEnd, ReadReport
    from twinstream.core.consume.reports import (
        HandlerFailed,
        Pinned,
        PullReport,
        PullWarning,
        Recreated,
        Unpinned,
        WorkReport,
    )
    from twinstream.core.workers.retry import Retry, TryLater
    from twinstream.core.publish.schedules import Schedule, StoredSchedule
    from twinstream.core.connect.server_pool import ReconnectPolicy
    from twinstream.core.read.snapshot import Snapshot
    from twinstream.core.read.stream_message import StreamMessage
    from twinstream.core.exactly_once.conditional_write import AlreadyThere, Stored
    from twinstream.core.connect.tls import TlsOptions
    from js_sync.backup.files import read_backup
    from js_sync.publish.atomic_batch import AtomicBatch
    from js_sync.connection import Connection, Stats, connect, connect_with
    from js_sync.client.connection_events import ConnectionEvents
    from js_sync.consumer import Consumer
    from js_sync.consume.consume import Consuming
    from js_sync.coordination.coordination import Coordination, Taken
    from js_sync.client.core_message import CoreMessage
    from js_sync.publish.counters import Counters
    from js_sync.workers.dead_letters import DeadLetters
    from js_sync.consume.advisories import Events
    from js_sync.publish.fast_ingest import FastIngest
    from js_sync.consume.fetch_messages import FetchMessages
    from js_sync.jetstream import JetStream
    from js_sync.coordination.leader import Leader
    from js_sync.coordination.lease import Lease
    from js_sync.api.listing import Listing
    from js_sync.coordination.lock import Lock, Semaphore
    from js_sync.consume.message import Message
    from js_sync.consume.messages import Messages
    from js_sync.api.meta import Meta
    from js_sync.object_store.reader import ObjectReader
    from js_sync.object_store.store import ObjectStore
    from js_sync.object_store.watch import ObjectWatch
    from js_sync.coordination.once import Once, OnceResult
    from js_sync.consume.ordered import OrderedMessages
    from js_sync.exactly_once.outbox_relay import OutboxRelay
    from js_sync.exactly_once.outbox_store import OutboxStore
    from js_sync.exactly_once.processing import Processing
    from js_sync.publish.publish_many import PublishMany
    from js_sync.publish.publisher import Publisher, PublishHandle
    from js_sync.consume.push import PushMessages
    from js_sync.coordination.rate_limiter import Permit, RateLimiter
    from js_sync.api.replicas import Replicas
    from js_sync.publish.schedules import Schedules
    from js_sync.exactly_once.sqlite_outbox import SqliteOutbox
    from js_sync.stream import Stream
    from js_sync.read.stream_read import StreamRead
    from js_sync.client.subscription import Subscription
    from js_sync.workers.worker import Worker

__all__ = [
    "KEEP",
    "AcknowledgementError",
    "AlreadyAcknowledged",
    "AlreadyThere",
    "AtomicBatch",
    "AtomicBatchFailed",
    "AtomicBatchUnknown",
    "AtomicOutcome",
    "AuthenticationFailed",
    "Backup",
    "BadAnswer",
    "BadArgument",
    "BadObjectInfo",
    "BadPayload",
    "BadPull",
    "Batch",
    "BatchEnd",
    "Call",
    "Closed",
    "ConnectOptions",
    "Connected",
    "Connection",
    "ConnectionClosed",
    "ConnectionEvent",
    "ConnectionEvents",
    "ConnectionFailed",
    "ConnectionLost",
    "Consumer",
    "ConsumerDeleted",
    "ConsumerExists",
    "ConsumerIsPush",
    "ConsumerNotFound",
    "Consuming",
    "Coordination",
    "CoreMessage",
    "Counter",
    "Counters",
    "Credentials",
    "DeadLetter",
    "DeadLetters",
    "Difference",
    "DigestMismatch",
    "Disconnected",
    "Event",
    "Events",
    "FastIngest",
    "FetchMessages",
    "Finding",
    "HandlerFailed",
    "Headers",
    "Health",
    "Hole",
    "Ingested",
    "InvalidConfig",
    "IterationEnded",
    "JetStream",
    "JetStreamError",
    "JetStreamNotEnabled",
    "JetStreamOff",
    "LameDuck",
    "Leader",
    "Lease",
    "LeaseLost",
    "LinkError",
    "Listing",
    "Lock",
    "Message",
    "MessageExists",
    "MessageIdInProcess",
    "MessageNotFound",
    "Messages",
    "MessagesDropped",
    "Meta",
    "Metadata",
    "NoLeader",
    "NoResponders",
    "NoStream",
    "NotAcknowledgeable",
    "NotAnObjectStore",
    "NotPromised",
    "NotStarted",
    "ObjectChanged",
    "ObjectDeleted",
    "ObjectExists",
    "ObjectIncomplete",
    "ObjectMeta",
    "ObjectNotFound",
    "ObjectProgress",
    "ObjectReader",
    "ObjectStore",
    "ObjectStoreNotFound",
    "ObjectStoreStatus",
    "ObjectWatch",
    "Once",
    "OnceResult",
    "OrderedMessages",
    "OutboxEvent",
    "OutboxRelay",
    "OutboxReport",
    "OutboxStore",
    "OutcomeUnknown",
    "PermissionDenied",
    "Permit",
    "Pinned",
    "Priority",
    "ProcessReport",
    "Processing",
    "ProtocolError",
    "PublishFailure",
    "PublishFailures",
    "PublishHandle",
    "PublishMany",
    "PublishRequest",
    "Publisher",
    "PullError",
    "PullRefused",
    "PullReport",
    "PullWarning",
    "PushMessages",
    "PutFailed",
    "RateLimiter",
    "ReadEnd",
    "ReadReport",
    "ReconnectPolicy",
    "Recreated",
    "Reject",
    "Replicas",
    "RequestTimeout",
    "Retry",
    "Schedule",
    "Schedules",
    "Semaphore",
    "ServerError",
    "ServerInfo",
    "ServerReported",
    "ServersDiscovered",
    "SlotRecord",
    "Snapshot",
    "SqliteOutbox",
    "Stats",
    "StoreRefused",
    "Stored",
    "StoredSchedule",
    "Stream",
    "StreamExists",
    "StreamMessage",
    "StreamNotFound",
    "StreamRead",
    "SubjectOverlap",
    "SubjectTaken",
    "Subscription",
    "Swept",
    "Taken",
    "Thresholds",
    "TlsOptions",
    "TransferProgress",
    "TryLater",
    "TwinstreamError",
    "Unpinned",
    "Unsupported",
    "WorkReport",
    "Worker",
    "WrongHandler",
    "WrongLastMessageId",
    "WrongLastSequence",
    "WrongOwner",
    "WrongStream",
    "arrow_schema",
    "connect",
    "connect_with",
    "coordination_config",
    "copied_headers",
    "read_backup",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = on_demand(__name__, MODULES)
