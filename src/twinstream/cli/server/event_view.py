"""Convert an advisory or metric to a sentence or to JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from twinstream.cli.value_text import as_text
from twinstream.models import (
    ApiAudit,
    ApiLimitReached,
    ConsumerAck,
    ConsumerAction,
    ConsumerGroupPinned,
    ConsumerGroupUnpinned,
    ConsumerLeaderElected,
    ConsumerPause,
    ConsumerQuorumLost,
    DomainLeaderElected,
    MaxDeliver,
    Model,
    Nak,
    RestoreComplete,
    RestoreCreate,
    ServerOutOfSpace,
    ServerRemoved,
    SnapshotComplete,
    SnapshotCreate,
    StreamAction,
    StreamBatchAbandoned,
    StreamLeaderElected,
    StreamQuorumLost,
    Terminated,
    encode,
)

if TYPE_CHECKING:
    from js_sync import Event

_DONE = {"create": "created", "modify": "changed", "delete": "deleted"}


def as_json(event: Event) -> dict[str, object]:
    """Return an event as a JSON object.

    The object contains the members of the event and its subject. `missed` is the number of events
    that were dropped before this event. `reconnected` is true if the connection was lost before
    this event. An unreadable event has `problem` and `raw`. A member that does not apply to the
    event is absent.
    """
    about: dict[str, object] = {"subject": event.subject, **encode(event.record)}
    if event.problem:
        about |= {"problem": event.problem, "raw": event.raw.decode("utf-8", "replace")}
    if event.missed:
        about["missed"] = event.missed
    if event.reconnected:
        about["reconnected"] = True
    return about


def describe(record: Model) -> str:
    """Return a sentence that describes an event; its members as JSON if its type is unknown."""
    return _of_message(record) or _of_asset(record) or _of_group(record) or _of_server(record)


def _of_message(record: Model) -> str:
    """Return the sentence for an event about a message, or "" for other events."""
    match record:
        case MaxDeliver():
            return (
                f"message {record.stream_seq} of {record.stream} was delivered {record.deliveries}"
                f" times to {record.consumer} without an acknowledgement"
            )
        case Nak():
            return (
                f"{record.consumer} refused message {record.stream_seq} of {record.stream}"
                f" at delivery {record.deliveries}"
            )
        case Terminated():
            return (
                f"{record.consumer} terminated message {record.stream_seq} of {record.stream}:"
                f" {record.reason or 'no reason given'}"
            )
        case ConsumerAck():
            return (
                f"{record.consumer} acknowledged message {record.stream_seq} of {record.stream}"
                f" after {record.ack_time.total_seconds():.6f} s, delivery {record.deliveries}"
            )
        case ApiAudit():
            return f"{record.subject} was called"
        case _:
            return ""


def _of_asset(record: Model) -> str:
    """Return the sentence for an event about a stream or consumer, or "" for other events."""
    match record:
        case StreamAction():
            return f"stream {record.stream} was {_DONE.get(record.action, record.action)}"
        case ConsumerAction():
            done = _DONE.get(record.action, record.action)
            return f"consumer {record.consumer} of {record.stream} was {done}"
        case ConsumerPause():
            until = f" until {as_text(record.pause_until)}" if record.pause_until else ""
            done = f"paused{until}" if record.paused else "resumed"
            return f"consumer {record.consumer} of {record.stream} was {done}"
        case SnapshotCreate():
            return f"a backup of stream {record.stream} began"
        case SnapshotComplete():
            return f"the backup of stream {record.stream} ended"
        case RestoreCreate():
            return f"the restore of stream {record.stream} began"
        case RestoreComplete():
            return f"the restore of stream {record.stream} ended"
        case StreamBatchAbandoned():
            return f"a batch into stream {record.stream} was abandoned: {record.reason}"
        case _:
            return ""


def _of_group(record: Model) -> str:
    """Return the sentence for an event about leaders or groups, or "" for other events."""
    match record:
        case ConsumerGroupPinned():
            return f"a client of group {record.group} of {record.consumer} was pinned"
        case ConsumerGroupUnpinned():
            return f"group {record.group} of {record.consumer} lost its client: {record.reason}"
        case ConsumerLeaderElected():
            return f"{record.leader} leads consumer {record.consumer} of {record.stream}"
        case ConsumerQuorumLost():
            return f"consumer {record.consumer} of {record.stream} lost its quorum"
        case StreamLeaderElected():
            return f"{record.leader} leads stream {record.stream}"
        case StreamQuorumLost():
            return f"stream {record.stream} lost its quorum"
        case DomainLeaderElected():
            return f"{record.leader} leads JetStream"
        case _:
            return ""


def _of_server(record: Model) -> str:
    """Return the sentence for an event about a server, or the members of an unknown event."""
    match record:
        case ServerOutOfSpace():
            return f"server {record.server} is out of storage"
        case ServerRemoved():
            return f"server {record.server} was removed"
        case ApiLimitReached():
            return f"server {record.server} dropped {record.dropped} API requests: too many"
        case _:
            members = encode(record)
            for known in ("type", "id", "timestamp"):
                members.pop(known, None)
            return json.dumps(members, ensure_ascii=False) if members else ""
