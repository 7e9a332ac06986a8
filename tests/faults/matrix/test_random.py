"""One request in ten has a random fault: each change is applied nevertheless, with few more requests."""

from __future__ import annotations

from pathlib import Path

from reconciler.engine.retry import RetryPolicy
from tests.faults.matrix.world import Stack
from tests.harness.platform import Sandbox

SEEDS = range(8)
FAULTS = ("cut", "commit-then-cut", "status", "commit-then-status", "commit-then-truncate")
KINDS = ("IPPolicy", "IPPolicyRule", "TLSEdge", "ReservedDomain", "BotUser", "TunnelCredential", "FailoverBackend")
NETWORK = "10.{}.0.0/16"


def fifty(sandbox: Sandbox, root: Path) -> Stack:
    """A stack of fifty resources, of kinds with a record, with a natural key, with a secret, and below one another."""
    stack = Stack(sandbox, root, kinds=(*KINDS, "HTTPResponseBackend"), retries=RetryPolicy())
    for number in range(10):
        policy = sandbox.post("/ip_policies", {"description": f"theirs {number}"})["id"]
        stack.declare(f"IPPolicy/p{number}", {"description": f"policy {number}"})
        rule = {"ip_policy_id": policy, "cidr": NETWORK.format(number), "action": "allow"}
        stack.declare(f"IPPolicyRule/r{number}", rule)
        stack.declare(f"ReservedDomain/d{number}", {"domain": f"d{number}.example.com"})
        stack.declare(f"TLSEdge/e{number}", {"ip_restriction": {"ip_policy_ids": [policy]}})
    for number in range(5):
        stack.declare(f"BotUser/b{number}", {"name": f"bot {number}"})
        stack.secret(f"TunnelCredential/c{number}")
    assert len(stack.declared) == 50
    sandbox.forget_log()
    return stack


async def count_requests(sandbox: Sandbox, root: Path, seed: int | None) -> int:
    """The requests of one run that ends well, and after which nothing is left to do; None: without faults."""
    sandbox.reset()
    stack = fifty(sandbox, root)
    if seed is not None:
        for place, then in enumerate(FAULTS):
            sandbox.fault("* /*", then=then, times=0, chance=0.1 / len(FAULTS), seed=100 * seed + place)
    run = await stack.run()
    assert run.is_good, [ended for ended in run.end_events.values() if ended.why]
    requests = len(sandbox.log())
    assert await stack.converges() == []
    return requests


async def test_a_tenth_of_faults_costs_at_most_a_quarter_more_requests(sandbox: Sandbox, tmp_path: Path) -> None:
    least = await count_requests(sandbox, tmp_path, None)
    costs = [await count_requests(sandbox, tmp_path, seed) for seed in SEEDS]
    assert len(costs) * least < sum(costs) <= 1.25 * len(costs) * least, (least, costs)
