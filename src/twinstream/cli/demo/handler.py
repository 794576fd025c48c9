"""What the demo's workers do with one order event: the decision alone, so both twins share it."""

from __future__ import annotations

import json
from enum import Enum


class Verdict(Enum):
    """How a delivery ends."""

    DONE = "acknowledged"
    AGAIN = "to be delivered again"
    NEVER = "terminated"


def handle(payload: bytes, delivery: int) -> Verdict:
    """Decide about the ``delivery``-th delivery (from 1) of an event.

    A declined card fails each time, so the event ends at the consumer's max_deliver. A card to
    retry fails the first time. What is no JSON is terminated: delivering it again would not help.
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
