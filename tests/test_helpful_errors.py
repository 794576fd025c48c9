"""Wrong statements that newcomers write: the error names what to write instead."""

from __future__ import annotations

import asyncio
import inspect
import pydoc
import re
from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest

import js_async
import js_sync
from js_sync.workers import Retry
from twinstream import models
from twinstream.core.arguments.nats_py_names import GUESSES
from twinstream.core.arguments.unknown_keywords import ARGUMENTS
from twinstream.models import RetentionPolicy

BOTH = [js_async, js_sync]
BUCKETS = {
    "KeyValue": ("get(key) raises KeyNotFound", "get(key)", "keys()"),
    "ObjectStore": ("info(name) raises ObjectNotFound", "info(name)", "list()"),
}
TWINS = pytest.mark.parametrize("js", BOTH)


def method(owner: type, name: str) -> Any:
    """Return a method of an object that no call needs, because the arguments are refused."""
    return getattr(owner.__new__(owner), name)


NAMES: dict[str, tuple[Callable[[Any], object], str]] = {
    "attempts": (lambda js: js.ConsumerConfig(max_retries=3), "did you mean 'max_deliver'?"),
    "age": (lambda js: js.StreamConfig(ttl=3), "did you mean 'max_age'?"),
    "bucket": (lambda js: js.KeyValueConfig(name="a"), "did you mean 'bucket'?"),
    "store": (lambda js: js.ObjectStoreConfig(name="a"), "did you mean 'bucket'?"),
    "part of a name": (lambda js: js.ConsumerConfig(durable="a"), "did you mean 'durable_name'?"),
    "retry": (lambda js: Retry(max_attempts=3), "did you mean 'attempts'?"),
    "reconnect": (lambda js: js.ReconnectPolicy(max_delay=3), "did you mean 'max_wait'?"),
    "tls": (lambda js: js.TlsOptions(hostname="a"), "did you mean 'server_name'?"),
    "priority": (lambda js: js.Priority(grp="a"), "did you mean 'group'?"),
    "no converters": (lambda js: js.SubjectTransform(srcc="a"), "did you mean 'src'?"),
    "direct reads": (
        lambda js: js.KeyValueConfig(bucket="a", direct=True),
        "direct= of nats-py is not needed: a bucket has direct reads",
    ),
}


@TWINS
@pytest.mark.parametrize(("call", "hint"), NAMES.values(), ids=NAMES)
def test_error_for_an_unknown_setting_names_the_right_one(
    js: Any, call: Callable[[Any], object], hint: str
) -> None:
    with pytest.raises(TypeError) as caught:
        call(js)
    assert str(caught.value).endswith(f"; {hint}")
    assert str(caught.value).lower().count("did you mean") <= 1


# Settings of nats.go in snake case, where they differ from the settings here.
OF_GO = {
    "StreamConfig": {
        "allow_atomic_publish": "allow_atomic",
        "allow_batch_publish": "allow_batched",
        "allow_rollup": "allow_rollup_hdrs",
        "duplicates": "duplicate_window",
        "re_publish": "republish",
        "replicas": "num_replicas",
    },
    "ConsumerConfig": {
        "back_off": "backoff",
        "durable": "durable_name",
        "max_request_batch": "max_batch",
        "max_request_expires": "max_expires",
        "max_request_max_bytes": "max_bytes",
        "memory_storage": "mem_storage",
        "pinned_ttl": "priority_timeout",
        "rate_limit": "rate_limit_bps",
        "replicas": "num_replicas",
        "sample_frequency": "sample_freq",
    },
    "KeyValueConfig": {"re_publish": "republish", "replicas": "num_replicas"},
    "ObjectStoreConfig": {"replicas": "num_replicas"},
    "Republish": {"destination": "dest", "source": "src"},
    "SubjectTransform": {"destination": "dest", "source": "src"},
    "ExternalStream": {"api_prefix": "api", "deliver_prefix": "deliver"},
}


@pytest.mark.parametrize("owner", OF_GO)
def test_settings_of_nats_go_are_answered_with_the_own_ones(owner: str) -> None:
    kind = getattr(models, owner)
    for name, meant in OF_GO[owner].items():
        with pytest.raises(TypeError, match=f"; did you mean '{meant}'\\?$"):
            kind(**{name: 1})
    with pytest.raises(TypeError) as caught:
        kind(**dict.fromkeys(OF_GO[owner], 1))
    if len(OF_GO[owner]) > 1:
        for name, meant in OF_GO[owner].items():
            assert f"'{meant}' for '{name}'" in str(caught.value)


def test_a_domain_is_answered_with_the_setting_that_has_it() -> None:
    with pytest.raises(TypeError, match=r'external=ExternalStream\(api="\$JS.<domain>.API"\)$'):
        models.StreamSource(name="a", domain="d")
    # The setting works as the error shows it.
    models.StreamSource(name="a", external=models.ExternalStream(api="$JS.d.API"))


