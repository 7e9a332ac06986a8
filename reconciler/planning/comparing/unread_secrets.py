"""Secrets that a plan may not read: which of them are assumed to be as last applied.

An owner record has digests of the values that were applied, and of the sources that named them. While the sources are
the same, and the platform shows what was applied, the value is assumed to be the same too; only an apply knows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from reconciler.model.address import Address
from reconciler.model.canonical import CanonicalFields, digest_sources, leaves
from reconciler.model.fields.field import Field
from reconciler.model.kind import Kind
from reconciler.model.plan import AssumedSecret
from reconciler.model.problem import Problem, Severity
from reconciler.model.value import (
    Sealed,
    Secret,
    UnreadSecret,
    Value,
    digest,
    find_secrets,
    replace_secrets,
    secrets_in,
    value_at,
)
from reconciler.planning.comparing.canonical_fields import UNREAD
from reconciler.planning.comparing.last_applied import LastApplied
from reconciler.planning.comparing.leaf_differences import leaf_value

_MOST_NAMES = 10


def has_unread(value: Value) -> bool:
    """Whether a value contains a secret that was not read."""
    return any(isinstance(secret, UnreadSecret) for secret in secrets_in(value))


def assume_applied(
    kind: Kind,
    address: Address,
    spec: dict[str, Value],
    want: CanonicalFields,
    have: CanonicalFields,
    last_applied: LastApplied,
    former_sources: Mapping[str, str] | None,
) -> tuple[dict[str, Value], tuple[AssumedSecret, ...]]:
    """The spec with the secrets that are assumed to be as last applied: as the platform shows them, or by their digest.

    want, have       the declared and the live fields in canonical form
    former_sources   the result of `digest_sources` for the base, for owner records without sources
    """
    if last_applied.applied is None:
        return spec, ()
    known: dict[int, Secret | None] = {}  # by the id() of the unread secret; None: it stays unknown
    assumed: list[AssumedSecret] = []
    for field in kind.fields:
        value = want.get(field.name)
        if not has_unread(value) or not _has_same_sources(kind, field.name, spec, last_applied, former_sources):
            continue
        for path, leaf, declared in leaves(field, value):
            for place, unread in find_secrets(declared):
                if isinstance(unread, UnreadSecret):
                    found = _find_applied(field, leaf, path, place, unread, want, have, last_applied)
                    before = known.setdefault(id(unread), found)
                    known[id(unread)] = found if before is not None and before == found else None
                    if found is not None:
                        where = path + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place)
                        salt = last_applied.salt
                        assumed.append(AssumedSecret(address, where, unread.source, salt, digest(found, salt)))
    fill = _filler(known)
    return {name: replace_secrets(value, fill) for name, value in spec.items()}, tuple(assumed)


def report_assumed(assumed: Sequence[AssumedSecret]) -> Iterator[Problem]:
    """The note about secrets that are assumed to be as last applied, if there are any."""
    if not assumed:
        return
    names = [f"{secret.address}.{secret.path} ({secret.source})" for secret in assumed[:_MOST_NAMES]]
    more = [f"{len(assumed) - _MOST_NAMES} more"] if len(assumed) > _MOST_NAMES else []
    secrets = f"{len(assumed)} secret{'' if len(assumed) == 1 else 's'}"
    yield Problem(
        f"assumed unchanged: {secrets} that could not be read here: {', '.join([*names, *more])}",
        "an apply compares them, and sends none that differs",
        severity=Severity.NOTE,
        code="secrets-assumed",
    )


def _filler(known: Mapping[int, Secret | None]) -> Callable[[Secret], Secret]:
    return lambda secret: known.get(id(secret)) or secret


def _has_same_sources(
    kind: Kind, name: str, spec: Mapping[str, Value], last_applied: LastApplied, former: Mapping[str, str] | None
) -> bool:
    """Whether the field names the variables and files of the last apply; if none are recorded, those of the base."""
    recorded = last_applied.sources or former
    return recorded is None or recorded.get(name) == digest_sources(kind, spec).get(name)


def _find_applied(
    field: Field,
    leaf: Field,
    path: str,
    place: tuple[str | int, ...],
    unread: UnreadSecret,
    want: CanonicalFields,
    have: CanonicalFields,
    last_applied: LastApplied,
) -> Secret | None:
    """The secret that was last applied at a place of a leaf; None if that is not known."""
    live = leaf_value(path, have.get(field.name))
    recorded = (last_applied.applied or {}).get(path)
    visible = None if live is UNREAD or have.get(field.name) is UNREAD else value_at(live, place)
    if isinstance(visible, Secret) and _is_as_applied(field, path, live, want, have, last_applied):
        if isinstance(visible, Sealed):
            return Sealed(unread.source, visible.digests, visible.spellings, visible.salt)
        return Secret(visible.reveal(), unread.source)
    if place or recorded is None:
        return None
    return UnreadSecret(unread.source, {last_applied.salt: recorded}, [recorded], last_applied.salt)


def _is_as_applied(
    field: Field, path: str, live: Value, want: CanonicalFields, have: CanonicalFields, last_applied: LastApplied
) -> bool:
    """Whether the platform shows the value of a leaf that was last applied."""
    recorded = (last_applied.applied or {}).get(path)
    if recorded is not None:
        return last_applied.matches(recorded, live)
    bundle = last_applied.compare_bundle(field, want.get(field.name), have.get(field.name))
    return bundle is not None and not bundle.platform
