"""Says how an apply came out: what was done, what failed, what was never tried, and what is still to be done."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field

from reconciler import kinds
from reconciler.cli import stale
from reconciler.cli.terminal import exit_codes, output
from reconciler.cli.terminal.progress import Witness
from reconciler.engine.apply import STOPPED
from reconciler.model.address import Address
from reconciler.model.change import Action, Change
from reconciler.model.event import Outcome
from reconciler.model.plan import Plan
from reconciler.rendering.plan.outline import symbol
from reconciler.store.errors import StoreError

_MOST = 20  # additions named one by one


@dataclass(frozen=True)
class Wording:
    command: str
    question: str
    done: str


@dataclass
class Halt:
    """Why nothing more may be started. Set by a signal, or when the stack's lock is lost."""

    event: asyncio.Event = field(default_factory=asyncio.Event)
    interrupted: bool = False
    failure: StoreError | None = None

    def by_signal(self) -> None:
        self.interrupted = True
        self.event.set()

    def by_store(self, failure: StoreError) -> None:
        self.failure = self.failure or failure
        self.event.set()


def report_torn(plan: Plan, seen: Witness) -> None:
    """After a second interrupt: what runs is not waited for, and may or may not have taken effect."""
    ended = {each.call.id for each in seen.ended}
    done, failed = seen.those(Outcome.DONE, Outcome.ALREADY), seen.those(Outcome.FAILED)
    torn = [call for call in plan.calls if call.id in seen.started and call.id not in ended]
    torn += [each.call for each in seen.those(Outcome.UNKNOWN)]
    left = [call for call in plan.calls if call.id not in seen.started and call.id not in ended]
    skipped = [*seen.those(Outcome.SKIPPED)]
    for each in [*failed, *skipped]:
        output.say(f"{each.outcome}: {each.call.id}" + (f": {each.why}" if each.why else ""))
    for call in torn:
        output.say(f"{Outcome.UNKNOWN}: {call.id}: it was on its way; the next run finds out")
    for call in left:
        output.say(f"{Outcome.SKIPPED}: {call.id}: {STOPPED}")
    count = len(skipped) + len(left)
    calls = output.count(len(done), "call")
    output.answer(f"{calls} done, {len(failed)} failed, {count} not tried, {len(torn)} not known.")


def report(plan: Plan, seen: Witness, halt: Halt, wording: Wording, left: stale.Left) -> int:
    done = seen.those(Outcome.DONE, Outcome.ALREADY)
    failed, skipped = seen.those(Outcome.FAILED), seen.those(Outcome.SKIPPED)
    unknown = seen.those(Outcome.UNKNOWN)
    for line in left.lines:
        output.say(line)
    if len(done) == len(plan.calls) and halt.failure is None:
        output.answer(f"{wording.done} {_sums(plan)}")
        return exit_codes.INTERRUPTED if halt.interrupted else exit_codes.DONE
    for each in [*failed, *skipped]:
        output.say(f"{each.outcome}: {each.call.id}" + (f": {each.why}" if each.why else ""))
    for each in unknown:
        output.say(f"{each.outcome}: {each.call.id}: it was sent, and not written down; the next run finds out")
    if halt.failure is not None:
        output.say(f"error: {halt.failure}")
    counts = f"{output.count(len(done), 'call')} done, {len(failed)} failed, {len(skipped)} not tried"
    output.answer(f"{counts}, {len(unknown)} not known." if unknown else f"{counts}.")
    if halt.interrupted:
        return exit_codes.INTERRUPTED
    if done or unknown:
        return exit_codes.PARTLY
    return exit_codes.AUTH if failed and all(each.denied for each in failed) else exit_codes.ERROR


def tell_additions(plan: Plan) -> None:
    """What was added to our objects on the platform, and stays there."""
    flags = {each.kind: each.flag for each in plan.withheld_options}
    for each in plan.additions[:_MOST]:
        flag = flags.get(each.address.kind)
        remedy = f"delete it with {flag}" if flag else "declare it, or delete it on the platform"
        output.say(f"left alone: {each.address}: added to {each.parent} on the platform, not declared; {remedy}")
    if len(plan.additions) > _MOST:
        output.say(f"left alone: {output.count(len(plan.additions) - _MOST, 'more addition')}")


def _sums(plan: Plan) -> str:
    """`2 created, 1 updated.`"""
    counts = Counter(change.action for change in plan.changes)
    return ", ".join(f"{counts[action]} {_PAST[action]}" for action in Action if counts[action]) + "."


_PAST = {
    Action.CREATE: "created",
    Action.UPDATE: "updated",
    Action.REPLACE: "replaced",
    Action.DELETE: "deleted",
    Action.ADOPT: "adopted",
    Action.FORGET: "forgotten",
    Action.MOVE: "moved",
}


def rest(changes: list[Change]) -> int:
    """Reports what a fresh read of the account finds still different, with the way out; returns the exit code."""
    if not changes:
        return exit_codes.DONE
    output.say("error: applied, but these resources still differ from the manifests:")
    for each in changes:
        fields = ", ".join(field.path for field in each.fields)
        output.say(
            f"  {symbol(each.action, each.order)} {each.address}: {each.reason}" + (f": {fields}" if fields else "")
        )
        if each.action is Action.UPDATE and each.fields:
            paths = dict.fromkeys(_declared_path(each.address, field.path) for field in each.fields)
            ignore = f"lifecycle: {{ignore: [{', '.join(paths)}]}}"
            output.say(f"    if the platform keeps a value of its own, declare that value, or add `{ignore}`")
    return exit_codes.ERROR


def _declared_path(address: Address, path: str) -> str:
    """The dotted path of the field that a change lies in, without the place inside a document."""
    fields, names = kinds.get(address.kind).fields, list[str]()
    for name in path.replace("[", ".").split("."):
        field = next((each for each in fields if each.name == name), None)
        if field is None:
            break
        names.append(name)
        fields = field.fields
    return ".".join(names)
