"""One of the two forms of the SDK: for programs that block, or for event loops.

Both have the same names. Start with `connect`. Every name is imported on first use: a program
pays at its start for what it uses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from js_async._index import MODULES
from js_core.on_demand import on_demand

if TYPE_CHECKING:
    from js_async._backup_files import read_backup
    from js_async.atomic_batch import AtomicBatch
    from js_async.connection import Connection, Stats, connect, connect_with
    from js_async.connection_events import ConnectionEvents
    from js_async.consumer import Consumer
    from js_async.consuming import Consuming
    from js_async.coordination import Coordination, Taken
    from js_async.core_message import CoreMessage
    from js_async.counters import Counters
    from js_async.dead_letters import DeadLetters
    from js_async.events import Events
    from js_async.fast_ingest import FastIngest
    from js_async.fetch_messages import FetchMessages
    from js_async.jetstream import JetStream
    from js_async.leader import Leader
    from js_async.lease import Lease
    from js_async.listing import Listing
    from js_async.lock import Lock, Semaphore
    from js_async.message import Message
    from js_async.messages import Messages
    from js_async.meta import Meta
    from js_async.nats_py import from_nats  # asyncio only
    from js_async.object_reader import ObjectReader
    from js_async.object_store import ObjectStore
    from js_async.object_watch import ObjectWatch
    from js_async.once import Once, OnceResult
    from js_async.ordered import OrderedMessages
    from js_async.outbox_relay import OutboxRelay
    from js_async.outbox_store import OutboxStore
    from js_async.processing import Processing
    from js_async.publish_many import PublishMany
    from js_async.publisher import Publisher, PublishHandle
    from js_async.push import PushMessages
    from js_async.rate_limiter import Permit, RateLimiter
    from js_async.replicas import Replicas
    from js_async.schedules import Schedules
    from js_async.sqlite_outbox import SqliteOutbox
    from js_async.stream import Stream
    from js_async.stream_read import StreamRead
    from js_async.subscription import Subscription
    from js_async.worker import Worker
    from js_core.ack_reply import Metadata
    from js_core.advisories import Event
    from js_core.arrow import arrow_schema
    from js_core.atomic_outcome import AtomicOutcome
    from js_core.auth import Credentials
    from js_core.backup import Backup, TransferProgress
    from js_core.batch import Batch, BatchEnd
    from js_core.calls import Call
    from js_core.coordination import coordination_config
    from js_core.copied_headers import copied_headers
    from js_core.counters import Counter
    from js_core.dead_letter import DeadLetter
    from js_core.difference import Difference
    from js_core.errors import (
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
    from js_core.events import (
        Closed,
        Connected,
        ConnectionEvent,
        Disconnected,
        LameDuck,
        MessagesDropped,
        ServerReported,
        ServersDiscovered,
    )
    from js_core.fast_ingest import Ingested
    from js_core.handshake import ServerInfo
    from js_core.headers import Headers
    from js_core.health import Finding, Health, Thresholds
    from js_core.hole import Hole
    from js_core.lease_record import SlotRecord
    from js_core.object_changes import KEEP, Swept
    from js_core.object_chunks import ObjectProgress
    from js_core.object_config import ObjectStoreStatus
    from js_core.object_errors import (
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
    from js_core.object_info import ObjectMeta
    from js_core.options import ConnectOptions
    from js_core.outbox import OutboxEvent, OutboxReport
    from js_core.processing import ProcessReport, Reject
    from js_core.publish import PublishFailure, PublishRequest
    from js_core.pull_request import Priority
    from js_core.read_report import ReadEnd, ReadReport
    from js_core.reports import (
        HandlerFailed,
        Pinned,
        PullReport,
        PullWarning,
        Recreated,
        Unpinned,
        WorkReport,
    )
    from js_core.retry import Retry, TryLater
    from js_core.schedules import Schedule, StoredSchedule
    from js_core.servers import ReconnectPolicy
    from js_core.snapshot import Snapshot
    from js_core.stream_message import StreamMessage
    from js_core.subject_write import AlreadyThere, Stored
    from js_core.tls import TlsOptions

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
    "from_nats",  # asyncio only
    "read_backup",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = on_demand(__name__, MODULES)
