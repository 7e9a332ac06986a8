"""OpenTelemetry traces and metrics of a run: spans for the run and for each list, call, request and task of a fleet.

Contains names, numbers and outcomes only: no body, value, header or message of the platform. This module is imported
only if telemetry is enabled. A run does not fail if the export fails.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from msgspec import Struct, field

from reconciler import __version__
from reconciler.cli.terminal import exit_codes, output, resource_attributes
from reconciler.engine.ports import Failure
from reconciler.model.change import ChangedBy, Reason
from reconciler.model.event import Ended, Event, Outcome, Retried, Started, Waited

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.metrics import Meter
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import MetricReader
    from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
    from opentelemetry.trace import Span, Tracer

    from reconciler.api.observer import Exchange
    from reconciler.model.fleet import TaskRecord
    from reconciler.model.plan import Plan

_EXPORT_TIMEOUT = 3.0  # seconds, unless OTEL_EXPORTER_OTLP_TIMEOUT is set
_MAX_SHUTDOWN_TIMEOUT = 600.0  # seconds


class Telemetry:
    """The spans and metrics of one run. Observes requests, and reports the events of calls."""

    def __init__(self, tracer: Tracer, meter: Meter) -> None:
        self._tracer = tracer
        self._is_planned = False
        self._open: dict[str, Span] = {}  # by call
        self._calls = meter.create_counter("reconciler.calls", "{call}", "Calls of a plan, by outcome.")
        self._requests = meter.create_histogram("reconciler.request.duration", "s", "Time from request to response.")
        self._waits = meter.create_counter("reconciler.wait.duration", "s", "Time waited for the request budget.")
        self._retries = meter.create_counter("reconciler.retries", "{attempt}", "Attempts of calls beyond the first.")
        self._changes = meter.create_gauge("reconciler.changes", "{resource}", "Resources that differ, by action.")
        self._drift = meter.create_gauge("reconciler.drift", "{resource}", "Resources with drift.")
        self._tasks = meter.create_counter("reconciler.fleet.tasks", "{task}", "Ended tasks of a fleet, by outcome.")
        self._task_durations = meter.create_histogram("reconciler.fleet.task.duration", "s", "Duration of tasks.")
        self._task_requests = meter.create_counter("reconciler.fleet.requests", "{request}", "Requests of tasks.")

    @contextmanager
    def run(self, command: str, parent: Context | None) -> Iterator[Callable[[int], None]]:
        """Opens the span of the command. Yields a function that takes the exit code."""
        attributes = {"reconciler.command": command}
        with self._tracer.start_as_current_span(
            f"reconciler {command}",
            parent,
            attributes=attributes,
            record_exception=False,
            set_status_on_exception=False,
        ) as span:

            def end(code: int) -> None:
                span.set_attribute("process.exit.code", code)
                _set_error(span, None if code in (exit_codes.DONE, exit_codes.CHANGES) else "exit")

            try:
                yield end
            except BaseException as error:
                if isinstance(error, exit_codes.Stop):
                    span.set_attribute("process.exit.code", error.code)
                _set_error(span, type(error).__name__)
                raise

    @contextmanager
    def watch_list(self, path: str) -> Iterator[None]:
        span = self._tracer.start_span(f"list {path}", attributes={"url.path": path})
        try:
            yield
        except Exception as failure:
            _set_error(span, type(failure).__name__)
            raise
        finally:
            span.end()

    @contextmanager
    def watch_request(self, method: str, path: str) -> Iterator[Exchange]:
        span = self._tracer.start_span(method, attributes={"http.request.method": method, "url.path": path})
        exchange = _Exchange(span)
        began = time.monotonic()
        try:
            yield exchange
        finally:
            span.end()
            attributes: dict[str, str | int] = {
                "http.request.method": method,
                "http.response.status_code": exchange.status,
            }
            self._requests.record(time.monotonic() - began, attributes)

    def on_wait(self, seconds: float) -> None:
        self._waits.add(seconds)

    def report(self, event: Event, ended: int) -> None:
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
                    _set_error(span, str(outcome) if outcome in (Outcome.FAILED, Outcome.UNKNOWN) else None)
                    span.end()
            case Waited():
                pass  # reported by the client, through on_wait

    def on_task(self, record: TaskRecord, verb: str) -> None:
        """Records a task of a fleet that ended, on whatever worker: its span is as long as its last attempt took."""
        project = {"reconciler.fleet.verb": verb, "reconciler.fleet.project": record.project}
        end = record.ended if record.ended is not None else time.time()
        outcome: dict[str, str | int] = {**project, "reconciler.outcome": str(record.state)}
        if record.exit_code is not None:
            outcome["process.exit.code"] = record.exit_code
        span = self._tracer.start_span(
            f"task {verb}",
            start_time=_nanoseconds(end - record.seconds),
            attributes={
                **outcome,
                "reconciler.fleet.run": record.run,
                "reconciler.fleet.member": record.member,
                "reconciler.fleet.attempts": record.attempts,
                "reconciler.fleet.requests": record.requests,
            },
        )
        is_failed = record.exit_code not in (None, exit_codes.DONE, exit_codes.CHANGES)
        _set_error(span, str(record.state) if is_failed else None)
        span.end(_nanoseconds(end))
        self._tasks.add(1, outcome)
        self._task_durations.record(record.seconds, project)
        self._task_requests.add(record.requests, project)

    def on_plan(self, plan: Plan) -> None:
        """Records the numbers of changes and of drifted resources, of the first plan of a run.

        Nothing if the plan has errors other than violations of policies: it may not know all differences.
        """
        if self._is_planned:
            return
        self._is_planned = True
        if not all(problem.rule for problem in plan.errors):
            return
        for action, number in Counter(change.action for change in plan.changes).items():
            self._changes.set(number, {"reconciler.action": str(action)})
        platform = (ChangedBy.PLATFORM, ChangedBy.BOTH)
        drifted = (
            change.reason is Reason.VANISHED
            or any(field_change.changed_by in platform for field_change in change.fields)
            for change in plan.changes
        )
        self._drift.set(sum(drifted) + len(plan.additions))


class _Exchange(Struct):
    span: Span
    status: int = field(default=0)

    def on_response(self, status: int) -> None:
        self.status = status
        self.span.set_attribute("http.response.status_code", status)

    def on_failure(self, failure: Exception) -> None:
        _set_error(self.span, type(failure).__name__)
        if isinstance(failure, Failure) and failure.code:
            self.span.set_attribute("reconciler.code", failure.code)


def _set_error(span: Span, error_type: str | None) -> None:
    from opentelemetry.trace import StatusCode

    if error_type is not None:
        span.set_status(StatusCode.ERROR)
        span.set_attribute("error.type", error_type)


def _nanoseconds(seconds: float) -> int:
    return int(seconds * 1e9)


# --- export -----------------------------------------------------------------------------------------------------------


def run_traced(
    name: str,
    command: Callable[[Telemetry | None], int],
    describe: Callable[[], Mapping[str, str]],
    *,
    required: bool,
) -> int:
    """Runs a command with the telemetry that environment variables configure, and returns its exit code.

    describe  the attributes of the resource; see `resource_attributes`
    required  --trace was given: raises Stop if telemetry is not possible, instead of a note
    """
    with _catch_complaints() as complaint:
        try:
            tracers, meters = _create_providers(describe, required=required)
        except ImportError:
            text = "OpenTelemetry is not installed; install reconciler with the extra telemetry"
        except _UnknownExporter as unknown:
            text = str(unknown)
        except Exception:  # noqa: BLE001 - the library raises many types for invalid variables
            text = f"OpenTelemetry rejects its environment variables; check {_list_settings()}"
        else:
            return _run_observed(name, command, tracers, meters, complaint)
    if required:
        raise exit_codes.Stop(exit_codes.ERROR, f"error: {text}")
    output.print_note(f"note: telemetry disabled: {text}")
    return command(None)


def _run_observed(
    name: str,
    command: Callable[[Telemetry | None], int],
    tracers: TracerProvider,
    meters: MeterProvider,
    complaint: _Once,
) -> int:
    telemetry = Telemetry(tracers.get_tracer("reconciler", __version__), meters.get_meter("reconciler", __version__))
    try:
        with telemetry.run(name, _parent()) as end:
            code = command(telemetry)
            end(code)
            return code
    finally:
        _send(tracers, meters, complaint)


def _send(tracers: TracerProvider, meters: MeterProvider, complaint: _Once) -> None:
    """Exports the remaining spans and metrics, within a time limit: an exporter may wait for a collector forever."""
    timeout = _shutdown_timeout()
    until = time.monotonic() + timeout

    def run(shutdown: Callable[[], None]) -> None:
        try:
            shutdown()
        except Exception:  # noqa: BLE001 - any error means that the export is incomplete
            complaint.report()

    shutdowns = (tracers.shutdown, lambda: meters.shutdown(timeout_millis=timeout * 1000))
    threads = [threading.Thread(target=run, args=(shutdown,), daemon=True) for shutdown in shutdowns]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
    if any(thread.is_alive() for thread in threads):
        complaint.report()


def _create_providers(
    describe: Callable[[], Mapping[str, str]], *, required: bool
) -> tuple[TracerProvider, MeterProvider]:
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource
    from opentelemetry.sdk.trace import TracerProvider

    where = _select_exporters(required=required)
    attributes = {"service.name": "reconciler", "service.version": __version__, **describe()}
    given = OTELResourceDetector().detect().attributes  # from OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME
    attributes = {name: value for name, value in attributes.items() if name not in given}
    tracers = TracerProvider(resource=Resource.create(attributes), shutdown_on_exit=False)
    for exporter in where["TRACES"]:
        tracers.add_span_processor(_spans(exporter))
    readers = [_metrics(exporter) for exporter in where["METRICS"]]
    resource = Resource.create(resource_attributes.of_metrics(attributes))
    return tracers, MeterProvider(readers, resource, shutdown_on_exit=False)


class _UnknownExporter(Exception):
    """A variable names an unsupported exporter."""


def _select_exporters(*, required: bool) -> dict[str, list[str]]:
    """The exporters by signal; without any configuration none, or OTLP if telemetry is required."""
    exporters_by_signal = {signal: _read_exporters(signal) for signal in ("TRACES", "METRICS")}
    default = ["otlp"] if required and not any(exporters_by_signal.values()) else []
    return {signal: default if exporters is None else exporters for signal, exporters in exporters_by_signal.items()}


def _read_exporters(signal: str) -> list[str] | None:
    variable = f"OTEL_{signal}_EXPORTER"
    named = {exporter.strip() for exporter in os.environ.get(variable, "").split(",")} - {""}
    if not named <= {"otlp", "console", "none"}:
        raise _UnknownExporter(f"{variable} names an unknown exporter; use otlp, console or none")
    if named:
        return sorted(named - {"none"})
    endpoints = (os.environ.get(f"OTEL_EXPORTER_OTLP_{of}ENDPOINT") for of in ("", f"{signal}_"))
    return ["otlp"] if any(endpoints) else None


def _spans(exporter: str) -> SpanProcessor:
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter, SimpleSpanProcessor

    if exporter == "console":
        return SimpleSpanProcessor(ConsoleSpanExporter(out=sys.stderr))
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    return BatchSpanProcessor(OTLPSpanExporter(timeout=_timeout("TRACES")))


def _metrics(exporter: str) -> MetricReader:
    from opentelemetry.sdk.metrics.export import ConsoleMetricExporter, PeriodicExportingMetricReader

    if exporter == "console":
        return PeriodicExportingMetricReader(ConsoleMetricExporter(out=sys.stderr))
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter

    return PeriodicExportingMetricReader(OTLPMetricExporter(timeout=_timeout("METRICS")))


def _timeout(signal: str) -> float | None:
    """The timeout of the exporter in seconds; None if a variable sets it."""
    return None if any(os.environ.get(timeout) for timeout in _timeouts(signal)) else _EXPORT_TIMEOUT


def _shutdown_timeout() -> float:
    """Seconds for the final export."""
    given = [_seconds(os.environ.get(timeout)) for signal in ("TRACES", "METRICS") for timeout in _timeouts(signal)]
    return min(max(_EXPORT_TIMEOUT, *given), _MAX_SHUTDOWN_TIMEOUT)


def _seconds(text: str | None) -> float:
    try:
        return float(text or 0)
    except ValueError:  # reported by the exporter
        return 0.0


def _timeouts(signal: str) -> tuple[str, str]:
    return "OTEL_EXPORTER_OTLP_TIMEOUT", f"OTEL_EXPORTER_OTLP_{signal}_TIMEOUT"


def _parent() -> Context | None:
    """The parent span, from the TRACEPARENT variable that a pipeline sets."""
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    given = os.environ.get("TRACEPARENT")
    return TraceContextTextMapPropagator().extract({"traceparent": given}) if given else None


def _list_settings() -> str:
    """The names of the set variables, without values, which may contain the key of a collector."""
    return ", ".join(sorted(name for name in os.environ if name.startswith("OTEL_"))) or "OTEL_EXPORTER_OTLP_ENDPOINT"


@contextmanager
def _catch_complaints() -> Iterator[_Once]:
    """Replaces log messages of OpenTelemetry by one note: they may contain a collector's key or a traceback."""
    logger = logging.getLogger("opentelemetry")
    handler = _Once()
    propagated, logger.propagate = logger.propagate, False
    logger.addHandler(handler)
    logger.addHandler(_SILENT)  # stays, for messages of threads that are still running
    try:
        yield handler
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagated


_SILENT = logging.NullHandler()


class _Once(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._is_reported = False

    def emit(self, record: logging.LogRecord) -> None:
        self.report()

    def report(self) -> None:
        if not self._is_reported:
            self._is_reported = True
            output.print_note(
                f"note: traces or metrics may be incomplete: OpenTelemetry reported a problem; check {_list_settings()}"
            )
