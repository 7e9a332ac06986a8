"""Projects in folders, and the command run on them: in this process, or as a process of its own. A pytest plugin."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from reconciler import kinds
from reconciler.api.clock import MachineClock
from reconciler.cli.main import main
from reconciler.model.fields.annotations import Behavior
from reconciler.model.fields.field import Field
from reconciler.operations.runtime import Runtime
from tests.harness.forked import start_command
from tests.harness.platform import Reachable, Sandbox
from tests.harness.workspaces import write_settings

COMMAND = (sys.executable, "-m", "reconciler")
_KSUID = re.compile(r"\b([a-z]+)_[A-Za-z0-9]{27}\b")


class IdNumbers:
    """Numbers ids of objects in the order in which they occur: the first `ipp_2x…` is `ipp_1`."""

    def __init__(self) -> None:
        self._numbered: dict[str, str] = {}

    def replace_in(self, text: str) -> str:
        return _KSUID.sub(self._number, text)

    def id_of(self, numbered: str) -> str:
        """The id that was replaced by `ipp_1`; the text itself if there is none."""
        return next((id for id, number in self._numbered.items() if number == numbered), numbered)

    def _number(self, match: re.Match[str]) -> str:
        count = sum(id.startswith(f"{match[1]}_") for id in self._numbered)
        return self._numbered.setdefault(match[0], f"{match[1]}_{count + 1}")


@dataclass(frozen=True)
class Output:
    """Exit code, standard output and standard error of a command."""

    code: int
    out: str
    err: str

    def number_ids(self) -> Output:
        """The same with ids numbered in the order in which they occur: `ipp_2x…` as `ipp_1`."""
        numbers = IdNumbers()
        return Output(self.code, numbers.replace_in(self.out), numbers.replace_in(self.err))

    def replace_text(self, old: str, new: str) -> Output:
        return Output(self.code, self.out.replace(old, new), self.err.replace(old, new))


@dataclass
class Shell:
    """Runs commands in this process on the project in a folder."""

    root: Path
    capsys: pytest.CaptureFixture[str]
    runtime: Runtime | None = None  # None: that of the machine

    def write(self, name: str, text: str) -> None:
        file = self.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def reach(self, sandbox: Sandbox) -> None:
        """Connects requests to the address of the sandbox with it, also if it has no socket."""
        self.runtime = Runtime(platform=Reachable(sandbox))

    def run(self, *words: str) -> int:
        """Runs a command without capturing its output; returns the exit code."""
        return main(words, self.runtime)

    def __call__(self, *words: str) -> Output:
        self.capsys.readouterr()
        code = self.run(*words)
        captured = self.capsys.readouterr()
        return Output(code, captured.out, captured.err)


@dataclass
class Project(Shell):
    """A project whose commands run in its folder. `environ`: environment variables of its commands."""

    environ: dict[str, str] = field(default_factory=dict)

    def declare(self, *documents: dict[str, Any], file: str = "all.yaml") -> None:
        """Writes the manifests to a file. Secrets become environment variables: in a manifest they cause a warning."""
        texts = [json.dumps({**document, **self._spec(document)}) for document in documents]
        self.write(f"manifests/{file}", "---\n".join(f"{text}\n" for text in texts))  # JSON is YAML

    def _spec(self, document: dict[str, Any]) -> dict[str, Any]:
        kind, spec = kinds.find(document["kind"]), document.get("spec")
        if kind is None or not isinstance(spec, dict):
            return {}
        return {"spec": {name: self._value(item, kind.by_name.get(name)) for name, item in spec.items()}}

    def _value(self, value: Any, of: Field | None) -> Any:
        if of is None:
            return value
        if isinstance(value, dict) and of.fields:
            by_name = {field.name: field for field in of.fields}
            return {name: self._value(item, by_name.get(name)) for name, item in value.items()}
        if isinstance(value, list):
            return [self._value(item, of.item) for item in value]
        if isinstance(value, str) and value and Behavior.SENSITIVE in of.behaviors and "${{" not in value:
            name = f"GIVEN_{hashlib.sha256(value.encode()).hexdigest()[:12]}"
            self.environ[name] = value
            return {"from_env": name}
        return value

    def use(self, sandbox: Sandbox) -> None:
        """Makes the sandbox the platform of its commands. Commands as processes need a sandbox with a socket."""
        self.environ |= sandbox.environ
        self.reach(sandbox)

    def run(self, *words: str) -> int:
        """Runs a command in the folder of the project."""
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(self.root)
            for name in SETTINGS:
                patch.delenv(name, raising=False)
            for name, value in {"COLUMNS": "100", **self.environ}.items():
                patch.setenv(name, value)
            return super().run(*words)

    def process(self, *words: str) -> Output:
        """Runs a command as a process, as a user does."""
        process = self.start(*words)
        out, err = process.communicate()
        return Output(process.returncode, out, err)

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Starts a command as a process, with pipes for both streams."""
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return start_command(words, cwd=self.root, env=self.process_environ(), **pipes)

    def process_environ(self) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if name not in SETTINGS}
        return {**inherited, "COLUMNS": "100", **self.environ}


SETTINGS = (
    "RECONCILER_BASE_URL",
    "RECONCILER_API_KEY",
    "RECONCILER_PROJECT",
    "RECONCILER_STORE",
    "RECONCILER_PLAN_KEY",
    "RECONCILER_ENV",
    "RECONCILER_LOG_FORMAT",
    "RECONCILER_DEBUG",
    "CI",
    "GITHUB_API_URL",
    "GITHUB_TOKEN",
    "VAULT_ADDR",
    "VAULT_NAMESPACE",
    "VAULT_TOKEN",
    "VAULT_TOKEN_FILE",
    "NO_COLOR",
    "COLUMNS",
)


def resource(kind: str, name: str, /, **spec: Any) -> dict[str, Any]:
    """A manifest."""
    return {"kind": kind, "name": name, "spec": spec}


def policies(*names: str) -> Sequence[dict[str, Any]]:
    return [resource("IPPolicy", name, description=name) for name in names]


def all_of(sandbox: Sandbox, path: str, key: str) -> list[dict[str, Any]]:
    """All objects of a collection, page by page."""
    found: list[dict[str, Any]] = []
    following: str | None = path
    while following:
        page = sandbox.get(following)
        found += page[key]
        following = page["next_page_uri"]
    return found


@pytest.fixture
def project(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Project:
    """A project of the stack `prod` without manifests and without a platform."""
    root = tmp_path / "project"
    write_settings(root)
    return Project(root, capsys)


@pytest.fixture
def on_sandbox(project: Project, sandbox: Sandbox) -> Project:
    """The project, with the shared sandbox as its platform."""
    project.use(sandbox)
    return project


@pytest.fixture
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retries follow without a pause."""
    monkeypatch.setattr(MachineClock, "sleep", lambda _clock, _seconds: asyncio.sleep(0))
