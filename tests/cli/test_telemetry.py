"""Traces, metrics and JSON logs of runs against a sandbox: their content, and where they are sent."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any, cast
from unittest.mock import Mock

import pytest
from msgspec.structs import replace

from reconciler.cli.terminal.exit_codes import Stop
from reconciler.cli.terminal.telemetry import _SILENT, Telemetry, _catch_complaints, _select_exporters
from reconciler.engine.ports import Transient
from reconciler.model.address import Address
from reconciler.model.change import Action, Change, ChangedBy, FieldChange, Reason
from reconciler.model.event import Ended, Outcome, Retried, Started, Waited
from reconciler.model.fleet import TaskRecord, TaskState
from reconciler.model.plan import Call, Plan, Verb
from reconciler.model.problem import Problem
from tests.harness.collector import Collector, Receiver, attributes_of
from tests.harness.git import GIT
from tests.harness.golden import compare_golden
from tests.harness.platform import Sandbox
from tests.harness.project import Output, Shell

CREDENTIAL = """\
kind: SSHCredential
name: laptop
spec:
  description: hunter2-in-a-description
  public_key: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJcTIQ1f0lGC6iYL/8cUkrcXTPhZ6xKJsrcXk0vLhEjm a@b
"""


def test_an_apply_is_a_span_with_its_lists_calls_and_requests(
    shell: Shell, sandbox: Sandbox, collector: Collector
) -> None:
    assert shell("apply", "-y", "--quiet").code == 0
    spans = collector.spans()
    (root,) = [span for span in spans if span.name == "reconciler apply"]
    assert {span.parent_span_id for span in spans if span is not root} == {root.span_id}
    names = {span.name for span in spans}
    assert {"list /ip_policies", "call create", "POST", "GET"} <= names
    called = {attributes_of(span)["reconciler.address"] for span in spans if span.name == "call create"}
    assert called == {"IPPolicy/office", "TLSEdge/payments", "ReservedDomain/pay"}


def test_two_projects_have_different_resources(
    shell: Shell, sandbox: Sandbox, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run(["git", "init", "-q"], cwd=shell.root, check=True)
    subprocess.run([*GIT, "commit", "-q", "--allow-empty", "-m", "a"], cwd=shell.root, check=True)
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=shell.root, check=True, capture_output=True, text=True)
    shell.write("environments/eu.yaml", "stack: prod-eu\n")
    for name, value in {"CI_PROJECT_URL": "https://git.example.com/a/b", "CI_PIPELINE_ID": "7"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("GITLAB_CI", "true")
    for words in ([], ["--env", "eu"]):
        assert shell("plan", *words, "--quiet").code == 0
    sent = [
        {name: value for name, value in attributes.items() if not name.startswith(("telemetry.", "service."))}
        for attributes in collector.resources("traces")
    ]
    run = {"vcs.ref.head.revision": head.stdout.strip(), "cicd.pipeline.run.id": "7"}
    place = {"reconciler.account": sandbox.base_url, "vcs.repository.url.full": "https://git.example.com/a/b"}
    eu = {"reconciler.stack": "prod-eu", "deployment.environment.name": "eu"}
    assert sent == [{"reconciler.stack": "prod", **place, **run}, {**eu, **place, **run}]
    metrics = [attributes for attributes in collector.resources("metrics") if run.keys() & attributes.keys()]
    assert metrics == []  # each run would begin new time series


def test_attributes_of_the_user_replace_those_of_the_run(
    shell: Shell, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "reconciler.stack=mine,service.name=theirs")
    shell("validate")
    (attributes,) = collector.resources("traces")
    assert (attributes["reconciler.stack"], attributes["service.name"]) == ("mine", "theirs")


def test_calls_are_counted_by_kind_and_outcome(shell: Shell, sandbox: Sandbox, collector: Collector) -> None:
    shell("apply", "-y", "--quiet")
    counted = {
        (attributes_of(point)["reconciler.kind"], attributes_of(point)["reconciler.outcome"])
        for point in collector.metrics()["reconciler.calls"]
    }
    assert counted == {("IPPolicy", "succeeded"), ("TLSEdge", "succeeded"), ("ReservedDomain", "succeeded")}


def test_drift_is_counted(shell: Shell, sandbox: Sandbox, collector: Collector) -> None:
    shell("apply", "-y", "--quiet")
    (policy,) = sandbox.get("/ip_policies")["ip_policies"]
    sandbox.patch(f"/ip_policies/{policy['id']}", {"description": "moved"})
    assert shell("drift").code == 2
    (point,) = collector.metrics()["reconciler.drift"]
    assert point.as_int == 1


def test_traces_contain_no_bodies_headers_or_messages(shell: Shell, sandbox: Sandbox, collector: Collector) -> None:
    shell.write("manifests/credential.yaml", CREDENTIAL)
    shell("apply", "-y", "--quiet")
    shell.write("reconciler.yaml", "stack: prod\nplatform: {api_key: {from_env: WRONG}}\n")
    sent = b"".join(body for bodies in collector.bodies.values() for body in bodies)
    assert b"SSHCredential/laptop" in sent
    for secret in (b"hunter2", b"ssh-ed25519", b"Bearer", b"pay.example.com"):
        assert secret not in sent


def test_a_run_is_part_of_the_trace_that_started_it(
    shell: Shell, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEPARENT", f"00-{'a' * 32}-{'b' * 16}-01")
    shell("validate")
    (span,) = collector.spans()
    assert (span.trace_id.hex(), span.parent_span_id.hex()) == ("a" * 32, "b" * 16)
    assert attributes_of(span) == {"reconciler.command": "validate", "process.exit.code": 0}


def test_a_failed_run_has_the_type_of_its_error_and_no_message(shell: Shell, collector: Collector) -> None:
    shell.write("manifests/bad.yaml", "kind: IPPolicy\nname: hunter2\nspec: {x: 1}\n")
    assert shell("plan").code == 1
    (span,) = collector.spans()
    assert attributes_of(span)["error.type"] == "InvalidProject"
    assert b"hunter2" not in b"".join(collector.bodies["/v1/traces"])


def test_an_unreachable_collector_is_a_note_and_changes_no_exit_code(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setenv("OTEL_METRICS_EXPORTER", "none")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.2")
    result = shell("validate")
    assert result.code == 0
    assert result.err.splitlines()[-1] == (
        "note: traces or metrics may be incomplete: OpenTelemetry reported a problem; "
        "check OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_TIMEOUT, OTEL_METRICS_EXPORTER"
    )
    assert "Traceback" not in result.err


class _Dripper(Receiver):
    """Receives a request and never ends its response."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "1000000")
        self.end_headers()
        with suppress(OSError):
            while True:
                self.wfile.write(b" ")
                time.sleep(0.02)


