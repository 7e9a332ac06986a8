"""Carries out a plan from first look to last: settle what an earlier run left open, plan, show, ask, apply, and look
again whether everything is as declared. `apply` and `destroy` are this with different words.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

from reconciler import kinds
from reconciler.api.clock import MachineChance, MachineClock
from reconciler.api.platform import HTTPPlatform, changing
from reconciler.cli import belonging, judging, selection, stale
from reconciler.cli.commands.plan import show
from reconciler.cli.planfile import PlanFile
from reconciler.cli.session import Session, store_of, tell_problems
from reconciler.cli.terminal import exit_codes, output, signals
from reconciler.cli.terminal.apply_summary import Halt, Wording, report, report_torn, rest, tell_additions
from reconciler.cli.terminal.options import Options
from reconciler.cli.terminal.progress import Witness, telling
from reconciler.cli.terminal.wait_notices import Reading
from reconciler.engine import recovery
from reconciler.engine.apply import apply as run
from reconciler.engine.ports import Intent
from reconciler.model.change import Reason
from reconciler.model.event import Ended, Outcome
from reconciler.model.plan import Call, Plan, Verb
from reconciler.model.snapshot import Snapshot
from reconciler.project.manifests import load as manifests
from reconciler.project.secrets.sinks import ProjectSinks
from reconciler.store import store
from reconciler.store.account import Membership
from reconciler.store.errors import MEMORY, StoreError
from reconciler.store.journal import StoreJournal
from reconciler.store.store import Store

PROMPT_IS_FRESH = 60.0  # seconds for which an answer at the terminal needs no new look at the platform


async def apply(
    session: Session,
    options: Options,
    file: PlanFile | None,
    *,
    ask: bool,
    wording: Wording,
    partial: bool = False,
) -> int:
    """The whole of it; answers with the exit code. `partial`: what is left of a plan file that is stale in part."""
    halt = Halt()
    stack = session.manifest.stack
    rules = judging.rules(session.config)
    seen = Witness(Reading(options.quiet))
    async with (
        store.opened(store_of(session.config)) as memory,
        memory.lock(stack, on_loss=halt.by_store) as holder,
        memory.journal(stack, command=wording.command, plan=file.digest if file else "", holder=holder) as journal,
        changing(
            session.account, on_wait=seen.waited, on_retry=seen.reading.retried, before_write=journal.stands
        ) as platform,
    ):
        if file is not None:
            await _refuse_applied(session, memory, file)
        snapshot = await _first_look(session, memory, journal, platform, file)
        if file is None:
            selection.check(session.policy, session.manifest, snapshot)
        plan, left = session.plan(snapshot), stale.Left()
        if file is not None:
            done = (await memory.progress(file.digest)).calls
            plan, left = stale.rest(file, snapshot, session.config, options.allow, partial=partial, done=done)
            if done and not options.quiet:
                calls = output.count(len(done), "call")
                output.say(f"note: {calls} of {file.file} succeeded in an earlier run and will not be repeated")
        declared = None if file is not None and not file.is_of_these_manifests else session.manifest
        plan = judging.judged(plan, rules, session.policy.now, declared)
        shown = ask or not options.quiet
        if shown:
            show(plan, session, options, [("text", "")])
        _refuse(plan, shown=shown)
        if ask and not plan.is_empty:
            clock = MachineClock()
            shown_at = clock.now()
            if not await _agreed(wording.question):
                output.say("Nothing was changed.")
                return exit_codes.ERROR
            if clock.now() - shown_at > PROMPT_IS_FRESH:
                await _refuse_if_changed(session, memory, platform, plan, file)
        with output.heard_or_not():
            known = await _belong(session, journal, plan, snapshot, await memory.membership(stack))
            with telling(seen, options, len(plan.calls)), _signals(halt):
                try:
                    await _carry_out(plan, session, platform, journal, halt, seen)
                except asyncio.CancelledError:
                    report_torn(plan, seen)
                    raise
            tell_additions(plan)
            if plan.is_empty:
                return _ask_about(plan)
            code = report(plan, seen, halt, wording, left)
            if code != exit_codes.DONE:
                return code
            if not left.calls:
                await journal.complete_plan()
            if file is not None and not file.is_of_these_manifests:
                return left.code or _ask_about(plan)  # nothing is there to compare with
            before = snapshot if file is None else None
            return await _proven(session, memory, platform, journal, halt, plan, before, known) or left.code


async def _refuse_applied(session: Session, memory: Store, file: PlanFile) -> None:
    """Stop if the whole plan of a file was applied before. A store in memory knows of no earlier run, and says so."""
    if store_of(session.config) == MEMORY and not session.quiet:
        text = f"the store is in memory: whether {file.file} was applied before is judged by the account alone"
        output.say(f"note: {text}")
    progress = await memory.progress(file.digest)
    calls = {call.id for call in file.plan.calls}
    if progress.complete is not None or (calls and calls <= progress.calls):
        when = "" if progress.complete is None else datetime.fromtimestamp(progress.complete, UTC).strftime(_WHEN)
        raise exit_codes.Stop(exit_codes.STALE, f"error: {file.file} was applied already{when}; plan again")


_WHEN = ", on %Y-%m-%d at %H:%M UTC"


async def _proven(
    session: Session,
    memory: Store,
    platform: HTTPPlatform,
    journal: StoreJournal,
    halt: Halt,
    plan: Plan,
    before: Snapshot | None,
    known: Membership | None,
) -> int:
    """A fresh look at what was carried out. Without a look at everything `before` only what the plan touched counts."""
    # What was to be replaced has been: it counts once.
    session = replace(session, policy=replace(session.policy, to_replace=frozenset()))
    only = {change.address for change in plan.changes} if before is None else None
    after = await _seen_again(session, memory, platform, plan, before)
    await _belong(session, journal, replace(plan, calls=()), after, known)
    again = session.plan(after)
    if (settling := _made_twice(again)) is not None:
        seen = Witness()
        with _signals(halt):
            await _carry_out(settling, session, platform, journal, halt, seen)
        for each in seen.those(Outcome.FAILED):
            output.say(f"{each.outcome}: {each.call.id}: {each.why}")
        again = session.plan(await _seen_again(session, memory, platform, plan, after))
    if wrong := [each for each in again.blocking if only is None or each.subject in map(str, only)]:
        output.say("error: everything was carried out, and yet not all is well:")
        output.problems(wrong)
        return exit_codes.ERROR
    return rest([each for each in again.changes if only is None or each.address in only]) or _ask_about(again)


def _ask_about(plan: Plan) -> int:
    """The exit code of a run that has nothing left to do but what a person has to resolve, which is said."""
    for each in plan.questions:
        output.say(str(each))
    return exit_codes.PARTLY if plan.questions else exit_codes.DONE


async def _first_look(
    session: Session, memory: Store, journal: StoreJournal, platform: HTTPPlatform, file: PlanFile | None
) -> Snapshot:
    """The snapshot with what an earlier run could not write down any more; for a file, of what it touches."""
    left = await memory.open_intents(session.manifest.stack)
    only, by_id = None, None
    if file is not None:
        only = stale.kinds_of(file.plan) | {intent.address.kind for intent in left}
        by_id = stale.by_id(file.plan)
    snapshot = await session.look(platform, memory, only=only, by_id=by_id)
    if await _waited_for(recovery.unsettled(left, snapshot, kinds.planned()), session.config.limits.settle_seconds):
        snapshot = await session.look(platform, memory, only=only, by_id=by_id)
    bound = await recovery.settle(left, snapshot, kinds.planned(), journal)
    return replace(snapshot, bindings={**snapshot.bindings, **bound})


async def _waited_for(unsettled: Sequence[Intent], settle_seconds: float) -> bool:
    """Whether there was something to wait for: a request may outlive its sender, and take effect after our look."""
    if not unsettled:
        return False
    latest = max(unsettled, key=lambda intent: intent.opened)
    remaining = min(latest.opened + settle_seconds - time.time(), settle_seconds)  # clocks may differ
    if remaining <= 0:
        return False
    output.say(f"waiting {remaining:.0f} s: the create of {latest.address} was cut off, and may still take effect")
    await asyncio.sleep(remaining)
    return True


async def _belong(
    session: Session, journal: StoreJournal, plan: Plan, snapshot: Snapshot, known: Membership | None
) -> Membership | None:
    """Remember the account, by what is there and the plan leaves there."""
    if plan.is_empty and snapshot.doubt:
        return known  # nobody was asked
    doomed = {call.target for call in plan.calls if call.verb is Verb.DELETE and call.target is not None}
    membership = belonging.membership(known, session.home, plan.stack, snapshot, doomed)
    if membership != known:
        await journal.belong(membership)
    return membership


def _refuse(plan: Plan, *, shown: bool) -> None:
    """Stop unless the plan may be carried out. What is wrong is said even where the plan was not shown."""
    if shown:
        tell_problems(plan)
    else:
        output.problems(plan.problems)
    if (code := judging.code(plan.blocking)) != exit_codes.DONE:
        why = "because the plan has problems" if code == exit_codes.ERROR else "because a policy forbids it"
        raise exit_codes.Stop(code, f"error: nothing was changed, {why}")
    if plan.withheld:
        for consent in plan.withheld:
            output.say(f"blocked: {consent.what}:{consent.kind}={consent.count}: {consent.why}")
        flags = " ".join(consent.flag for consent in plan.withheld)
        raise exit_codes.Stop(exit_codes.BLOCKED, f"error: nothing was changed; it needs your consent: {flags}")


async def _refuse_if_changed(
    session: Session, memory: Store, platform: HTTPPlatform, plan: Plan, file: PlanFile | None
) -> None:
    """Re-reads what the plan touches; Stop, naming what changed on the platform while the question was open.

    Of a plan file `plan` may be the rest, whose objects differ from what the file saw by what earlier runs of it wrote.
    """
    now = await session.look(platform, memory, only=stale.kinds_of(plan), by_id=stale.by_id(plan))
    done = (await memory.progress(file.digest)).calls if file is not None else ()
    told = stale.moved(plan if file is None else file.plan, now, done)
    if told := {change.address: told[change.address] for change in plan.changes if change.address in told}:
        for _, lines in sorted(told.items()):
            for line in lines:
                output.say(line)
        raise exit_codes.Stop(exit_codes.STALE, "error: the platform changed before the plan was approved; plan again")


async def _agreed(question: str) -> bool:
    """The answer at the terminal. The event loop goes on meanwhile: it keeps the stack's lock alive."""
    sys.stdout.flush()
    print(f"\n{question}\nOnly 'yes' will be accepted: ", end="", file=sys.stderr, flush=True)
    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    loop.add_reader(sys.stdin.fileno(), readable.set)
    try:
        await readable.wait()
    finally:
        loop.remove_reader(sys.stdin.fileno())
    return sys.stdin.readline().strip() == "yes"


