"""Checks that `metadata` leaves room for the owner record and does not contain its key."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain

from reconciler import kinds
from reconciler.model import owner_record as owners
from reconciler.model.canonical import canonical_spec, collect_applied, digest_sources
from reconciler.model.manifest import Declaration
from reconciler.model.owner_record import Owner
from reconciler.model.problem import Problem
from reconciler.project.manifests.checks.by_kind import ByKind


def check_metadata(by_kind: ByKind, stack: str) -> Iterator[Problem]:
    """Reports `metadata` that is too long beside the owner record, or contains its key."""
    for declaration in chain.from_iterable(by_kind[kind] for kind in by_kind if kind.keeps_owner):
        if "metadata" in declaration.spec and (problem := _check_one(declaration, stack)) is not None:
            yield problem


def _check_one(declaration: Declaration, stack: str) -> Problem | None:
    text = declaration.spec["metadata"]
    if not isinstance(text, str) or not text:
        return None
    subject = f"{declaration.address}.metadata"
    if owners.KEY in text and _holds_record(text):
        where = declaration.at("metadata")
        return Problem(
            f"holds {owners.KEY!r}, the reserved key of the owner record",
            "use another key",
            subject,
            where,
            code="reserved-metadata",
        )
    size = len(text.encode())
    if size <= owners.LIMIT - owners.MOST or size > owners.LIMIT:  # room enough; reported by the field itself
        return None
    kind = kinds.get(declaration.address.kind)
    record = Owner(
        stack=stack,
        address=declaration.address,
        intent="",
        applied=dict.fromkeys(collect_applied(kind, canonical_spec(kind, declaration.spec)), ""),
        protect=declaration.lifecycle.protect,
        pending=kind.one_time is not None,
        replaces="0" * 36,
        sources=digest_sources(kind, declaration.spec),
    )
    room = owners.room(text, record, kind)
    if size <= room:
        return None
    text = f"has {size} bytes; {room} are available beside the owner record"
    where = declaration.at("metadata")
    return Problem(text, f"shorten it by {size - room} bytes", subject, where, code="metadata-too-long")


def _holds_record(text: str) -> bool:
    """Whether the text contains the key of the owner record at the place of the record."""
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        return any(line.startswith(f"#{owners.KEY} ") for line in text.splitlines())
    return isinstance(parsed, dict) and owners.KEY in parsed
