"""Names of the headers with which a publisher controls how a stream stores a message.

Source: ADR-22, ADR-42, ADR-43, ADR-49 and ADR-51.
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "EXPECTED_LAST_MSG_ID",
    "EXPECTED_LAST_SEQ",
    "EXPECTED_LAST_SUBJECT_SEQ",
    "EXPECTED_LAST_SUBJECT_SEQ_SUBJECT",
    "EXPECTED_STREAM",
    "INCREMENT",
    "MSG_ID",
    "ROLLUP",
    "SCHEDULE",
    "TTL",
]

MSG_ID: Final = "Nats-Msg-Id"
EXPECTED_STREAM: Final = "Nats-Expected-Stream"
EXPECTED_LAST_SEQ: Final = "Nats-Expected-Last-Sequence"
EXPECTED_LAST_MSG_ID: Final = "Nats-Expected-Last-Msg-Id"
EXPECTED_LAST_SUBJECT_SEQ: Final = "Nats-Expected-Last-Subject-Sequence"
EXPECTED_LAST_SUBJECT_SEQ_SUBJECT: Final = "Nats-Expected-Last-Subject-Sequence-Subject"
ROLLUP: Final = "Nats-Rollup"
TTL: Final = "Nats-TTL"
INCREMENT: Final = "Nats-Incr"
SCHEDULE: Final = "Nats-Schedule"