@TWINS
def test_names_that_are_not_near_get_no_suggestion(js: Any) -> None:
    for call in (
        lambda: js.StreamConfig(max_retries=3),
        lambda: js.ConsumerConfig(colour=3),
        lambda: Retry(colour=3),
    ):
        with pytest.raises(TypeError, match="unexpected keyword argument") as caught:
            call()
        assert "did you mean" not in str(caught.value)


@TWINS
@pytest.mark.parametrize(
    ("name", "hint"),
    [("WORK_QUEUE", "did you mean WORKQUEUE"), ("QUEUE", "it has LIMITS, INTEREST, WORKQUEUE")],
)
def test_error_for_an_unknown_member_of_an_enumeration_names_the_right_one(
    js: Any, name: str, hint: str
) -> None:
    with pytest.raises(AttributeError, match=f"RetentionPolicy has no member '{name}'; {hint}"):
        getattr(RetentionPolicy, name)
    assert not hasattr(RetentionPolicy, "__await__")


def use(value: Any, kind: str) -> object:
    match kind:
        case "in":
            return "a" in value
        case "read":
            return value["a"]
        case "write":
            value["a"] = b""
        case "delete":
            del value["a"]
        case "loop":
            return list(value)
        case "async loop":
            return value.__aiter__()
    return None


@TWINS
@pytest.mark.parametrize("owner", BUCKETS)
def test_a_bucket_is_no_container(js: Any, owner: str) -> None:
    kind = getattr(js, owner)
    bucket = kind.__new__(kind)
    inside, get, names = BUCKETS[owner]
    for how, hint in {
        "in": inside,
        "read": get,
        "write": "put()",
        "delete": "delete()",
        "loop": names,
        "async loop": names,
    }.items():
        with pytest.raises(TypeError, match=f"{owner} has no .*{re.escape(hint)}"):
            use(bucket, how)
    assert bucket


def generators(js: Any) -> dict[str, Callable[[], Any]]:
    def of(owner: str, method: str, *given: object) -> Callable[[], Any]:
        folder = {"DeadLetters": "workers", "Coordination": "coordination"}.get(owner)
        package = js if folder is None else import_module(f"{js.__name__}.{folder}")
        kind = getattr(package, owner)
        # The generator function runs only with the first item.
        return lambda: getattr(kind.__new__(kind), method)(*given)

    return {
        "list": of("ObjectStore", "list"),
        "initial": of("KeyValueWatch", "initial"),
        "arrow_batches": of("StreamRead", "arrow_batches"),
        "held": of("Coordination", "held"),
        "letters": of("DeadLetters", "letters"),
    }


@pytest.mark.parametrize("name", generators(js_async))
def test_an_async_generator_names_the_right_statement(name: str) -> None:
    made = generators(js_async)[name]
    with pytest.raises(TypeError, match=rf"^{name}\(\) needs 'async for': write 'async for'"):
        list(made())

    async def wait() -> None:
        with pytest.raises(TypeError, match=rf"^{name}\(\) needs 'async for'.* of 'await'"):
            await made()
        await made().aclose()

    asyncio.run(wait())


@pytest.mark.parametrize("name", generators(js_sync))
def test_a_generator_names_the_right_statement(name: str) -> None:
    made = generators(js_sync)[name]()
    with pytest.raises(TypeError, match=rf"^{name}\(\) needs 'for': write 'for' instead of 'async"):
        made.__aiter__()
    made.close()
    assert list(made) == []


@TWINS
@pytest.mark.parametrize(
    ("owner", "name"), [(owner, name) for owner, names in GUESSES.items() for name in names]
)
def test_a_guessed_name_is_answered_with_the_right_one(js: Any, owner: str, name: str) -> None:
    kind = getattr(js, owner)
    found = kind.__new__(kind)
    with pytest.raises(AttributeError) as caught:
        getattr(found, name)
    hint = GUESSES[owner][name]
    assert str(caught.value).endswith(f"has no attribute {name!r}; did you mean {hint}?")
    # What the hint names exists: an attribute, or a class of a package.
    first, *others = re.split(r"\W", hint)
    assert hasattr(kind, first) or hasattr(import_module(f"{js.__name__}.{first}"), others[0])
    assert not hasattr(kind, name)
    assert name not in dir(found)


REQUIRED = {
    "subscribe": ["a"],
    "JetStream.publish": ["a"],
    "Stream.get_message": [1],
    "Consumer.consume": [print],
    "KeyValue.create": ["k", b""],
    "KeyValue.put": ["k", b""],
    "KeyValue.update": ["k", b"", 1],
    "ObjectStore.put": ["a", b""],
    "ObjectStore.put_file": ["a"],
}


def run(made: Any) -> None:
    """Run a coroutine, or a generator until its first item. Other calls have run already."""
    if hasattr(made, "__anext__"):
        made = made.__anext__()
    if hasattr(made, "send"):
        made.send(None)


