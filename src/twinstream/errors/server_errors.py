"""The classes of server errors that need no code of their own.

Generated from schema/errors.json by codegen/error_codes.py. Edit that file instead. Applications
import the classes from `twinstream.errors`.
"""

from __future__ import annotations

from twinstream.errors.base import JetStreamError

__all__ = [
    "ConsumerNotFound",
    "InvalidConfig",
    "MessageNotFound",
    "StoreFailed",
    "StreamNotFound",
    "SubjectOverlap",
    "WrongLastMessageId",
    "WrongStream",
]


class StreamNotFound(JetStreamError):
    """No such stream (10059)."""


class ConsumerNotFound(JetStreamError):
    """No such consumer (10014, 10149)."""


class MessageNotFound(JetStreamError):
    """No message with this sequence or subject (10037, 10043, 10057)."""


class SubjectOverlap(JetStreamError):
    """Another stream already captures one of the subjects (10065)."""


class InvalidConfig(JetStreamError):
    """The server refuses the configuration (10012, 10025, 10052)."""


class WrongLastMessageId(JetStreamError):
    """The expected last message id did not match (10070)."""


class WrongStream(JetStreamError):
    """The message reached another stream than expected (10060)."""


class StoreFailed(JetStreamError):
    """The stream is full and discards new messages (10077)."""
