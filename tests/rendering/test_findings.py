"""Findings at lines: SARIF for code scanning, workflow commands for GitHub, code quality reports for GitLab."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from msgspec.structs import replace

from reconciler.model.access_change import AccessChange, Verdict
from reconciler.model.address import Address
from reconciler.model.change import Action, Cause, Change, FieldChange, Reason
from reconciler.model.codes import CODES
from reconciler.model.plan import Plan
from reconciler.model.problem import Problem, Severity
from reconciler.rendering.plan import ci_annotations, findings
from reconciler.rendering.plan.findings import Finding, limit_findings, list_findings
from reconciler.rendering.plan.phrases import Flavour
from reconciler.rendering.plan.sarif import render_sarif
from tests.harness.tiers import examples
from tests.rendering import hostile
from tests.rendering.crowded import CROWDED
from tests.rendering.plans import BEHIND, PAYMENTS, REVIEWED, WHOLE, plans
from tests.rendering.test_text import compare

FALLBACK = "infra/reconciler.yaml"


def object_schema(required: str, **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": required.split(),
        "additionalProperties": False,
    }


def items(of: Any) -> dict[str, Any]:
    return {"type": "array", "items": of}


TEXT = {"type": "string", "minLength": 1}
MESSAGE = object_schema("text", text=TEXT)
LEVEL = {"enum": ["none", "note", "warning", "error"]}
COUNTED = {"type": "integer", "minimum": 1}
# SARIF 2.1.0 for the properties that are written; others are not allowed.
SARIF = object_schema(
    "version runs",
    **{"$schema": TEXT},
    version={"const": "2.1.0"},
    runs=items(
        object_schema(
            "tool results",
            tool=object_schema(
                "driver",
                driver=object_schema(
                    "name",
                    name=TEXT,
                    version=TEXT,
                    rules=items(
                        object_schema(
                            "id",
                            id=TEXT,
                            shortDescription=MESSAGE,
                            help=MESSAGE,
                            defaultConfiguration=object_schema("level", level=LEVEL),
                        )
                    ),
                ),
            ),
            columnKind={"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
            originalUriBaseIds={
                "type": "object",
                "additionalProperties": object_schema("description", description=MESSAGE),
            },
            results=items(
                object_schema(
                    "message",
                    ruleId=TEXT,
                    ruleIndex={"type": "integer", "minimum": -1},
                    level=LEVEL,
                    message=MESSAGE,
                    locations=items(
                        object_schema(
                            "physicalLocation",
                            physicalLocation=object_schema(
                                "artifactLocation",
                                artifactLocation=object_schema(
                                    "uri", uri={**TEXT, "pattern": "^[!-~]+$"}, uriBaseId=TEXT
                                ),
                                region=object_schema("startLine", startLine=COUNTED, startColumn=COUNTED),
                            ),
                            logicalLocations=items(object_schema("", fullyQualifiedName={"type": "string"}, kind=TEXT)),
                        )
                    ),
                    partialFingerprints={"type": "object", "additionalProperties": TEXT},
                    properties=object_schema("", code=TEXT, cause=TEXT),
                )
            ),
        )
    ),
)


def log(plan: Plan) -> dict[str, Any]:
    return json.loads(render_sarif(list_findings(plan), version="1.2.3", fallback=FALLBACK))


@given(plans)
@settings(max_examples=examples(30))
def test_sarif_has_the_structure_of_2_1_0(plan: Plan) -> None:
    written = log(plan)
    jsonschema.validate(written, SARIF)
    (run,) = written["runs"]
    for result in run["results"]:
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]


def test_results_point_to_the_line_of_the_manifest() -> None:
    (run,) = log(WHOLE)["runs"]
    places = {
        (result["ruleId"], place["artifactLocation"]["uri"], place["region"]["startLine"])
        for result in run["results"]
        for place in [result["locations"][0]["physicalLocation"]]
    }
    assert ("unknown-reference", "manifests/payments.yaml", 3) in places
    assert ("interrupts-traffic", "manifests/payments.yaml", 40) in places
    assert ("change", "manifests/payments.yaml", 12) in places


def test_a_finding_without_a_manifest_points_to_the_project_file() -> None:
    (run,) = log(WHOLE)["runs"]
    (gone,) = (result for result in run["results"] if result["ruleId"] == "irreversible")
    assert gone["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == FALLBACK


def test_the_most_severe_findings_are_listed_first() -> None:
    assert [finding.rule.id for finding in list_findings(WHOLE)] == [
        "problem",
        "approval",
        "irreversible",
        "protected",
        "interrupts-traffic",
        "runs-command",
        "issues-credential",
        "issues-credential",
        "added-on-platform",
        "warning",
        "change",
        "change",
        "change",
    ]


def test_a_deletion_without_risks_precedes_all_other_changes() -> None:
    gone = Change(Address("AgentTunnel", "live"), Action.DELETE, Reason.REMOVED)
    for flavour in Flavour:
        found = list_findings(replace(WHOLE, changes=(*WHOLE.changes, gone)), flavour=flavour)
        firsts = [finding.subject for finding in found if finding.rule.id not in ("problem", "approval")]
        assert set(firsts[: firsts.index("AgentTunnel/live") + 1]) <= {"ReservedDomain/old", "AgentTunnel/live"}


@pytest.mark.parametrize(
    ("flavour", "removed", "added"),
    [
        (Flavour.PLAN, "{enabled: true} → (not set)", "(not set) → false"),
        (Flavour.DRIFT, "{enabled: true} on the platform, (not set) in Git", "(not set) on the platform, false in Git"),
    ],
)
def test_a_module_that_is_removed_is_not_shown_as_if_it_were_set(flavour: Flavour, removed: str, added: str) -> None:
    fields = (FieldChange("mutual_tls", {"enabled": True}, None), FieldChange("is_on", None, False))
    plan = Plan("prod", changes=(Change(PAYMENTS, Action.UPDATE, Reason.FIELDS, fields=fields),))
    (finding,) = list_findings(plan, flavour=flavour)
    assert f"mutual_tls: {removed}" in finding.text
    assert f"is_on: {added}" in finding.text
    assert finding.text in json.loads(render_sarif([finding], version="1", fallback="x"))["runs"][0]["results"][0][
        "message"
    ]["text"].replace("{{", "{").replace("}}", "}")


def test_a_change_that_the_branch_does_not_cause_is_a_note() -> None:
    found = {(finding.subject, finding.rule.id, str(finding.level)) for finding in list_findings(REVIEWED)}
    assert found == {
        ("*", "approval", "error"),
        ("TLSEdge/payments", "change", "note"),
        ("https://*.example.com", "drift-before", "note"),
        ("https://pay.example.com", "widens-access", "warning"),
        ("what TunnelCredential/rome may open", "pending-before", "note"),
        ("ReservedDomain/old", "pending-before", "note"),
        ("FailoverBackend/payments", "drift-before", "note"),
        ("IPPolicyRule/ipr_9", "drift-before", "note"),
    }
    (run,) = log(REVIEWED)["runs"]
    assert {result["properties"]["cause"] for result in run["results"] if "properties" in result} == {
        "this_change", "pending", "drift",
    }  # fmt: skip


def test_a_branch_behind_its_base_is_a_warning() -> None:
    (finding,) = (finding for finding in list_findings(BEHIND) if finding.rule.id == "base")
    assert finding.text.startswith("This branch is behind origin/main by 2 commits: changes are not attributed")


def test_drift_is_a_warning_beside_the_declaration() -> None:
    found = list_findings(WHOLE, flavour=Flavour.DRIFT)
    assert {finding.rule.id for finding in found} == {"problem", "warning", "added-on-platform", "drift", "change"}
    (office,) = (finding for finding in found if finding.subject == "IPPolicy/office")
    assert (office.file, office.line, office.text) == (
        "manifests/payments.yaml",
        1,
        'added in Git, not applied yet: description: "Office"',
    )


def test_a_fingerprint_does_not_depend_on_the_line() -> None:
    moved = [
        Finding(finding.rule, finding.text, finding.subject, finding.file, finding.line + 7)
        for finding in list_findings(WHOLE)
    ]
    moved_report, report = (
        json.loads(ci_annotations.render_gitlab(entry, fallback="x")) for entry in (moved, list_findings(WHOLE))
    )
    assert [entry["fingerprint"] for entry in moved_report] == [entry["fingerprint"] for entry in report]
    assert len({entry["fingerprint"] for entry in report}) == len(report)


def test_long_values_are_shown_from_where_they_differ_in_every_format() -> None:
    old, new = "x" * 2000 + "old", "x" * 2000 + "new"
    change = Change(PAYMENTS, Action.UPDATE, Reason.FIELDS, fields=(FieldChange("description", old, new),))
    found = list_findings(Plan("prod", changes=(change,)))
    (quality,) = json.loads(ci_annotations.render_gitlab(found, fallback="x"))
    (result,) = json.loads(render_sarif(found, version="1", fallback="x"))["runs"][0]["results"]
    for text in (ci_annotations.render_github(found), quality["description"], result["message"]["text"]):
        assert re.search('…x+old" → …x+new"', text)


def test_workflow_commands_for_github_are_a_line_each() -> None:
    compare("github.txt", ci_annotations.render_github(list_findings(WHOLE, prefix="infra/")))


def test_a_code_quality_report_for_gitlab_names_file_and_line() -> None:
    report = json.loads(ci_annotations.render_gitlab(list_findings(WHOLE, prefix="infra/"), fallback=FALLBACK))
    assert report[0] == {
        "description": "TLSEdge/x.backend: refers to nothing; declare it",
        "check_name": "unknown-reference",
        "fingerprint": report[0]["fingerprint"],
        "severity": "critical",
        "location": {"path": "infra/manifests/payments.yaml", "lines": {"begin": 3}},
    }
    assert {entry["location"]["path"] for entry in report} == {"infra/manifests/payments.yaml", FALLBACK}


def test_code_scanners_receive_the_code_of_a_warning() -> None:
    warned = Plan("s", problems=(Problem("is odd", severity=Severity.WARNING, code="still-in-use"),))
    (run,) = log(warned)["runs"]
    assert run["results"][0]["ruleId"] == "still-in-use"
    assert run["results"][0]["properties"] == {"code": "still-in-use"}
    (rule,) = run["tool"]["driver"]["rules"]
    assert rule["shortDescription"]["text"] == CODES["still-in-use"].meaning
    assert CODES["still-in-use"].remedy in rule["help"]["text"]
    report = json.loads(ci_annotations.render_gitlab(list_findings(warned), fallback=FALLBACK))
    assert report[0]["check_name"] == "still-in-use"


def parse_command(line: str) -> tuple[str, dict[str, str], str]:
    """A workflow command as GitHub's runner reads it: name, properties, message."""
    head, text = re.fullmatch(r"::([^:]*)::(.*)", line).groups()  # type: ignore[union-attr]
    name, _, pairs = head.partition(" ")
    properties = dict(pair.split("=", 1) for pair in pairs.split(","))
    return name, {key: decode(value) for key, value in properties.items()}, decode(text)


