"""Select the headers of a received message that are copied when it is published again.

Two kinds are not copied. Headers of the first kind are written by servers only. Servers refuse
these headers from clients or, worse, act upon them: a copied `Nats-Stream-Source` may move the
position of a stream with sources, and a copied `Nats-Schedule-Next` cancels a schedule. Headers of
the second kind apply to one publication. All other headers are copied, because they are part of the
content of the message, or determine how the stream stores it (`Nats-TTL`, `Nats-Rollup`,
`Nats-Schedule`).

Source: ADR-8, ADR-41, ADR-42, ADR-48, ADR-49, ADR-50, ADR-51, and each `Nats-…` header published to
servers 2.11.11, 2.12.8, 2.14.6 and 2.15.1.
"""

from __future__ import annotations

from typing import Final

from twinstream.records.header_names import INCREMENT, MSG_ID

__all__ = ["is_copied"]

# Headers that only servers write: in a stream with sources, in messages of a schedule, in a
# counter with sources, or on delivery by a consumer with a pinned client or with `headers_only`.
_OF_THE_SERVER: Final = (
    "Nats-Stream-Source",
    "Nats-Scheduler",
    "Nats-Schedule-Next",
    "Nats-Counter-Sources",
    "Nats-Pin-Id",
    "Nats-Msg-Size",
)

# Headers that apply to one publication: its id, the increment of a counter, and the API level that
# it requires.
_OF_ONE_PUBLICATION: Final = (MSG_ID, INCREMENT, "Nats-Required-Api-Level")

# Prefixes of headers with the expected state of the stream, the place in a batch, or a trace.
# With `Nats-Trace-Only` a server neither replies nor stores the message.
_BEGINNINGS: Final = ("Nats-Expected-", "Nats-Batch-", "Nats-Trace-")

_LEFT_OUT: Final = frozenset(_OF_THE_SERVER + _OF_ONE_PUBLICATION)


def is_copied(name: str) -> bool:
    """Return whether a header is copied when a message is published again.

    Names are compared case-sensitively, because the server does so, too.
    """
    return name not in _LEFT_OUT and not name.startswith(_BEGINNINGS)
