"""The handler of order events, which both workers share because it does no I/O."""

from __future__ import annotations

import json
from enum import Enum


class Verdict(Enum):
    """The response of a worker to a delivery: ack, nak or term."""

    DONE = "acknowledged"
    AGAIN = "to be delivered again"
    NEVER = "terminated"


def handle(payload: bytes, delivery: int) -> Verdict:
    """Return the response to a delivery of an event; `delivery` is its number, from 1.

    An event with a declined card fails at each delivery, so it reaches `max_deliver` of the
    consumer. An event with the card "retry" fails only at the first delivery. Invalid JSON is
    terminated, because another delivery would not help.
    """
    try:
        order = json.loads(payload)
    except ValueError:
        return Verdict.NEVER
    match order["card"]:
        case "declined":
            return Verdict.AGAIN
        case "retry" if delivery == 1:
            return Verdict.AGAIN
        case _:
            return Verdict.DONE
