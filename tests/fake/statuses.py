"""Every status that ends a pull request, and its effect: one table for all tests.

Source: nats-server 2.2 to 2.15 and ADR-37.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from twinstream import errors
from twinstream.core.consume.batch import BatchEnd

__all__ = ["STATUSES", "Row", "Then"]


class Then(Enum):
    """What an iteration does after the status."""

    AGAIN = "pulls at once"
    LATER = "pulls after a pause"
    WARNED = "tells the user, and pulls after a pause"
    OVER = "raises"


class Row(NamedTuple):
    """One status."""

    code: int
    text: str
    empty: BatchEnd | type[Exception]
    """How a fetch ends that holds nothing."""
    some: BatchEnd
    """How a fetch ends that holds messages: never with an error, which would lose them."""
    then: Then
    """What an iteration does that got nothing."""
    error: type[Exception] | None = None
    """What it raises if it does."""


END = BatchEnd
STATUSES = [
    Row(
        *(
            400,
            "Bad Request - heartbeat value too large",
            errors.InvalidPullRequest,
            END.INTERRUPTED,
        ),
        *(Then.OVER, errors.InvalidPullRequest),
    ),
    Row(404, "No Messages", END.NO_MESSAGES, END.NO_MESSAGES, Then.LATER),
    Row(408, "Request Timeout", END.EXPIRED, END.EXPIRED, Then.AGAIN),
    Row(408, "Requests Pending", END.NO_MESSAGES, END.NO_MESSAGES, Then.LATER),
    Row(408, "Interest Expired", END.EXPIRED, END.EXPIRED, Then.AGAIN),
    Row(
        *(409, "Message Size Exceeds MaxBytes", errors.PullError, END.BYTES_FILLED),
        Then.WARNED,
    ),
    Row(409, "Batch Completed", END.FILLED, END.FILLED, Then.AGAIN),
    Row(
        *(409, "Exceeded MaxRequestBatch of 2", errors.PullRefused, END.INTERRUPTED),
        *(Then.OVER, errors.PullRefused),
    ),
    Row(
        *(409, "Exceeded MaxRequestExpires of 1s", errors.PullRefused, END.INTERRUPTED),
        *(Then.OVER, errors.PullRefused),
    ),
    Row(
        *(409, "Exceeded MaxRequestMaxBytes of 100", errors.PullRefused, END.INTERRUPTED),
        *(Then.OVER, errors.PullRefused),
    ),
    Row(409, "Exceeded MaxWaiting", errors.PullRefused, END.INTERRUPTED, Then.WARNED),
    Row(409, "Exceeded MaxAckPending", errors.PullRefused, END.INTERRUPTED, Then.WARNED),
    Row(409, "Leadership Change", END.INTERRUPTED, END.INTERRUPTED, Then.AGAIN),
    Row(409, "Consumer Migration", END.INTERRUPTED, END.INTERRUPTED, Then.AGAIN),
    Row(409, "Server Shutdown", END.INTERRUPTED, END.INTERRUPTED, Then.AGAIN),
    Row(
        *(409, "Consumer Deleted", errors.ConsumerDeleted, END.DELETED),
        *(Then.OVER, errors.ConsumerDeleted),
    ),
    Row(
        *(409, "Consumer is push based", errors.ConsumerIsPush, END.INTERRUPTED),
        *(Then.OVER, errors.ConsumerIsPush),
    ),
    Row(
        *(412, "Required Api Level", errors.InvalidPullRequest, END.INTERRUPTED),
        *(Then.OVER, errors.InvalidPullRequest),
    ),
    Row(423, "Nats-Wrong-Pin-Id", END.UNPINNED, END.UNPINNED, Then.AGAIN),
    Row(423, "Nats-Pin-Id mismatch", END.UNPINNED, END.UNPINNED, Then.AGAIN),
    Row(503, "", errors.NoResponders, END.INTERRUPTED, Then.WARNED),
    Row(409, "Something New", END.INTERRUPTED, END.INTERRUPTED, Then.WARNED),
    Row(599, "", END.INTERRUPTED, END.INTERRUPTED, Then.WARNED),
]
