"""Each public method and property of nats-py's clients has a row in the guide for its users.

The names are those of the installed nats-py, so a new version of it may need new rows.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator

import pytest

from tests.test_nats_py_names import GUIDE

# The modules whose classes programs use, and how the guide calls an object of each class.
PLACES = {
    "nats.aio.client": {"Client": "nc"},
    "nats.aio.msg": {"Msg": "msg"},
    "nats.aio.subscription": {"Subscription": "sub"},
    "nats.js.client": {
        "JetStreamContext": "js",
        "JetStreamContext.PushSubscription": "sub",
        "JetStreamContext.PullSubscription": "sub",
    },
    "nats.js.manager": {"JetStreamManager": "js"},
    "nats.js.kv": {
        "KeyValue": "kv",
        "KeyValue.BucketStatus": "status",
        "KeyValue.KeyWatcher": "watcher",
    },
    "nats.js.object_store": {
        "ObjectStore": "store",
        "ObjectStore.ObjectStoreStatus": "status",
        "ObjectStore.ObjectWatcher": "watcher",
    },
    "nats.micro.service": {"Service": "service", "Group": "group"},
    "nats.micro.request": {"Request": "request"},
    "nats.micro": {},
}
# Classes of these modules that are no part of a program's calls, each with the reason.
NOT_CALLED = {
    "ServerVersion": "what `connected_server_version` returns",
    "Srv": "internal: a server of the pool",
    "EndpointManager": "an abstract base of Service and Group",
    "GroupManager": "an abstract base of Service and Group",
    "EndpointStats": "a record",
    "EndpointInfo": "a record",
    "ServicePing": "a record",
    "ServiceInfo": "a record",
    "ServiceStats": "a record",
    "KeyValue.Entry": "a record; its fields have rows",
    "ObjectStore.ObjectResult": "a record",
}


def classes(module: str) -> Iterator[tuple[str, type]]:
    """Yield the public classes of a module with methods, by qualified name."""
    waiting = list(vars(importlib.import_module(module)).values())
    while waiting:
        found = waiting.pop()
        if not inspect.isclass(found) or found.__module__ != module:
            continue
        name = found.__qualname__
        if issubclass(found, BaseException) or name.rpartition(".")[2].startswith("_"):
            continue
        waiting += [each for key, each in vars(found).items() if not key.startswith("_")]
        if methods(found):
            yield name, found


def methods(found: type) -> list[str]:
    """Return the public methods and properties that a class defines itself."""
    return [
        name
        for name, value in vars(found).items()
        if not name.startswith("_")
        if isinstance(value, property) or inspect.isroutine(value)
    ]


CALLS = sorted(
    {
        (place, method)
        for module, named in PLACES.items()
        for name, found in classes(module)
        if (place := named.get(name))
        for method in methods(found)
    }
)


def spans() -> list[str]:
    """Return the left cells of the tables of calls."""
    text = GUIDE.read_text("utf-8").partition("## Call by call")[2]
    text = text.partition("## What behaves differently")[0]
    return re.findall(r"^\| (.+?) \| ", text, re.MULTILINE)


def test_every_class_has_a_place_or_a_reason() -> None:
    found = {name for module in PLACES for name, _ in classes(module)}
    placed = {name for named in PLACES.values() for name in named}
    assert found - placed == {name for name in found if name in NOT_CALLED}
    assert placed <= found
    assert len(CALLS) > 100


@pytest.mark.parametrize(("place", "method"), CALLS)
def test_a_call_has_a_row(place: str, method: str) -> None:
    rows = [cell for cell in spans() if f"`{place}." in cell]
    assert any(re.search(rf"\b{method}\b", cell) for cell in rows), f"{place}.{method}"


@pytest.mark.parametrize("function", ["nats.connect", "nats.micro.add_service"])
def test_a_function_has_a_row(function: str) -> None:
    assert any(f"`{function}(" in cell for cell in spans())
