"""Delivers one-time secrets: checks the sink before the create, delivers right after it, and deletes the object if the
delivery fails.

Invariant under every fault: no object of this stack stays alive whose secret was not delivered.
"""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.engine.context import RunContext, not_visible_yet
from reconciler.engine.ports import Failure, Gone, Refused, Undeliverable
from reconciler.model.plan import Call
from reconciler.model.value import Json, Secret


async def check_sinks(run: RunContext, call: Call) -> None:
    """Raises Refused if a secret of this call could not be delivered."""
    for delivery in call.deliver.values():
        try:
            await run.checkpoint("check", call, lambda d=delivery: run.ports.sinks.check(d, overwrites=call.overwrites))  # type: ignore[misc]
        except Undeliverable as why:
            raise Refused(f"nothing was created, because its secret cannot be delivered: {why}") from why


async def deliver(run: RunContext, call: Call, path: str, answer: Mapping[str, Json]) -> None:
    """Delivers every secret of a new object. If a delivery fails, deletes the object at `path` and raises Refused."""
    try:
        for name, delivery in call.deliver.items():
            text = answer.get(name)
            if not isinstance(text, str) or not text:
                raise Undeliverable(f"the platform's response has no {name}")
            secret = Secret(text, f"{call.address}.{name}")
            run.memory.redactor.add(text)
            await run.checkpoint(
                "deliver",
                call,
                lambda d=delivery, s=secret: run.ports.sinks.deliver(d, s, overwrites=call.overwrites),  # type: ignore[misc]
            )
    except Undeliverable as why:
        await revoke(run, call, path, because=str(why))
        raise Refused(f"created and deleted again, because its secret could not be delivered: {why}") from why


async def revoke(run: RunContext, call: Call, path: str, *, because: str) -> None:
    """Deletes an object whose secret was not delivered; raises Refused, with its path, if it cannot be deleted."""

    async def attempt() -> None:
        check = run.memory.ownership.check_created(call, path)
        try:
            await run.checkpoint("revoke", call, lambda: run.ports.platform.send("DELETE", path, check=check))
        except Gone as failure:
            if run.is_settling(path):
                raise not_visible_yet(path, failure) from failure
            raise

    try:
        await run.with_retries(call, attempt)
    except Gone:
        return
    except Failure as failure:
        raise Refused(
            f"{path} exists, its secret was not delivered ({because}), and it cannot be deleted: {failure}; "
            "the next apply replaces it"
        ) from failure
