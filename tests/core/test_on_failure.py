"""Context managers that act only if their block fails."""

from __future__ import annotations

import asyncio

import pytest

from twinstream.core.on_failure import AsyncOnError, AsyncOnFailure, OnError, OnFailure

ERRORS = (ValueError("x"), KeyboardInterrupt(), SystemExit(3), asyncio.CancelledError())


@pytest.mark.parametrize("error", ERRORS, ids=repr)
def test_failure_is_undone_and_raised(error: BaseException) -> None:
    undone: list[object] = []
    with pytest.raises(type(error)) as one, OnFailure(lambda: undone.append("undone")):
        raise error
    with pytest.raises(type(error)) as other, OnError(undone.append):
        raise error
    assert one.value is other.value is error
    assert undone == ["undone", error]


@pytest.mark.parametrize("error", ERRORS, ids=repr)
def test_failure_is_undone_and_raised_in_a_coroutine(error: BaseException) -> None:
    undone: list[object] = []

    async def undo() -> None:
        undone.append("undone")

    async def handle(error: BaseException) -> None:
        undone.append(error)

    async def work() -> None:
        async with AsyncOnError(handle), AsyncOnFailure(undo):
            raise error

    with pytest.raises(type(error)) as raised:
        work().send(None)
    assert raised.value is error
    assert undone == ["undone", error]


def test_nothing_is_undone_at_the_end_of_the_block() -> None:
    undone: list[object] = []

    async def handle(error: BaseException | None = None) -> None:
        undone.append(error)

    async def work() -> None:
        async with AsyncOnError(handle), AsyncOnFailure(handle):
            pass

    with OnFailure(lambda: undone.append(1)), OnError(undone.append):
        pass
    asyncio.run(work())
    assert not undone


def test_error_of_the_undoing_replaces_the_first_error() -> None:
    def undo() -> None:
        raise OSError("second")

    with pytest.raises(OSError, match="second") as raised, OnFailure(undo):
        raise ValueError("first")
    assert isinstance(raised.value.__context__, ValueError)
