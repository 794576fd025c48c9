"""Which headers of a received message go along when the message is published again.

Two kinds stay behind. Headers of the first kind are written by servers alone. Servers refuse them
from clients or, what is worse, act upon them: before 2.15 a stream with sources takes a copied
`Nats-Stream-Source` for its own position and skips the messages before it, and a copied
`Nats-Schedule-Next` cancels a schedule. Headers of the second kind were conditions of one
publication. All other headers are copied: they are the message's content, or they say what becomes
of it (`Nats-TTL`, `Nats-Rollup`, `Nats-Schedule`).

Source: ADR-8, ADR-41, ADR-42, ADR-48, ADR-49, ADR-50, ADR-51, and each `Nats-…` header published to
servers 2.11.11, 2.12.8, 2.14.6 and 2.15.1.
"""

from __future__ import annotations

from typing import Final

from twinstream.core.wire.header_names import INCREMENT, MSG_ID
from twinstream.core.wire.headers import Headers

__all__ = ["copied_headers", "is_copied"]

#: Written by servers alone: by a stream with sources, for a message that a schedule made, for a
#: counter that has sources, on delivery by a consumer with a pinned client or with `headers_only`.
_OF_THE_SERVER: Final = (
    "Nats-Stream-Source",
    "Nats-Scheduler",
    "Nats-Schedule-Next",
    "Nats-Counter-Sources",
    "Nats-Pin-Id",
    "Nats-Msg-Size",
)

#: Of one publication: its identity, and the increment that the server turned into a total.
_OF_ONE_PUBLICATION: Final = (MSG_ID, INCREMENT, "Nats-Required-Api-Level")

#: Beginnings: what the stream had to look like, the place in a batch, the trace of the message.
#: With `Nats-Trace-Only` a server answers nothing and stores nothing.
_BEGINNINGS: Final = ("Nats-Expected-", "Nats-Batch-", "Nats-Trace-")

_LEFT_OUT: Final = frozenset(_OF_THE_SERVER + _OF_ONE_PUBLICATION)


def is_copied(name: str) -> bool:
    """Tell whether a header goes along when a message is published again.

    Upper and lower case differ, as they do for the server.
    """
    return name not in _LEFT_OUT and not name.startswith(_BEGINNINGS)


def copied_headers(headers: Headers) -> Headers:
    """Return the headers of a received message that may be published again.

    Left out is what servers alone write, which they refuse from clients or act upon
    (`Nats-Stream-Source`, `Nats-Scheduler`, `Nats-Schedule-Next`, `Nats-Counter-Sources`,
    `Nats-Pin-Id`, `Nats-Msg-Size`), and what belonged to the first publication (`Nats-Msg-Id`,
    `Nats-Incr`, `Nats-Required-Api-Level`, `Nats-Expected-…`, `Nats-Batch-…`, `Nats-Trace-…`).

    The rest is kept, with all values and in its order. `Nats-TTL`, `Nats-Rollup` and
    `Nats-Schedule…` need a stream that takes them, and act again.
    """
    return Headers(pair for pair in headers.pairs if is_copied(pair[0]))
