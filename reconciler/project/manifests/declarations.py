"""Converts a manifest document into a declaration: resolves and validates its spec, with positions of problems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from reconciler.model.address import Address
from reconciler.model.dialect import to_specification_id
from reconciler.model.fields.field import fields_of
from reconciler.model.fields.form import Form
from reconciler.model.kind import Kind
from reconciler.model.manifest import Declaration, Ensure
from reconciler.model.problem import Finding, Problem, Severity
from reconciler.model.value import PENDING, Value, value_at
from reconciler.project.documents import validation
from reconciler.project.documents.envelope import Draft, Envelope, suggest_place
from reconciler.project.documents.manifest_document import ManifestDocument
from reconciler.project.documents.merge import scopes_in
from reconciler.project.documents.resolve import Resolver
from reconciler.project.documents.validation import MAX_FINDINGS
from reconciler.project.policies import offsets


def declare(
    draft: Draft,
    envelope: Envelope,
    address: Address,
    kind: Kind,
    resolver: Resolver,
    sources: Mapping[str, bytes],
) -> tuple[Declaration, list[Problem]]:
    """Returns the declaration of a draft and its problems.

    `sources`: contents of the project's files by path, for positions within texts.
    """
    places, written = draft.document.places, draft.spec
    spec = resolver.resolve(kind.spec, address, written, envelope.ensure, scopes_in(places))
    findings = resolver.findings
    if spec_findings := _spec_findings(envelope, kind, spec, resolver):
        findings, spec_findings = _join_terraform(findings, spec_findings)
        findings = findings + [
            _suggest_place(finding, kind) for finding in spec_findings if value_at(spec, finding.path) != PENDING
        ]
    if len(findings) > MAX_FINDINGS:
        more = Finding(
            (),
            f"more than {MAX_FINDINGS} problems in this resource",
            "correct those above first",
            code="too-many-problems",
        )
        findings = [*findings[:MAX_FINDINGS], more]
    declaration = Declaration(
        address=address,
        spec=spec,
        position=places.start,
        positions=places,
        id=None if envelope.id is None else to_specification_id(envelope.id, kind.id_prefix),
        ensure=envelope.ensure,
        lifecycle=envelope.lifecycle,
        moved=draft.moved,
        deliver=draft.deliver,
        rotate=envelope.rotate,
        listed=draft.listed,
    )
    problems = []
    for finding in findings:
        problem = validation.to_problem(finding, places, draft.subject, ("spec",))
        if finding.spot or finding.within:
            as_written, value = value_at(written, finding.path), value_at(spec, finding.path)
            problem = offsets.pinpoint(problem, finding, as_written, value, sources)
        problems.append(problem)
    return declaration, problems


def _spec_findings(envelope: Envelope, kind: Kind, spec: dict[str, Value], resolver: Resolver) -> list[Finding]:
    needs_all = envelope.ensure is Ensure.PRESENT
    lacking = [
        validation.report_missing_field((name,), "set it, or set id: to the id of an existing object")
        for name in (kind.required_unless_id if needs_all and envelope.id is None else ())
        if spec.get(name) is None
    ]
    if envelope.lifecycle.ignore:
        spec = _fill_ignored_secrets(kind, spec, envelope.lifecycle.ignore)
    valid = kind.spec.model_try(spec)
    if not isinstance(valid, Form):
        resolver.invalid_values += valid.error_count()
        wrong = validation.problems_of(valid, spec, fields_of(kind.spec))
        return lacking + [
            finding for finding in wrong if needs_all or finding.text != validation.MISSING or len(finding.path) > 1
        ]
    return lacking + validation.findings_of(valid)


def _join_terraform(findings: list[Finding], spec_findings: list[Finding]) -> tuple[list[Finding], list[Finding]]:
    """One error for a value that is wrong because it is an expression of Terraform, with the remedy for that."""
    wrong = {finding.path for finding in spec_findings if finding.severity is Severity.ERROR}
    meant = {finding.path for finding in findings if finding.code == "terraform-expression" and finding.path in wrong}
    if not meant:
        return findings, spec_findings
    text = "an expression of Terraform"
    joined = [
        replace(finding, severity=Severity.ERROR, text=text)
        if finding.code == "terraform-expression" and finding.path in meant
        else finding
        for finding in findings
    ]
    return joined, [finding for finding in spec_findings if finding.path not in meant]


def _suggest_place(finding: Finding, kind: Kind) -> Finding:
    """Replaces the remedy for a key of the spec that belongs beside `spec`."""
    if finding.code != "unknown-field" or len(finding.path) != 1:
        return finding
    name = str(finding.path[0])
    where = "write it beside spec" if name in ManifestDocument.model_fields else suggest_place(name, kind)
    return replace(finding, remedy=where) if where else finding


def _fill_ignored_secrets(kind: Kind, spec: dict[str, Value], ignored: Sequence[str]) -> dict[str, Value]:
    """Adds a placeholder for each secret in `lifecycle.ignore`, which the object has and the manifest does not."""
    for name in ignored:
        path = tuple(name.split("."))
        field, is_secret = validation.field_at(kind.fields, path)
        if field is not None and is_secret and value_at(spec, path) is None:
            spec = _with_placeholder(spec, path)
    return spec


def _with_placeholder(spec: dict[str, Value], path: tuple[str, ...]) -> dict[str, Value]:
    head, *rest = path
    if not rest:
        return {**spec, head: PENDING}
    inner = spec.get(head)
    return {**spec, head: _with_placeholder(inner, tuple(rest))} if isinstance(inner, dict) else spec
