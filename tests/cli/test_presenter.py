"""What is shown before the calls of an apply: a user who is asked has seen the plan."""

from __future__ import annotations

from tests.harness.outcomes import run_row
from tests.harness.platform import Sandbox
from tests.harness.project import Project, resource

SHOP = resource("ReservedDomain", "shop", domain="shop.example.com")
SPARE = resource("ReservedDomain", "spare", domain="spare.example.com")
ROBOT = resource("BotUser", "robot", name="robot")
ASKING = {
    "apply --exclude */shop": "1 to create",
    "apply plan.json": "1 to create",
    "destroy --allow delete:BotUser=1": "1 to delete",
    "adopt ReservedDomain/shop": "1 to adopt",
}
"""Each command that asks, and what its plan says."""


def test_a_quiet_command_with_a_question_shows_the_plan_first(on_sandbox: Project, sandbox: Sandbox) -> None:
    on_sandbox.declare(ROBOT)
    assert on_sandbox("apply", "-y", "-q").code == 0
    sandbox.post("/reserved_domains", SHOP["spec"])
    on_sandbox.declare(ROBOT, SHOP, SPARE)
    on_sandbox("plan", "--out", "plan.json", "--exclude", "*/shop")
    sandbox.forget_log()
    for command, plan in ASKING.items():
        declined = run_row([*command.split(), "--quiet", "(no)"], on_sandbox)
        assert (declined.code, "Only 'yes' will be accepted" in declined.err) == (1, True), declined
        assert plan in declined.out, command
    assert sandbox.calls() == []
