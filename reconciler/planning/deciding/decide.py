"""Decides what happens to one declared resource, given its match: create, delete, forget, or what `rules` decide.

`rules` decides about resources with a live object, `ordering.calls` about the calls of a decision.
"""

from __future__ import annotations

from typing import NamedTuple

from msgspec.structs import replace

from reconciler.model import owner_record as owners
from reconciler.model.canonical import CanonicalFields, canonical_spec, collect_applied, digest_sources
from reconciler.model.change import Action, Reason
from reconciler.model.kind import Kind
from reconciler.model.manifest import Declaration, Ensure
from reconciler.model.owner_record import Owner
from reconciler.model.problem import Problem
from reconciler.model.snapshot import Listing
from reconciler.model.value import Value
from reconciler.planning.comparing.last_applied import Follows
from reconciler.planning.deciding.decision import Decision
from reconciler.planning.deciding.options import PlanOptions
from reconciler.planning.deciding.rules import (
    apply_rules,
    build_problem,
    check_secret_sink,
    check_undeclared_values,
    compare,
    is_modules_only,
)
from reconciler.planning.matching.index import LiveIndex
from reconciler.planning.matching.match import Basis, Match, locate


class ResolvedDeclaration(NamedTuple):
    """A declaration in which the references to objects that stay are replaced by ids.

    spec   the declared values
    want   the same in canonical form
    """

    kind: Kind
    declaration: Declaration
    spec: dict[str, Value]
    want: CanonicalFields


def decide(
    index: LiveIndex, resolved: ResolvedDeclaration, match: Match, options: PlanOptions, follows: Follows
) -> Decision:
    """Decides about one declaration.

    match     the live object that it was assigned, or the problem of its match
    follows   see `LastApplied`

    A problem is part of the decision, with `action` None; nothing is raised.
    """
    kind, declaration = resolved.kind, resolved.declaration
    base = _start_decision(index, resolved, match)
    is_present = declaration.ensure is Ensure.PRESENT
    listing = index.snapshot.of(kind.name)
    unlisted = None if listing.complete else _report_unlisted(kind, declaration, listing)
    # An object that is named by id and was listed can be updated in place although the list is incomplete.
    is_named = is_present and match.live is not None and declaration.id is not None
    if unlisted is not None and not is_named:
        return replace(base, problem=unlisted)
    if match.problem is not None:
        return replace(base, problem=match.problem)
    if not is_present:
        return _decide_removal(base, declaration, match)
    if match.live is None:
        return _decide_create(index, base, declaration, resolved)
    decision = apply_rules(compare(index, base, match, options, follows))
    if decision.moves_record and (full := _check_metadata_size(index.stack, decision, declaration)) is not None:
        return replace(base, problem=full)
    return replace(base, problem=unlisted) if unlisted is not None and decision.is_new else decision


def _start_decision(index: LiveIndex, resolved: ResolvedDeclaration, match: Match) -> Decision:
    """The decision to do nothing, with the values of both sides."""
    kind, declaration, spec, want = resolved
    is_compared = declaration.ensure is Ensure.PRESENT and match.live is not None
    return Decision(
        declaration.address,
        kind,
        declaration=declaration,
        live=match.live,
        former=match.former,
        spec=spec if is_compared else {},
        want=want if is_compared else {},
        have=index.form(kind, match.live) if match.live is not None else {},
        live_protected=match.live is not None and index.is_protected(match.live),
        adopted=match.live is not None and not kind.keeps_owner and index.is_adopted(match.live),
    )


def _check_metadata_size(stack: str, decision: Decision, declaration: Declaration) -> Problem | None:
    """The problem of metadata, set outside Git, that leaves no room for the owner record."""
    kind, live = decision.kind, decision.live
    if live is None or not kind.keeps_owner or "metadata" in decision.want:
        return None
    record = Owner(
        stack,
        decision.address,
        intent="",
        applied=dict.fromkeys(collect_applied(kind, decision.want), ""),
        protect=decision.protect,
        pending=decision.is_new and kind.one_time is not None,
        replaces=live.id if decision.is_new else live.owner.replaces if live.owner is not None else None,
        sources=digest_sources(kind, decision.spec),
    )
    over = len(live.metadata.encode()) - owners.room(live.metadata, record, kind)
    if over <= 0:
        return None
    text = f"the metadata of {live.id} leaves no room for the owner record: it is {over} bytes too long"
    return build_problem(
        declaration,
        text,
        "shorten the metadata on the platform, or declare `metadata` in the manifest",
        code="metadata-too-long",
    )


def _report_unlisted(kind: Kind, declaration: Declaration, listing: Listing) -> Problem:
    text = f"the list of {kind.name} objects is incomplete: {listing.why}"
    return build_problem(
        declaration, text, "try again; nothing is planned for a kind until its list is complete", code="kind-not-listed"
    )


def _decide_removal(base: Decision, declaration: Declaration, match: Match) -> Decision:
    """The decision for `ensure: absent` and `ensure: forgotten`."""
    if base.live is None:
        return base
    if declaration.ensure is Ensure.FORGOTTEN:
        # A child of a kind without owner records has nothing to forget.
        is_recorded = match.is_ours and match.basis is not Basis.CHILD
        return replace(base, action=Action.FORGET, reason=Reason.FORGOTTEN) if is_recorded else base
    is_unmarked = not base.kind.keeps_owner and base.kind.parent is None
    if not match.is_ours and (is_unmarked or not declaration.lifecycle.adopt):
        text = f"{base.live.id} is declared `ensure: absent`, but is not managed by any stack"
        remedy = "set `lifecycle: {adopt: true}` to delete it"
        if is_unmarked:  # without a binding, nothing says that this stack ever declared it
            remedy = "delete it on the platform, or adopt it before, with a store that keeps its binding"
        return replace(base, problem=build_problem(declaration, text, remedy, code="not-owned"))
    return replace(base, action=Action.DELETE, reason=Reason.ABSENT)


def _decide_create(
    index: LiveIndex, base: Decision, declaration: Declaration, resolved: ResolvedDeclaration
) -> Decision:
    kind, spec = base.kind, resolved.spec
    problem = _report_modules_only(kind, declaration) or check_secret_sink(kind, declaration)
    problem = problem or check_undeclared_values(kind, declaration, spec, "it does not exist and cannot be created")
    if problem is not None:
        return replace(base, problem=problem)
    formers = (former for former in declaration.moved if former not in index.manifest.declarations)
    is_known = any(address in index.snapshot.bindings for address in (declaration.address, *formers))
    if declaration.id is not None:
        is_known = is_known or locate(kind, declaration, resolved.want) in index.snapshot.once_ours
    is_doubtful = declaration.id is not None and not is_known  # perhaps misspelled, or of another account
    return replace(
        base,
        action=Action.CREATE,
        reason=Reason.NO_SUCH_ID if is_doubtful else Reason.VANISHED if is_known else Reason.DECLARED,
        spec=spec,
        want=canonical_spec(kind, spec),
        moves_record=True,
        needs_approval=is_doubtful,
    )


def _report_modules_only(kind: Kind, declaration: Declaration) -> Problem | None:
    """The problem of a declaration that only names modules of an object, which does not exist."""
    if not is_modules_only(kind, declaration):
        return None
    text = f"no object has the id {declaration.id}, and it cannot be created without {', '.join(kind.identity)}"
    return build_problem(declaration, text, "correct the id, or declare these fields", code="unknown-id")
