"""The exceptions of Twinstream. `js_async` and `js_sync` use the same classes.

::

    TwinstreamError
    ├── BadArgument (ValueError)         an argument is invalid; nothing was sent
    │   └── WrongHandler                 a coroutine function instead of a plain one, or the reverse
    ├── BadPayload (ValueError)          a payload is not UTF-8, or not JSON
    │   └── PayloadError                 … or does not fit the type of a typed handle
    ├── IterationEnded                   `next` after the end of an iteration
    ├── Unsupported                      the connected server lacks the feature
    ├── ConnectionFailed (OSError)       no server of the pool could be reached
    │   └── AuthenticationFailed         the server refused the credentials
    ├── ConnectionLost (OSError)         the connection was lost before the response arrived
    ├── ConnectionClosed                 the connection is closed, or every reconnect failed
    ├── WrongProcessOrLoop                       used after fork, or on a second event loop
    ├── ProtocolError                    the peer does not speak the NATS protocol
    ├── ServerError                      the server sent -ERR
    │   └── PermissionDenied             … because the user may not use a subject
    ├── RequestTimeout (TimeoutError)    the deadline passed without a response
    ├── OutcomeUnknown                   it is unknown whether the message was stored
    ├── SubjectTaken                     the subject already has another message
    ├── UnsuitableSettings               the stream's settings do not give the required guarantee
    ├── NoResponders                     no client or server responds on the subject
    │   ├── NoStream                     … because no stream captures the subject
    │   ├── NoLeader                     … because its stream has no leader at the moment
    │   └── JetStreamNotEnabled          … because JetStream is off, or the domain is wrong
    ├── PublishFailures                  failed messages whose error the caller did not read
    ├── InvalidResponse                        a response that JetStream does not send
    ├── JetStreamError                   the JetStream API returned an error (err_code)
    │   ├── JetStreamNotEnabled          also a NoResponders
    │   ├── StreamNotFound, ConsumerNotFound, MessageNotFound,
    │   ├── StreamExists, ConsumerExists, SubjectOverlap, InvalidConfig,
    │   ├── WrongLastSequence, WrongLastMessageId, WrongStream, StoreFailed, MessageExists
    │   └── MessageIdInProcess           the stream is storing a message with this id
    ├── PullError                        a pull ended with an error that a retry does not fix
    │   ├── PullRefused                  the pull request exceeds a limit of the consumer
    │   ├── ConsumerDeleted, ConsumerIsPush
    │   └── InvalidPullRequest                      the server rejects the request as invalid
    ├── LeaseLost                        the client lost a lock, a semaphore slot or the leadership
    ├── AtomicBatchFailed                an atomic batch is closed, or its commit was not confirmed
    │   └── AtomicBatchUnknown           … and may be stored or not (also an OutcomeUnknown)
    └── AcknowledgementError             a message cannot be acknowledged as requested
        ├── AlreadyAcknowledged          … because it was acknowledged before
        └── NotAcknowledgeable           … because no consumer expects an acknowledgement of it

The docstrings of `errors.bucket`, `errors.kv`, `errors.object_store` and `errors.groups` draw
those of buckets, their keys and objects, and of consumer groups.

Errors carry records of three classes: `Difference` in `differences`, `GuaranteeGap` in `gaps`,
and `PublishFailure` in `failures`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from twinstream.errors.api import (
    ConsumerExists,
    InvalidResponse,
    JetStreamNotEnabled,
    MessageExists,
    MessageIdInProcess,
    StreamExists,
    WrongLastSequence,
    api_error,
)
from twinstream.errors.base import (
    JetStreamError,
    NoResponders,
    TwinstreamError,
)
from twinstream.errors.connection import (
    AuthenticationFailed,
    ConnectionClosed,
    ConnectionFailed,
    ConnectionLost,
    PermissionDenied,
    ProtocolError,
    RequestTimeout,
    ServerError,
    WrongProcessOrLoop,
)
from twinstream.errors.consume import (
    AcknowledgementError,
    AlreadyAcknowledged,
    ConsumerDeleted,
    ConsumerIsPush,
    InvalidPullRequest,
    NotAcknowledgeable,
    PullError,
    PullRefused,
)
from twinstream.errors.coordination import (
    LeaseLost,
)
from twinstream.errors.publish import (
    AtomicBatchFailed,
    AtomicBatchUnknown,
    NoLeader,
    NoStream,
    OutcomeUnknown,
    SubjectTaken,
    UnsuitableSettings,
)
from twinstream.errors.publish_failures import (
    PublishFailure,
    PublishFailures,
)
from twinstream.errors.server_errors import (
    ConsumerNotFound,
    InvalidConfig,
    MessageNotFound,
    StoreFailed,
    StreamNotFound,
    SubjectOverlap,
    WrongLastMessageId,
    WrongStream,
)
from twinstream.errors.usage import (
    BadArgument,
    BadPayload,
    IterationEnded,
    Unsupported,
    WrongHandler,
)

if TYPE_CHECKING:
    from twinstream.errors.bucket import (
        BucketExists,
        BucketNotFound,
        NotABucket,
    )
    from twinstream.errors.groups import (
        GroupChanged,
        GroupExists,
        GroupNotFound,
        InvalidGroupConfig,
    )
    from twinstream.errors.kv import (
        InvalidKey,
        KeyDeleted,
        KeyExists,
        KeyNotFound,
        PastNotHeld,
        RevisionMismatch,
        ValueTooLarge,
    )
    from twinstream.errors.object_store import (
        DigestMismatch,
        InvalidObjectInfo,
        LinkError,
        ObjectChanged,
        ObjectDeleted,
        ObjectExists,
        ObjectIncomplete,
        ObjectNotFound,
        ObjectPutFailed,
    )
    from twinstream.errors.payload import PayloadError
    from twinstream.records.difference import Difference
    from twinstream.records.guarantee_gap import GuaranteeGap

__all__ = [
    "AcknowledgementError",
    "AlreadyAcknowledged",
    "AtomicBatchFailed",
    "AtomicBatchUnknown",
    "AuthenticationFailed",
    "BadArgument",
    "BadPayload",
    "BucketExists",
    "BucketNotFound",
    "ConnectionClosed",
    "ConnectionFailed",
    "ConnectionLost",
    "ConsumerDeleted",
    "ConsumerExists",
    "ConsumerIsPush",
    "ConsumerNotFound",
    "Difference",
    "DigestMismatch",
    "GroupChanged",
    "GroupExists",
    "GroupNotFound",
    "GuaranteeGap",
    "InvalidConfig",
    "InvalidGroupConfig",
    "InvalidKey",
    "InvalidObjectInfo",
    "InvalidPullRequest",
    "InvalidResponse",
    "IterationEnded",
    "JetStreamError",
    "JetStreamNotEnabled",
    "KeyDeleted",
    "KeyExists",
    "KeyNotFound",
    "LeaseLost",
    "LinkError",
    "MessageExists",
    "MessageIdInProcess",
    "MessageNotFound",
    "NoLeader",
    "NoResponders",
    "NoStream",
    "NotABucket",
    "NotAcknowledgeable",
    "ObjectChanged",
    "ObjectDeleted",
    "ObjectExists",
    "ObjectIncomplete",
    "ObjectNotFound",
    "ObjectPutFailed",
    "OutcomeUnknown",
    "PastNotHeld",
    "PayloadError",
    "PermissionDenied",
    "ProtocolError",
    "PublishFailure",
    "PublishFailures",
    "PullError",
    "PullRefused",
    "RequestTimeout",
    "RevisionMismatch",
    "ServerError",
    "StoreFailed",
    "StreamExists",
    "StreamNotFound",
    "SubjectOverlap",
    "SubjectTaken",
    "TwinstreamError",
    "UnsuitableSettings",
    "Unsupported",
    "ValueTooLarge",
    "WrongHandler",
    "WrongLastMessageId",
    "WrongLastSequence",
    "WrongProcessOrLoop",
    "WrongStream",
    "api_error",
]

# Many programs need none of these modules, so they are imported on first use.
_LATER = (
    "errors.bucket",
    "errors.kv",
    "errors.object_store",
    "errors.groups",
    "errors.payload",
    "records.difference",
    "records.guarantee_gap",
)


def __getattr__(name: str) -> object:
    for module in _LATER if name in __all__ else ():
        found = vars(import_module(f"twinstream.{module}")).get(name)
        if found is not None:
            return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
