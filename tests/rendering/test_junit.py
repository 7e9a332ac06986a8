"""Access tests as JUnit XML: names, positions, and texts that XML does not allow."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as xml

from hypothesis import given
from msgspec.structs import replace

from reconciler.model.access_test import AccessResult, AccessStatus, Expected
from reconciler.model.problem import Position, Severity
from reconciler.rendering.junit import Suite, render_access_tests
from tests.harness.golden import compare_golden
from tests.rendering import hostile

PLACE = Position("tests/access.yaml", 3, 5)


def result(text: str, status: AccessStatus, base: str = "") -> AccessResult:
    return AccessResult(text, status, Expected.DENY, Expected.ALLOW, text, PLACE, base)


def test_files_count_from_the_repositorys_root_and_tests_of_a_base_name_it() -> None:
    text = render_access_tests([Suite("of prod", [result("GET a", AccessStatus.FAILED, "main")])], "infra/")
    (case,) = xml.fromstring(text).iter("testcase")  # noqa: S314 - our own text
    assert (case.get("file"), case.get("name")) == ("infra/tests/access.yaml", "GET a expects deny (of main)")
    (failure,) = case
    assert failure.text == "infra/tests/access.yaml:3:5: expected deny, found allow: GET a"


@given(hostile.texts)
def test_any_text_is_valid_xml_with_the_same_counts(text: str) -> None:
    results = [result(text, status) for status in AccessStatus]
    root = xml.fromstring(render_access_tests([Suite(text, results)]))  # noqa: S314 - our own text
    assert [root.get(name) for name in ("tests", "failures", "skipped")] == ["3", "1", "1"]


def test_results_of_every_sort_are_written_as_reviewed() -> None:
    results = [
        *(result(f"GET {status} from 192.0.2.1", status) for status in AccessStatus),
        replace(result("GET b", AccessStatus.FAILED, "main"), severity=Severity.WARNING),
    ]
    suites = [Suite("prod", results), Suite("", []), Suite("a\x1b\ufffe", results[2:])]
    compare_golden(Path(__file__).parent / "pages" / "access-tests.xml", render_access_tests(suites, "infra/"))
