"""Every error of the SDK is unchanged after pickling and copying, with its notes and cause."""

from __future__ import annotations

import copy
import importlib
import pickle
import pkgutil
from collections.abc import Iterator

import pytest

from twinstream.errors import JetStreamError, OutcomeUnknown, PublishFailure
from twinstream.models.files.document import Fault
from twinstream.models.picklable_error import PicklableError
from twinstream.models.problem import Problem
from twinstream.models.stored_config import ConfigError
from twinstream.records.atomic_outcome import AtomicOutcome
from twinstream.records.entry import Entry, KeyValueOperation
from twinstream.records.guarantee_gap import GuaranteeGap
from twinstream.records.headers import Headers
from twinstream.records.publish_request import PublishRequest

PACKAGES = ("twinstream.models", "twinstream.core", "js_async", "js_sync", "twinstream.spark")
FAILURE = PublishFailure(PublishRequest(subject="s", data=b"x"), OutcomeUnknown("lost"))

ENTRY = Entry[bytes](
    bucket="B",
    key="k",
    value=None,
    revision=7,
    operation=KeyValueOperation.PURGE,
    timestamp_ns=1,
    size=0,
    headers=Headers([("KV-Operation", "PURGE")]),
)

# What the classes take that do not take a text.
ARGUMENTS: dict[str, tuple[tuple[object, ...], dict[str, object]]] = {
    "UnsuitableSettings": (("S", "order", (GuaranteeGap("max_age", "1 h", "it goes", "0"),)), {}),
    "PublishFailures": (([FAILURE], 3), {}),
    "JetStreamError": (("no",), {"code": 404, "err_code": 10059, "subject": "$JS.API.X"}),
    "KeyNotFound": (("B", "k"), {}),
    "KeyDeleted": ((ENTRY,), {}),
    "PullRefused": (("max_batch", 500, 100, "Exceeded"), {}),
    "AtomicBatchFailed": (("no", AtomicOutcome.REFUSED, "why"), {}),
    "TryLater": ((1.5, "later"), {}),
    "DecodeError": (("a config", [("ack_wait", "no number")]), {}),
    "twinstream.models.ConfigError": (([Problem("a", 1, "S-1", "m")],), {}),
    "TextError": ((Fault((1, 2), "no text"),), {}),
    "OptionError": (("stream", "missing"), {}),
    "twinstream.spark.ConfigError": (("f.toml", "missing"), {}),
    "DecodeFailure": (("S", 7, "no JSON"), {}),
}


def error_classes() -> Iterator[type[Exception]]:
    """Yield the public exception classes."""
    for name in PACKAGES:
        package = importlib.import_module(name)
        for found in pkgutil.walk_packages(package.__path__, f"{name}."):
            module = importlib.import_module(found.name)
            for word, each in vars(module).items():
                is_error = isinstance(each, type) and issubclass(each, Exception)
                if is_error and each.__module__ == module.__name__ and not word.startswith("_"):
                    yield each


CLASSES = list(error_classes())


def made(cls: type[Exception]) -> Exception:
    package = ".".join(cls.__module__.split(".")[:2])
    for base in cls.__mro__:
        for key in (f"{package}.{base.__name__}", base.__name__):
            if key in ARGUMENTS:
                arguments, named = ARGUMENTS[key]
                return cls(*arguments, **named)
    return cls("a text")


def troubled(cls: type[Exception]) -> Exception:
    """Return an error with notes, an attribute, and a cause that has notes, too."""
    error = made(cls)
    error.add_note("try this")
    error.extra = {"a": 1}  # type: ignore[attr-defined]
    cause = OSError(5, "broken")
    cause.add_note("of the disk")
    error.__cause__ = cause
    return error


def same(one: Exception, other: Exception) -> None:
    assert type(one) is type(other)
    assert (str(one), one.args) == (str(other), other.args)
    state = {name: value for name, value in vars(one).items() if name != "failures"}
    assert state == {name: value for name, value in vars(other).items() if name != "failures"}
    assert one.__notes__ == ["try this"] == other.__notes__
    assert one.__suppress_context__ == other.__suppress_context__


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: f"{cls.__module__}.{cls.__name__}")
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_an_error_is_the_same_after_pickling(cls: type[Exception], protocol: int) -> None:
    error = troubled(cls)
    again = pickle.loads(pickle.dumps(error, protocol))
    if isinstance(error, PicklableError):
        same(error, again)
        assert repr(again.__cause__) == "OSError(5, 'broken')"
        assert again.__cause__.__notes__ == ["of the disk"]
    assert again.__notes__ == ["try this"]
    assert again.extra == {"a": 1}
    # Once more, as an error that travels through several processes.
    assert str(pickle.loads(pickle.dumps(again, protocol))) == str(error)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: f"{cls.__module__}.{cls.__name__}")
def test_an_error_is_the_same_after_copying(cls: type[Exception]) -> None:
    error = troubled(cls)
    for again in (copy.copy(error), copy.deepcopy(error)):
        assert again.__notes__ == ["try this"]
        if isinstance(error, PicklableError):
            same(error, again)
            assert isinstance(again.__cause__, OSError)
            again.add_note("more")
            assert error.__notes__ == ["try this"]
    if isinstance(error, PicklableError):
        assert copy.copy(error).__cause__ is error.__cause__


def test_a_cause_that_cannot_be_pickled_becomes_a_note() -> None:
    class Local(Exception):
        pass

    error = JetStreamError("no", code=400, err_code=10001)
    error.__cause__ = Local("of the program")
    again = pickle.loads(pickle.dumps(error))
    assert again.__cause__ is None
    assert again.__notes__ == ["caused by Local('of the program')"]
    # The error itself stays as it was.
    assert not hasattr(error, "__notes__")
    assert copy.copy(error).__cause__ is error.__cause__


def test_arguments_of_the_models_errors_survive() -> None:
    error = made(ConfigError)
    assert pickle.loads(pickle.dumps(error)).problems == error.problems  # type: ignore[attr-defined]