def run_process(shell: Shell) -> subprocess.CompletedProcess[str]:
    """Runs a command in its own process, so that threads of OpenTelemetry end with it."""
    command = [sys.executable, "-m", "reconciler", "validate"]
    return subprocess.run(command, cwd=shell.root, capture_output=True, text=True, timeout=120, check=True)


def test_a_slow_collector_is_not_waited_for(shell: Shell, collector: Collector) -> None:
    collector.RequestHandlerClass = _Dripper
    assert "note: traces or metrics may be incomplete" in run_process(shell).stderr


def test_a_collector_s_key_that_is_written_wrongly_is_not_shown(
    shell: Shell, collector: Collector, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "Authorization: Bearer hunter2")
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "hunter2")
    result = shell("validate")
    assert result.code == 0
    assert "OTEL_EXPORTER_OTLP_HEADERS" in result.err
    assert "hunter2" not in result.err + caplog.text


UNUSABLE = [
    ("OTEL_BSP_MAX_QUEUE_SIZE", "0"),
    ("OTEL_METRIC_EXPORT_INTERVAL", "0"),
    ("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "-1"),
]


@pytest.mark.parametrize(("variable", "value"), UNUSABLE)
def test_invalid_opentelemetry_settings_are_an_error_only_with_the_trace_flag(
    shell: Shell, collector: Collector, monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)
    names = ", ".join(sorted(("OTEL_EXPORTER_OTLP_ENDPOINT", variable)))
    text = f"OpenTelemetry rejects its environment variables; check {names}"
    result = shell("validate")
    assert (result.code, result.err.splitlines()[0]) == (0, f"note: telemetry disabled: {text}")
    result = shell("validate", "--trace")
    assert (result.code, result.out, result.err) == (1, "", f"error: {text}\n")


@pytest.mark.parametrize("value", ["abc", "nan", "1e999"])
def test_an_invalid_timeout_changes_nothing(
    shell: Shell, collector: Collector, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", value)
    assert "Traceback" not in run_process(shell).stderr


@pytest.mark.parametrize(
    ("environment", "flags", "sent"),
    [
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "{url}"}, (), {"/v1/traces", "/v1/metrics"}),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "{url}/v1/traces"}, (), {"/v1/traces"}),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "{url}/v1/traces"}, ("--trace",), {"/v1/traces"}),
        ({"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "{url}/v1/metrics"}, (), {"/v1/metrics"}),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "{url}", "OTEL_TRACES_EXPORTER": "none"}, (), {"/v1/metrics"}),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "{url}", "OTEL_METRICS_EXPORTER": "none, "}, (), {"/v1/traces"}),
        ({"OTEL_TRACES_EXPORTER": "console"}, (), {"console"}),
        (
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "{url}", "OTEL_TRACES_EXPORTER": "console, otlp"},
            (),
            {"console", "/v1/traces", "/v1/metrics"},
        ),
    ],
)
def test_traces_and_metrics_are_sent_only_to_the_configured_endpoints(
    shell: Shell,
    sandbox: Sandbox,
    collector: Collector,
    monkeypatch: pytest.MonkeyPatch,
    environment: dict[str, str],
    flags: tuple[str, ...],
    sent: set[str],
) -> None:
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT")
    for name, value in environment.items():
        monkeypatch.setenv(name, value.format(url=collector.url))
    result = shell("plan", *flags)
    assert {path for path, bodies in collector.bodies.items() if bodies} == sent - {"console"}
    assert ('"name": "reconciler plan"' in result.err) is ("console" in sent)
    assert "note:" not in result.err


