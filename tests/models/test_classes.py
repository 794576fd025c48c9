"""Models and settings are classes of attrs; their errors name what to write instead."""

from __future__ import annotations

import copy
import inspect
import pickle
import weakref
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import attrs
import pytest

import twinstream.models
from js_sync import Credentials, ReconnectPolicy, TlsOptions
from js_sync.workers import Retry
from twinstream.models import ConsumerConfig, Model, PubAck, StreamConfig, decode, encode, evolve
from twinstream.models.codec.settings import Settings
from twinstream.models.index import MODULES

ALL = [getattr(twinstream.models, name) for name in sorted(MODULES)]
MODELS = [each for each in ALL if isinstance(each, type) and issubclass(each, Model)]


def required(cls: type[Model]) -> list[str]:
    return [each.name for each in attrs.fields(cls) if each.default is attrs.NOTHING]


@pytest.mark.parametrize("cls", MODELS)
def test_every_model_is_an_attrs_class(cls: type[Model]) -> None:
    names = [each.name for each in attrs.fields(attrs.resolve_types(cls))]
    assert names[0] == "unknown"
    assert list(inspect.signature(cls).parameters) == names
    assert cls.__init__.__qualname__ == f"{cls.__name__}.__init__"


@pytest.mark.parametrize("cls", [each for each in MODELS if not required(each)])
def test_copies_of_every_model_are_equal_and_frozen(cls: type[Model]) -> None:
    model = cls(unknown={"new": [1]})
    for copied in (copy.copy(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert copied == model
        assert repr(copied) == repr(model)
        with pytest.raises(attrs.exceptions.FrozenInstanceError):
            copied.unknown = {}
    assert evolve(model, unknown={}) != model
    assert weakref.ref(model)() is model
    assert not hasattr(model, "__dict__")


def test_a_model_survives_pickling() -> None:
    config = ConsumerConfig(durable_name="d", ack_policy="explicit", backoff=[])
    assert pickle.loads(pickle.dumps(config)) == config
    assert attrs.evolve(config, max_deliver=3).max_deliver == 3


def test_a_class_that_extends_a_model_is_read_and_written() -> None:
    @attrs.frozen(kw_only=True)
    class Ours(PubAck):
        shard: int | None = None

    found = decode(b'{"stream":"S","seq":1,"shard":4,"more":5}', Ours)
    assert found == Ours(stream="S", seq=1, shard=4, unknown={"more": 5})
    assert found != PubAck(stream="S", seq=1, unknown={"more": 5})
    assert encode(found) == {"stream": "S", "seq": 1, "shard": 4, "more": 5}
    assert evolve(found, shard=5).shard == 5


# ---- errors


def longer(value: timedelta) -> timedelta:
    if value < timedelta(seconds=1):
        raise ValueError("at least a second")
    return value


@attrs.frozen(kw_only=True)
class Example(Settings):
    """Settings of which one has a converter and another an argument of a different name."""

    pause: timedelta = attrs.field(default=timedelta(seconds=1), converter=longer)
    _attempts: int = 3


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Example(attempt=1), "argument 'attempt'; did you mean 'attempts'?"),
        (lambda: Example(_attempts=1), "argument '_attempts'; did you mean 'attempts'?"),
        (lambda: Example(3), "1 positional argument but 2 were given; the fields are keyword"),
        (lambda: Example(pause=timedelta(0)), "^Example.pause: at least a second$"),
        (lambda: StreamConfig(max_age=3), "^StreamConfig.max_age: expected a timedelta, got 3"),
        (lambda: StreamConfig("S"), "the fields are keyword arguments$"),
        (lambda: Retry(attempts=0), "^attempts must be at least 1, or None, got 0$"),
        (lambda: TlsOptions(key_file="k"), "^key_file"),
    ],
)
def test_an_error_of_a_constructor_says_what_to_correct(
    make: Callable[[], object], text: str
) -> None:
    with pytest.raises((TypeError, ValueError), match=text):
        make()


def test_an_error_for_a_frozen_record_names_a_function_that_works() -> None:
    config: Any = StreamConfig(name="S")
    with pytest.raises(AttributeError, match=r"twinstream\.models\.evolve\(record, name=\.\.\.\)"):
        config.name = "T"
    assert evolve(config, name="T") == StreamConfig(name="T")
    example: Any = Example()
    with pytest.raises(AttributeError, match=r"; attrs\.evolve\(record, pause=\.\.\.\) returns"):
        example.pause = timedelta(2)
    assert attrs.evolve(example, pause=timedelta(2)) == Example(pause=timedelta(2))
    with pytest.raises(AttributeError, match=r"delete attribute 'pause': a Example is frozen; "):
        del example.pause


@pytest.mark.parametrize("made", [Retry(), ReconnectPolicy(), TlsOptions(), Credentials(user="u")])
def test_settings_are_values(made: Any) -> None:
    for copied in (copy.deepcopy(made), pickle.loads(pickle.dumps(made)), attrs.evolve(made)):
        assert copied == made
        assert hash(copied) == hash(made)
    assert repr(made).startswith(f"{type(made).__name__}(")
    assert "explained" not in str(inspect.signature(type(made)))
