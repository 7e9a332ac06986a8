"""The planner: `plan(manifest, snapshot, kinds, options) -> Plan`, a pure function with byte-identical results.

Resolves references in dependency order, matches, decides, orders and guards (docs/architecture.md, "How planning
goes"). Invalid input is a problem in the plan, never an exception.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from graphlib import CycleError
from typing import TYPE_CHECKING

from msgspec.structs import replace

from reconciler.model.access_change import AccessChange
from reconciler.model.address import Address
from reconciler.model.canonical import CanonicalFields, canonical_spec
from reconciler.model.change import Action, Change
from reconciler.model.kind import Kind
from reconciler.model.manifest import Declaration, Ensure, Manifest
from reconciler.model.plan import Approval, AssumedSecret, Observed, Plan
from reconciler.model.problem import Problem
from reconciler.model.snapshot import Live, LiveKey, Snapshot
from reconciler.model.value import Value, references, substitute
from reconciler.planning.comparing.name_references import resolve_names
from reconciler.planning.comparing.plan_fields import show_fields
from reconciler.planning.comparing.unread_secrets import assume_applied, has_unread, report_assumed
from reconciler.planning.deciding import delivery_targets
from reconciler.planning.deciding.additions import Addition, find_additions, report_unknown_additions, select_approved
from reconciler.planning.deciding.bindings import find_binding_updates
from reconciler.planning.deciding.decision import Decision, reverse_accepted
from reconciler.planning.deciding.dns_records import RecordRules
from reconciler.planning.deciding.fast_path import is_up_to_date
from reconciler.planning.deciding.finished_entries import report_finished
from reconciler.planning.deciding.names import describe_identity, find_names
from reconciler.planning.deciding.options import PlanOptions
from reconciler.planning.deciding.orphans import OrphanRules, report_unreadable_kinds
from reconciler.planning.deciding.references import References, report_skipped_referrer
from reconciler.planning.deciding.unlisted import merge_unlisted, report_unread_lists
from reconciler.planning.forecast import forecast
from reconciler.planning.guards import (
    find_acceptance_approvals,
    find_required_approvals,
    find_unused,
    is_protected,
)
from reconciler.planning.matching.assignments import Assignments
from reconciler.planning.matching.index import LiveIndex, describe_owner, parent_stack
from reconciler.planning.matching.unclaimed import find_orphans, find_other_stacks, find_unmanaged
from reconciler.planning.ordering import dependencies as order
from reconciler.planning.ordering.missing_targets import report_missing_targets
from reconciler.planning.ordering.sequenced import Sequenced
from reconciler.planning.users import find_users

if TYPE_CHECKING:
    from reconciler.access.account import Account, Resource
    from reconciler.planning.matching.match import Match

__all__ = ["PlanOptions", "match_all", "plan"]


def plan(manifest: Manifest, snapshot: Snapshot, kinds: Sequence[Kind], options: PlanOptions) -> Plan:
    """The changes and calls that reconcile the platform with the manifest, with their problems and approvals.

    manifest   all declarations of the stack; `options` select among them
    snapshot   one refresh of the account; nothing is planned for kinds whose lists are incomplete
    kinds      the kinds to plan, each with a listing in the snapshot

    Nothing is raised. A problem concerns one or a few resources: these are skipped, with the changes of what refers to
    them and the deletes of what they use. So that these are found too, planning starts again with the skipped ones.
    """
    planning = _decide(manifest, snapshot, kinds, options)
    drafted = planning.finish()
    if not drafted.access:
        return drafted
    from reconciler.planning import access  # deferred: it is large, and most plans change no access

    return replace(drafted, changes=tuple(access.mark_risks(drafted.changes, drafted.access)))


def plan_drift(
    manifest: Manifest,
    snapshot: Snapshot,
    kinds: Sequence[Kind],
    options: PlanOptions,
    hide: Callable[[Plan], Plan] = lambda plan: plan,
) -> Plan:
    """As `plan`, for drift: `access` says what the platform changed, before by the manifests, after as it is.

    hide   removes known drift
    """
    from reconciler.planning import access  # deferred, as above

    planning = _decide(manifest, snapshot, kinds, options)
    drift = hide(planning.finish(is_drift=True))
    decisions = {id(decision): decision for decision in planning.list_possible_decisions()}
    entries = access.find_drifted_access(drift, decisions.values(), planning.index)
    changes, additions = (tuple(access.mark_risks(side, entries)) for side in (drift.changes, drift.additions))
    return replace(drift, changes=changes, additions=additions, access=entries)


def match_all(manifest: Manifest, snapshot: Snapshot, kinds: Sequence[Kind]) -> Mapping[LiveKey, Address]:
    """The address that each live object is assigned, by (kind, locator). Empty if references are circular."""
    planning = _Planning(manifest, snapshot, kinds, PlanOptions(), {})
    try:
        planning.decide_declared()
    except CycleError:
        return {}
    return planning.assignments.by_key


def list_states(
    manifest: Manifest, snapshot: Snapshot, kinds: Sequence[Kind], options: PlanOptions
) -> tuple[tuple[Resource, ...], tuple[Resource, ...]]:
    """The objects that decide about access, now and after the plan was applied."""
    from reconciler.planning import access  # deferred, as above

    planning = _decide(manifest, snapshot, kinds, options)
    decisions, (_, _, deleted_with) = planning.decisions, planning.sequenced
    before, after = access.list_states(decisions, deleted_with, planning.index)
    return tuple(before), tuple(after)


def find_accounts(
    manifest: Manifest, snapshot: Snapshot, kinds: Sequence[Kind], options: PlanOptions
) -> tuple[Account, Account]:
    """The account as it is, and as the plan leaves it, for questions about access."""
    from reconciler.access.account import Account  # deferred, as above
    from reconciler.access.programs import Builder
    from reconciler.planning import access

    planning = _decide(manifest, snapshot, kinds, options)
    builder, unread = Builder(), access.find_unread(planning.index)
    before, after = access.list_states(planning.decisions, planning.sequenced.deleted_with, planning.index)
    return Account(before, builder, unread), Account(after, builder, unread)


def find_drift_accounts(
    manifest: Manifest,
    snapshot: Snapshot,
    kinds: Sequence[Kind],
    options: PlanOptions,
    hide: Callable[[Plan], Plan] = lambda plan: plan,
) -> tuple[Account, Account, tuple[Account, Account]]:
    """The account without drift, and as it is; without known drift too, and as an apply leaves it.

    Parameters as of `plan_drift`.
    """
    from reconciler.access.account import Account  # deferred, as above
    from reconciler.planning import access

    planning = _decide(manifest, snapshot, kinds, options)
    decisions = {id(decision): decision for decision in planning.list_possible_decisions()}
    drift = planning.finish()
    before, live = access.find_drift_accounts(hide(drift), decisions.values(), planning.index)
    repaired, _ = access.find_drift_accounts(drift, decisions.values(), planning.index)
    _, applied = access.list_states(planning.decisions, planning.sequenced.deleted_with, planning.index)
    return before, live, (repaired, Account(applied, live.builder, live.unread))


def compare_manifests(
    before: Manifest, after: Manifest, snapshot: Snapshot, kinds: Sequence[Kind], options: PlanOptions
) -> tuple[tuple[AccessChange, ...], tuple[Approval, ...]]:
    """What an apply of other manifests lets in beside an apply of these, and the approvals that the edit needs.

    after   as `before`, with values of the snapshot in place of declared ones
    """
    from reconciler.access.account import Account  # deferred, as above
    from reconciler.access.programs import Builder
    from reconciler.planning import access

    old, new = (_decide(manifest, snapshot, kinds, options) for manifest in (before, after))
    edits = [
        edit
        for address, decision in old.decided.items()
        if (edit := reverse_accepted(decision, new.decided.get(address))) is not None
    ]
    builder, unread = Builder(), access.find_unread(new.index)
    one, other = (
        Account(access.list_states(side.decisions, side.sequenced.deleted_with, side.index)[1], builder, unread)
        for side in (old, new)
    )
    entries = access.compare_accounts(one, other, {str(edit.address) for edit in edits}) if edits else ()
    return entries, find_acceptance_approvals(edits, entries, options)


def _decide(manifest: Manifest, snapshot: Snapshot, kinds: Sequence[Kind], options: PlanOptions) -> _Planning:
    held: dict[Address, Problem] = {}
    while True:
        planning = _Planning(manifest, snapshot, kinds, options, held)
        if not (more := planning.decide()):
            return planning
        held |= more


class _Planning:
    """The state of one `plan` call: the decisions so far about declarations, orphans and additions.

    held  addresses that are skipped, with the reason
    """

    def __init__(
        self,
        manifest: Manifest,
        snapshot: Snapshot,
        kinds: Sequence[Kind],
        options: PlanOptions,
        held: Mapping[Address, Problem],
    ) -> None:
        self.options = options
        self.held = held
        self.kinds: Mapping[str, Kind] = {kind.name: kind for kind in kinds}
        resolved = resolve_names(manifest.declarations, self.kinds, lambda kind: snapshot.of(kind).objects)
        self.manifest = manifest = replace(manifest, declarations={**manifest.declarations, **resolved})
        self.index = LiveIndex.of(manifest, snapshot, kinds)
        needed = order.find_dependencies(manifest, self.kinds, _index_declared_hosts(self.index))
        self.dependencies: Mapping[Address, Collection[Address]] = {
            **needed,
            **dict.fromkeys(held.keys() & needed.keys(), ()),
        }
        self.assignments = Assignments(self.index)
        self.decided: dict[Address, Decision] = {}
        self.references = References(self.decided, snapshot, self._find_skipped)
        self.undeclared: list[Decision] = []  # orphans and approved additions, to be deleted
        self.additions: list[Addition] = []
        self.assumed: list[AssumedSecret] = []
        self.problems: list[Problem] = []
        self.decisions: list[Decision] = []
        self.sequenced = Sequenced()

    def decide(self) -> Mapping[Address, Problem]:
        """Decides about everything. Returns the addresses that have to be skipped, too, with the reason of each."""
        try:
            self.decide_declared()
        except CycleError as error:
            return self._skip(dict.fromkeys(error.args[1], _report_cycle(self.manifest, error.args[1])))
        self.decide_undeclared()
        if more := self._skip(dict(self._find_used_by_skipped())):
            return more
        self.decisions, self.sequenced = self._sequence()
        if more := self._skip(dict(self._find_used_by_skipped())):
            return more  # a replacement that breaks a cycle deletes an object, too
        wrong = [problem for problem in (*self.sequenced.problems, *self._report_separated_parts()) if problem.is_error]
        return self._skip({address: problem for problem in wrong for address in self._find_subjects(problem)})

    def _skip(self, found: Mapping[Address, Problem]) -> Mapping[Address, Problem]:
        return {
            address: replace(problem, confined=True) for address, problem in found.items() if address not in self.held
        }

    def _find_subjects(self, problem: Problem) -> Iterator[Address]:
        """The resources that a problem of the order of calls concerns, as far as something happens to them."""
        listed = problem.values.get("addresses")
        named = {problem.subject, *(map(str, listed) if isinstance(listed, list) else ())}
        yield from (
            decision.address for decision in self.decisions if decision.action and str(decision.address) in named
        )

    def _find_skipped(self, address: Address) -> Live | None:
        """The object of a resource that is not planned, if it is certain which one it is."""
        kind = self.kinds.get(address.kind)
        recorded = self.index.find_recorded(kind, address) if kind is not None else ()
        is_skipped = address in self.decided or self.manifest.may_declare(address)
        return recorded[0] if is_skipped and len(recorded) == 1 else None

    def _find_used_by_skipped(self) -> Iterator[tuple[Address, Problem]]:
        """The resources whose live object would be deleted, though that of a skipped resource is a part of it or refers
        to it."""
        ending = {
            decision.live.key: decision
            for decision in (*self.decided.values(), *self.undeclared)
            if decision.action is not None and decision.live and decision.ends_live
        }
        skipped = self._list_skipped() if ending else {}
        if not skipped:
            return
        from reconciler.planning.ordering.call_graph import find_live_edges

        for referrer, _, target in find_live_edges(self.index):
            if referrer in skipped and target in ending and referrer not in ending:
                yield ending[target].address, _report_used_by_skipped(ending[target], skipped[referrer])

    def _list_skipped(self) -> Mapping[LiveKey, str]:
        """The live objects of resources that are not planned, with the name of each."""
        found: dict[LiveKey, str] = {}
        for address, decision in self.decided.items():
            if decision.problem is not None:
                lives = (
                    [decision.live] if decision.live is not None else self.index.find_recorded(decision.kind, address)
                )
                found |= {live.key: str(address) for live in lives}
        if self.manifest.unread is not None:
            deleted = {decision.live.key for decision in self.undeclared if decision.live is not None}
            orphans = find_orphans(self.assignments, set())
            found |= {live.key: str(address) for address, live in orphans if live.key not in deleted}
        return found

    def decide_declared(self) -> None:
        """Decides about each declaration, after those that it depends on. Raises CycleError if they form a cycle."""
        assignments, resolve, follows = self.assignments, self.references.resolve, self.references.follows
        to_replace, unread, declarations = self.options.to_replace, self.options.unread, self.manifest.declarations
        for address in order.sort(self.dependencies):
            kind, declaration = self.kinds[address.kind], declarations[address]
            is_compared = address in to_replace or (unread and has_unread(declaration.spec))
            live = None if is_compared else is_up_to_date(assignments, kind, declaration, resolve, follows)
            if live is None:
                self.decided[address] = self._decide(kind, declaration)
            else:
                self.decided[address] = Decision(address, kind, live=live, declaration=declaration)

    def _decide(self, kind: Kind, declaration: Declaration) -> Decision:
        # Deferred: in a plan without changes, the fast path decides about all.
        from reconciler.planning.deciding.decide import ResolvedDeclaration, decide
        from reconciler.planning.matching.match import match

        spec = {name: substitute(value, self.references.resolve) for name, value in declaration.spec.items()}
        want = canonical_spec(kind, spec)
        matched = match(self.assignments, kind, declaration, want)
        if matched.live is not None and any(map(self.references.is_forgotten, references(spec))):
            from reconciler.planning.deciding.forgotten_ids import restore_ids
            from reconciler.planning.deciding.rules import read_last_applied

            applied = read_last_applied(self.index, kind, declaration, matched, self.references.follows)
            spec = restore_ids(self.index, kind, spec, matched.live, applied, self.references.is_forgotten)
            want = canonical_spec(kind, spec)
        spec, want, assumed = self._assume_secrets(kind, declaration, spec, want, matched)
        unchanged = Decision(
            declaration.address, kind, live=matched.live, declaration=declaration, former=matched.former
        )
        if not self.options.selects(declaration.address):
            return unchanged
        if (held := self.held.get(declaration.address)) is not None:
            return self._report(unchanged, held)
        resolved = ResolvedDeclaration(kind, declaration, spec, want)
        decision = decide(self.index, resolved, matched, self.options, self.references.follows)
        if decision.problem is not None:
            return self._report(decision, decision.problem)
        self.assumed += assumed
        if decision.action is None and kind.keeps_owner:
            self.index.drop_form(matched.live)
            return unchanged  # takes less memory
        return self._check_references(decision, declaration, unchanged)

    def _assume_secrets(
        self, kind: Kind, declaration: Declaration, spec: dict[str, Value], want: CanonicalFields, matched: Match
    ) -> tuple[dict[str, Value], CanonicalFields, tuple[AssumedSecret, ...]]:
        """The declared values, with unread secrets as they were last applied where that is known."""
        is_present = declaration.ensure is Ensure.PRESENT and matched.live is not None
        if not self.options.unread or not is_present or not has_unread(spec):
            return spec, want, ()
        assert matched.live is not None
        from reconciler.planning.deciding.rules import read_last_applied  # deferred, as above

        applied = read_last_applied(self.index, kind, declaration, matched, self.references.follows)
        have, former = self.index.form(kind, matched.live), self.options.base_sources.get(declaration.address)
        spec, assumed = assume_applied(kind, declaration.address, spec, want, have, applied, former)
        return spec, canonical_spec(kind, spec) if assumed else want, assumed

    def _check_references(self, decision: Decision, declaration: Declaration, unchanged: Decision) -> Decision:
        """The decision, or to do nothing if it refers to a resource that is not planned or not available."""
        if decision.action in (None, Action.DELETE, Action.FORGET):
            return decision
        needed = self.dependencies[declaration.address]
        if (target := self.references.find_skipped(declaration, needed, self.manifest)) is not None:
            return self._report(unchanged, report_skipped_referrer(declaration, target))
        unavailable = [*self.references.find_unavailable(declaration, decision, needed)]
        for problem in unavailable[1:]:
            self.problems.append(replace(problem, confined=True))
        return self._report(unchanged, unavailable[0]) if unavailable else decision

    def _report(self, decision: Decision, problem: Problem) -> Decision:
        """The decision with its problem, which concerns this resource only."""
        problem = replace(problem, confined=True)
        self.problems.append(problem)
        return replace(decision, problem=problem, action=None)

    def decide_undeclared(self) -> None:
        """Decides about orphans and additions."""
        for outcome in OrphanRules(self.assignments, self.decided, self.options, self.held).decide():
            if isinstance(outcome, Problem):
                self.problems.append(outcome)
            else:
                self.undeclared.append(outcome)
        decided = self.decided.values()
        self.additions = find_additions(self.assignments, decided, self.options)
        self.undeclared += [addition.decision for addition in select_approved(self.additions, self.options)]
        self.problems += report_unknown_additions(self.index, decided)

    def list_possible_decisions(self) -> Iterator[Decision]:
        """All decisions, and those that would delete additions, some of them twice."""
        yield from self.decisions
        yield from (addition.decision for addition in self.additions)

    def finish(self, *, is_drift: bool = False) -> Plan:
        """The plan of all decisions; its changes lack the risks of the entry points that they change.

        is_drift  nothing is approved: the entry points that the plan would change are not looked for
        """
        index, options, snapshot = self.index, self._judge_takers(), self.index.snapshot
        decisions, (calls, problems, deleted_with) = self.decisions, self.sequenced
        parts = [index.by_locator[key] for key in sorted(deleted_with)]
        changing = [decision for decision in decisions if decision.action is not None]
        owned = [live for live in index.by_locator.values() if index.is_ours(live)]
        planned = {id(decision) for decision in changing}
        listed = deleted_with.keys() | {
            addition.decision.live.key for addition in self.additions if addition.decision.live
        }
        entries = self._find_access_changes() if changing and not is_drift else ()
        approvals = find_required_approvals(changing, parts, index, len(owned), options, self.additions, entries)
        selected = [decision for decision in decisions if options.selects(decision.address)] if snapshot.targets else []
        assumed = tuple(sorted(self.assumed, key=lambda secret: (secret.address, secret.path)))
        # Deletions first, in every output, so that they are not overlooked.
        changes = tuple(sorted(self._list_changes(changing), key=lambda change: change.action is not Action.DELETE))
        additions = tuple(addition.change() for addition in self.additions if id(addition.decision) not in planned)
        return Plan(
            stack=index.stack,
            rule_changes=options.rule_changes or (),
            access=entries,
            changes=changes,
            calls=tuple(delivery_targets.mark_overwrite(call, snapshot) for call in calls),
            problems=(
                *dict.fromkeys(merge_unlisted(self.problems)),  # one of a cycle is reported by each of its members
                *report_missing_targets(index, self.decided.values(), options),
                *problems,
                *self._report_separated_parts(),
                *report_unreadable_kinds(snapshot),
                *report_unread_lists(snapshot, self.problems, options),
                *report_assumed(assumed),
                *(() if is_drift else report_finished(self.manifest, self.decided, self.dependencies, options)),
                *delivery_targets.report_missing_files(selected, snapshot),
                *(() if is_drift else find_unused(approvals, options)),
            ),
            approvals=approvals,
            observed=dict(self._collect_observed([*self.undeclared, *self.decided.values()])),
            bindings=find_binding_updates(self.assignments, self.decided, options),
            additions=additions,
            unmanaged=tuple(key for key in find_unmanaged(self.assignments, owned) if key not in listed),
            elsewhere=find_other_stacks(self.assignments),
            targets=options.targets,
            excludes=options.excludes,
            manifest_digest=self.manifest.digest,
            declared=len(self.manifest.declarations),
            unread=tuple(sorted(options.unread)),
            assumed=assumed,
            commit=options.commit,
            forecast=forecast(calls, snapshot, self.kinds, options.requests_per_minute),
            names=find_names(self.assignments, (*changes, *additions)),
            users=find_users(self.dependencies, self.kinds, _list_used(changes)),
        )

    def _find_access_changes(self) -> tuple[AccessChange, ...]:
        from reconciler.planning import access  # deferred, as above

        return access.find_access_changes(self.decisions, self.sequenced.deleted_with, self.index)

    def _judge_takers(self) -> PlanOptions:
        """The options with the rules of the base that objects lose by another address."""
        options = self.options
        if options.find_lost_rules is None:
            return options
        takers = (
            (decision.former, decision.declaration)
            for decision in self.decided.values()
            if decision.former is not None and decision.declaration is not None and decision.action is not None
        )
        lost = options.find_lost_rules(takers)
        return replace(options, rule_changes=(*(options.rule_changes or ()), *lost)) if lost else options

    def _sequence(self) -> tuple[list[Decision], Sequenced]:
        """All decisions, changed where that breaks a cycle, and their calls in order."""
        while True:
            decisions = [*self.decided.values(), *self.undeclared]
            if all(decision.action is None for decision in decisions):
                return decisions, Sequenced()
            from reconciler.planning.ordering.sequence import sequence  # deferred, as above

            result = sequence(decisions, self.dependencies, self.index)
            if isinstance(result, Sequenced):
                return decisions, result
            self.decided[result.decision.address] = result.decision

    def _report_separated_parts(self) -> Iterable[Problem]:
        if not self.sequenced.deleted_with:
            return ()
        from reconciler.planning.ordering.deletes import report_separated_parts  # deferred, as above

        return report_separated_parts(self.sequenced.deleted_with, self.index, self.options)

    def _list_changes(self, moving: Collection[Decision]) -> Iterator[Change]:
        if not moving:
            return
        from reconciler.planning.deciding.changes import describe_change  # deferred, as above
        from reconciler.planning.deciding.pending import is_pending

        additions = {id(addition.decision): addition for addition in self.additions}
        records = RecordRules(self.index, self.options.zones)
        for decision in moving:
            if id(decision) in additions:
                yield additions[id(decision)].change()
            elif (change := describe_change(decision, protected=is_protected(decision, self.options))) is not None:
                if decision.action is Action.DELETE and decision.live is not None:
                    change = replace(change, identity=describe_identity(self.index, decision.kind, decision.live))
                yield replace(records.describe(change, decision), is_pending=is_pending(decision, self.index))

    def _collect_observed(self, decisions: Iterable[Decision]) -> Iterator[tuple[Address, Observed]]:
        """The live objects that the changes depend on, by address; the declared one if an address has several.

        A replaced object is deleted only because of the declared one, even if that one does not change.
        """
        for decision in decisions:
            declared = self.decided.get(decision.address) if decision.address_reused else None
            live = decision.live if declared is None or declared.live is None else declared.live
            if live is not None and decision.action is not None:
                fields = show_fields(decision.kind, self.index.form(decision.kind, live), decision.address)
                owner = describe_owner(live) or parent_stack(self.index, live)
                yield decision.address, Observed(live.locator, fields, owner)


def _list_used(changes: Iterable[Change]) -> Iterator[Address]:
    """The changed resources whose users a change may concern: those with an object that changes or ends."""
    actions = (Action.UPDATE, Action.REPLACE, Action.DELETE)
    yield from (change.address for change in changes if change.action in actions)


def _index_declared_hosts(index: LiveIndex) -> order.HostIndex[Address]:
    """The declarations by host name: of a declared domain, or of the address that the platform assigned."""
    hosts: order.HostIndex[Address] = order.HostIndex()
    for address, declaration in index.manifest.declarations.items():
        name = index.kinds[address.kind].host
        if name is None or declaration.ensure is not Ensure.PRESENT:
            continue
        declared = declaration.spec.get(name)
        if isinstance(declared, str):
            hosts.add(declared, address)
        for live in index.find_recorded(index.kinds[address.kind], address):
            hosts.add(live.body.get(name), address)
    return hosts


def _report_used_by_skipped(decision: Decision, user: str) -> Problem:
    assert decision.live is not None
    return Problem(
        f"{decision.live.id} is not deleted, since {user} uses it, and cannot be planned",
        f"resolve the problem of {user} first",
        str(decision.address),
        decision.declaration.position if decision.declaration is not None else None,
        code="used-by-skipped",
    )


def _report_cycle(manifest: Manifest, cycle: Sequence[Address]) -> Problem:
    addresses = [str(address) for address in cycle]
    return Problem(
        f"circular reference: {' → '.join(addresses)}",
        "remove one of these references",
        addresses[0],
        manifest.declarations[cycle[0]].position,
        code="circular-reference",
        values={"addresses": addresses},
    )
