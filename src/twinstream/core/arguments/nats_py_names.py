"""Names of nats-py and other clients with their equivalents, as hints in errors.

`docs/from-nats-py.md` has the same table of nats-py's names; a test compares both.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import wraps
from inspect import iscoroutinefunction, unwrap
from types import CodeType, FunctionType
from typing import Any, Final, ParamSpec, TypeVar, cast

__all__ = [
    "ATTRIBUTES",
    "GUESSES",
    "hint_attributes",
    "methods_of",
    "takes_config",
    "unknown_keyword",
]

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

_CONFIG: Final = "create_consumer(ConsumerConfig(durable_name=, filter_subject=)) of a stream"

ATTRIBUTES: Final[Mapping[str, Mapping[str, str]]] = {
    "Connection": {
        "client_id": "server_info.client_id",
        "client_ip": 'server_info.raw["client_ip"]',
        "connect": "the function connect(servers)",
        "connected_server_version": "server_info.version",
        "connected_url": "events(), whose Connected has the server",
        "discovered_servers": "events(), with ServersDiscovered",
        "is_connecting": "is_connected",
        "is_draining": "is_closed",
        "is_reconnecting": "is_connected",
        "jsm": "jetstream()",
        "last_error": "events(), with ServerReported and Disconnected",
        "max_payload": "server_info.max_payload",
        "new_inbox": "request(subject, data), which has its own inbox",
        "rtt": "the time of flush()",
        "server_pool": "events(), with ServersDiscovered",
        "servers": "events(), with ServersDiscovered",
    },
    "JetStream": {
        "add_stream": "create_stream(StreamConfig(name=, subjects=))",
        "stream_info": "get_stream(name).cached_info, or info() of a stream",
        "streams_info": "streams()",
        "streams_info_iterator": "streams()",
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
        "publish_async_pending": "in_flight of a publisher()",
        "pull_subscribe": _CONFIG,
        "pull_subscribe_bind": "get_consumer(stream, name), or bind_consumer",
        "subscribe": "workers.Worker(jet, stream_name, config, handler)"
        ", or messages() of a consumer",
        "subscribe_bind": "push_messages(name) of a stream",
        "key_value": "get_key_value(bucket)",
        "object_store": "get_object_store(bucket)",
    },
    "KeyValue": {
        "watchall": "watch() without filters",
    },
    "ObjectStore": {
        "get_info": "info(name)",
    },
    "Consumer": {
        "consumer_info": "info()",
    },
    "Message": {
        "_ackd": "is_acknowledged",
        "is_acked": "is_acknowledged",
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
        "messages": "the subscription itself, in a loop `for message in messages`",
        "next_msg": "next(timeout=)",
        "pending_msgs": "buffered",
        "unsubscribe": "close()",
    },
}
"""Hints by class and attribute name."""

_CONTENT: Final[Mapping[str, str]] = {
    "body": "data",
    "content": "data",
    "value": "data",
}
_SEQUENCES: Final = "seq (of the consumer: metadata.consumer_seq)"

GUESSES: Final[Mapping[str, Mapping[str, str]]] = {
    "Connection": {
        "chan_subscribe": "subscribe(subject)",
        "publish_msg": "publish(subject, data, headers=)",
        "queue_subscribe": "subscribe(subject, queue=)",
        "request_msg": "request(subject, data, headers=)",
        "subscribe_sync": "subscribe(subject)",
    },
    "JetStream": {
        "insert": "exactly_once.SubjectWriter(jet).insert(subject, data)",
        "outbox": "outbox.OutboxRelay(jet, store, stream_name, by=)",
        "process": "exactly_once.Processing(jet, stream_name, consumer, handler, into=, by=)",
        "update": "exactly_once.SubjectWriter(jet).update(subject, data, expected_seq)",
        "upsert": "exactly_once.SubjectWriter(jet).upsert(subject, data)",
        "consumer": "get_consumer(stream_name, consumer_name)",
        "key_value_store_names": "key_value_names()",
        "key_value_stores": "key_values()",
        "list_streams": "streams()",
        "ordered_consumer": "bind_stream(stream_name).ordered()",
        "publish_async_complete": "publisher(), with flush()",
        "publish_msg": "publish(subject, data, headers=)",
        "push_consumer": "bind_stream(stream_name).push_messages(name)",
        "stream": "get_stream(stream_name)",
        "unpin_consumer": "bind_consumer(stream_name, consumer_name).unpin(group)",
    },
    "Stream": {
        "config": "info(), with config",
        "consumer": "get_consumer(name)",
        "delete_msg": "delete_message(seq)",
        "get_last_msg_for_subject": "get_last_message(subject)",
        "get_msg": "get_message(seq)",
        "list_consumers": "consumers()",
        "ordered_consumer": "ordered()",
        "pause_consumer": "bind_consumer(name).pause()",
        "push_consumer": "push_messages(name)",
        "resume_consumer": "bind_consumer(name).resume()",
        "secure_delete_msg": "delete_message(seq, erase=True)",
        "update": "change(edit), or update_stream(config) of the JetStream",
        "unpin_consumer": "bind_consumer(name).unpin(group)",
    },
    "Consumer": {
        "config": "info(), with config",
        "fetch_bytes": "fetch(max_bytes=)",
        "fetch_no_wait": 'fetch(n, wait="none")',
    },
    "Consuming": {"closed": "wait()"},
    "KeyValueStatus": {"history": "config.history", "ttl": "config.ttl"},
    "Messages": {"stop": "close()"},
    "ObjectStoreStatus": {
        "description": "config.description",
        "replicas": "config.num_replicas",
        "storage_type": "config.storage",
        "ttl": "config.ttl",
    },
    "OrderedMessages": {
        "consume": "next(timeout=), or a loop `for message in messages`",
        "messages": "next(timeout=), or a loop `for message in messages`",
        "stop": "close()",
    },
    "PublishHandle": {"done": "is_done", "err": "result()", "ok": "result()"},
    "CoreMessage": {**_CONTENT, "payload": "data"},
    "Message": {
        **_CONTENT,
        "acknowledge": "ack()",
        "consumer": "metadata.consumer",
        "delivery_count": "num_delivered",
        "nack": "nak()",
        "nak_with_delay": "nak(delay)",
        "redelivered": "num_delivered > 1",
        "reject": "term()",
        "sequence": _SEQUENCES,
        "stream": "metadata.stream",
        "term_with_reason": "term(reason)",
        "timestamp": "time",
        "touch": "in_progress()",
    },
    "StreamMessage": {
        **_CONTENT,
        "sequence": "seq",
        "stream": "stream_name",
        "timestamp": "time",
    },
    "KeyValue": {
        "contains": "get(key, default=None)",
        "exists": "get(key, default=None)",
        "get_revision": "get(key, revision=)",
        "list": "keys()",
        "list_keys": "keys()",
        "put_string": "put(key, text.encode())",
        "set": "put(key, value)",
        "watch_all": "watch()",
        "list_keys_filtered": "keys(keys)",
        "watch_filtered": "watch(keys)",
    },
    "KeyValueWatch": {"stop": "close()", "updates": "next(timeout=)"},
    "ObjectStore": {
        "get_string": "get_bytes(name)",
        "put_bytes": "put(name, data)",
        "put_string": "put(name, text.encode())",
    },
}
"""Names by class that readers guess, with the names that mean the same, also of packages."""


# A descriptor for a name that a class does not have. It replaces `__getattr__`. If a class defines
# that method, the interpreter does not specialise its attribute accesses, so each takes longer
# (0.04 µs instead of 0.02, Python 3.11).
class _Absent:
    __slots__ = ("__doc__", "_hint", "_name")

    def __init__(self, name: str, hint: str) -> None:
        self._name = name
        self._hint = hint
        # `help` of a class lists its descriptors, each with this text.
        self.__doc__ = f"No attribute{hint}"

    def __get__(self, instance: object | None, owner: type) -> object:
        text = f"has no attribute {self._name!r}"
        if instance is None:
            text = f"type object {owner.__name__!r} {text}"
            raise AttributeError(text, name=self._name, obj=owner)
        # With `obj`, Python adds its own suggestion, which may contradict the hint.
        raise AttributeError(f"{owner.__name__!r} object {text}{self._hint}", name=self._name)


def hint_attributes(owner: type[T]) -> type[T]:
    """Make the names in `ATTRIBUTES` and `GUESSES` for a class raise an error with a hint.

    `dir` of an object does not list these names. The function returns the class, so it can be a
    decorator.
    """
    guesses, names = GUESSES.get(owner.__name__, {}), ATTRIBUTES.get(owner.__name__, {})
    hints = {name: f"; did you mean {meant}?" for name, meant in guesses.items()}
    hints |= {name: f": the equivalent of this nats-py name is {names[name]}" for name in names}
    for name, hint in hints.items():
        if hasattr(owner, name):
            raise TypeError(f"{owner.__name__} has {name!r}: remove the hint for this name")
        setattr(owner, name, _Absent(name, hint))
    offered: Any = owner.__dir__

    def without(self: object) -> list[str]:
        return [name for name in offered(self) if name not in hints]

    setattr(owner, "__dir__", without)  # noqa: B010  # type checkers refuse the assignment
    return owner


def methods_of(public: str) -> Callable[[type[T]], type[T]]:
    """Return a decorator for the base class of `public`, whose errors then name that class.

    Python names the class in the error for a wrong argument.
    """

    def renamed(base: type[T]) -> type[T]:
        for name, method in vars(base).items():
            if isinstance(method, FunctionType):
                # The function in a decorator, too.
                method.__qualname__ = unwrap(method).__qualname__ = f"{public}.{name}"
        return base

    return renamed


def unknown_keyword(function: str, unknown: Iterable[str]) -> TypeError:
    """Return the error, with a hint, for keyword arguments that a function does not have.

    Calls that programs make often have a parameter `**_unknown: Never` for it, which costs less
    than 0.1 µs. The function itself must call this: the parameters are those of the caller.
    """
    from twinstream.core.arguments.unknown_keywords import unknown_argument

    return unknown_argument(function, list(unknown), _parameters(sys._getframe(1).f_code))


def _parameters(code: CodeType) -> tuple[str, ...]:
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def takes_config(kind: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator for a call whose argument `config` is a configuration of class `kind`.

    If a program passes the settings themselves, the error shows the configuration.
    """

    def decorated(method: Callable[P, R]) -> Callable[P, R]:
        """Return `method` with a check of the names of its keyword arguments before each call."""
        parameters = _parameters(cast("FunctionType", method).__code__)

        def check(named: Mapping[str, object]) -> None:
            unknown = [name for name in named if name not in parameters]
            if unknown:
                from twinstream.core.arguments.unknown_keywords import unknown_argument

                settings = ", ".join(f"{name}=" for name in unknown)
                config = f"config={kind}({settings})"
                raise unknown_argument(method.__qualname__, unknown, parameters, config)

        @wraps(method)
        def called(*given: Any, **named: Any) -> Any:
            check(named)
            return method(*given, **named)

        @wraps(method)
        async def awaited(*given: Any, **named: Any) -> Any:
            check(named)
            return await cast("Awaitable[Any]", method(*given, **named))

        return cast("Callable[P, R]", awaited if iscoroutinefunction(method) else called)

    return decorated