def test_an_unknown_exporter_is_reported(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "console,jaeger")
    text = "OTEL_TRACES_EXPORTER names an unknown exporter; use otlp, console or none"
    result = shell("validate")
    assert (result.code, result.err.splitlines()[0]) == (0, f"note: telemetry disabled: {text}")
    assert shell("validate", "--trace") == Output(1, "", f"error: {text}\n")


def test_no_telemetry_library_is_loaded_without_an_exporter(shell: Shell) -> None:
    check = (
        "import sys; from reconciler.cli.main import main; code = main(['validate'])\n"
        "unwanted = ('opentelemetry', 'reconciler.cli.terminal.telemetry')\n"
        "sys.exit(code or any(each.startswith(unwanted) for each in sys.modules))"
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    ended = subprocess.run([sys.executable, "-c", check], cwd=shell.root, env=environment, capture_output=True)
    assert ended.returncode == 0, ended.stderr


def test_standard_error_is_lines_of_json(shell: Shell, sandbox: Sandbox) -> None:
    result = shell("apply", "-y", "--log-format", "json")
    assert result.code == 0
    lines = [json.loads(line) for line in result.err.splitlines()]
    assert all({"time", "level", "message"} <= line.keys() for line in lines)
    ended = [line["event"] for line in lines if line.get("event", {}).get("event") == "ended"]
    assert {event["address"] for event in ended} == {"IPPolicy/office", "TLSEdge/payments", "ReservedDomain/pay"}


@pytest.mark.parametrize(
    "words",
    [("show", "nope"), ("comment", "nope"), ("kinds", "nope"), ("plan", "--nope"), ("schema", "Nope")],
    ids=" ".join,
)
def test_the_log_format_of_the_environment_applies_to_every_command(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.setenv("RECONCILER_LOG_FORMAT", "json")
    result = shell(*words)
    assert result.code != 0
    assert {json.loads(line)["level"] for line in result.err.splitlines()} <= {"error", "info"}


def test_the_log_format_flag_overrides_the_environment(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECONCILER_LOG_FORMAT", "json")
    shell.write("manifests/bad.yaml", "kind: IPPolicy\nname: a\nspec: {x: 1}\n")
    assert shell("validate", "--log-format", "text").err.endswith("1 error\n")


def test_the_level_of_a_line_follows_from_its_first_word(shell: Shell, sandbox: Sandbox) -> None:
    sandbox.fault("POST /ip_policies", then="status", status=400)
    result = shell("apply", "-y", "--quiet", "--log-format", "json")
    levels = {line["message"].partition(":")[0]: line["level"] for line in map(json.loads, result.err.splitlines())}
    assert levels == {"failed": "error", "skipped": "warning"}


def test_a_problem_is_logged_with_its_place(shell: Shell) -> None:
    shell.write("manifests/bad.yaml", "kind: IPPolicy\nname: a\nspec: {x: 1}\n")
    result = shell("validate", "--log-format", "json")
    first, last = (json.loads(line) for line in result.err.splitlines())
    assert (first["level"], first["file"], first["line"], first["subject"]) == (
        "error",
        "manifests/bad.yaml",
        3,
        "IPPolicy/a.x",
    )
    assert last["message"] == "1 error"


UNREAD = Problem("the list of IPPolicy is incomplete: refused", code="incomplete-list")
VIOLATION = Problem("no edge without a policy", rule="edges", code="policy")
BY_HAND = Change(
    Address("IPPolicy", "a"),
    Action.UPDATE,
    Reason.FIELDS,
    fields=(FieldChange("description", "a", "b", ChangedBy.PLATFORM),),
)


@pytest.mark.parametrize(
    ("problems", "changes", "drift"),
    [
        ((), (), 0),
        ((), (BY_HAND,), 1),
        ((VIOLATION,), (BY_HAND,), 1),
        ((UNREAD,), (), None),
        ((UNREAD, VIOLATION), (BY_HAND,), None),
    ],
)
def test_drift_is_not_counted_if_a_list_was_not_read(
    problems: tuple[Problem, ...], changes: tuple[Change, ...], drift: int | None
) -> None:
    meter = Mock()
    meter.create_gauge = lambda name, *_: gauges.setdefault(name, Mock())
    gauges: dict[str, Mock] = {}
    telemetry = Telemetry(Mock(), meter)
    telemetry.on_plan(Plan("prod", problems=problems, changes=changes))
    telemetry.on_plan(Plan("prod", changes=(BY_HAND, BY_HAND)))  # a later plan of the run
    sent = [call.args[0] for call in gauges["reconciler.drift"].set.call_args_list]
    assert sent == ([] if drift is None else [drift])
    assert len(gauges["reconciler.changes"].set.call_args_list) == (1 if changes and drift is not None else 0)


class _Recorder:
    """A tracer and a meter that record their calls, one line for each."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def create(self, name: str, *_: str) -> Any:
        one = Mock()
        for method in ("add", "record", "set"):
            setattr(
                one, method, lambda number, labels=None, method=method: self.note(f"{name} {method}", number, labels)
            )
        return one

    create_counter = create_histogram = create_gauge = create

    def start_span(self, name: str, context: object = None, **options: Any) -> Any:
        self.note("span", name, options)
        span = Mock()
        span.set_attribute = lambda key, value: self.note(f"{name}: {key}", value, None)
        span.set_status = lambda status: self.note(name, status.name, None)
        span.end = lambda *at: self.note(f"{name}: end", *at, None)
        return span

    @contextmanager
    def start_as_current_span(self, name: str, context: object, **options: Any) -> Iterator[Any]:
        yield self.start_span(name, context, **options)

    def note(self, *words: object) -> None:
        self.lines.append(" ".join(str(word) for word in words if word is not None))


def test_every_event_is_recorded_by_the_tracer_and_the_meter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: 50.0)
    clock = count(60.0, 0.25)
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    recorder = _Recorder()
    telemetry = Telemetry(cast("Any", recorder), cast("Any", recorder))
    call = Call("create a", Address("IPPolicy", "a"), Verb.CREATE, "/ip_policies")
    for outcome in Outcome:
        telemetry.report(Started(call, 1.0), 0)
        telemetry.report(Retried(call, 2, 1.5, "busy"), 0)
        telemetry.report(Ended(call, outcome, 2.0), 1)
        telemetry.report(Waited(3.0), 1)
    telemetry.report(Ended(call, Outcome.DONE, 2.0), 1)  # not started here
    telemetry.on_wait(2.5)
    record = TaskRecord("run-1", "shop-1", "base", 0, TaskState.SUCCEEDED)
    for ended, code in ((40.0, 0), (40.0, 2), (40.0, 1), (None, None)):
        ended_task = replace(record, ended=ended, exit_code=code, seconds=1.5, attempts=2, requests=7)
        telemetry.on_task(ended_task, "plan")
    telemetry.on_plan(Plan("prod", changes=(BY_HAND, GONE, ADDED), additions=(ADDED,)))
    for failure in (None, Transient("late", code="ERR_NGROK_1"), Transient("late"), OSError("a path")):
        with suppress(Exception), telemetry.watch_list("/tls_edges"), telemetry.watch_request("GET", "/a") as exchange:
            exchange.on_response(503)
            if failure is not None:
                exchange.on_failure(failure)
                raise failure
    for code in range(8):
        with telemetry.run("plan", None) as end:
            end(code)
    for stop in (Stop(3, "stale"), ValueError("a name"), KeyboardInterrupt()):
        with suppress(BaseException), telemetry.run("apply", None):
            raise stop
    compare_golden(Path(__file__).parent / "telemetry.txt", "".join(f"{line}\n" for line in recorder.lines))


def test_messages_of_the_library_are_one_note_and_are_not_shown(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    logger = logging.getLogger("opentelemetry")
    before = {*logger.handlers, _SILENT}, logger.propagate
    with _catch_complaints() as complaint:
        for number in range(3):
            logger.warning("hunter%d", number)
        logger.info("hunter4")
        complaint.report()
    assert capsys.readouterr().err == (
        "note: traces or metrics may be incomplete: OpenTelemetry reported a problem; "
        "check OTEL_EXPORTER_OTLP_ENDPOINT\n"
    )
    assert caplog.text == ""
    assert ({*logger.handlers}, logger.propagate) == before


GONE = Change(Address("IPPolicy", "b"), Action.CREATE, Reason.VANISHED)
ADDED = Change(Address("IPPolicyRule", "c"), Action.DELETE, Reason.ADDED)


ENDPOINT, TRACES, METRICS = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_TRACES_EXPORTER", "OTEL_METRICS_EXPORTER"
EXPORTERS: list[tuple[dict[str, str], bool, list[str], list[str]]] = [
    ({}, False, [], []),
    ({}, True, ["otlp"], ["otlp"]),
    ({ENDPOINT: "http://a"}, False, ["otlp"], ["otlp"]),
    ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://a"}, False, ["otlp"], []),
    ({"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://a"}, True, [], ["otlp"]),
    ({TRACES: "console"}, True, ["console"], []),
    ({TRACES: "otlp, console", METRICS: " "}, False, ["console", "otlp"], []),
    ({TRACES: "none"}, False, [], []),
    ({TRACES: "none"}, True, [], ["otlp"]),
    ({TRACES: "none", METRICS: "none"}, True, [], []),
    ({TRACES: "none", ENDPOINT: "http://a"}, True, [], ["otlp"]),
    ({TRACES: "none, console", METRICS: "otlp"}, False, ["console"], ["otlp"]),
]


def test_variables_select_the_exporters_of_traces_and_of_metrics(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for variables, required, *_ in EXPORTERS:
        with monkeypatch.context() as patched:
            for name in [*filter(lambda name: name.startswith("OTEL_"), os.environ)]:
                patched.delenv(name)
            for name, value in variables.items():
                patched.setenv(name, value)
            selected = _select_exporters(required=required)
        found.append((variables, required, selected["TRACES"], selected["METRICS"]))
    assert found == EXPORTERS
