# Generated from src/js_async/__init__.py by codegen/twin.py. Edit that file instead.
"""One of the two forms of the SDK: for programs that block, or for event loops.

Both have the same names. Start with `connect`.
"""

from __future__ import annotations

from js_core.ack_reply import Metadata
from js_core.auth import Credentials
from js_core.batch import Batch, BatchEnd
from js_core.difference import Difference
from js_core.errors import (
    AcknowledgementError,
    AlreadyAcknowledged,
    AuthenticationFailed,
    BadAnswer,
    BadArgument,
    BadPull,
    ConnectionClosed,
    ConnectionFailed,
    ConnectionLost,
    ConsumerDeleted,
    ConsumerExists,
    ConsumerIsPush,
    ConsumerNotFound,
    InvalidConfig,
    JetStreamError,
    JetStreamNotEnabled,
    MessageExists,
    MessageNotFound,
    NoResponders,
    NotAcknowledgeable,
    PermissionDenied,
    ProtocolError,
    PullError,
    PullRefused,
    RequestTimeout,
    ServerError,
    StoreRefused,
    StreamExists,
    StreamNotFound,
    SubjectOverlap,
    TwinstreamError,
    Unsupported,
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
from js_core.handshake import ServerInfo
from js_core.headers import Headers
from js_core.options import ConnectOptions
from js_core.publish import PublishFailure, PublishRequest
from js_core.pull_request import Priority
from js_core.reports import Pinned, PullReport, PullWarning, Recreated, Unpinned
from js_core.servers import ReconnectPolicy
from js_core.stream_message import StreamMessage
from js_core.tls import TlsOptions
from js_sync.connection import Connection, Stats, connect, connect_with
from js_sync.connection_events import ConnectionEvents
from js_sync.consumer import Consumer
from js_sync.consuming import Consuming
from js_sync.core_message import CoreMessage
from js_sync.jetstream import JetStream
from js_sync.message import Message
from js_sync.messages import Messages
from js_sync.ordered import OrderedMessages
from js_sync.push import PushMessages
from js_sync.stream import Stream
from js_sync.subscription import Subscription

__all__ = [
    "AcknowledgementError",
    "AlreadyAcknowledged",
    "AuthenticationFailed",
    "BadAnswer",
    "BadArgument",
    "BadPull",
    "Batch",
    "BatchEnd",
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
    "CoreMessage",
    "Credentials",
    "Difference",
    "Disconnected",
    "Headers",
    "InvalidConfig",
    "JetStream",
    "JetStreamError",
    "JetStreamNotEnabled",
    "LameDuck",
    "Message",
    "MessageExists",
    "MessageNotFound",
    "Messages",
    "MessagesDropped",
    "Metadata",
    "NoResponders",
    "NotAcknowledgeable",
    "OrderedMessages",
    "PermissionDenied",
    "Pinned",
    "Priority",
    "ProtocolError",
    "PublishFailure",
    "PublishRequest",
    "PullError",
    "PullRefused",
    "PullReport",
    "PullWarning",
    "PushMessages",
    "ReconnectPolicy",
    "Recreated",
    "RequestTimeout",
    "ServerError",
    "ServerInfo",
    "ServerReported",
    "ServersDiscovered",
    "Stats",
    "StoreRefused",
    "Stream",
    "StreamExists",
    "StreamMessage",
    "StreamNotFound",
    "SubjectOverlap",
    "Subscription",
    "TlsOptions",
    "TwinstreamError",
    "Unpinned",
    "Unsupported",
    "WrongLastMessageId",
    "WrongLastSequence",
    "WrongOwner",
    "WrongStream",
    "connect",
    "connect_with",
]