def decode(text: str) -> str:
    for code, sign in (("%3A", ":"), ("%2C", ","), ("%0D", "\r"), ("%0A", "\n"), ("%25", "%")):
        text = text.replace(code, sign)
    return text


@given(hostile.texts)
@settings(max_examples=examples(60))
def test_foreign_text_is_never_a_workflow_command(text: str) -> None:
    found = list_findings(hostile.plan(text))
    lines = ci_annotations.render_github(found).splitlines()
    assert len(lines) == len(found)
    for line, finding in zip(lines, found, strict=True):
        name, properties, _ = parse_command(line)
        assert name in ("error", "warning", "notice")
        assert set(properties) <= {"file", "line", "col", "title"}
        assert properties.get("file", "") == finding.file
        assert properties["title"] == (finding.subject or finding.rule.text) + (
            f" [{finding.code}]" if finding.code else ""
        )
        assert "##[" not in line


@given(plans)
@settings(max_examples=examples(30))
def test_no_secret_is_shown(plan: Plan) -> None:
    found = list_findings(plan)
    for text in (
        ci_annotations.render_github(found),
        ci_annotations.render_gitlab(found, fallback="x"),
        render_sarif(found, version="1", fallback="x"),
    ):
        assert "hunter2" not in text
        assert "correct horse" not in text


