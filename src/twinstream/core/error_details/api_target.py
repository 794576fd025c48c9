"""What a request to the JetStream API is about: the stream and consumer that its subject names."""

from __future__ import annotations

from typing import Final

__all__ = ["api_names", "api_target"]

_KINDS: Final = frozenset(("STREAM", "CONSUMER", "DIRECT"))
# Verbs of two tokens start with these: MSG.GET, LEADER.STEPDOWN, PEER.REMOVE, DURABLE.CREATE.
_TWO_TOKENS: Final = frozenset(("MSG", "LEADER", "PEER", "DURABLE"))


def api_names(call: str) -> tuple[str, ...]:
    """Return the stream that a call names, and the consumer if it names one.

    `call` is an API subject without its prefix: `CONSUMER.INFO.ORDERS.worker`.
    """
    kind, *rest = call.split(".")
    if kind not in _KINDS or not rest:
        return ()
    names = rest[2:] if rest[0] in _TWO_TOKENS else rest[1:]
    return tuple(names[: 2 if kind == "CONSUMER" else 1])


def api_target(subject: str) -> str:
    """Return in words what an API subject names, or else the subject itself.

    `$JS.API.CONSUMER.INFO.ORDERS.worker` is `consumer worker of stream ORDERS`. Subjects below
    another prefix than `$JS` (an account import) stay as they are, for the prefix is then the
    likely mistake.
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
