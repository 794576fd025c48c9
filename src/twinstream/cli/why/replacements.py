"""Whether a later message shows what removed this one: a rollup, or a marker of the server.

Source: ADR-43 for the TTL of messages and the markers of the server. A rollup removes all messages
before it, of the stream (`all`) or of its subject (`sub`). What follows from either is `likely` at
most, because the message may have been gone before.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from twinstream.cli.why.answer import Kind
from twinstream.cli.why.facts import Facts
from twinstream.cli.why.removal_cause import Cause
from twinstream.core.read.stream_message import StreamMessage
from twinstream.records.header_names import ROLLUP

__all__ = ["by_rollup", "by_ttl", "from_markers"]

_MARKER: Final = "Nats-Marker-Reason"


def by_rollup(facts: Facts) -> Cause | None:
    """Judge rollups; None if the stream neither allows nor has one."""
    # A marker of the server is a rollup, too, and says more.
    rollups = (each for each in _with_header(facts, ROLLUP) if _MARKER not in each[0].headers)
    found = next(rollups, None)
    if found is None:
        return _absent_rollup(facts)
    message, value = found
    text = f"message {message.seq} is a rollup ({value})"
    source = f"message {message.seq}: header {ROLLUP}"
    if value.lower() == "all":
        return Cause("rolled_up", "likely", f"{text}: it removed all before it", source)
    if facts.subject is not None:
        text = f"{text} of {message.subject}: it removed all before it of this subject"
        return Cause("rolled_up", "likely", text, source)
    text = f"{text} of {message.subject}: it removed this message if it had this subject"
    return Cause("rolled_up", "possible", text, source)


def _absent_rollup(facts: Facts) -> Cause | None:
    source = "stream info: config.allow_rollup_hdrs"
    if not facts.stream.config.allow_rollup_hdrs:
        return None
    if facts.later.is_whole:
        return Cause("rolled_up", "unlikely", "no later message is a rollup of a client", source)
    text = f"a rollup may have removed it: the first {len(facts.later.messages)} messages are none"
    return Cause("rolled_up", "possible", text, source)


def from_markers(facts: Facts) -> Iterator[Cause]:
    """Judge what a marker of the server for the subject of the message says."""
    for message, reason in _with_header(facts, _MARKER):
        kind = _MARKERS.get(reason)
        if kind is None:
            continue
        if reason == "MaxAge" and not facts.stream.config.max_age:
            kind = "ttl_expired"
        is_known = facts.subject is not None
        text = f"message {message.seq} marks that the last message of {message.subject} was removed"
        source = f"message {message.seq}: header {_MARKER} = {reason} (ADR-43)"
        yield Cause(kind, "likely" if is_known else "possible", text, source)
        return


_MARKERS: Final[dict[str, Kind]] = {"MaxAge": "expired", "Purge": "purged", "Remove": "deleted"}


def by_ttl(facts: Facts) -> Cause | None:
    """Judge the TTL that the message may have had; None if the stream allows none."""
    if not facts.stream.config.allow_msg_ttl:
        return None
    text = "a TTL of the message may have passed: its header is gone with it"
    return Cause("ttl_expired", "possible", text, "stream info: config.allow_msg_ttl (ADR-43)")


def _with_header(facts: Facts, name: str) -> Iterator[tuple[StreamMessage[Any], str]]:
    """Yield the later messages with a header, and its last value, which is the server's."""
    for message in facts.later.messages:
        if name in message.headers:
            yield message, message.headers.get_all(name)[-1]