def test_the_page_of_outputs_has_each_rule_with_its_level() -> None:
    page = (Path(__file__).parents[2] / "docs/outputs.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ((?:`[a-z-]+`(?:, )?)+) \| (error|warning|note)", page, re.MULTILINE)
    documented = {rule: level for names, level in rows for rule in re.findall(r"`([a-z-]+)`", names)}
    of_problems = {"problem", "policy", "policy-warning", "warning", "note"}  # a problem has its code instead
    rules = {rule.id: str(rule.level) for rule in findings.RULES if rule.id not in of_problems}
    assert rules == {name: documented.get(name, "missing") for name in rules}


def test_changes_of_others_and_notes_come_after_all_changes_of_the_branch() -> None:
    ranks = [findings._rank(findings.Finding(rule, "", "")) for rule in findings.RULES]
    stages = dict(zip((rule.id for rule in findings.RULES), (rank[0] for rank in ranks), strict=True))
    last = {"pending-before", "drift-before", "note"}
    blocking = {"problem", "policy", "approval"}
    first = {rule for rule, stage in stages.items() if stage == -1}
    assert {rule for rule, stage in stages.items() if stage == 2} == last
    assert {rule for rule, stage in stages.items() if stage == 0} == blocking
    assert first == {
        *("access-widened", "way-in-opened", "everyone-locked-out", "access-narrowed", "way-in-closed"),
        *("loosens-rule", "changes-where-it-applies", "loosens-rule-approved", "changes-where-it-applies-approved"),
    }


