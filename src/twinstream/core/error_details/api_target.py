"""The target of a JetStream API request: the stream and consumer in its subject."""

from __future__ import annotations

from typing import Final

__all__ = ["api_names", "api_target"]

_KINDS: Final = frozenset(("STREAM", "CONSUMER", "DIRECT"))
# First tokens of two-token verbs: MSG.GET, LEADER.STEPDOWN, PEER.REMOVE, DURABLE.CREATE.
_TWO_TOKENS: Final = frozenset(("MSG", "LEADER", "PEER", "DURABLE"))


def api_names(call: str) -> tuple[str, ...]:
    """Return the name of the stream in an API subject, and that of the consumer if there is one.

    `call` is an API subject without its prefix: `CONSUMER.INFO.ORDERS.worker`.
    """
    kind, *rest = call.split(".")
    if kind not in _KINDS or not rest:
        return ()
    names = rest[2:] if rest[0] in _TWO_TOKENS else rest[1:]
    return tuple(names[: 2 if kind == "CONSUMER" else 1])


def api_target(subject: str) -> str:
    """Describe the target of an API subject, or return the subject itself.

    `$JS.API.CONSUMER.INFO.ORDERS.worker` is `consumer worker of stream ORDERS`. Subjects with
    another prefix than `$JS` (an account import) are returned unchanged, because the prefix is then
    the likely mistake.
    """
    prefix, api, call = subject.partition(".API.")
    if not api or not prefix.startswith("$JS"):
        return subject
    match api_names(call):
        case (stream, consumer):
            return f"consumer {consumer} of stream {stream}"
        case (stream,):
            return f"stream {stream}"
        case _:
            return subject