@contextmanager
def _signals(halt: Halt) -> Iterator[None]:
    """The first interrupt lets running calls finish, a second one does not wait for them."""
    task = asyncio.current_task()

    def interrupted() -> None:
        if halt.interrupted and task is not None:
            task.cancel()
            signals.let_go()
            return
        halt.by_signal()
        output.say("interrupted: starting nothing more, waiting for what runs; interrupt again to leave at once")

    signals.on(interrupted)
    try:
        yield
    finally:
        signals.cancel()


async def _carry_out(
    plan: Plan, session: Session, platform: HTTPPlatform, journal: StoreJournal, halt: Halt, seen: Witness
) -> None:
    """Every event to the witness, every end to the journal, and then what the store is to remember."""
    events = run(
        plan,
        kinds=kinds.planned(),
        platform=platform,
        journal=journal,
        clock=MachineClock(),
        chance=MachineChance(),
        sinks=ProjectSinks(session.config.root, partial(manifests.own_places, session.config), halt.event),
        stop=halt.event,
        concurrency=session.parallelism,
    )
    recording: list[asyncio.Task[None]] = []  # nobody waits for the history while there are calls to be made
    try:
        async with aclosing(events):
            async for event in events:
                if isinstance(event, Ended):
                    recording.append(asyncio.create_task(_record(journal, event, halt)))
                seen.tell(event)
        if plan.bindings and not halt.event.is_set():
            await journal.bind(plan.bindings)
    except StoreError as failure:
        halt.by_store(failure)
    finally:
        await asyncio.gather(*recording)