def refusal(js: Any, function: str, **unknown: object) -> str:
    """Return the text of the error for arguments that a call does not have."""
    owner, _, name = function.rpartition(".")
    call = js.connect if name == "connect" else method(getattr(js, owner or "Connection"), name)
    with pytest.raises(TypeError) as caught:
        run(call(*REQUIRED.get(function, []), **unknown))
    return str(caught.value)


@TWINS
@pytest.mark.parametrize("function", ARGUMENTS)
def test_an_unknown_argument_is_answered_with_the_right_one(js: Any, function: str) -> None:
    owner, _, name = function.rpartition(".")
    kind = getattr(js, owner or "Connection")
    own = inspect.signature(js.connect if name == "connect" else getattr(kind, name)).parameters
    for unknown, hint in ARGUMENTS[function].items():
        text = f"{function}() got an unexpected keyword argument {unknown!r}; did you mean {hint}?"
        assert refusal(js, function, **{unknown: 1}) == text
        argument = re.match(r"(\w+)=", hint)
        assert argument is None or argument[1] in own
        assert unknown not in own
    assert refusal(js, function, colour=1).endswith("unexpected keyword argument 'colour'")


@TWINS
def test_a_misspelt_argument_is_answered_as_python_does(js: Any) -> None:
    assert refusal(js, "JetStream.publish", msg_idd=1).endswith("; did you mean msg_id=?")
    assert refusal(js, "Consumer.fetch", max_mesages=1).endswith("; did you mean max_messages=?")
    several = refusal(js, "Consumer.fetch", batch=1, max_wait=1, colour=1)
    assert several.endswith("; did you mean max_messages= for 'batch', timeout= for 'max_wait'?")


CONFIGS = {
    "JetStream": {
        "create_stream": "StreamConfig",
        "update_stream": "StreamConfig",
        "create_or_update_stream": "StreamConfig",
        "create_consumer": "ConsumerConfig",
        "create_or_update_consumer": "ConsumerConfig",
        "update_consumer": "ConsumerConfig",
        "create_key_value": "KeyValueConfig",
        "update_key_value": "KeyValueConfig",
        "create_or_update_key_value": "KeyValueConfig",
        "create_object_store": "ObjectStoreConfig",
        "update_object_store": "ObjectStoreConfig",
        "create_or_update_object_store": "ObjectStoreConfig",
    },
    "Stream": {
        "create_consumer": "ConsumerConfig",
        "create_or_update_consumer": "ConsumerConfig",
        "update_consumer": "ConsumerConfig",
    },
}


@TWINS
@pytest.mark.parametrize("owner", CONFIGS)
def test_settings_as_arguments_are_answered_with_the_configuration(js: Any, owner: str) -> None:
    for name, config in CONFIGS[owner].items():
        text = f"{owner}.{name}() got an unexpected keyword argument 'name'; did you mean config="
        refused = refusal(js, f"{owner}.{name}", name="a", subjects=["a"])
        assert refused == f"{text}{config}(name=, subjects=)?"
        assert refusal(js, f"{owner}.{name}", timeot=1).endswith("; did you mean timeout=?")
        assert inspect.iscoroutinefunction(getattr(getattr(js, owner), name)) == (js is js_async)
        missing = rf"^{owner}\.{name}\(\) missing .* required positional argument"
        with pytest.raises(TypeError, match=missing):
            run(method(getattr(js, owner), name)())


@TWINS
def test_errors_of_inherited_methods_name_the_public_class(js: Any) -> None:
    for owner, name in (("Consumer", "fetch"), ("Consumer", "double_ack"), ("Stream", "consumers")):
        with pytest.raises(TypeError, match=rf"^{owner}\.{name}\(\) "):
            method(getattr(js, owner), name)(1, 2, 3, 4)


@TWINS
def test_help_of_a_class_shows_the_hints_of_its_missing_names(js: Any) -> None:
    page = pydoc.plain(pydoc.render_doc(js.PublishHandle))
    assert re.search(r"\| +ok\n \| +No attribute; did you mean result\(\)\?\n", page)


@TWINS
def test_a_frozen_record_names_evolve(js: Any) -> None:
    config = js.StreamConfig(name="a")
    hint = r"a StreamConfig is frozen; twinstream.models.evolve\(record, max_age=...\) returns"
    with pytest.raises(AttributeError, match=f"can't set attribute 'max_age': {hint}"):
        config.max_age = 5
    with pytest.raises(AttributeError, match=r"evolve\(record, max_age=None\) returns"):
        del config.max_age
    with pytest.raises(AttributeError, match=r"can't set attribute 'maximum'.* is frozen$"):
        config.maximum = 5
    with pytest.raises(AttributeError, match=r"evolve\(record, attempts=...\)"):
        Retry().attempts = 5
