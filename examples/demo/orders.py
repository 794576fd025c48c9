"""The order events that the demo publishes. The same seed always gives the same events.

Some events fail on purpose. One event in `RETRY_EVERY` fails only at its first delivery. One
event in `DECLINED_EVERY` fails at each delivery. One event in `BROKEN_EVERY` is
truncated, so it is invalid JSON.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

from attrs import frozen

REGIONS: Final = ("apac", "eu", "us")
EVENTS: Final = ("created", "paid", "shipped", "returned")
EVENT_WEIGHTS: Final = (40, 34, 22, 4)
REGION_WEIGHTS: Final = (25, 45, 30)

RETRY_EVERY: Final = 250
DECLINED_EVERY: Final = 1250
BROKEN_EVERY: Final = 5000
_START: Final = datetime(2026, 1, 1, 8, tzinfo=UTC)


@frozen(kw_only=True)
class OrderEvent:
    """An order event: its subject, its unique message id, and its payload."""

    subject: str
    message_id: str
    payload: bytes


@frozen(kw_only=True)
class Expected:
    """The expected numbers of failing events among the first `count` events."""

    count: int

    @property
    def declined(self) -> int:
        """The number of events that fail at each delivery."""
        return len([n for n in range(self.count) if _card(n) == "declined"])

    @property
    def broken(self) -> int:
        """The number of events whose payload is invalid JSON."""
        return len([n for n in range(self.count) if _is_broken(n)])


def order_events(count: int, seed: int = 7) -> Iterator[OrderEvent]:
    """Yield `count` events, which are the same for the same `seed`."""
    rng = random.Random(seed)
    moment = _START
    for number in range(count):
        region = rng.choices(REGIONS, REGION_WEIGHTS)[0]
        event = rng.choices(EVENTS, EVENT_WEIGHTS)[0]
        moment += timedelta(milliseconds=rng.randint(1, 900))
        record = {
            "order_id": f"o-{rng.randrange(10**6):06d}",
            "event": event,
            "customer": {"id": rng.randrange(1, 5000), "region": region},
            "items": rng.randint(1, 9),
            "amount": round(rng.lognormvariate(3.6, 0.8), 2),
            "express": rng.random() < 0.2,
            "card": _card(number),
            "at": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        }
        payload = json.dumps(record, separators=(",", ":")).encode()
        yield OrderEvent(
            subject=f"orders.{region}.{event}",
            message_id=f"event-{seed}-{number}",
            payload=payload[: len(payload) // 2] if _is_broken(number) else payload,
        )


def _card(number: int) -> str:
    if number % DECLINED_EVERY == DECLINED_EVERY // 5:
        return "declined"
    return "retry" if number % RETRY_EVERY == RETRY_EVERY // 5 else "ok"


def _is_broken(number: int) -> bool:
    # The numbers of broken events are not multiples of 50, unlike the numbers of events with the
    # card "declined" or "retry". So no event fails for two reasons.
    return number % BROKEN_EVERY == 60
