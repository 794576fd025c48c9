"""Find the target of a JetStream API request: the stream and consumer in its subject."""

from __future__ import annotations

from typing import Final

__all__ = ["api_names", "api_target"]

_KINDS: Final = frozenset(("STREAM", "CONSUMER", "DIRECT"))
# The first tokens of verbs with two tokens: MSG.GET, LEADER.STEPDOWN, PEER.REMOVE, DURABLE.CREATE.
_TWO_TOKENS: Final = frozenset(("MSG", "LEADER", "PEER", "DURABLE"))


def api_names(call: str) -> tuple[str, ...]:
    """Return the names of stream and consumer in an API subject, as far as it contains them.

    `call` is an API subject without its prefix, such as `CONSUMER.INFO.ORDERS.worker`.
    """
    kind, *rest = call.split(".")
    if kind not in _KINDS or not rest:
        return ()
    names = rest[2:] if rest[0] in _TWO_TOKENS else rest[1:]
    return tuple(names[: 2 if kind == "CONSUMER" else 1])


def api_target(subject: str) -> str:
    """Return a description of the target of an API subject, or the subject if it has no target.

    For `$JS.API.CONSUMER.INFO.ORDERS.worker` this is `consumer worker of stream ORDERS`. A subject
    whose prefix does not begin with `$JS` (an account import) is returned unchanged, because a
    wrong prefix is then the likely mistake.
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
