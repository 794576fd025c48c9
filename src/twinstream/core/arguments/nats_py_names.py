"""Names of nats-py and other clients with their equivalents, as hints in errors about names.

`docs/from-nats-py.md` has the same table of nats-py's names; a test compares both.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from functools import wraps
from typing import Any, Final, TypeVar

__all__ = [
    "ATTRIBUTES",
    "GUESSES",
    "KEYWORDS",
    "explain_keywords",
    "hint_attributes",
    "hint_keywords",
]

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

_CONFIG: Final = "create_consumer(ConsumerConfig(durable_name=, filter_subject=)) of a stream"

ATTRIBUTES: Final[Mapping[str, Mapping[str, str]]] = {
    "JetStream": {
        "add_stream": "create_stream(StreamConfig(name=, subjects=))",
        "stream_info": "get_stream(name).cached_info, or info() of a stream",
        "streams_info": "streams()",
        "consumers_info": "consumers() of a stream",
        "find_stream_name_by_subject": "stream_name_by_subject(subject)",
        "purge_stream": "purge(subject=, before_seq=, keep=) of a stream",
        "get_msg": "get_message(seq) of a stream",
        "get_last_msg": "get_last_message(subject) of a stream",
        "delete_msg": "delete_message(seq) of a stream",
        "add_consumer": "create_consumer(stream, config)",
        "consumer_info": "info() of a consumer",
        "pause_consumer": "pause(seconds) of a consumer",
        "resume_consumer": "resume() of a consumer",
        "reset_consumer": "reset() of a consumer",
        "publish_async": "publisher() with send and flush, or publish_many",
        "publish_async_completed": "flush() of a publisher()",
        "pull_subscribe": _CONFIG,
        "pull_subscribe_bind": "get_consumer(stream, name), or bind_consumer",
        "subscribe": "worker(stream, config, handler), or messages() of a consumer",
        "subscribe_bind": "bind_push(name) of a stream",
        "key_value": "get_key_value(bucket)",
        "object_store": "get_object_store(bucket)",
    },
    "KeyValue": {
        "watchall": "watch() without filters",
    },
    "Message": {
        "_ackd": "is_acknowledged",
        "ack_sync": "double_ack()",
        "respond": "publish(message.reply, data) of the connection",
        "header": "headers",
    },
    "CoreMessage": {
        "respond": "publish(message.reply, data) of the connection",
        "header": "headers",
    },
    "Metadata": {
        "sequence": "stream_seq and consumer_seq",
    },
    "Subscription": {
        "next_msg": "next(timeout)",
        "unsubscribe": "close()",
    },
}
"""Hints by class and attribute name."""

_CONTENT: Final[Mapping[str, str]] = {
    "body": "data",
    "content": "data",
    "payload": "data",
    "value": "data",
}
_SEQUENCES: Final = "metadata.stream_seq (of the consumer: metadata.consumer_seq)"

GUESSES: Final[Mapping[str, Mapping[str, str]]] = {
    "CoreMessage": _CONTENT,
    "Message": {
        **_CONTENT,
        "acknowledge": "ack()",
        "consumer": "metadata.consumer",
        "delivery_count": "metadata.num_delivered",
        "nack": "nak()",
        "num_delivered": "metadata.num_delivered",
        "redelivered": "metadata.num_delivered > 1",
        "reject": "term()",
        "seq": _SEQUENCES,
        "sequence": _SEQUENCES,
        "stream": "metadata.stream",
        "time": "metadata.timestamp",
        "timestamp": "metadata.timestamp",
        "touch": "in_progress()",
    },
    "StreamMessage": {**_CONTENT, "sequence": "seq", "timestamp": "time"},
    "KeyValue": {
        "contains": "get(key), which raises KeyNotFound",
        "exists": "get(key), which raises KeyNotFound",
        "list": "keys()",
        "set": "put(key, value)",
    },
}
"""Names by class that readers of other clients guess, with the names that mean the same."""

_COROUTINE: Final = 0x80
"""The flag in `co_flags` of a coroutine function."""

_ON_EVENT: Final = "on_event=, one function for all events"

KEYWORDS: Final[Mapping[str, Mapping[str, str]]] = {
    "connect": {
        "user_credentials": "credentials_file=",
        "nkeys_seed_str": "nkey_seed=",
        "tls_hostname": "tls=TlsOptions(server_name=)",
        "tls_handshake_first": "tls=TlsOptions(handshake_first=)",
        "max_reconnect_attempts": "reconnect=ReconnectPolicy(attempts=)",
        "reconnect_time_wait": "reconnect=ReconnectPolicy(wait=)",
        "allow_reconnect": "reconnect=None for False",
        "dont_randomize": "shuffle=False for True",
        "error_cb": _ON_EVENT,
        "disconnected_cb": _ON_EVENT,
        "reconnected_cb": _ON_EVENT,
        "closed_cb": _ON_EVENT,
    },
    "publish": {
        "payload": "data=",
        "stream": "expected_stream=",
        "msg_ttl": "ttl=",
    },
    "delete_consumer": {
        "consumer": "name=",
    },
    "get_consumer": {
        "consumer": "name=",
        "durable": "name=",
    },
    "update": {
        "last": "revision=",
    },
    "purge": {
        "seq": "before_seq=",
    },
    "fetch": {
        "batch": "max_messages=",
    },
    "subscribe": {
        "cb": "a loop `for message in messages` in a block, perhaps in a thread or task",
    },
}
"""Hints by function and keyword argument."""

_NOT_THESE: Final = frozenset({"Connection.publish"})
"""Methods with the name of a function in `KEYWORDS`, but without its arguments."""


def _unknown(owner: object, name: str) -> AttributeError:
    text = f"{type(owner).__name__!r} object has no attribute {name!r}"
    tables = (ATTRIBUTES.get(each.__name__, {}) for each in type(owner).__mro__)
    hint = next((table[name] for table in tables if name in table), None)
    if hint is not None:
        text = f"{text}: the equivalent of this nats-py name is {hint}"
    else:
        tables = (GUESSES.get(each.__name__, {}) for each in type(owner).__mro__)
        guess = next((table[name] for table in tables if name in table), None)
        if guess is not None:
            text = f"{text}; did you mean {guess}?"
    # Because of `name` and `obj`, Python adds its own suggestion for a misspelt name.
    return AttributeError(text, name=name, obj=owner)


class _Absent:
    """A descriptor for a name that a class does not have.

    It replaces `__getattr__`. If a class defines that method, the interpreter does not specialise
    its attribute accesses, so each takes longer (0.04 µs instead of 0.02, Python 3.11).
    """

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, instance: object | None, owner: type) -> object:
        if instance is None:
            raise AttributeError(
                f"type object {owner.__name__!r} has no attribute {self._name!r}",
                name=self._name,
                obj=owner,
            )
        raise _unknown(instance, self._name)


def hint_attributes(owner: type[T]) -> type[T]:
    """Make the names in `ATTRIBUTES` and `GUESSES` for a class raise an error with a hint.

    `dir` does not list these names. The function returns the class, so it can be a decorator.
    """
    names = {**ATTRIBUTES.get(owner.__name__, {}), **GUESSES.get(owner.__name__, {})}
    for name in names:
        setattr(owner, name, _Absent(name))
    offered: Any = owner.__dir__

    def without(self: object) -> list[str]:
        return [name for name in offered(self) if name not in names]

    setattr(owner, "__dir__", without)  # noqa: B010  # type checkers refuse the assignment
    return owner


def hint_keywords(function: F) -> F:
    """Wrap a function, so that its error for an unknown keyword argument contains a hint."""
    is_here = function.__qualname__ not in _NOT_THESE
    hints = KEYWORDS.get(function.__name__, {}) if is_here else {}

    def hint(unknown: list[str]) -> str:
        found = [f"{name}= is {hints[name]}" for name in unknown if name in hints]
        return f"of nats-py's arguments, {', '.join(found)}" if found else ""

    return explain_keywords(function, hint)


def explain_keywords(function: F, hint: Callable[[list[str]], str]) -> F:
    """Wrap a function, so that its error for unknown keyword arguments ends with a hint.

    `hint` receives the unknown names, and returns "" if it knows none of them.
    """

    @wraps(function)
    def hinted(*args: Any, **given: Any) -> Any:
        try:
            return function(*args, **given)
        except TypeError as error:
            import inspect

            known = inspect.signature(function).parameters
            unknown = [name for name in given if name not in known]
            text = hint(unknown) or _near(unknown, known)
            if not text:
                raise
            raise TypeError(f"{str(error).partition('. Did you mean')[0]}; {text}") from None

    # `inspect` is not used for this check, because its import takes milliseconds.
    code: Any = function.__code__  # pyright: ignore[reportFunctionMemberAccess]
    if code.co_flags & _COROUTINE:
        _mark(hinted)
    return hinted  # type: ignore[return-value]


def _near(unknown: list[str], known: Collection[str]) -> str:
    from twinstream.models.names.near_names import name_advice

    return name_advice(unknown, known)


def _mark(function: Any) -> None:
    """Mark a plain function that returns a coroutine as a coroutine function."""
    import inspect

    mark = getattr(inspect, "markcoroutinefunction", None)
    if mark is not None:
        mark(function)
    else:
        # asyncio on Python 3.11 checks this mark. An application with coroutines has imported the
        # module before.
        coroutines: Any = sys.modules["asyncio.coroutines"]
        function._is_coroutine = coroutines._is_coroutine
