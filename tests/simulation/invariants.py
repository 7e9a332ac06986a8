"""What must hold after any history, each in a sentence. Three more are watched at the moment of the deed, in `wire`:

- Nobody sends a change to an object that another stack or a human made.
- Nothing is deleted of a kind of which the run has not seen every object.
- No protected object is deleted without approval.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from reconciler.model import owner_record as owners
from reconciler.model.manifest import Ensure
from tests.simulation.history import History, Report, Stack

Finding = Iterator[str]


def converges(history: History, stack: Stack, first: Report, second: Report) -> Finding:
    """One clean run does all that is left to do, and the next finds nothing."""
    if not first.is_done:
        yield f"the clean run: {first}"
    elif second.plan is None or second.plan.errors or second.plan.changes:
        changes = (
            [f"{change.action} {change.address}: {change.reason}" for change in second.plan.changes]
            if second.plan
            else []
        )
        yield f"the next plan is not empty: {changes} {second}"


def is_quiet(history: History, stack: Stack, first: Report, second: Report) -> Finding:
    """The second clean run sends no request that changes anything."""
    if second.wire and second.wire.changes:
        yield f"{second.wire.changes}"


def has_no_duplicates(history: History, stack: Stack, first: Report, second: Report) -> Finding:
    """No two live objects have one intent, or one address."""
    records = [record for _, record in history.account.records() if record.stack == stack.name]
    for intent, count in Counter(record.intent for record in records).items():
        if count > 1:
            yield f"{count} objects of intent {intent}"
    for address, count in Counter(record.address for record in records).items():
        if count > 1:
            yield f"{count} objects are {address}"


def has_no_orphans(history: History, stack: Stack, first: Report, second: Report) -> Finding:
    """The stack's live objects, whether they carry a record or not, are exactly those that it declares."""
    declared = {
        address
        for address, declaration in stack.manifest().declarations.items()
        if declaration.ensure is Ensure.PRESENT
    }
    made = history.account.find_created_by(stack.name)
    due, live = Counter(address.kind for address in declared), Counter(kind for kind, _ in made)
    if due != live:
        yield f"declared {dict(due)}, live {dict(live)}"
    for key, record in history.account.records():
        if record.stack == stack.name and record.address not in declared:
            yield f"{key} is {record.address}, which is not declared"


def holds_its_tokens(history: History, stack: Stack, first: Report, second: Report) -> Finding:
    """Every live credential's token is where it was to be delivered."""
    for key in history.account.find_created_by(stack.name):
        if key in history.account.tokens:
            record = owners.read(history.account.objects[key].get("metadata"))[1]
            name = record.address.name if record else "?"
            held = stack.sinks.delivered.get(f"{stack.home}-{name}")
            if held != history.account.tokens[key]:
                yield f"the token of {key} is {history.account.tokens[key]}, and the sink holds {held}"


def stays_within_bounds(history: History, stack: Stack, first: Report, second: Report) -> Finding:
    """A clean run sends a request for each page of each list and for each call of its plan, one more at most for each
    object that was there before, to see whose it is by now, and no other."""
    for run in (first, second):
        if run.wire is not None and run.plan is not None and run.is_done:
            old = sum(call.target is not None for call in run.plan.calls)
            if not 0 <= len(run.wire.log) - run.listed - len(run.plan.calls) <= old:
                yield f"{len(run.wire.log) - run.listed} requests for {len(run.plan.calls)} calls"


def is_as_declared(history: History, stack: Stack, first: Report, second: Report) -> Finding:
    """What is live has the declared text, and refers only to what is there."""
    declared = stack.manifest().declarations
    for key, record in history.account.records():
        if record.stack == stack.name and record.address in declared:
            due = declared[record.address].spec.get("description", "")
            live = history.account.objects[key]["description"]
            if due != (live or ""):
                yield f"{key} says {live!r}, declared is {due!r}"


INVARIANTS: tuple[Callable[[History, Stack, Report, Report], Finding], ...] = (
    converges,
    is_quiet,
    has_no_duplicates,
    has_no_orphans,
    holds_its_tokens,
    stays_within_bounds,
    is_as_declared,
)
