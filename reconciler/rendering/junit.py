"""Results of access tests as JUnit XML: a test suite for each environment, and a test case for each test.

Pipelines show a case by `classname` and `name`, with its `file` in GitLab, and the text of `failure` and `skipped`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree import ElementTree as xml

from msgspec import Struct

from reconciler.model.access_test import AccessResult, AccessStatus
from reconciler.rendering.terminal_text import sanitize

# Characters that XML 1.0 does not allow; `sanitize` escapes controls and surrogates already.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class Suite(Struct, frozen=True):
    """The results of one run of the access tests. `name`: of the stack or environment."""

    name: str
    results: Sequence[AccessResult]


def render_access_tests(suites: Sequence[Suite], prefix: str = "") -> str:
    """The whole file. `prefix`: the project's folder below the repository's root."""
    root = xml.Element("testsuites", {"name": "access tests"})
    for suite in suites:
        element = xml.SubElement(root, "testsuite", {"name": clean_text(f"access tests {suite.name}".rstrip())})
        _set_counts(element, suite.results)
        for result in suite.results:
            _add_case(element, result, prefix)
    _set_counts(root, [result for suite in suites for result in suite.results])
    return write_xml(root)


def _set_counts(element: xml.Element, results: Sequence[AccessResult]) -> None:
    statuses = [result.status for result in results]
    element.set("tests", str(len(statuses)))
    element.set("failures", str(statuses.count(AccessStatus.FAILED)))
    element.set("errors", "0")
    element.set("skipped", str(statuses.count(AccessStatus.SKIPPED)))


def _add_case(suite: xml.Element, result: AccessResult, prefix: str) -> None:
    position = result.position
    file = clean_text(f"{prefix}{position.file}")
    of = f" (of {result.base})" if result.base else ""
    name = clean_text(f"{result.test} expects {result.expect}{of}")
    case = xml.SubElement(
        suite, "testcase", {"classname": file, "name": name, "file": file, "line": str(position.line)}
    )
    if result.status is AccessStatus.SKIPPED:
        xml.SubElement(case, "skipped", {"message": clean_text(result.decides)})
    elif result.status is AccessStatus.FAILED:
        message = clean_text(f"expected {result.expect}, found {result.outcome}: {result.decides}")
        failure = xml.SubElement(case, "failure", {"message": message, "type": str(result.severity)})
        failure.text = f"{file}:{position.line}:{position.column}: {message}"


def clean_text(text: str) -> str:
    """The text without characters that XML does not allow."""
    return _NOT_XML.sub("\ufffd", sanitize(text))


def write_xml(root: xml.Element) -> str:
    """The document of a root element, indented."""
    xml.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + xml.tostring(root, encoding="unicode") + "\n"
