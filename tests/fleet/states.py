"""A fleet of two members in the states that the `fleet` commands meet."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from reconciler.testing import Emulator, Sandbox
from tests.fleet.fleets import CANARY, write_fleet
from tests.harness.project import Project

DOMAIN = {"kind": "ReservedDomain", "name": "shop"}
SPEC = {"domain": "${{ var.site }}.example.com"}
CERTIFICATE = {"certificate_management_policy": {"authority": "letsencrypt"}}
WAVES = [{"name": "canary", "select": {"tier": "canary"}}, {"name": "rest", "approve": True}]


class FleetProject(Project):
    """Commands in the folder of a fleet, on a platform with an account for each member."""

    sandbox: Sandbox
    on_request: Callable[[], None] | None = None

    def write_fleet(self, *documents: dict[str, Any], **settings: Any) -> None:
        projects = {"web": documents}
        write_fleet(self.root, CANARY, projects=projects, limits={"members_at_once": 1}, **settings)

    def fleet(self, *words: str) -> Any:
        return self("fleet", *words)

    def account(self, member: str) -> Emulator:
        return self.sandbox.accounts[member]

    def select(self, query: str, *values: str) -> list[str]:
        """The first column of rows of the fleet's store; nothing if there is no store."""
        file = self.root / "state/fleet.db"
        if not file.exists():
            return []
        with closing(sqlite3.connect(file)) as connection:
            return [row[0] for row in connection.execute(query, values)]

    def list_runs(self, verb: str = "%") -> list[str]:
        """The ids of all runs, or of those with this verb, newest first."""
        return self.select("SELECT id FROM fleet_runs WHERE verb LIKE ? ORDER BY created DESC, id DESC", verb)

    def list_shapes(self, run: str) -> list[str]:
        """The shapes of a run, those that are not approved first."""
        return self.select("SELECT shape FROM fleet_tasks WHERE run = ? AND shape != '' ORDER BY state, member", run)

    @property
    def is_paused(self) -> bool:
        return bool(self.select("SELECT fleet FROM fleet_pauses"))


@contextmanager
def open_fleet(root: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[FleetProject]:
    async def on_request(_method: str, _path: str) -> None:
        if project.on_request is not None:
            project.on_request()

    project = FleetProject(root, capsys)
    keys = {str(item["name"]): f"key-of-{item['name']}" for item in CANARY}
    with Sandbox(accounts=keys, on_request=on_request) as sandbox:
        project.sandbox = sandbox
        project.reach(sandbox)
        yield project


State = Callable[[FleetProject], object]


def apply(project: FleetProject) -> None:
    assert project.fleet("apply", "-y", "-q").code == 0


def declare(text: str, **settings: Any) -> State:
    return lambda project: project.write_fleet({**DOMAIN, "spec": {**SPEC, "description": text}}, **settings)


def run(*words: str, code: int = 0) -> State:
    def command(project: FleetProject) -> None:
        result = project.fleet(*words)
        assert result.code == code, result

    return command


def refuse(member: str, request: str, status: int, times: int = 0) -> State:
    def fault(project: FleetProject) -> None:
        body = {"msg": "refused today"}
        project.account(member).fault(request, then="status", status=status, body=body, times=times)

    return fault


def change_by_hand(project: FleetProject) -> None:
    account = project.account("globex")
    (found,) = account.collection("/reserved_domains", "reserved_domains")
    account.patch(f"/reserved_domains/{found['id']}", {"description": "by hand"})


def interrupt_next(project: FleetProject) -> None:
    def interrupt() -> None:
        project.on_request = None
        os.kill(os.getpid(), signal.SIGINT)

    project.on_request = interrupt


def lose_key(project: FleetProject) -> None:
    project.environ["KEY_GLOBEX"] = ""


def misspell(project: FleetProject) -> None:
    file = project.root / "fleet.yaml"
    file.write_text(file.read_text().replace('"members"', '"membres"'))


def provision(project: FleetProject) -> None:
    project.sandbox.provision({"host": "globex.example.com", "error_code": "DNS_ERROR", "retry_after": 86_400})
    project.write_fleet({**DOMAIN, "spec": {**SPEC, "description": "shop", **CERTIFICATE}})


def remove(project: FleetProject) -> None:
    project.write_fleet({"kind": "BotUser", "name": "robot", "ensure": "absent", "spec": {"name": "robot"}})


SETTLED = (declare("shop"), apply)
EDITED = (*SETTLED, declare("edited"))
REMOVED = (*SETTLED, remove)
STATES: dict[str, tuple[State, ...]] = {
    "settled": SETTLED,
    "new": (declare("shop"),),
    "edited": EDITED,
    "planned": (*EDITED, run("plan", "-q")),
    "removed": (*REMOVED, run("plan", "-q")),
    "blocked": (*SETTLED, change_by_hand, remove, run("plan", "-q"), lambda project: approve_first(project)),
    "skipped": (*EDITED, refuse("globex", "GET /reserved_domains", 400, times=1), run("apply", "-y", "-q", code=5)),
    "guarded": (*SETTLED, declare("edited", guards={"max_changed": 1}), run("plan", "-q")),
    "keyless": (*EDITED, lose_key, run("plan", "-q", code=1)),
    "unread": (*SETTLED, refuse("acme", "GET /reserved_domains", 400)),
    "forbidden": (*EDITED, *(refuse(name, "GET *", 403) for name in ("acme", "globex"))),
    "failed": (*EDITED, refuse("globex", "PATCH *", 422, times=1), run("apply", "-y", "-q", code=5)),
    "stale": (*EDITED, run("plan", "-q"), change_by_hand, lambda project: apply_last(project, 3)),
    "waiting": (*SETTLED, declare("edited", waves=WAVES), run("apply", "-y", "-q", code=4)),
    "paused": (*EDITED, run("pause", "-q"), run("plan", "-q", code=5)),
    "interrupted": (*EDITED, interrupt_next, run("plan", "-q", code=130)),
    "drifted": (*SETTLED, change_by_hand, run("drift", "-q", "--health", code=2)),
    "degraded": (provision, apply, run("drift", "-q", "--health", code=7)),
    "invalid": (*SETTLED, misspell),
}
"""What was done before the command, by name."""


def apply_last(project: FleetProject, code: int) -> None:
    run("apply", project.list_runs()[0], "-y", "-q", code=code)(project)


def approve_first(project: FleetProject) -> None:
    """Applies the plan, of whose two shapes one is approved."""
    (plan,) = project.list_runs("plan")[:1]
    run("apply", plan, "-y", "-q", "--approve", project.list_shapes(plan)[0], code=4)(project)


def prepare(state: str, project: FleetProject) -> None:
    """Makes the fleet and its accounts anew, in the state."""
    project.sandbox.reset()
    project.sandbox.provision()
    project.on_request = None
    if project.root.exists():
        shutil.rmtree(project.root)
    keys = {f"KEY_{name.upper()}": account.api_key for name, account in project.sandbox.accounts.items()}
    project.environ = {"RECONCILER_BASE_URL": project.sandbox.base_url, **keys}
    for step in STATES[state]:
        step(project)
    project.sandbox.forget_log()
