"""The two workers of step 3: the same code, once blocking and once with asyncio.

One worker uses `js_sync` in a thread. The other worker uses `js_async` in an event loop, in
another thread. The server distributes the messages among them.
"""

from __future__ import annotations

import asyncio
import threading
from typing import Final

import js_async
import js_sync
from examples.demo.handler import Verdict, handle
from examples.demo.ledger import Ledger
from examples.demo.scene import CONSUMER, STREAM

BUFFER: Final = 200
"""The number of messages that a worker buffers: few enough that both workers get messages."""
_TURN: Final = 0.1
_RETRY_DELAY: Final = 0.05


def work_blocking(url: str, ledger: Ledger, stop: threading.Event) -> None:
    """Settle messages with `js_sync` until `stop` is set."""
    with js_sync.connect(url, name="demo js_sync") as nc:
        consumer = nc.jetstream().get_stream(STREAM).get_consumer(CONSUMER)
        with consumer.messages(max_messages=BUFFER) as messages:
            while not stop.is_set():
                message = messages.next(timeout=_TURN)
                if message is None:
                    continue
                about = message.metadata
                verdict = handle(message.data, about.num_delivered)
                match verdict:
                    case Verdict.DONE:
                        message.ack()
                    case Verdict.AGAIN:
                        message.nak(delay=_RETRY_DELAY)
                    case Verdict.NEVER:
                        message.term("not JSON")
                ledger.record("js_sync", about.stream_seq, about.num_delivered, verdict)


async def work_in_loop(url: str, ledger: Ledger, stop: threading.Event) -> None:
    """Settle messages with `js_async` until `stop` is set."""
    async with js_async.connect(url, name="demo js_async") as nc:
        stream = await nc.jetstream().get_stream(STREAM)
        consumer = await stream.get_consumer(CONSUMER)
        async with consumer.messages(max_messages=BUFFER) as messages:
            while not stop.is_set():
                message = await messages.next(timeout=_TURN)
                if message is None:
                    continue
                about = message.metadata
                verdict = handle(message.data, about.num_delivered)
                match verdict:
                    case Verdict.DONE:
                        await message.ack()
                    case Verdict.AGAIN:
                        await message.nak(delay=_RETRY_DELAY)
                    case Verdict.NEVER:
                        await message.term("not JSON")
                ledger.record("js_async", about.stream_seq, about.num_delivered, verdict)


class Crew:
    """Both workers, each in a thread. An error in a worker stops both, and `end` raises it."""

    def __init__(self, url: str, ledger: Ledger) -> None:
        self.stop: Final = threading.Event()
        self._errors: Final[list[Exception]] = []
        self._url: Final = url
        self._ledger: Final = ledger
        jobs = {"js_sync": self._blocking, "js_async": self._in_loop}
        self._threads: Final = [
            threading.Thread(target=job, name=name, daemon=True) for name, job in jobs.items()
        ]
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """Stop both workers, wait for them, and raise the first error of a worker."""
        self.stop.set()
        for thread in self._threads:
            thread.join()
        if self._errors:
            raise self._errors[0]

    def _blocking(self) -> None:
        try:
            work_blocking(self._url, self._ledger, self.stop)
        except Exception as error:
            self._failed(error)

    def _in_loop(self) -> None:
        try:
            asyncio.run(work_in_loop(self._url, self._ledger, self.stop))
        except Exception as error:
            self._failed(error)

    def _failed(self, error: Exception) -> None:
        self._errors.append(error)
        self.stop.set()
