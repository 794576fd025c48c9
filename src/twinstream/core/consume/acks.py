"""Payloads of acknowledgements.

Source: ADR-15 and nats-server `processAck`; NAK with a delay since 2.7.1, TERM with a reason
since 2.10.4.
"""

from __future__ import annotations

from typing import Final, Literal

from twinstream.core.deadline import Seconds, finite_seconds
from twinstream.core.wire.header_text import one_line
from twinstream.errors import BadArgument

__all__ = ["ACK", "ACK_COMMAND", "IN_PROGRESS", "AckKind", "kind_of", "nak", "term"]

AckKind = Literal["ack", "nak", "term", "progress"]

ACK: Final = b"+ACK"
# The complete command for the most frequent acknowledgement. Inserting the reply subject takes a
# third of the time of `publish_command`.
ACK_COMMAND: Final = b"PUB %b 4\r\n+ACK\r\n"
IN_PROGRESS: Final = b"+WPI"
_KINDS: Final[dict[bytes, AckKind]] = {
    b"+ACK": "ack",
    b"-NAK": "nak",
    b"+TER": "term",
    b"+WPI": "progress",
}


def kind_of(word: bytes) -> AckKind:
    """Return the kind of an acknowledgement, given its payload."""
    return _KINDS[word[:4]]


def nak(delay: Seconds | None) -> bytes:
    """Return the payload of a negative acknowledgement.

    The server redelivers the message after `delay` seconds, immediately if it is None.
    """
    if delay is None:
        return b"-NAK"
    return b'-NAK {"delay": %d}' % round(finite_seconds(delay, "delay") * 1e9)


def term(reason: str | None) -> bytes:
    """Return the payload that stops redelivery. The server's advisory contains `reason`."""
    if reason is None:
        return b"+TERM"
    if not isinstance(reason, str):
        raise BadArgument(f"reason must be text, got {reason!r}; for an error pass str(error)")
    # The reason is often the text of an error, which may contain line ends.
    return b"+TERM " + one_line(reason).encode()
