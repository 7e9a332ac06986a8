"""Findings as SARIF 2.1.0, for code scanning: rules, results, and their lines in the manifests."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from urllib.parse import quote

from reconciler.model.codes import CODES
from reconciler.model.json_text import write_json
from reconciler.model.value import Json
from reconciler.rendering.plan.findings import Finding, limit_findings

_MOST = 5000  # results, the most severe first: GitHub shows no more of a run
_LONGEST = 1000  # characters of a message: viewers show a line or two
_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def render_sarif(findings: Sequence[Finding], *, version: str, fallback: str) -> str:
    """The whole log. `version`: of this program. `fallback`: the file for subjects that no manifest mentions."""
    findings = limit_findings(findings, _MOST)
    rules = {finding.id: _rule(finding) for finding in findings}
    numbers = {rule_id: number for number, rule_id in enumerate(rules)}
    log = {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": {"name": "reconciler", "version": version, "rules": [*rules.values()]}},
                "columnKind": "unicodeCodePoints",
                "originalUriBaseIds": {"%SRCROOT%": {"description": {"text": "The root of the repository."}}},
                "results": [_result(finding, numbers[finding.id], fallback) for finding in findings],
            }
        ],
    }
    return write_json(log).replace("##", "#\\u0023") + "\n"


def _rule(finding: Finding) -> Json:
    entry = CODES.get(finding.code)
    rule = {"id": finding.id, "defaultConfiguration": {"level": str(finding.level)}}
    if entry is None:
        return {**rule, "shortDescription": {"text": finding.rule.text}}
    return {
        **rule,
        "shortDescription": {"text": entry.meaning},
        "help": {"text": f"{entry.cause} {entry.remedy}"},
    }


def fingerprint(finding: Finding) -> str:
    """A digest that stays the same for the same finding in later runs, on any line."""
    content = "\0".join((finding.rule.id, finding.subject, finding.text))
    return hashlib.blake2b(content.encode(errors="surrogatepass"), digest_size=16).hexdigest()


def _result(finding: Finding, number: int, fallback: str) -> Json:
    return {
        "ruleId": finding.id,
        "ruleIndex": number,
        "level": str(finding.level),
        "message": {"text": _text(finding)},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {
                        "uri": quote((finding.file or fallback).encode(errors="surrogatepass")),
                        "uriBaseId": "%SRCROOT%",
                    },
                    "region": {"startLine": finding.line, "startColumn": finding.column},
                },
                "logicalLocations": [{"fullyQualifiedName": finding.subject, "kind": "resource"}],
            }
        ],
        "partialFingerprints": {"finding/v1": fingerprint(finding)},
        **({"properties": properties} if (properties := _properties(finding)) else {}),
    }


def _properties(finding: Finding) -> dict[str, Json]:
    properties: dict[str, Json] = {"code": finding.code} if finding.code else {}
    if finding.cause is not None:
        properties["cause"] = str(finding.cause)
    return {**properties, "deliveries": list(finding.deliveries)} if finding.deliveries else properties


def _text(finding: Finding) -> str:
    """The message with brackets escaped and braces doubled: SARIF reads them as links and placeholders."""
    text = f"{finding.subject}: {finding.message}" if finding.subject else finding.message
    text = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
    for sign in "\\[]":
        text = text.replace(sign, f"\\{sign}")
    return text.replace("{", "{{").replace("}", "}}")
