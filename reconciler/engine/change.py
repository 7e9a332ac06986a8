"""Performs one update or delete: the owner record, the request with its ownership check, the binding.

Both are idempotent, so that a retry or a second run does no harm.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import unquote

from msgspec.structs import replace

from reconciler.engine import requests
from reconciler.engine.context import RunContext, not_visible_yet
from reconciler.engine.create import CallResult, bind
from reconciler.engine.ports import Failure, Gone, Refused
from reconciler.model.canonical import read
from reconciler.model.event import Outcome
from reconciler.model.kind import Kind
from reconciler.model.owner_record import Owner
from reconciler.model.plan import Call, Verb
from reconciler.model.value import Json, Value


async def update(run: RunContext, call: Call) -> CallResult:
    """Updates an object or one of its modules, with its owner record; raises a Failure."""
    kind = run.facts.kind_of(call)
    record = _record(run, call, kind)
    body = requests.make_body(call, run.memory.values, kind, record)
    if body or call.verb is Verb.PUT:
        answer = await _send(run, call, body or {})
        if call.verb is Verb.UPDATE:
            run.memory.values.learn(call.address, kind, answer)
            _check_removals(call, kind, body or {}, answer)
    # The store has no create of an adopted object: without a binding it could not report that the object vanished.
    needs_binding = (
        not kind.keeps_owner
        or call.address in run.facts.former_addresses
        or call.address in run.facts.adopted_addresses
    )
    if needs_binding and call.verb is Verb.UPDATE and record is not None:
        await bind(run, call, _locator(run, call, kind), record)
    return CallResult(Outcome.DONE, call.target)


def _check_removals(call: Call, kind: Kind, body: Mapping[str, Value], answer: Json) -> None:
    """Raises Refused if the response shows that the platform ignored a null, the only way to remove such a field."""
    if not isinstance(answer, Mapping):
        return
    for name, value in body.items():
        if value is None and name in kind.by_name and read(kind.by_name[name], answer) not in (None, "", [], {}):
            remedy = f"remove it outside of this API, declare {name}, or list it under `lifecycle.ignore`"
            raise Refused(f"the platform did not remove {name}: it ignores null; {remedy}")


def _record(run: RunContext, call: Call, kind: Kind) -> Owner | None:
    """The owner record to write. An object that this run created keeps its intent, the salt of its digests."""
    draft = call.owner
    if draft is None:
        return None
    intent = draft.intent or run.memory.intents.get(call.address) or run.ports.random.intent()
    return requests.make_owner(draft, run.memory.values, kind, stack=run.facts.plan.stack, intent=intent)


def _locator(run: RunContext, call: Call, kind: Kind) -> str:
    collection, _, object_id = run.memory.values.path(call.path).rpartition("/")
    return requests.make_locator(kind, collection, unquote(object_id))


async def _send(run: RunContext, call: Call, body: dict[str, Value] | None) -> Json:
    path = run.memory.values.path(call.path)
    try:
        return await run.with_retries(call, lambda: _attempt(run, call, path, body))
    except Gone as failure:
        raise Gone(
            f"{path} does not exist any more: it was deleted after the plan was created", code=failure.code, status=404
        ) from failure


async def _attempt(run: RunContext, call: Call, path: str, body: dict[str, Value] | None) -> Json:
    """Sends the request once. Each attempt has its own ownership check: another stack may have adopted the object."""
    check = run.memory.ownership.check(call, path)
    payload = requests.reveal_body(body)
    try:
        answer = await run.checkpoint(
            "send", call, lambda: run.ports.platform.send(call.method, path, payload, check=check)
        )
    except Failure as failure:
        if check is not None:
            run.memory.ownership.forget(check.path)
        if isinstance(failure, Gone) and run.is_settling(path):
            raise not_visible_yet(path, failure) from failure
        raise
    if check is not None and call.verb is Verb.UPDATE:
        run.memory.ownership.learn(run.facts.kind_of(call), path, check.sent_at, answer)
    return answer


async def delete(run: RunContext, call: Call) -> CallResult:
    """Deletes an object, or removes one of its modules; raises a Failure. An absent object counts as deleted."""
    result = CallResult(Outcome.DONE, call.target)
    try:
        await _send(run, call, None)
    except Gone:
        result = CallResult(Outcome.ALREADY, call.target, "it was deleted before")
    if call.verb is Verb.DELETE:
        successor = run.memory.bindings.get(call.address)
        if call.unbinds:
            former = run.facts.former_addresses.get(call.address)
            addresses = [call.address] if former is None else [call.address, former]
            await run.checkpoint("bind", call, lambda: run.ports.journal.bind(dict.fromkeys(addresses)))
        elif successor is not None and successor.replaces == _locator(run, call, run.facts.kind_of(call)):
            final = replace(successor, replaces=None)
            await run.checkpoint("bind", call, lambda: run.ports.journal.bind({call.address: final}))
            run.memory.bindings[call.address] = final
    return result
