"""Checks that targets, exclusions and replacements match a resource."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from reconciler import kinds
from reconciler.model.address import Address
from reconciler.model.manifest import Ensure, Manifest
from reconciler.model.snapshot import Snapshot
from reconciler.model.suggestions import did_you_mean
from reconciler.operations.errors import NothingSelected
from reconciler.operations.reporting import Note, OnEvent
from reconciler.planning.deciding.options import PlanOptions


def check_selection(policy: PlanOptions, manifest: Manifest, snapshot: Snapshot, on_event: OnEvent) -> None:
    """Raises NothingSelected if a target or exclusion matches nothing, since a misspelled name would look unchanged.

    In a plan to destroy it is only a warning: the resource may be deleted already.
    """
    if not policy.is_limited:
        return
    owners = (live.owner for name in snapshot.listings for live in snapshot.of(name).objects)
    owned = {owner.address for owner in owners if owner is not None and owner.stack == manifest.stack}
    invalid = manifest.unread.addresses if manifest.unread is not None else ()
    known = {*manifest.declarations, *invalid, *snapshot.bindings, *owned, *_children(snapshot)}
    wrong = [glob for glob in policy.find_unmatched(known) if not _may_match(glob, snapshot)]
    lines = [_describe_mismatch(glob, sorted(map(str, known)), manifest) for glob in wrong]
    if policy.destroy:
        for line in lines:
            on_event(Note(f"warning: {line}"))
    elif lines:
        raise NothingSelected(*lines)


def _children(snapshot: Snapshot) -> Iterator[Address]:
    """The addresses of additions: KIND/ID."""
    for kind in kinds.every():
        for live in snapshot.of(kind.name).objects if kind.part_of is not None and kind.key == "id" else ():
            if live.owner is None:
                yield Address(kind.name, live.id)


def _may_match(glob: str, snapshot: Snapshot) -> bool:
    """Whether a glob needs no match: KIND/*, or a kind whose list is incomplete."""
    kind, _, name = glob.partition("/")
    if name == "*" and kinds.find(kind) is not None:
        return True
    return any(fnmatchcase(name, kind) for name, listing in snapshot.listings.items() if not listing.complete)


def _describe_mismatch(
    glob: str, known: Sequence[str], manifest: Manifest, where: str = "is declared, or owned by this stack"
) -> str:
    kind, slash, _ = glob.partition("/")
    if manifest.unread is not None and manifest.unread.has_unknown:
        return f"{glob} matches nothing that {where}, but an invalid manifest may declare it; run `reconciler validate`"
    if not slash and kinds.find(kind) is not None:
        return f"{glob} matches nothing that {where}; write {glob}/* for all of the kind"
    meant = did_you_mean(glob, [address for address in known if address.startswith(f"{kind}/")] or known)
    remedy = meant or "write KIND/NAME as shown in plans, for example TLSEdge/payments"
    return f"{glob} matches nothing that {where}; {remedy}"


def resources_to_replace(words: Sequence[str], manifest: Manifest, policy: PlanOptions) -> frozenset[Address]:
    """The resources to replace. Raises NothingSelected if one of them is not declared, or not selected."""
    found = {word: _find_declaration(word, manifest) for word in words}
    declared = sorted(str(address) for address in manifest.declarations)
    lines = [
        f"{word} cannot be replaced, because its manifest is invalid; run `reconciler validate`"
        if _is_invalid(word, manifest)
        else _describe_mismatch(word, declared, manifest, "is declared")
        for word, address in found.items()
        if address is None
    ]
    lines += [
        f"{word} cannot be replaced, because --target or --exclude leaves it out"
        for word, address in found.items()
        if address is not None and not policy.selects(address)
    ]
    if lines:
        raise NothingSelected(*lines)
    return frozenset(address for address in found.values() if address is not None)


def _is_invalid(text: str, manifest: Manifest) -> bool:
    return manifest.unread is not None and text in set(map(str, manifest.unread.addresses))


def _find_declaration(text: str, manifest: Manifest) -> Address | None:
    found = manifest.declarations.get(Address(*text.split("/", 1))) if "/" in text else None
    return found.address if found is not None and found.ensure is Ensure.PRESENT else None
