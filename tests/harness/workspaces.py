"""Projects on disk and their workspaces, for tests of the Python API and of operations."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from reconciler.operations.runtime import Runtime
from reconciler.operations.workspace import Workspace
from reconciler.testing.emulator import Emulator
from tests.harness.platform import Reachable

Document = Mapping[str, Any]


def policy(name: str, description: str = "") -> Document:
    return {"kind": "IPPolicy", "name": name, "spec": {"description": description or name}}


def domain(name: str) -> Document:
    return {"kind": "ReservedDomain", "name": name, "spec": {"domain": f"{name}.example.com"}}


def bot(name: str) -> Document:
    return {"kind": "BotUser", "name": name, "spec": {"name": name}}


def write_project(root: Path, *documents: Document, settings: str = "", settle: float = 0) -> Path:
    """A project of the stack `prod` that declares these resources.

    settle  `limits.settle_seconds`. 0: a test does not wait for objects that it deletes
    """
    write_settings(root, settings, settle)
    text = "---\n".join(f"{json.dumps(document)}\n" for document in documents)  # JSON is YAML
    (root / "manifests" / "all.yaml").write_text(text)
    return root


def write_settings(root: Path, settings: str = "", settle: float = 0) -> None:
    """The project file, and an empty folder of manifests if there is none."""
    (root / "manifests").mkdir(parents=True, exist_ok=True)
    limits = f"limits: {{requests_per_minute: 100000, settle_seconds: {settle}}}\n"
    (root / "reconciler.yaml").write_text(f"version: 1\nstack: prod\n{limits}{settings}")


def open_on(sandbox: Emulator, root: Path, **more: Any) -> Workspace:
    """The project's workspace on an emulated platform; `more` is of the runtime."""
    return Workspace.open(root, runtime=Runtime(environ=sandbox.environ, platform=Reachable(sandbox), **more))
