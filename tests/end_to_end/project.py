"""A project in a folder of its own, and the command run on it: as a process, or in this one where that is quicker."""

from __future__ import annotations

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
from reconciler.cli.main import main
from reconciler.model.fields.annotations import Behavior
from reconciler.model.fields.field import Field
from reconciler.operations.runtime import Runtime
from tests.harness.platform import Reachable, Sandbox

COMMAND = (sys.executable, "-m", "reconciler")
_KSUID = re.compile(r"\b([a-z]+)_[A-Za-z0-9]{27}\b")


@dataclass(frozen=True)
class Said:
    """What a command answered with, wrote and said."""

    code: int
    out: str
    err: str

    def numbered(self) -> Said:
        """Ids in the order they are first seen, `ipp_2x…` as `ipp_1`."""
        seen: dict[str, str] = {}

        def short(match: re.Match[str]) -> str:
            number = 1 + sum(each.startswith(f"{match[1]}_") for each in seen)
            return seen.setdefault(match[0], f"{match[1]}_{number}")

        return Said(self.code, _KSUID.sub(short, self.out), _KSUID.sub(short, self.err))

    def replaced(self, old: str, new: str) -> Said:
        return Said(self.code, self.out.replace(old, new), self.err.replace(old, new))


@dataclass
class Shell:
    """Commands in this process, about the project in a folder."""

    root: Path
    capsys: pytest.CaptureFixture[str]
    runtime: Runtime | None = None  # what the commands in this process run with, if not with the machine's

    def write(self, name: str, text: str) -> None:
        file = self.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def reach(self, sandbox: Sandbox) -> None:
        """The sandbox answers at its address, also where it has no socket."""
        self.runtime = Runtime(platform=Reachable(sandbox))

    def run(self, *words: str) -> int:
        """The exit code; what it prints is printed."""
        return main(words, self.runtime)

    def __call__(self, *words: str) -> Said:
        self.capsys.readouterr()
        code = self.run(*words)
        said = self.capsys.readouterr()
        return Said(code, said.out, said.err)


@dataclass
class Project(Shell):
    """`environ` is what its commands find in their environment, beside what any process has."""

    environ: dict[str, str] = field(default_factory=dict)

    def declare(self, *documents: dict[str, Any], file: str = "all.yaml") -> None:
        """Secrets are put into the environment: written in a manifest they are told of as such."""
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
            by_name = {each.name: each for each in of.fields}
            return {name: self._value(item, by_name.get(name)) for name, item in value.items()}
        if isinstance(value, list):
            return [self._value(item, of.item) for item in value]
        if isinstance(value, str) and value and Behavior.SENSITIVE in of.behaviors and "${{" not in value:
            name = f"GIVEN_{hashlib.sha256(value.encode()).hexdigest()[:12]}"
            self.environ[name] = value
            return {"from_env": name}
        return value

    def at(self, sandbox: Sandbox) -> None:
        """The sandbox is its platform from now on. A process reaches one over a socket only."""
        self.environ |= sandbox.environ
        self.reach(sandbox)

    def run(self, *words: str) -> int:
        """From within the folder."""
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(self.root)
            for name in SETTINGS:
                patch.delenv(name, raising=False)
            for name, value in {"COLUMNS": "100", **self.environ}.items():
                patch.setenv(name, value)
            return super().run(*words)

    def process(self, *words: str) -> Said:
        """As a user runs it."""
        done = subprocess.run(
            [*COMMAND, *words], cwd=self.root, env=self._whole(), capture_output=True, text=True, check=False
        )
        return Said(done.returncode, done.stdout, done.stderr)

    def started(self, *words: str) -> subprocess.Popen[str]:
        """Running, both streams to be read."""
        return subprocess.Popen(
            [*COMMAND, *words],
            cwd=self.root,
            env=self._whole(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def _whole(self) -> dict[str, str]:
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
    return {"kind": kind, "name": name, "spec": spec}


def policies(*names: str) -> Sequence[dict[str, Any]]:
    return [resource("IPPolicy", name, description=name) for name in names]


def all_of(sandbox: Sandbox, path: str, key: str) -> list[dict[str, Any]]:
    """A whole collection, page by page."""
    found: list[dict[str, Any]] = []
    following: str | None = path
    while following:
        page = sandbox.get(following)
        found += page[key]
        following = page["next_page_uri"]
    return found