@pytest.mark.parametrize(
    ("rule", "command", "level", "severity"),
    [
        (findings.PROBLEM, "error", "error", "critical"),
        (findings.WARNING, "warning", "warning", "major"),
        (findings.NOTE, "notice", "note", "info"),
    ],
)
def test_a_level_has_a_name_in_each_format(rule: findings.Rule, command: str, level: str, severity: str) -> None:
    found = [Finding(rule, "50% of\n::x", "a,b:c", "dir/a b.yaml", 7, 3), Finding(rule, "x", "")]
    first, second = ci_annotations.render_github(found).splitlines()
    assert first == f"::{command} file=dir/a b.yaml,line=7,col=3,title=a%2Cb%3Ac::50%25 of%0A::x"
    assert second == f"::{command} title={rule.text}::x"
    one, other = json.loads(ci_annotations.render_gitlab(found, fallback=FALLBACK))
    assert (one["severity"], one["location"]) == (severity, {"path": "dir/a b.yaml", "lines": {"begin": 7}})
    assert (other["location"]["path"], other["description"], one["description"]) == (
        FALLBACK,
        "x",
        "a,b:c: 50% of\n::x",
    )
    run = json.loads(render_sarif(found, version="1", fallback=FALLBACK))["runs"][0]
    places = [result["locations"][0]["physicalLocation"] for result in run["results"]]
    assert [result["level"] for result in run["results"]] == [level, level]
    assert [place["artifactLocation"]["uri"] for place in places] == ["dir/a%20b.yaml", FALLBACK]
    assert [place["region"] for place in places] == [
        {"startLine": 7, "startColumn": 3},
        {"startLine": 1, "startColumn": 1},
    ]


