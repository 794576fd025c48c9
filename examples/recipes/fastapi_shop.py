"""Publish orders from FastAPI, and stream them to browsers, on one connection.

    TWINSTREAM_URL=nats://127.0.0.1:4222 uvicorn --app-dir examples/recipes \
        --timeout-graceful-shutdown 5 fastapi_shop:app

    curl -d '{"item": "tea"}' -H 'Content-Type: application/json' -H 'Idempotency-Key: 1' \
        http://127.0.0.1:8000/orders
    curl -N http://127.0.0.1:8000/orders

It needs `pip install fastapi uvicorn`. Each process of uvicorn has a connection of its own. At its
end, uvicorn waits as long as a page is open, unless it has a timeout.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

from fastapi import FastAPI, Header, Request
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import BaseModel

import js_async
from js_async import JetStream, StreamConfig, TwinstreamError

SERVER = os.environ.get("TWINSTREAM_URL", "nats://127.0.0.1:4222")


class Order(BaseModel):
    """The payload of a message to `orders.new`."""

    item: str
    count: int = 1


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncGenerator[dict[str, JetStream]]:
    """Connect before the first request, and close after the last one."""
    async with js_async.connect(SERVER, name="shop") as nc:
        # A caller should have its answer before a proxy gives up.
        jet = nc.jetstream(timeout=5)
        await jet.create_stream(StreamConfig(name="ORDERS", subjects=["orders.>"]))
        yield {"jet": jet}


app = FastAPI(lifespan=lifespan)


@app.exception_handler(TwinstreamError)
async def unavailable(_: Request, error: Exception) -> JSONResponse:
    """Ask the caller to repeat the request: its key prevents a second order."""
    return JSONResponse({"detail": str(error)}, 503, {"Retry-After": "1"})


@app.post("/orders", status_code=202)
async def place(
    order: Order, request: Request, idempotency_key: Annotated[str, Header()]
) -> dict[str, Any]:
    """Store an order once, however often the caller repeats the request within two minutes."""
    orders = request.state.jet.typed(Order)
    ack = await orders.publish("orders.new", order, msg_id=idempotency_key)
    return {"seq": ack.seq, "is_new": not ack.duplicate}


@app.get("/orders")
async def follow(
    request: Request, last_event_id: Annotated[int, Header()] = 0
) -> StreamingResponse:
    """Send all orders and each new one. A browser that reconnects continues after the last one."""
    stream = request.state.jet.bind_stream("ORDERS")

    async def events() -> AsyncIterator[str]:
        async with stream.ordered(start_seq=last_event_id + 1) as messages:
            async for message in messages:
                yield f"id: {message.seq}\ndata: {message.text}\n\n"

    return StreamingResponse(events(), media_type="text/event-stream")
