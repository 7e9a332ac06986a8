"""A receiver of OTLP over HTTP in this process, which keeps what was sent."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest


class Collector(ThreadingHTTPServer):
    """Receives OTLP over HTTP."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Receiver)
        self.bodies: dict[str, list[bytes]] = {"/v1/traces": [], "/v1/metrics": []}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def resources(self, signal: str) -> list[dict[str, str | int]]:
        """The attributes of the resources that sent `traces` or `metrics`, each once."""
        from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

        form: Any = ExportTraceServiceRequest if signal == "traces" else ExportMetricsServiceRequest
        of = "resource_spans" if signal == "traces" else "resource_metrics"
        sent = [form.FromString(message) for message in self.bodies[f"/v1/{signal}"]]
        found = [attributes_of(item.resource) for message in sent for item in getattr(message, of)]
        return [attributes for index, attributes in enumerate(found) if attributes not in found[:index]]

    def spans(self) -> list[Any]:
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

        sent = [ExportTraceServiceRequest.FromString(message) for message in self.bodies["/v1/traces"]]
        return [
            span
            for message in sent
            for resource in message.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    def metrics(self) -> dict[str, list[Any]]:
        from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

        sent = [ExportMetricsServiceRequest.FromString(message) for message in self.bodies["/v1/metrics"]]
        found: dict[str, list[Any]] = {}
        for metric in (
            m
            for message in sent
            for resource in message.resource_metrics
            for s in resource.scope_metrics
            for m in s.metrics
        ):
            found[metric.name] = [*getattr(metric, metric.WhichOneof("data")).data_points]
        return found


class Receiver(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        self.server.bodies[self.path].append(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    with Collector() as running:
        threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True).start()
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", running.url)
        yield running
        running.shutdown()


def attributes_of(point: Any) -> dict[str, str | int]:
    return {attribute.key: attribute.value.string_value or attribute.value.int_value for attribute in point.attributes}
