"""The planner: `plan(manifest, snapshot, kinds, options) -> Plan`, a pure function with byte-identical results.

Resolves references in dependency order, matches, decides, orders and guards (docs/architecture.md, "How planning
goes"). Invalid input is a problem in the plan, never an exception.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from graphlib import CycleError

from msgspec.structs import replace

from reconciler.model.address import Address
from reconciler.model.canonical import canonical_spec
from reconciler.model.change import Action, Change
from reconciler.model.kind import Kind
from reconciler.model.manifest import Declaration, Ensure, Manifest
from reconciler.model.plan import Observed, Plan
from reconciler.model.problem import Problem
from reconciler.model.snapshot import LiveKey, Snapshot
from reconciler.model.value import references, substitute
from reconciler.planning.comparing.name_references import resolve_names
from reconciler.planning.comparing.plan_fields import show_fields
from reconciler.planning.deciding import delivery_targets
from reconciler.planning.deciding.additions import Addition, find_additions, report_unknown_additions, select_approved
from reconciler.planning.deciding.bindings import find_binding_updates
from reconciler.planning.deciding.decide import ResolvedDeclaration, decide
from reconciler.planning.deciding.decision import Decision
from reconciler.planning.deciding.fast_path import is_up_to_date
from reconciler.planning.deciding.forgotten_ids import restore_ids
from reconciler.planning.deciding.names import describe_identity, find_names
from reconciler.planning.deciding.options import PlanOptions
from reconciler.planning.deciding.orphans import OrphanRules, report_unreadable_kinds
from reconciler.planning.deciding.pending import is_pending
from reconciler.planning.deciding.references import References, report_skipped_referrer
from reconciler.planning.deciding.rules import read_last_applied
from reconciler.planning.deciding.unlisted import merge_unlisted
from reconciler.planning.forecast import forecast
from reconciler.planning.guards import find_required_approvals, find_rule_approvals, find_unused, is_protected
from reconciler.planning.matching.assignments import Assignments
from reconciler.planning.matching.index import LiveIndex, describe_owner, parent_stack
from reconciler.planning.matching.match import match
from reconciler.planning.matching.unclaimed import find_other_stacks, find_unmanaged
from reconciler.planning.ordering import dependencies as order
from reconciler.planning.ordering.deletes import report_separated_parts
from reconciler.planning.ordering.sequence import Sequenced, sequence

__all__ = ["PlanOptions", "match_all", "plan"]


def plan(manifest: Manifest, snapshot: Snapshot, kinds: Sequence[Kind], options: PlanOptions) -> Plan:
    """The changes and calls that reconcile the platform with the manifest, with their problems and approvals.

    manifest   all declarations of the stack; `options` select among them
    snapshot   one refresh of the account; nothing is planned for kinds whose lists are incomplete
    kinds      the kinds to plan, each with a listing in the snapshot

    Nothing is raised: a circular reference is the only problem of a plan without changes.
    """
    planning = _Planning(manifest, snapshot, kinds, options)
    try:
        planning.decide_declared()
    except CycleError as error:
        return Plan(
            manifest.stack,
            problems=(_report_cycle(manifest, error.args[1]),),
            rule_changes=options.rule_changes or (),
            approvals=tuple(find_rule_approvals(options)),
            manifest_digest=manifest.digest,
        )
    planning.decide_undeclared()
    return planning.finish()


def match_all(manifest: Manifest, snapshot: Snapshot, kinds: Sequence[Kind]) -> Mapping[LiveKey, Address]:
    """The address that each live object is assigned, by (kind, locator). Empty if references are circular."""
    planning = _Planning(manifest, snapshot, kinds, PlanOptions())
    try:
        planning.decide_declared()
    except CycleError:
        return {}
    return planning.assignments.by_key


class _Planning:
    """The state of one `plan` call: the decisions so far about declarations, orphans and additions."""

    def __init__(self, manifest: Manifest, snapshot: Snapshot, kinds: Sequence[Kind], options: PlanOptions) -> None:
        self.options = options
        self.kinds: Mapping[str, Kind] = {kind.name: kind for kind in kinds}
        resolved = resolve_names(manifest.declarations, self.kinds, lambda kind: snapshot.of(kind).objects)
        self.manifest = manifest = replace(manifest, declarations={**manifest.declarations, **resolved})
        self.index = LiveIndex.of(manifest, snapshot, kinds)
        self.dependencies: Mapping[Address, Collection[Address]] = order.find_dependencies(
            manifest, self.kinds, _index_declared_hosts(self.index)
        )
        self.assignments = Assignments(self.index)
        self.decided: dict[Address, Decision] = {}
        self.references = References(self.decided, snapshot)
        self.undeclared: list[Decision] = []  # orphans and approved additions, to be deleted
        self.additions: list[Addition] = []
        self.problems: list[Problem] = []

    def decide_declared(self) -> None:
        """Decides about each declaration, after those that it depends on. Raises CycleError if they form a cycle."""
        resolve, follows = self.references.resolve, self.references.follows
        for address in order.sort(self.dependencies):
            kind, declaration = self.kinds[address.kind], self.manifest.declarations[address]
            is_requested = address in self.options.to_replace
            live = None if is_requested else is_up_to_date(self.assignments, kind, declaration, resolve, follows)
            if live is None:
                self.decided[address] = self._decide(kind, declaration)
            else:
                self.decided[address] = Decision(address, kind, live=live, declaration=declaration)

    def _decide(self, kind: Kind, declaration: Declaration) -> Decision:
        spec = {name: substitute(value, self.references.resolve) for name, value in declaration.spec.items()}
        want = canonical_spec(kind, spec)
        matched = match(self.assignments, kind, declaration, want)
        if matched.live is not None and any(map(self.references.is_forgotten, references(spec))):
            applied = read_last_applied(self.index, kind, declaration, matched, self.references.follows)
            spec = restore_ids(self.index, kind, spec, matched.live, applied, self.references.is_forgotten)
            want = canonical_spec(kind, spec)
        unchanged = Decision(
            declaration.address, kind, live=matched.live, declaration=declaration, former=matched.former
        )
        if not self.options.selects(declaration.address):
            return unchanged
        if (target := self.references.find_confined(spec)) is not None:
            self.problems.append(problem := report_skipped_referrer(declaration, target))
            return replace(unchanged, problem=problem)
        resolved = ResolvedDeclaration(kind, declaration, spec, want)
        decision = decide(self.index, resolved, matched, self.options, self.references.follows)
        if decision.problem is not None:
            self.problems.append(decision.problem)
        else:
            needed = self.dependencies[declaration.address]
            self.problems += self.references.find_unavailable(declaration, decision, needed)
            if decision.action is None and kind.keeps_owner:
                self.index.drop_form(matched.live)
                return unchanged  # takes less memory
        return decision

    def decide_undeclared(self) -> None:
        """Decides about orphans and additions."""
        for outcome in OrphanRules(self.assignments, self.decided, self.options).decide():
            if isinstance(outcome, Problem):
                self.problems.append(outcome)
            else:
                self.undeclared.append(outcome)
        decided = self.decided.values()
        self.additions = find_additions(self.assignments, decided, self.options)
        self.undeclared += [addition.decision for addition in select_approved(self.additions, self.options)]
        self.problems += report_unknown_additions(self.index, decided)

    def finish(self) -> Plan:
        """The plan of all decisions."""
        index, options, snapshot = self.index, self.options, self.index.snapshot
        decisions, (calls, problems, deleted_with) = self._sequence()
        parts = [index.by_locator[key] for key in sorted(deleted_with)]
        changing = [decision for decision in decisions if decision.action is not None]
        owned = [live for live in index.by_locator.values() if index.is_ours(live)]
        planned = {id(decision) for decision in changing}
        listed = deleted_with.keys() | {
            addition.decision.live.key for addition in self.additions if addition.decision.live
        }
        approvals = find_required_approvals(changing, parts, index, len(owned), options, self.additions)
        selected = (decision for decision in decisions if options.selects(decision.address))
        # Deletions first, in every output: nobody may overlook them.
        changes = tuple(sorted(self._list_changes(changing), key=lambda change: change.action is not Action.DELETE))
        additions = tuple(addition.change() for addition in self.additions if id(addition.decision) not in planned)
        return Plan(
            stack=index.stack,
            rule_changes=options.rule_changes or (),
            changes=changes,
            calls=tuple(delivery_targets.mark_overwrite(call, snapshot) for call in calls),
            problems=(
                *merge_unlisted(self.problems),
                *problems,
                *report_separated_parts(deleted_with, index, options),
                *report_unreadable_kinds(snapshot),
                *delivery_targets.report_missing_files(selected, snapshot),
                *find_unused(approvals, options),
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
            commit=options.commit,
            forecast=forecast(calls, snapshot, self.kinds, options.requests_per_minute),
            names=find_names(self.assignments, (*changes, *additions)),
        )

    def _sequence(self) -> tuple[list[Decision], Sequenced]:
        """All decisions, changed where that breaks a cycle, and their calls in order."""
        while True:
            decisions = [*self.decided.values(), *self.undeclared]
            result = sequence(decisions, self.dependencies, self.index)
            if isinstance(result, Sequenced):
                return decisions, result
            self.decided[result.decision.address] = result.decision

    def _list_changes(self, moving: Iterable[Decision]) -> Iterator[Change]:
        additions = {id(addition.decision): addition for addition in self.additions}
        for decision in moving:
            if id(decision) in additions:
                yield additions[id(decision)].change()
            elif (change := decision.change(is_protected(decision, self.options))) is not None:
                if decision.action is Action.DELETE and decision.live is not None:
                    change = replace(change, identity=describe_identity(self.index, decision.kind, decision.live))
                yield replace(change, is_pending=is_pending(decision, self.index))

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
