"""A run over a fleet as JUnit XML: a test suite for each wave, and a test case for each member and project.

GitLab and Jenkins identify a case by `classname` and `name`, group cases by `classname`, and show `message`, `type` and
the text of `failure`, `error` and `skipped`.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from xml.etree import ElementTree as xml

from reconciler.model import exit_codes
from reconciler.model.fleet import RunVerb, TaskState
from reconciler.rendering.fleet import phrases
from reconciler.rendering.fleet.rollup import RollUp, TaskRow
from reconciler.rendering.junit import clean_text, write_xml
from reconciler.rendering.plan.health_section import describe_row

_FAILURES = (TaskState.FAILED, TaskState.STALE, TaskState.BLOCKED)


def render_junit(rollup: RollUp) -> str:
    """The whole file."""
    root = xml.Element("testsuites", {"name": f"{phrases.TITLES[rollup.run.verb]} {clean_text(rollup.fleet)}"})
    names = list(dict.fromkeys(task.wave for task in rollup.tasks))
    for name in names:
        _add_suite(root, rollup, name, [task for task in rollup.tasks if task.wave == name])
    _set_counts(root, rollup, rollup.tasks)
    return write_xml(root)


def _add_suite(root: xml.Element, rollup: RollUp, name: str, tasks: Iterable[TaskRow]) -> None:
    tasks = list(tasks)
    started = min((task.started for task in tasks if task.started), default=rollup.run.created)
    attributes = {
        "name": f"{clean_text(rollup.fleet)} {rollup.run.verb} {clean_text(name)}".rstrip(),
        "timestamp": datetime.fromtimestamp(started, UTC).strftime("%Y-%m-%dT%H:%M:%S"),
    }
    suite = xml.SubElement(root, "testsuite", attributes)
    _set_counts(suite, rollup, tasks)
    for task in tasks:
        case = xml.SubElement(
            suite,
            "testcase",
            {
                "classname": f"{clean_text(rollup.fleet)}.{clean_text(task.project)}",
                "name": clean_text(task.member),
                "time": f"{task.seconds:.3f}",
            },
        )
        _add_result(case, rollup, task)


def _set_counts(element: xml.Element, rollup: RollUp, tasks: Iterable[TaskRow]) -> None:
    tasks = list(tasks)
    element.set("tests", str(len(tasks)))
    element.set("failures", str(sum(_has_failed(rollup, task) for task in tasks)))
    element.set("errors", "0")
    element.set("skipped", str(sum(_is_skipped(task) for task in tasks)))
    element.set("time", f"{sum(task.seconds for task in tasks):.3f}")


def _has_failed(rollup: RollUp, task: TaskRow) -> bool:
    return task.state in _FAILURES or _has_drift(rollup, task) or task.exit_code == exit_codes.DEGRADED


def _has_drift(rollup: RollUp, task: TaskRow) -> bool:
    return rollup.run.verb is RunVerb.DRIFT and task.exit_code == exit_codes.CHANGES


def _is_skipped(task: TaskRow) -> bool:
    return task.state is TaskState.SKIPPED or not task.state.is_final


def _add_result(case: xml.Element, rollup: RollUp, task: TaskRow) -> None:
    reason = clean_text(task.reason)
    if task.state in _FAILURES:
        failure = xml.SubElement(case, "failure", {"message": reason or str(task.state), "type": str(task.state)})
        failure.text = reason
    elif _has_drift(rollup, task):
        text = f"drift: {phrases.describe_actions(task.actions)}" if task.actions else "drift"
        failure = xml.SubElement(case, "failure", {"message": text, "type": "drift"})
        failure.text = f"{text}; shape {task.shape}" if task.shape else text
    elif task.exit_code == exit_codes.DEGRADED:
        failure = xml.SubElement(case, "failure", {"message": "degraded", "type": "degraded"})
        failure.text = "\n".join(clean_text(describe_row(row)) for row in task.health.rows) if task.health else ""
    elif _is_skipped(task):
        xml.SubElement(case, "skipped", {"message": reason or f"{task.state}: not started, or not ended yet"})
    elif task.actions:
        output = xml.SubElement(case, "system-out")
        output.text = f"{phrases.describe_actions(task.actions)}; shape {task.shape}"
