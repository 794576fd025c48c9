"""Which requests to the API may be sent again, and when.

A cluster whose meta leader changes forgets the requests that it was handling: no answer ever comes
(seen on server 2.15.1 for 2 of 100 creations while the leader stepped down every second). A request
that does the same when it comes twice is therefore sent again, under the same reply subject. So is
one that was refused because there was no leader, and one that was lost with a broken link.
"""

from __future__ import annotations

from typing import Final

__all__ = ["ASK_AGAIN", "CLUSTER_WITHOUT_LEADER", "is_repeatable", "pause_before_repeat"]

ASK_AGAIN: Final = 1.0
"""Seconds without an answer before a request is sent again; doubles with each time."""

CLUSTER_WITHOUT_LEADER: Final = frozenset({10008, 10009})
"""Error codes of a cluster that has no leader, or too few of whose servers are up."""

_FIRST_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 1.0

# Reads, and creating a stream: the same configuration sent again gets the same answer. Updates are
# not among them: somebody else may have made a later one meanwhile.
_VERBS: Final = (
    "INFO",
    "STREAM.CREATE.",
    "STREAM.INFO.",
    "STREAM.LIST",
    "STREAM.NAMES",
    "STREAM.MSG.GET.",
    "CONSUMER.INFO.",
    "CONSUMER.LIST.",
    "CONSUMER.NAMES.",
)


def is_repeatable(subject: str, prefix: str) -> bool:
    """Tell whether a request to an API subject does the same when it comes twice.

    `prefix` is that of the API, like ``$JS.API``.
    """
    return subject.removeprefix(prefix + ".").startswith(_VERBS)


def pause_before_repeat(err_code: int, attempts: int, left: float) -> float | None:
    """Return the seconds to wait before a refused request is sent again; None is never.

    `attempts` were made so far, `left` are the seconds until its deadline.
    """
    if err_code not in CLUSTER_WITHOUT_LEADER:
        return None
    pause = min(_FIRST_PAUSE * 2 ** min(attempts - 1, 10), _LONGEST_PAUSE)
    return pause if pause < left else None
