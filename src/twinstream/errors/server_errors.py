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
    """No such stream (10059).

    What to do: Create the stream, or correct its name and the domain of the JetStream context.
    """


class ConsumerNotFound(JetStreamError):
    """No such consumer (10014, 10149).

    What to do: Create the consumer, or correct its name and that of the stream.
    """


class MessageNotFound(JetStreamError):
    """No message with this sequence or subject (10037, 10043, 10057).

    What to do: Compare the sequence or subject with the stream; a limit may have removed the
    message.
    """


class SubjectOverlap(JetStreamError):
    """Another stream already captures one of the subjects (10065).

    What to do: Make the subjects of the streams disjoint, or delete the other stream.
    """


class InvalidConfig(JetStreamError):
    """The server refuses the configuration (10012, 10025, 10052).

    What to do: Correct what the text names; `validate_stream` and `validate_consumer` find it
    without a server.
    """


class WrongLastMessageId(JetStreamError):
    """The expected last message id did not match (10070).

    What to do: Read the last message again, decide, and publish with its id.
    """


class WrongStream(JetStreamError):
    """The message reached another stream than expected (10060).

    What to do: Correct the subject, or the expected stream.
    """


class StoreFailed(JetStreamError):
    """The stream is full and discards new messages (10077).

    What to do: Raise the limits of the stream, remove messages, or use `discard="old"`.
    """