async def _record(journal: StoreJournal, ended: Ended, halt: Halt) -> None:
    """A history that cannot be written any more ends the run; how its calls end is told all the same."""
    if halt.failure is None:
        try:
            await journal.record(ended)
        except StoreError as failure:
            halt.by_store(failure)


async def _seen_again(
    session: Session, memory: Store, platform: HTTPPlatform, plan: Plan, before: Snapshot | None
) -> Snapshot:
    """The snapshot with the kinds that were touched listed anew; with all of them, if there was no whole one before."""
    if before is None:
        return await session.look(platform, memory)
    touched = frozenset(call.address.kind for call in plan.calls)
    touched |= {kind.name for kind in kinds.planned() if kind.parent is not None and kind.parent.kind in touched}
    fresh = await session.look(platform, memory, only=touched)
    return replace(fresh, listings={**before.listings, **fresh.listings})


def _made_twice(plan: Plan) -> Plan | None:
    """The part of a plan that clears away what another run, which knew nothing of this one, made at the same moment.

    Those are the deletes of the later objects, and what each of them waits for: referrers are pointed to the first.
    """
    later = {(change.address, change.id) for change in plan.changes if change.reason is Reason.TWICE}
    withheld = {consent.kind for consent in plan.withheld}
    if not later or plan.blocking or "*" in withheld:
        return None
    calls = {call.id: call for call in plan.calls}
    wanted: set[str] = set()
    for call in plan.calls:
        if call.verb is not Verb.DELETE or (call.address, call.target) not in later:
            continue
        needed = _with_needs(call, calls)
        if withheld.isdisjoint(calls[each].address.kind for each in needed):  # the rest waits for approval
            wanted |= needed
            output.say(f"{call.address} was made twice by two runs at once; the first stays, {call.target} goes")
    if not wanted:
        return None
    return replace(plan, calls=tuple(call for call in plan.calls if call.id in wanted), bindings={})


def _with_needs(call: Call, calls: Mapping[str, Call]) -> set[str]:
    """The ids of a call and of all that it waits for."""
    found: set[str] = set()
    pending = [call.id]
    while pending:
        if (each := pending.pop()) not in found:
            found.add(each)
            pending += calls[each].needs
    return found
