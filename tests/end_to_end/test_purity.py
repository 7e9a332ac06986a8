"""Planning and rendering open no file and no connection, start no process and read no environment variable.

Whole commands run in this process. An audit hook of the interpreter looks at each such event: none may have a function
of these packages on its stack. Importing a module is not counted: some modules are imported on first use.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import reconciler
from reconciler.planning import planner
from tests.harness.platform import Sandbox
from tests.harness.project import Project

PACKAGE = Path(reconciler.__file__).parent
PURE = tuple(f"{PACKAGE / name}{os.sep}" for name in ("planning", "rendering"))
EVENTS = ("open", "socket.", "subprocess.", "os.", "shutil.", "tempfile.", "urllib.", "sqlite3.", "ssl.", "webbrowser.")


class Recorder:
    """Effects below a function of a pure package, while `is_on`."""

    def __init__(self) -> None:
        self.is_on = False
        self.effects: list[str] = []

    def audit(self, event: str, arguments: Sequence[Any]) -> None:
        if self.is_on and event.startswith(EVENTS):
            self.record(f"{event}{tuple(arguments)!r}")

    def record(self, effect: str) -> None:
        self.is_on = False
        frame: FrameType | None = sys._getframe(1)
        pure = ""
        while frame is not None:
            file = frame.f_code.co_filename
            if file.startswith("<frozen importlib"):
                break
            if file.startswith(PURE):
                pure = pure or f"{file.removeprefix(str(PACKAGE))}:{frame.f_lineno} {frame.f_code.co_name}"
            frame = frame.f_back
        else:
            if pure:
                self.effects.append(f"{effect} in {pure}")
        self.is_on = True


RECORDER = Recorder()


@pytest.fixture(scope="module", autouse=True)
def hook() -> None:
    """Installs the hook, which lasts as long as the process."""
    sys.addaudithook(RECORDER.audit)


@pytest.fixture
def effects(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What is recorded during the test."""
    environment: Any = type(os.environ)
    read = environment.__getitem__

    def read_variable(self: Any, name: str) -> str:
        if RECORDER.is_on:
            RECORDER.record(f"environment variable {name}")
        return str(read(self, name))

    monkeypatch.setattr(environment, "__getitem__", read_variable)
    RECORDER.effects.clear()
    RECORDER.is_on = True
    yield RECORDER.effects
    RECORDER.is_on = False


DOCUMENTS = {
    "office.yaml": """\
kind: IPPolicy
name: office
spec: {description: before}
---
kind: IPPolicyRule
name: office-v4
spec: {ip_policy_id: {ref: IPPolicy/office}, cidr: 10.0.0.0/8, action: allow}
""",
    "shop.yaml": """\
kind: ReservedDomain
name: shop
spec: {domain: shop.example.com}
---
kind: HTTPSEdge
name: shop
spec: {hostports: ["shop.example.com:443"]}
---
kind: HTTPSEdgeRoute
name: shop
spec:
  edge_id: {ref: HTTPSEdge/shop}
  match: /
  match_type: path_prefix
  ip_restriction: {ip_policy_ids: [{ref: IPPolicy/office}]}
---
kind: ReservedDomain
name: api
spec: {domain: api.example.com}
---
kind: CloudEndpoint
name: api
spec:
  url: https://api.example.com
  traffic_policy: |
    on_http_request:
      - actions: [{type: deny, config: {status_code: 404}}]
""",
}
COMMANDS = (
    "validate",
    "plan --format text --format markdown=p.md --format html=p.html --format json=p.json --format sarif=p.sarif",
    "plan --format github --format gitlab=p.gitlab.json --out plan.json",
    "plan --format markdown",
    "show plan.json",
    "graph",
    "apply -y --events events.jsonl",
    "plan",
    "list",
    "list --format json",
    "explain HTTPSEdgeRoute/shop",
    "explain HTTPSEdgeRoute",
    "history",
    "snapshot --out snapshot.json",
    "plan --snapshot snapshot.json --format markdown",
    "drift --format text",
    "report --out report.html",
    "schema --all schemas",
    "graph --format svg",
)


@pytest.fixture
def files(on_sandbox: Project) -> Project:
    for name, text in DOCUMENTS.items():
        on_sandbox.write(f"manifests/{name}", text)
    return on_sandbox


def run_all(project: Project, commands: Sequence[str]) -> None:
    for command in commands:
        run = project(*command.split())
        assert run.code in (0, 2, 4), f"{command}: {run.err}"


def test_planning_and_rendering_have_no_effects(files: Project, sandbox: Sandbox, effects: list[str]) -> None:
    run_all(files, COMMANDS)
    # Each resource differs, on the platform and in Git; positions are reported for each.
    [policy], route = sandbox.collection("/ip_policies", "ip_policies"), "manifests/shop.yaml"
    sandbox.patch(f"/ip_policies/{policy['id']}", {"description": "by hand"})
    files.write(route, DOCUMENTS["shop.yaml"].replace("shop.example.com", "new.example.com"))
    run_all(files, COMMANDS)
    files.write(route, DOCUMENTS["shop.yaml"].replace("match: /", "match: 1").replace("https://api", "htps://api"))
    assert files("validate").code == 1
    assert files("plan").code == 1
    run_all(files, ("destroy -y",))
    assert effects == []


def test_an_effect_below_planning_is_recorded(
    files: Project, effects: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def report(*_arguments: Any, **_options: Any) -> tuple[()]:
        os.environ.get("HOME")
        Path(os.devnull).read_bytes()
        return ()

    monkeypatch.setattr(planner, "report_unreadable_kinds", report)
    files("plan")
    assert [effect.partition(" in ")[0].split("(")[0] for effect in effects][:2] == [
        "environment variable HOME",
        "open",
    ]
