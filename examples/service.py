"""Answer requests over core NATS until Ctrl-C or SIGTERM.

    python examples/service.py nats://127.0.0.1:4222

Each process that runs it joins the same queue group, and each request goes to one of them. To ask:

    nats request convert.celsius 20
"""

from __future__ import annotations

import asyncio
import signal
import sys

import js_async
from js_async import Connection, CoreMessage, Subscription


def fahrenheit(text: str) -> str:
    """Convert a temperature."""
    return f"{float(text) * 9 / 5 + 32:.1f}"


async def answer(nc: Connection, request: CoreMessage) -> bool:
    """Answer a request, and return whether it could be answered."""
    try:
        text = fahrenheit(request.text)
    except ValueError as error:
        # The headers that services of other clients use for their errors.
        headers = {"Nats-Service-Error": str(error), "Nats-Service-Error-Code": "400"}
        await nc.publish(request.reply, headers=headers)
        return False
    await nc.publish(request.reply, text.encode())
    return True


async def serve(nc: Connection, requests: Subscription) -> None:
    """Answer each request, until the subscription ends."""
    answered = refused = 0
    async for request in requests:
        if await answer(nc, request):
            answered += 1
        else:
            refused += 1
    print("answered", answered, "refused", refused)


async def main(server: str) -> None:
    """Serve until the program is stopped."""
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopping.set)
    async with (
        js_async.connect(server, name="converter") as nc,
        nc.subscribe("convert.celsius", queue="converters") as requests,
    ):
        await nc.flush()
        print("serves convert.celsius", flush=True)
        serving = asyncio.create_task(serve(nc, requests))
        await stopping.wait()
        # No further requests arrive, and those that did are answered.
        await requests.drain()
        await serving


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
