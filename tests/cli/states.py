"""Projects and accounts in the states that commands meet: in sync, changed, drifted, broken, blocked, unreadable."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable
from typing import Any

from tests.harness.platform import Reachable, Sandbox
from tests.harness.project import Project, resource

CERTIFICATE = {"certificate_management_policy": {"authority": "letsencrypt"}}
OFFICE = resource("IPPolicy", "office", description="Office")
ROBOT = resource("BotUser", "robot", name="robot")
SHOP = resource("ReservedDomain", "shop", domain="shop.example.com", **CERTIFICATE)
SPARE = resource("ReservedDomain", "spare", domain="spare.example.com", **CERTIFICATE)
CHANGED = resource("IPPolicy", "office", description="Changed")
NAMELESS = resource("IPPolicy", "office")
WRONG = {**resource("IPPolicy", "wrong"), "id": "bot_2vJ0QmZr8sT1uV3wX5yZ7aB9cD4"}
RULE = "check: resource.kind != 'IPPolicy' || resource.spec.description != ''\nmessage: has no description\n"
SETTINGS = "version: 1\nstack: prod\nlimits: {requests_per_minute: 100000, settle_seconds: 0}\n"

State = Callable[[Project, Sandbox], object]


def declare(*documents: dict[str, Any]) -> State:
    return lambda project, _: project.declare(*documents)


def forbid_nameless(project: Project, _: Sandbox) -> None:
    project.write("policies/described.yaml", f"policy: described\n{RULE}")


def change_by_hand(_: Project, sandbox: Sandbox) -> None:
    (policy,) = sandbox.get("/ip_policies")["ip_policies"]
    sandbox.patch(f"/ip_policies/{policy['id']}", {"description": "by hand"})


def refuse(request: str, status: int) -> State:
    return lambda _, sandbox: sandbox.fault(
        request, then="status", status=status, body={"msg": "refused today"}, times=0
    )


def lose_certificates(_: Project, sandbox: Sandbox) -> None:
    sandbox.provision({"host": "*.example.com", "error_code": "DNS_ERROR"})
    sandbox.get("/reserved_domains")


class Interrupting(Reachable):
    """Interrupts the process when a command first turns to the platform."""

    def _at(self, account: Any) -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        return super()._at(account)


def interrupt(project: Project, sandbox: Sandbox) -> None:
    assert project.runtime is not None
    project.runtime = type(project.runtime)(platform=Interrupting(sandbox))


REST = (ROBOT, SHOP, SPARE)
STATES: dict[str, tuple[State, ...]] = {
    "settled": (),
    "changed": (declare(CHANGED, *REST),),
    "drifted": (change_by_hand,),
    "both": (declare(OFFICE, resource("BotUser", "robot", name="other"), SHOP, SPARE), change_by_hand),
    "broken": (declare(OFFICE, *REST, WRONG),),
    "unapproved": (declare(OFFICE, ROBOT, SHOP),),
    "violated": (declare(NAMELESS, *REST), forbid_nameless),
    "unread": (refuse("GET /ip_policies", 400),),
    "forbidden": (refuse("GET /ip_policies", 403),),
    "keyless": (refuse("GET *", 401),),
    "failing": (declare(CHANGED, *REST), refuse("PATCH *", 422)),
    "degraded": (lose_certificates,),
    "broken+drift": (declare(OFFICE, *REST, WRONG), change_by_hand),
    "unread+unappr": (declare(OFFICE, ROBOT, SHOP), refuse("GET /ip_policies", 400)),
    "violated+unappr": (declare(NAMELESS, ROBOT, SHOP), forbid_nameless),
    "violated+unread": (declare(NAMELESS, *REST), forbid_nameless, refuse("GET /bot_users", 400)),
    "invalid": (lambda project, _: project.write("reconciler.yaml", "version: 1\nstak: prod\n"),),
    "interrupted": (declare(CHANGED, *REST), interrupt),
}
"""What happens after everything was applied once, by name."""


def prepare(state: str, project: Project, sandbox: Sandbox) -> None:
    """Makes the project and its account anew, in the state."""
    sandbox.reset()
    if project.root.exists():
        shutil.rmtree(project.root)
    project.use(sandbox)
    project.write("reconciler.yaml", SETTINGS)
    project.declare(OFFICE, *REST)
    applied = project("apply", "-y", "-q")
    assert applied.code == 0, applied
    for step in STATES[state]:
        step(project, sandbox)
    sandbox.forget_log()
