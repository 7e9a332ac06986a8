"""Each story is a project before and after a change, and the whole output of the commands; see README.md."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest

from reconciler import kinds
from reconciler.model import owner_record
from tests.harness.golden import compare_golden
from tests.harness.platform import Sandbox
from tests.harness.project import IdNumbers, Project

STORIES = Path(__file__).parent
APPLY = "apply --auto-approve --quiet"
CHECK = "plan --detailed-exitcode"
METHODS = ("DELETE", "PATCH", "POST", "PUT")
_ADDRESS = re.compile(r"\$([A-Z]\w+)/([\w.-]+)")
_NUMBERED_ID = re.compile(r"\b[a-z]+_\d+\b")
_TARGET = re.compile(r"\b[0-9a-f]{17}\.[0-9a-f]{3}(?=\.cname\.)")  # of a DNS record, chosen by the platform
_TIME = re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z| UTC)?")

Step = str | dict[str, Any]


class Account(msgspec.Struct, forbid_unknown_fields=True):
    """`account.yaml`. A step is a command, or a request with its body: `POST /ip_policies: {description: Office}`.

    exists    steps before the first apply: objects that no project declares
    edits     steps between the two applies: changes outside Git, injected faults
    commands  what the user runs after the change
    pending   why the last plan is not empty
    """

    exists: list[Step] = []
    edits: list[Step] = []
    commands: list[Step] = msgspec.field(default_factory=lambda: ["drift", "plan", APPLY])
    pending: str = ""


def read_account(story: Path) -> Account:
    file = story / "account.yaml"
    return msgspec.yaml.decode(file.read_bytes(), type=Account) if file.is_file() else Account()


@dataclass
class Story:
    folder: Path
    project: Project
    sandbox: Sandbox
    ids: IdNumbers = field(default_factory=IdNumbers)
    blocks: list[str] = field(default_factory=list)

    def run(self) -> str:
        """Runs all steps; returns the transcript, with numbers as ids."""
        account = read_account(self.folder)
        self._run_steps("", account.exists)
        if (self.folder / "before").is_dir():
            self._copy("before")
            self._run_steps("before", [APPLY])
        self._run_steps("edits outside Git", account.edits)
        if (self.folder / "after").is_dir():
            self._copy("after")
        self._run_steps("after", account.commands)
        self._run_command(CHECK)
        return "\n".join(self.blocks)

    def _copy(self, name: str) -> None:
        """Replaces the files of the project, but not its store."""
        root = self.project.root
        for file in root.iterdir():
            if file.name != "state":
                shutil.rmtree(file) if file.is_dir() else file.unlink()
        shutil.copy(STORIES / "reconciler.yaml", root)
        shutil.copytree(self.folder / name, root, dirs_exist_ok=True)

    def _run_steps(self, title: str, steps: list[Step]) -> None:
        if title and steps:
            self._print(f"# {title}\n")
        for step in steps:
            if isinstance(step, dict):
                ((request, body),) = step.items()
                self._send(request, body)
            elif step.startswith(METHODS):
                self._send(step, None)
            else:
                self._run_command(step)

    def _send(self, request: str, body: Any) -> None:
        method, path = request.split()
        sent = None if body is None else json.loads(self._with_ids(json.dumps(body)))
        response = self.sandbox.request(method, self._with_ids(path), sent)
        assert response.is_success, response.text
        created = response.json().get("id", "") if method == "POST" and response.content else ""
        texts = (f"> {request}", body and json.dumps(body), created and f"→ {created}")
        self._print(" ".join(text for text in texts if text) + "\n")

    def _with_ids(self, text: str) -> str:
        """Replaces `$IPPolicy/office` and `ipp_1` by the id of the object."""
        text = _ADDRESS.sub(lambda match: self._id_of(match[1], match[0][1:]), text)
        return _NUMBERED_ID.sub(lambda match: self.ids.id_of(match[0]), text)

    def _id_of(self, kind_name: str, address: str) -> str:
        kind = kinds.get(kind_name)
        for item in self.sandbox.collection(kind.path, kind.list_key):
            owner = owner_record.read(item["metadata"])[1]
            if owner is not None and str(owner.address) == address:
                return str(item["id"])
        raise AssertionError(f"{address} does not exist")

    def _run_command(self, command: str) -> None:
        self.sandbox.forget_log()
        before = self._files()
        output = self.project(*shlex.split(command))
        written = {name: text for name, text in self._files().items() if before.get(name) != text}
        parts = [f"$ reconciler {command}\n{output.out}"]
        if output.err:
            parts.append(f"--- standard error\n{output.err}")
        if calls := self.sandbox.calls():
            parts.append("--- API calls\n" + "".join(f"{call}\n" for call in calls))
        parts += (f"--- {name}\n{text}" for name, text in written.items())
        self._print("".join([*parts, f"--- exit code {output.code}\n"]))

    def _files(self) -> dict[str, str]:
        """The manifests and settings; other files that commands write contain secrets or ids."""
        root = self.project.root
        return {str(file.relative_to(root)): file.read_text("utf-8") for file in sorted(root.rglob("*.yaml"))}

    def _print(self, text: str) -> None:
        text = text.replace(str(self.project.root), "PROJECT")
        self.blocks.append(_TIME.sub("TIME", _TARGET.sub("TARGET", self.ids.replace_in(text))))


def stories() -> list[Path]:
    return sorted({file.parent for name in ("before", "after") for file in STORIES.glob(f"*/{name}")})


@pytest.mark.parametrize("folder", stories(), ids=lambda folder: folder.name)
@pytest.mark.usefixtures("no_waiting")
def test_a_story_prints_and_sends_what_is_expected(folder: Path, on_sandbox: Project, sandbox: Sandbox) -> None:
    compare_golden(folder / "expected.txt", Story(folder, on_sandbox, sandbox).run())


@pytest.mark.parametrize("folder", stories(), ids=lambda folder: folder.name)
def test_the_last_plan_of_a_story_is_empty_unless_its_account_has_a_reason(folder: Path) -> None:
    _, _, last = (folder / "expected.txt").read_text(encoding="utf-8").rpartition(f"$ reconciler {CHECK}\n")
    assert last.endswith("--- exit code 0\n") != bool(read_account(folder).pending)
