"""One-time secrets: proven deliverable before they exist, delivered before anything else, revoked when that fails.

Holds to one rule under every fault: no live object of ours whose secret nobody has.
"""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.engine.context import Means
from reconciler.engine.ports import Failure, Gone, Refused, Undeliverable
from reconciler.model.plan import Call
from reconciler.model.value import Json, Secret


async def prove(means: Means, call: Call) -> None:
    """Raises Refused if a secret of this call would have nowhere to go."""
    for delivery in call.deliver.values():
        try:
            await means.step("prove", call, lambda d=delivery: means.sinks.prove(d, overwrites=call.overwrites))  # type: ignore[misc]
        except Undeliverable as why:
            raise Refused(f"nothing was created, because its secret cannot be delivered: {why}") from why


async def deliver(means: Means, call: Call, path: str, answer: Mapping[str, Json]) -> None:
    """Hand over every secret of a fresh object. If one cannot be, the object at `path` is deleted; raises Refused."""
    try:
        for name, delivery in call.deliver.items():
            text = answer.get(name)
            if not isinstance(text, str) or not text:
                raise Undeliverable(f"the platform's answer holds no {name}")
            secret = Secret(text, f"{call.address}.{name}")
            means.veil.add(text)
            await means.step(
                "deliver",
                call,
                lambda d=delivery, s=secret: means.sinks.deliver(d, s, overwrites=call.overwrites),  # type: ignore[misc]
            )
    except Undeliverable as why:
        await revoke(means, call, path, because=str(why))
        raise Refused(f"created and deleted again, because its secret could not be delivered: {why}") from why


async def revoke(means: Means, call: Call, path: str, *, because: str) -> None:
    """Delete an object whose secret nobody holds; raises the Failure, with the id, if it stays alive."""

    async def attempt() -> None:
        check = means.ownership.check_made(call, path)
        await means.step("revoke", call, lambda: means.platform.send("DELETE", path, check=check))

    try:
        await means.patiently(call, attempt)
    except Gone:
        return
    except Failure as failure:
        raise Refused(
            f"{path} is live, nobody holds its secret ({because}), and it cannot be deleted: {failure}; "
            "the next run replaces it"
        ) from failure
