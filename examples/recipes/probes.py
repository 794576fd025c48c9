"""A worker that answers the probes of Kubernetes.

    python examples/recipes/probes.py nats://127.0.0.1:4222 8080

`/live` fails if a handler is stuck, `/ready` without a connection, and `/health` if the stream or
a consumer of it has a problem. The last one is for alarms: a restart would not help.
"""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from time import monotonic

import js_sync
from js_sync import Connection, ConsumerConfig, Message, StreamConfig, TwinstreamError
from js_sync.health import check_health
from js_sync.workers import Worker

LONGEST = 600.0  # seconds that a handler may take


class Shop:
    """The worker, and what the probes ask about it."""

    def __init__(self, nc: Connection) -> None:
        self.nc = nc
        self.jet = nc.jetstream()
        self.jet.create_stream(StreamConfig(name="ORDERS", subjects=["orders.>"]))
        self.worker = Worker(self.jet, "ORDERS", ConsumerConfig(durable_name="packer"), self.pack)
        self.since = monotonic()

    def pack(self, message: Message) -> None:
        """Handle an order."""
        self.since = monotonic()
        print("packed", message.subject, flush=True)

    def problems(self, path: str) -> list[str]:
        """Return the reasons why a probe fails."""
        if path == "/live":
            is_stuck = self.worker.in_hand > 0 and monotonic() - self.since > LONGEST
            return ["a handler is stuck"] * is_stuck
        if path == "/ready":
            return ["not connected to a server"] * (not self.nc.is_connected)
        if path != "/health":
            return [f"no probe {path}"]
        try:
            health = check_health(self.jet, stream_name="ORDERS", interval=1, timeout=10)
        except TwinstreamError as error:
            return [str(error)]
        return [each.text for each in health.findings if each.severity == "error"]


def answers_about(shop: Shop, port: int) -> ThreadingHTTPServer:
    """Return a server of HTTP that answers the probes."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            problems = shop.problems(self.path)
            self.send_response(503 if problems else 200)
            self.end_headers()
            self.wfile.write(json.dumps(problems).encode())

    return ThreadingHTTPServer(("", port), Answer)


def main(server: str, port: str) -> None:
    """Work and answer until the program is stopped."""
    with js_sync.connect(server, name="packer") as nc:
        shop = Shop(nc)
        answers = answers_about(shop, int(port))
        Thread(target=answers.serve_forever, daemon=True).start()
        print("answers on port", answers.server_port, flush=True)
        shop.worker.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
