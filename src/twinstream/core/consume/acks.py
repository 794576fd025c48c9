"""The words of an acknowledgement.

Source: ADR-15 and nats-server `processAck`; NAK with a delay since 2.7.1, TERM with a reason
since 2.10.4.
"""

from __future__ import annotations

from typing import Final

from twinstream.core.deadline import Seconds, finite_seconds
from twinstream.errors import BadArgument
from twinstream.core.wire.header_text import one_line

__all__ = ["ACK", "ACK_COMMAND", "IN_PROGRESS", "NEXT", "nak", "term"]

ACK: Final = b"+ACK"
# The whole line of the word that most messages get: filled in with the reply subject it is a
# third of the work of `publish_command`.
ACK_COMMAND: Final = b"PUB %b 4\r\n+ACK\r\n"
IN_PROGRESS: Final = b"+WPI"
NEXT: Final = b"+NXT "


def nak(delay: Seconds | None) -> bytes:
    """Return a negative acknowledgement; redelivery after `delay` seconds, None is at once."""
    if delay is None:
        return b"-NAK"
    return b'-NAK {"delay": %d}' % round(finite_seconds(delay, "delay") * 1e9)


def term(reason: str | None) -> bytes:
    """Return the word that ends redelivery; the reason goes into the advisory, as one line."""
    if reason is None:
        return b"+TERM"
    if not isinstance(reason, str):
        raise BadArgument(f"reason must be text, got {reason!r}; of an error give str(error)")
    # Often the text of an error, which may hold anything.
    return b"+TERM " + one_line(reason).encode()
