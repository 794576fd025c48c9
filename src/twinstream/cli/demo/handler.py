"""The workers' decision about one order event, without I/O, so that both twins share it."""

from __future__ import annotations

import json
from enum import Enum


class Verdict(Enum):
    """The outcome of a delivery."""

    DONE = "acknowledged"
    AGAIN = "to be delivered again"
    NEVER = "terminated"


def handle(payload: bytes, delivery: int) -> Verdict:
    """Decide about the ``delivery``-th delivery (from 1) of an event.

    A declined card fails each time, so the event reaches the consumer's max_deliver. Another card
    fails only the first time. Invalid JSON is terminated, because another delivery would not help.
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
