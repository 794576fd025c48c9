"""`with` and `for` written for the other twin: a `TypeError` names the right statement."""

from __future__ import annotations

import asyncio
import gc
import inspect
from collections.abc import Iterator
from typing import Any

import pytest

import js_async
import js_sync
from twinstream.core.arguments.wrong_statement import NoContainer


def classes(package: Any, method: str) -> Iterator[type]:
    for name in package.__all__:
        found = getattr(package, name)
        # Those of twinstream.core are values, the same in both twins.
        own = inspect.isclass(found) and found.__module__.startswith(package.__name__)
        own = own and not issubclass(found, NoContainer)
        if own and hasattr(found, method) and not issubclass(found, tuple):
            yield found


ASYNC = [
    *[pytest.param(each, "__enter__", "async with") for each in classes(js_async, "__aenter__")],
    *[pytest.param(each, "__iter__", "async for") for each in classes(js_async, "__aiter__")],
]
SYNC = [
    *[pytest.param(each, "__aenter__", "with") for each in classes(js_sync, "__enter__")],
    *[pytest.param(each, "__aiter__", "for") for each in classes(js_sync, "__iter__")],
]


@pytest.mark.parametrize(("owner", "method", "right"), [*ASYNC, *SYNC])
def test_the_other_statement_is_refused_with_the_right_one(
    owner: type, method: str, right: str
) -> None:
    found = owner.__new__(owner)

    def use() -> None:
        used = getattr(owner, method)(found)
        if inspect.iscoroutine(used):
            used.send(None)

    with pytest.raises(TypeError, match=f"{owner.__name__} needs '{right}': write '{right}'"):
        use()


def test_there_are_classes_to_look_at() -> None:
    assert len(ASYNC) > 20
    assert len(SYNC) > 20


def test_a_connection_in_a_plain_block_leaves_no_coroutine_behind() -> None:
    async def program() -> None:
        with pytest.raises(TypeError, match="write 'async with' instead of 'with'"):
            with js_async.connect("nats://127.0.0.1:1"):  # type: ignore[attr-defined]
                pass
        # Warnings are errors here: a coroutine that was never awaited would be one.
        gc.collect()

    asyncio.run(program())