@pytest.mark.parametrize("cause", Cause)
def test_the_cause_of_a_change_is_a_property_of_its_result(cause: Cause) -> None:
    found = [
        Finding(findings.CHANGE, "x", "a", cause=cause, deliveries=("to a file",)),
        Finding(findings.CHANGE, "y", "b"),
    ]
    run = json.loads(render_sarif(found, version="1", fallback=FALLBACK))["runs"][0]
    assert [result.get("properties") for result in run["results"]] == [
        {"cause": str(cause), "deliveries": ["to a file"]},
        None,
    ]


@pytest.mark.parametrize(("length", "end"), [(999, "x"), (1000, "x"), (1001, "…")])
def test_a_message_has_at_most_a_thousand_characters(length: int, end: str) -> None:
    (finding,) = list_findings(Plan("prod", problems=(Problem("odd", code="unknown-field"),)))
    long = replace(finding, subject="", brief="x" * length)
    (result,) = json.loads(render_sarif([long], version="1", fallback="x"))["runs"][0]["results"]
    message = result["message"]["text"]
    assert (len(message), message[-1]) == (min(length, 1000), end)


@pytest.mark.parametrize(("number", "rest"), [(0, []), (2, []), (3, ["1 more finding"]), (4, ["2 more findings"])])
def test_findings_beyond_a_limit_are_counted(number: int, rest: list[str]) -> None:
    problems = tuple(Problem(f"wrong {place}", "", "", code="wrong-type") for place in range(number))
    found = list_findings(Plan("prod", problems=problems))
    limited = limit_findings(found, 2)
    assert limited[:2] == found[:2]
    assert [item.text.removeprefix("… and ").partition(";")[0] for item in limited[2:]] == rest


def test_the_findings_of_plans_are_as_reviewed() -> None:
    lines = []
    for name, plan in {"crowded": CROWDED, "whole": WHOLE, "reviewed": REVIEWED, "behind": BEHIND}.items():
        for flavour in Flavour:
            found = list_findings(plan, flavour=flavour, prefix="infra/")
            lines += [f"{name}, {flavour}: {len(found)}"]
            for item in found:
                place = f"{item.file}:{item.line}:{item.column}"
                marks = f"{item.code} {item.cause} {'deletion' if item.is_deletion else ''} {len(item.deliveries)}"
                lines += [f"  {item.level} {item.id} {place} {item.subject} | {marks}", f"    {item.message[:300]}"]
                lines += [f"    in full {len(item.text)}, in brief {len(item.brief)}"] if len(item.text) > 300 else []
    compare("findings.txt", "".join(f"{line}\n" for line in lines))


def test_a_log_of_code_scanning_is_as_reviewed() -> None:
    found = list_findings(WHOLE)
    compare("findings.sarif", render_sarif(found, version="1.2", fallback="a b.yaml"))
    compare("findings.gitlab", ci_annotations.render_gitlab(found, fallback="a.yaml"))


@pytest.mark.parametrize(
    ("number", "rest"),
    [(1, ""), (2, "; also https://1"), (3, "; also 2 more entry points"), (4, "; also 3 more entry points")],
)
def test_the_other_entry_points_of_a_finding_are_named_or_counted(number: int, rest: str) -> None:
    access = tuple(AccessChange(f"https://{n}", Verdict.WIDENS, "a", "b", "", True, (), "") for n in range(number))
    (found,) = list_findings(Plan("prod", access=access))
    assert found.message == f"lets in requests that were refused; a → b{rest}"
    (drifted,) = list_findings(Plan("prod", access=access), flavour=Flavour.DRIFT)
    counted = {1: "", 2: "; also 1 more entry point", 3: "; also 2 more entry points", 4: "; also 3 more entry points"}
    assert drifted.message == f"Access was widened on the platform: https://0 from a → b{counted[number]}"
