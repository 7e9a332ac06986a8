"""Traces and metrics by OpenTelemetry, for whoever asked for them: a span for the run, each list, call and request.

Names, numbers and outcomes only: no body, no value, no header, no message of the platform. Where nobody asked, this
module is not imported; where nobody listens, a run goes on as if somebody did.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from reconciler import __version__
from reconciler.cli import exits, talk
from reconciler.engine.ports import Failure
from reconciler.model.change import Mover, Reason
from reconciler.model.event import Ended, Event, Outcome, Retried, Started, Waited

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.metrics import Meter
    from opentelemetry.sdk.metrics.export import MetricReader
    from opentelemetry.sdk.trace import SpanProcessor
    from opentelemetry.trace import Span, Tracer

    from reconciler.api.watching import Exchange
    from reconciler.model.plan import Plan

_SENDING = 3.0  # seconds that a collector has to take what it is sent, unless OTEL_EXPORTER_OTLP_TIMEOUT says otherwise
_active: Telemetry | None = None


def active() -> Telemetry | None:
    """That of the command that runs, if it has any."""
    return _active


class Telemetry:
    """What one run tells. An observer of requests, and a teller of events."""

    def __init__(self, tracer: Tracer, meter: Meter) -> None:
        self._tracer = tracer
        self._is_planned = False
        self._open: dict[str, Span] = {}  # by call
        self._calls = meter.create_counter("reconciler.calls", "{call}", "Calls of a plan, by how they ended.")
        self._requests = meter.create_histogram("reconciler.request.duration", "s", "From sending to answer.")
        self._waits = meter.create_counter("reconciler.wait.duration", "s", "Waiting for the request budget.")
        self._retries = meter.create_counter("reconciler.retries", "{attempt}", "Attempts of calls beyond the first.")
        self._changes = meter.create_gauge("reconciler.changes", "{resource}", "Resources that differ, by action.")
        self._drift = meter.create_gauge("reconciler.drift", "{resource}", "Resources that the platform moved.")

    @contextmanager
    def run(self, command: str, parent: Context | None) -> Iterator[Callable[[int], None]]:
        """Around the whole command; takes its exit code."""
        attributes = {"reconciler.command": command}
        with self._tracer.start_as_current_span(
            f"reconciler {command}",
            parent,
            attributes=attributes,
            record_exception=False,
            set_status_on_exception=False,
        ) as span:

            def ended(code: int) -> None:
                span.set_attribute("process.exit.code", code)
                _mark(span, None if code in (exits.DONE, exits.CHANGES) else "exit")

            try:
                yield ended
            except BaseException as error:
                if isinstance(error, exits.Stop):
                    span.set_attribute("process.exit.code", error.code)
                _mark(span, type(error).__name__)
                raise

    @contextmanager
    def listing(self, path: str) -> Iterator[None]:
        span = self._tracer.start_span(f"list {path}", attributes={"url.path": path})
        try:
            yield
        except Exception as failure:
            _mark(span, type(failure).__name__)
            raise
        finally:
            span.end()

    @contextmanager
    def request(self, method: str, path: str) -> Iterator[Exchange]:
        span = self._tracer.start_span(method, attributes={"http.request.method": method, "url.path": path})
        exchange = _Exchange(span)
        began = time.monotonic()
        try:
            yield exchange
        finally:
            span.end()
            told: dict[str, str | int] = {"http.request.method": method, "http.response.status_code": exchange.status}
            self._requests.record(time.monotonic() - began, told)

    def waited(self, seconds: float) -> None:
        self._waits.add(seconds)

    def tell(self, event: Event, ended: int) -> None:
        match event:
            case Started(call):
                attributes = {"reconciler.address": str(call.address), "reconciler.verb": str(call.verb)}
                self._open[call.id] = self._tracer.start_span(f"call {call.verb}", attributes=attributes)
            case Retried(call):
                self._retries.add(1, {"reconciler.kind": call.address.kind})
            case Ended(call, outcome):
                kind = call.address.kind
                self._calls.add(
                    1, {"reconciler.kind": kind, "reconciler.verb": str(call.verb), "reconciler.outcome": str(outcome)}
                )
                if (span := self._open.pop(call.id, None)) is not None:
                    span.set_attribute("reconciler.outcome", str(outcome))
                    _mark(span, "failed" if outcome is Outcome.FAILED else None)
                    span.end()
            case Waited():
                pass  # the client tells it itself

    def planned(self, plan: Plan) -> None:
        """How much differs, and how much of it the platform moved: by the first plan of the run."""
        if self._is_planned:
            return
        self._is_planned = True
        for action, number in Counter(change.action for change in plan.changes).items():
            self._changes.set(number, {"reconciler.action": str(action)})
        moved = (Mover.PLATFORM, Mover.BOTH)
        drifted = (
            change.reason is Reason.VANISHED or any(each.mover in moved for each in change.fields)
            for change in plan.changes
        )
        self._drift.set(sum(drifted))


@dataclass
class _Exchange:
    span: Span
    status: int = field(default=0)

    def answered(self, status: int) -> None:
        self.status = status
        self.span.set_attribute("http.response.status_code", status)

    def failed(self, failure: Exception) -> None:
        _mark(self.span, type(failure).__name__)
        if isinstance(failure, Failure) and failure.code:
            self.span.set_attribute("reconciler.code", failure.code)


def _mark(span: Span, wrong: str | None) -> None:
    from opentelemetry.trace import StatusCode

    if wrong is not None:
        span.set_status(StatusCode.ERROR)
        span.set_attribute("error.type", wrong)


# --- where it goes ----------------------------------------------------------------------------------------------------


def watched(name: str, command: Callable[[], int], *, required: bool) -> int:
    """The command's exit code; what it does is told to whom the environment names.

    `required`: it was asked for by a flag, and is not to be left out in silence.
    """
    try:
        processors, readers = _spans(), _metrics()
    except ImportError:
        text = "OpenTelemetry is not installed; install reconciler with its extra telemetry"
        if required:
            raise exits.Stop(exits.ERROR, f"error: {text}") from None
        talk.say(f"note: nothing is traced: {text}")
        return command()
    return observed(name, command, processors, readers)


def observed(
    name: str, command: Callable[[], int], processors: list[SpanProcessor], readers: list[MetricReader]
) -> int:
    """As `watched`, told to these."""
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider

    global _active
    named = {} if os.environ.get("OTEL_SERVICE_NAME") else {"service.name": "reconciler"}
    resource = Resource.create({**named, "service.version": __version__})
    tracers = TracerProvider(resource=resource, shutdown_on_exit=False)
    for processor in processors:
        tracers.add_span_processor(processor)
    meters = MeterProvider(readers, resource, shutdown_on_exit=False)
    _active = Telemetry(tracers.get_tracer("reconciler", __version__), meters.get_meter("reconciler", __version__))
    with _complaints():
        try:
            with _active.run(name, _parent()) as ended:
                code = command()
                ended(code)
                return code
        finally:
            _active = None
            tracers.shutdown()
            meters.shutdown(timeout_millis=_SENDING * 1000)


def _spans() -> list[SpanProcessor]:
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter, SimpleSpanProcessor

    match os.environ.get("OTEL_TRACES_EXPORTER", "otlp"):
        case "none":
            return []
        case "console":
            return [SimpleSpanProcessor(ConsoleSpanExporter(out=sys.stderr))]
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    return [BatchSpanProcessor(OTLPSpanExporter(timeout=_timeout()))]


def _metrics() -> list[MetricReader]:
    from opentelemetry.sdk.metrics.export import ConsoleMetricExporter, PeriodicExportingMetricReader

    match os.environ.get("OTEL_METRICS_EXPORTER", "otlp"):
        case "none":
            return []
        case "console":
            return [PeriodicExportingMetricReader(ConsoleMetricExporter(out=sys.stderr))]
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter

    return [PeriodicExportingMetricReader(OTLPMetricExporter(timeout=_timeout()))]


def _timeout() -> float | None:
    return None if os.environ.get("OTEL_EXPORTER_OTLP_TIMEOUT") else _SENDING


def _parent() -> Context | None:
    """The span of the pipeline that started us, by the variable that such tools set."""
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    given = os.environ.get("TRACEPARENT")
    return TraceContextTextMapPropagator().extract({"traceparent": given}) if given else None


@contextmanager
def _complaints() -> Iterator[None]:
    """The exporter's complaints as one line of ours: whoever reads the plan did not ask for its tracebacks."""
    logger = logging.getLogger("opentelemetry")
    handler = _Once()
    propagated, logger.propagate = logger.propagate, False
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagated


class _Once(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._told = False

    def emit(self, record: logging.LogRecord) -> None:
        if not self._told:
            self._told = True
            talk.say("note: traces or metrics could not be sent; check OTEL_EXPORTER_OTLP_ENDPOINT")
