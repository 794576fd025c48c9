"""The page about the architecture follows the calls that programs make."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import js_async as js
from tests.unhurried import UNHURRIED
from twinstream.testing import NatsServer

ROOT = Path(__file__).resolve().parents[1]
SRC = ROOT / "src"
PAGE = (ROOT / "docs" / "architecture.md").read_text("utf-8")


def test_the_modules_of_a_publish_are_those_of_the_page(server: NatsServer) -> None:
    async def publish() -> list[str]:
        async with js.connect(server.url, **UNHURRIED) as nc:
            jet = nc.jetstream()
            await jet.create_stream(js.StreamConfig(name="S", subjects=["s"]))
            # The first one loads modules, and teaches the shape of responses.
            await jet.publish("s", b"x")
            with recorded() as entered:
                await jet.publish("s", b"x")
            return entered

    assert asyncio.run(publish()) == listed("One publish")


def test_the_modules_of_a_message_are_those_of_the_page(server: NatsServer) -> None:
    async def consume() -> list[str]:
        async with (
            js.connect(server.url, **UNHURRIED) as nc,
            js.connect(server.url, **UNHURRIED) as other,
        ):
            jet = nc.jetstream()
            stream = await jet.create_stream(js.StreamConfig(name="M", subjects=["m"]))
            consumer = await stream.create_consumer(js.ConsumerConfig(durable_name="c"))
            async with consumer.messages() as messages:
                await other.publish("m", b"the first one loads modules")
                assert await messages.next(timeout=60)
                waiting = asyncio.create_task(messages.next(timeout=60))
                # The task sends its pull request, and waits.
                while not (await consumer.info()).num_waiting:
                    await asyncio.sleep(0.01)
                with recorded(begin="socket_link.py", end="js_async/consume/") as entered:
                    await other.publish("m", b"x")
                    assert await waiting
            return entered

    assert asyncio.run(consume()) == listed("One consumed message")


@contextmanager
def recorded(begin: str = "", end: str = "") -> Iterator[list[str]]:
    """Record the modules of the SDK that calls enter, each once, in order.

    If `begin` is not empty, the record begins when the link receives bytes. It ends at the first
    module whose path begins with `end`.
    """
    entered: list[str] = []
    is_open = not begin

    def enter(frame: FrameType, event: str, _: object) -> None:
        nonlocal is_open
        file, code = frame.f_code.co_filename, frame.f_code.co_name
        if event != "call" or not file.startswith(f"{SRC}/"):
            return
        module = file[len(f"{SRC}/") :]
        if end and module.startswith(end):
            is_open = is_open and not entered
        if begin and not entered and module.endswith(begin) and code == "buffer_updated":
            is_open = True
        if is_open and module not in entered:
            entered.append(module)

    sys.setprofile(enter)
    try:
        yield entered
    finally:
        sys.setprofile(None)


def listed(section: str) -> list[str]:
    """Return the modules of the numbered list of a section, in order."""
    text = PAGE.partition(f"## {section}\n")[2].partition("\n## ")[0]
    return re.findall(r"^\d+\. `([\w/]+\.py)`", text, re.MULTILINE)
