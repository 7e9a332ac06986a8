"""Secrets that a reviewed plan did not read: withheld from planning, compared with what the plan assumed, and put into
the calls that send them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TypeVar

from msgspec.structs import replace

from reconciler import kinds
from reconciler.model.address import Address
from reconciler.model.canonical import canonicalize, leaf_at
from reconciler.model.manifest import Manifest
from reconciler.model.plan import AssumedSecret, Call, Plan
from reconciler.model.problem import Problem, Severity
from reconciler.model.value import Secret, UnreadSecret, Value, digest, replace_secrets, secrets_in
from reconciler.operations.open_project import OpenProject

P = TypeVar("P", bound=OpenProject)


def withhold(project: P, sources: Collection[str]) -> P:
    """The project whose plans do not know the secrets of these sources, as the job that planned did not.

    What is written into the same document beside a secret is known.
    """
    if not sources:
        return project
    options = replace(project.options, assumes_secrets=True, unread=frozenset(sources))
    return dataclasses.replace(project, manifest=withhold_from(project.manifest, sources), options=options)


def withhold_from(manifest: Manifest, sources: Collection[str]) -> Manifest:
    """The manifest with the secrets of these sources unread."""

    def hide(secret: Secret) -> Secret:
        return UnreadSecret(secret.source) if secret.source in sources else secret

    declarations = {
        address: replace(
            declaration, spec={name: replace_secrets(value, hide) for name, value in declaration.spec.items()}
        )
        for address, declaration in manifest.declarations.items()
    }
    return replace(manifest, declarations=declarations)


def compare_assumed(assumed: Iterable[AssumedSecret], texts: Mapping[str, Secret]) -> Iterator[tuple[Address, Problem]]:
    """The secrets that are not what the plan assumed, or cannot be read: the resource, and a warning.

    texts  the secrets by source
    """
    for secret in assumed:
        text = texts.get(secret.source)
        if text is None:
            wrong = f"the secret from {secret.source} cannot be read, so that it was not compared"
            remedy = "set it for the job that applies"
        elif not _is_as_assumed(secret, text):
            wrong = f"the secret from {secret.source} is not the one that was last applied, as the plan assumed; "
            wrong += "nothing is sent for it"
            remedy = "to apply it, name it by another variable or file, or plan without `--secrets unchanged`"
        else:
            continue
        where = f"{secret.address}.{secret.path}"
        yield (
            secret.address,
            Problem(wrong, remedy, where, severity=Severity.WARNING, code="secret-not-applied"),
        )


def _is_as_assumed(assumed: AssumedSecret, text: Secret) -> bool:
    leaf = leaf_at(kinds.get(assumed.address.kind).fields, assumed.path)
    form = canonicalize(leaf, text) if leaf is not None and leaf.conceals is None else text
    if not isinstance(form, Secret):
        return False
    return assumed.digest in (digest(form, assumed.salt), digest(form.reveal()))


def fill_secrets(plan: Plan, texts: Mapping[str, Secret]) -> Plan:
    """The plan with the secrets that were not read in its calls. Those without a text stay unread."""
    return replace(plan, calls=tuple(_fill(call, texts) for call in plan.calls)) if plan.unread else plan


def find_unfilled(call: Call) -> Iterator[str]:
    """The sources of the secrets that a call lacks."""
    recorded = dict(call.owner.applied) if call.owner is not None else {}
    for secret in secrets_in((call.body, recorded)):
        if isinstance(secret, UnreadSecret):
            yield secret.source


def _fill(call: Call, texts: Mapping[str, Secret]) -> Call:
    if not any(True for _ in find_unfilled(call)):
        return call

    def read(secret: Secret) -> Secret:
        return texts.get(secret.source, secret) if isinstance(secret, UnreadSecret) else secret

    owner, fields = call.owner, kinds.get(call.address.kind).fields
    body = None if call.body is None else {name: replace_secrets(value, read) for name, value in call.body.items()}
    if owner is not None:
        applied: dict[str, Value] = {}
        for path, value in owner.applied.items():
            leaf, filled = leaf_at(fields, path), replace_secrets(value, read)
            applied[path] = filled if filled is value or leaf is None else canonicalize(leaf, filled)
        owner = replace(owner, applied=applied)
    return replace(call, body=body, owner=owner)
