"""Publish from a WSGI application in processes that a server forked in advance.

    twinstream stream add CLICKS --subjects 'clicks.*'
    TWINSTREAM_URL=nats://127.0.0.1:4222 gunicorn --preload --workers 2 --threads 4 \
        --chdir examples/recipes prefork_clicks:application

    curl -X POST http://127.0.0.1:8000/start-page

It needs `pip install gunicorn`. With `--preload` the application is imported before the fork, so it
must not connect while it is imported. Frameworks such as Flask and Django can use `jetstream` as it
is, and so can tasks of Celery's prefork pool.
"""

from __future__ import annotations

import atexit
import json
import os
import re
from collections.abc import Iterable
from threading import Lock
from typing import TYPE_CHECKING

import js_sync
from js_sync import Connection, JetStream, TwinstreamError

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIEnvironment

SERVER = os.environ.get("TWINSTREAM_URL", "nats://127.0.0.1:4222")


class ProcessConnection:
    """The connection of this process, opened by the first request and shared by all threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._nc: Connection | None = None

    def jetstream(self) -> JetStream:
        """Return the JetStream context. If the server is away, the next request tries again."""
        with self._lock:
            if self._nc is None:
                self._nc = js_sync.connect(SERVER, name=f"clicks-{os.getpid()}", connect_timeout=2)
                atexit.register(self._nc.close)
            # A caller should have its answer before a proxy gives up.
            return self._nc.jetstream(timeout=5)


connection = ProcessConnection()


def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Store a click on a page, and answer with its sequence and the process that stored it."""
    headers = [("Content-Type", "application/json")]
    page = environ["PATH_INFO"].strip("/")
    if environ["REQUEST_METHOD"] != "POST" or not re.fullmatch(r"[\w-]+", page):
        start_response("404 Not Found", headers)
        return [b"{}"]
    try:
        # Without an id, `publish` does not repeat a message that may have been stored.
        ack = connection.jetstream().publish(f"clicks.{page}")
    except TwinstreamError as error:
        start_response("503 Service Unavailable", headers)
        return [json.dumps({"detail": str(error)}).encode()]
    start_response("201 Created", headers)
    return [json.dumps({"seq": ack.seq, "process": os.getpid()}).encode()]
