"""A collector: a small server that decodes what OTLP exporters send over HTTP."""

from __future__ import annotations

import gzip
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

__all__ = ["Collector"]

_REQUESTS = {"/v1/traces": ExportTraceServiceRequest, "/v1/metrics": ExportMetricsServiceRequest}


class Collector:
    """Collects spans and metrics from a `with` block."""

    def __init__(self) -> None:
        received: list[Any] = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                received.append(_REQUESTS[self.path].FromString(body))
                self.send_response(200)
                self.send_header("Content-Type", "application/x-protobuf")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._received = received
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def spans(self) -> list[Any]:
        """All spans with their scope, in the order of their beginning."""
        found = [
            span
            for request in self._received
            if isinstance(request, ExportTraceServiceRequest)
            for resource in request.resource_spans
            for scope in resource.scope_spans
            if scope.scope.name == "twinstream"
            for span in scope.spans
        ]
        return sorted(found, key=lambda span: span.start_time_unix_nano)

    @property
    def schemas(self) -> set[str]:
        """The schema URLs of the spans."""
        return {
            scope.schema_url
            for request in self._received
            if isinstance(request, ExportTraceServiceRequest)
            for resource in request.resource_spans
            for scope in resource.scope_spans
            if scope.scope.name == "twinstream"
        }

    @property
    def metrics(self) -> dict[str, Any]:
        """The last state of each metric, by name."""
        return {
            metric.name: metric
            for request in self._received
            if isinstance(request, ExportMetricsServiceRequest)
            for resource in request.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
