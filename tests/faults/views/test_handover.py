"""An object becomes another stack's between two attempts of a call: real requests to a real sandbox."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reconciler.model import owner_record as owners
from reconciler.model.address import Address
from reconciler.model.event import Outcome
from reconciler.model.owner_record import Owner
from tests.faults.matrix.world import SkippingClock, Stack
from tests.harness.platform import Sandbox

EDGE = "TLSEdge/pay"
RECORD = owners.write("", Owner("other", Address("TLSEdge", "theirs"), "intent-of-others"))
BEFORE: dict[str, Any] = {"description": "before", "tls_termination": {"terminate_at": "edge", "min_version": "1.2"}}


class EventfulClock(SkippingClock):
    """Something happens during the first wait."""

    def __init__(self, event: Callable[[], object]) -> None:
        super().__init__()
        self._event = event

    async def sleep(self, seconds: float) -> None:
        if not self.slept:
            self._event()
        await super().sleep(seconds)


@pytest.mark.parametrize(
    ("method", "spec"),
    [
        ("PATCH", {**BEFORE, "description": "after"}),
        ("PUT", BEFORE),  # what somebody changed is put right
        ("DELETE", {"description": "before"}),
        ("DELETE", None),
    ],
    ids=["update", "module", "module removal", "delete"],
)
@pytest.mark.parametrize("then", ["status", "cut"])
async def test_an_object_that_another_stack_owns_before_a_retry_is_unchanged(
    sandbox: Sandbox, tmp_path: Path, method: str, spec: dict[str, Any] | None, then: str
) -> None:
    stack = Stack(sandbox, tmp_path, kinds=("TLSEdge",))
    address = stack.declare(EDGE, BEFORE)
    assert (await stack.run()).is_good
    (live,) = sandbox.get("/edges/tls")["tls_edges"]
    path = f"/edges/tls/{live['id']}"
    if method == "PUT":
        live["tls_termination"] = sandbox.put(f"{path}/tls_termination", {"terminate_at": "edge", "min_version": "1.3"})
    if spec is None:
        stack.remove(address)
    else:
        stack.declare(EDGE, spec)

    def hand_over() -> None:
        sandbox.delete("/_sandbox/faults")
        sandbox.patch(path, {"metadata": RECORD})
        sandbox.forget_log()

    how = {"status": 503, "headers": {"Retry-After": "3"}} if then == "status" else {}
    sandbox.fault(f"{method} {path}*", then=then, **how)
    stack.clock = EventfulClock(hand_over)
    run = await stack.run()
    failed = [ended for ended in run.end_events.values() if ended.outcome is Outcome.FAILED]
    assert [ended.why.partition(": ")[2] for ended in failed] == ["it is now TLSEdge/theirs of stack other; plan again"]
    assert sandbox.get(path) == {**live, "metadata": RECORD}
    assert sandbox.calls() == []
