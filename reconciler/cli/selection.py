"""What `--target`, `--exclude` and `--replace` name has to be there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from reconciler import kinds
from reconciler.cli.terminal import exit_codes, output
from reconciler.model.address import Address
from reconciler.model.manifest import Ensure, Manifest
from reconciler.model.snapshot import Snapshot
from reconciler.planning.deciding.options import Policy
from reconciler.project.documents import phrases


def check(policy: Policy, manifest: Manifest, snapshot: Snapshot) -> None:
    """Stop if what is selected or excluded is not there: what a misspelt name means would pass for unchanged.

    What is to be destroyed may be gone already, and a second run is no error: it is told of.
    """
    if not policy.is_limited:
        return
    owners = (live.owner for name in snapshot.listings for live in snapshot.of(name).objects)
    ours = {owner.address for owner in owners if owner is not None and owner.stack == manifest.stack}
    known = {*manifest.declarations, *snapshot.bindings, *ours, *_children(snapshot)}
    wrong = [glob for glob in policy.unmatched(known) if not _may_match(glob, snapshot)]
    told = [_unmatched(glob, sorted(map(str, known))) for glob in wrong]
    if policy.destroy:
        for each in told:
            output.say(f"warning: {each}")
    elif told:
        raise exit_codes.Stop(exit_codes.USAGE, *(f"error: {each}" for each in told))


def _children(snapshot: Snapshot) -> Iterator[Address]:
    """What additions are called that have an id."""
    for kind in kinds.every():
        for live in snapshot.of(kind.name).objects if kind.part_of is not None and kind.key == "id" else ():
            if live.owner is None:
                yield Address(kind.name, live.id)


def _may_match(glob: str, snapshot: Snapshot) -> bool:
    """Whether it is all of a kind, of which there need not be any, or of a kind that was not seen to the end."""
    kind, _, name = glob.partition("/")
    if name == "*" and kinds.find(kind) is not None:
        return True
    return any(fnmatchcase(each, kind) for each, listing in snapshot.listings.items() if not listing.complete)


def _unmatched(glob: str, known: Sequence[str], where: str = "is declared, or owned by this stack") -> str:
    kind, slash, _ = glob.partition("/")
    if not slash and kinds.find(kind) is not None:
        return f"{glob} matches nothing that {where}; write {glob}/* for all of the kind"
    meant = phrases.meant(glob, [each for each in known if each.startswith(f"{kind}/")] or known)
    remedy = meant or "write it as a plan names it, like TLSEdge/payments"
    return f"{glob} matches nothing that {where}; {remedy}"


def to_replace(words: Sequence[str], manifest: Manifest, policy: Policy) -> frozenset[Address]:
    """The resources that are to be made anew. Stop if one of them is not declared, or left out of the plan."""
    found = {each: _declared(each, manifest) for each in words}
    declared = sorted(str(address) for address in manifest.declarations)
    told = [_unmatched(each, declared, "is declared") for each, address in found.items() if address is None]
    told += [
        f"{each} is to be replaced, and --target or --exclude leaves it out"
        for each, address in found.items()
        if address is not None and not policy.selects(address)
    ]
    if told:
        raise exit_codes.Stop(exit_codes.USAGE, *(f"error: {each}" for each in told))
    return frozenset(address for address in found.values() if address is not None)


def _declared(text: str, manifest: Manifest) -> Address | None:
    found = manifest.declarations.get(Address(*text.split("/", 1))) if "/" in text else None
    return found.address if found is not None and found.ensure is Ensure.PRESENT else None
