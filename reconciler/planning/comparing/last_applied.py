"""What was last applied to an object, as the digests of its owner record or of its binding in the store."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from msgspec import Struct

from reconciler.model import owner_record
from reconciler.model.canonical import CanonicalFields, canonicalize, collect_applied, collect_applied_in, digests
from reconciler.model.fields.annotations import ServerDefault
from reconciler.model.fields.field import Field, Shape
from reconciler.model.kind import Kind
from reconciler.model.value import Ref, Sealed, Value, digest, has_secret, is_known, reveal, secrets_in

Follows = Callable[[Ref, Value], bool]
"""Whether a live value is the id of the object that the target of the reference is about to replace."""

ABSENT = "-"
"""Stands for the digest of a leaf whose enclosing object was not applied."""

SERVER_CHOICE = "?"
"""Stands for the digest of a leaf that no manifest set, so that the platform chose its value."""


class BundleComparison(NamedTuple):
    """Whether each side differs from what was applied to a field as a whole.

    platform   the live value differs
    git        the declared value differs; None while it is not known, since a reference in it is not resolved
    """

    platform: bool
    git: bool | None


class LastApplied(Struct, frozen=True):
    """What was last applied to one object (docs/glossary.md, "owner record" and "binding").

    applied   the digest of each applied leaf by its dotted path; None if nothing is known of the last apply
    salt      of the digests: the intent of the owner record, or the address of the binding
    sources   of secrets, as in the owner record
    follows   tells whether an unresolved reference differs from a live value only because its target is replaced
    """

    applied: Mapping[str, str] | None
    salt: str = ""
    follows: Follows = lambda ref, live: False
    sources: Mapping[str, str] = MappingProxyType({})

    def digest_at(self, path: str, leaf: Field, top: Field) -> str | None:
        """The digest last applied to a leaf of the top-level field `top`, ABSENT, SERVER_CHOICE, or None if unknown.

        A leaf without a digest of its own had its default.
        """
        if self.applied is None:
            return None
        if path in self.applied:
            return self.applied[path]
        if top.shape is Shape.OBJECT and path != top.name and not self.holds(path.rpartition(".")[0]):
            return ABSENT
        if ServerDefault in leaf:
            return SERVER_CHOICE
        return digest(canonicalize(leaf, leaf.default), self.salt)

    def matches(self, recorded: str, value: Value) -> bool:
        """Whether a recorded digest is that of the value.

        Owner records of earlier versions may hold a sensitive value from a reference, and a document with secrets
        inside, as the digest of its plain text.
        """
        if digest(value, self.salt) == recorded:
            return True
        is_revealed = not any(isinstance(secret, Sealed) for secret in secrets_in(value))
        return has_secret(value) and is_revealed and digest(reveal(value)) == recorded

    def compare_bundle(self, field: Field, want: Value, have: Value) -> BundleComparison | None:
        """Compares both sides of a field with its bundled digest; None if the owner record has a digest per leaf.

        Owner records that would not fit into `metadata` bundle the leaves of a field into one digest.
        """
        recorded = (self.applied or {}).get(owner_record.bundle(field.name))
        if recorded is None:
            return None
        platform = self._digest_bundle(field, have) != recorded
        return BundleComparison(platform, self._digest_bundle(field, want) != recorded if is_known(want) else None)

    def _digest_bundle(self, field: Field, value: Value) -> str:
        inside = collect_applied_in(field, value) if isinstance(value, dict) else {}
        return owner_record.fold(field, digests(inside, self.salt)).get(owner_record.bundle(field.name), ABSENT)

    def holds(self, name: str) -> bool:
        """Whether anything was applied to the field, or inside it."""
        return self.applied is not None and owner_record.holds(self.applied, name)


def is_record_current(kind: Kind, want: CanonicalFields, last_applied: LastApplied) -> bool:
    """Whether the owner record already holds the digests that applying the declaration would write."""
    if last_applied.applied is None:
        return False
    expected = collect_applied(kind, want)
    bundled = [field for field in kind.fields if owner_record.bundle(field.name) in last_applied.applied]
    if not all(map(is_known, expected.values())) or (expected.keys() != last_applied.applied.keys() and not bundled):
        return False
    current = digests(expected, last_applied.salt)
    for field in bundled:
        current = owner_record.fold(field, current)
    return current == dict(last_applied.applied)
