"""A real command and a real sandbox on a file, each a process; what a kill leaves behind, and what is wrong with it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from reconciler import kinds
from reconciler.cli.main import main
from reconciler.model import owner_record as owners
from reconciler.model.plan import Verb
from tests.faults.kills import crashing, launch
from tests.faults.kills.crashing import Change
from tests.faults.kills.projects import CrashProject, Document, tokens_of
from tests.harness.platform import KEY, SandboxProcess

ROOT = Path(__file__).parents[3]
# The proxy has another address than the sandbox behind it, which may be another account for all that a run can know.
_ALLOWED = [
    word
    for what in ("account:*=1", *(f"delete:{kind.name}=99" for kind in kinds.every()))
    for word in ("--allow", what)
]
Moment = tuple[str, str, int]


@dataclass
class Scene:
    """A project's folder and the sandbox it is applied to."""

    project: CrashProject
    root: Path
    sandbox: SandboxProcess

    @property
    def words(self) -> list[str]:
        return ["apply", "-y", "--quiet", "--project", str(self.root), *_ALLOWED]

    def start(self, spec: dict[str, Any], url: str | None = None, **more: Any) -> subprocess.Popen[str]:
        """The command, on its way to the end that the spec gives it."""
        environ = self._environ(url) | {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
        return launch.start(spec, self.words, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)

    def run(self) -> int:
        """The command in this process, undisturbed."""
        with pytest.MonkeyPatch.context() as patch:
            for name in [name for name in os.environ if name.startswith("RECONCILER_")]:
                patch.delenv(name)
            for name, value in self._environ(None).items():
                patch.setenv(name, value)
            return main(self.words)

    def _environ(self, url: str | None) -> dict[str, str]:
        return {"RECONCILER_BASE_URL": url or self.sandbox.base_url, "RECONCILER_API_KEY": KEY}

    # --- what must hold -----------------------------------------------------------------------------------------------

    def flaws(self) -> list[str]:
        """What is not as it must be after one run in peace, and another that finds nothing to do."""
        found = [] if self.run() == 0 else ["the clean run does not end well"]
        found += self._copies()
        self.sandbox.forget_log()
        found += [] if self.run() == 0 else ["the next run does not end well"]
        found += [f"the next run sends {call}" for call in self.sandbox.calls()]
        return [*found, *self.unlike_declared(), *self._unheld(), *self._halves()]

    def _copies(self) -> list[str]:
        """Creates that took effect beyond those that were due, by the sandbox's own log."""
        log = [entry for entry in self.sandbox.log() if entry["method"] == "POST" and entry["status"] in (0, 201)]
        created = Counter(_of_log(entry["path"]) for entry in log)
        plan = crashing.plan_change(Change(self.project))
        due = Counter(_collection(call.address.kind) for call in plan.calls if call.verb is Verb.CREATE)
        loose = {_collection(kind.name) for kind in kinds.every() if kind.one_time}
        return [
            f"{created[path]} creates of {path}, not {due[path]}"
            for path in created | due
            if created[path] != due[path] and path not in loose
        ]

    def live(self) -> Iterator[tuple[str, Document]]:
        for kind in kinds.every():
            if kind.parent is None:
                for body in self.sandbox.get(f"{kind.path}?limit=100")[kind.list_key]:
                    if all(body.get(name) == value for name, value in kind.wire.fixed.items()):
                        yield kind.name, body
                        for child in kinds.every():
                            if child.parent and child.parent.kind == kind.name:
                                yield from ((child.name, embedded) for embedded in body[child.parent.embedded])

    def unlike_declared(self) -> list[str]:
        live = [item for item in self.live() if item[1].get("issued_at") is None]  # what the platform obtained itself
        due, live_kinds = (
            Counter(document["kind"] for document in self.project.after),
            Counter(kind for kind, _ in live),
        )
        found = [] if due == live_kinds else [f"declared {due - live_kinds} more, live {live_kinds - due} more"]
        records = [record for _, body in live if (record := owners.read(body.get("metadata"))[1])]
        counted = Counter(record.address for record in records)
        return found + [f"{count} objects are {address}" for address, count in counted.items() if count > 1]

    def _unheld(self) -> list[str]:
        """A token holds the id of its credential, but for the prefix."""
        files = tokens_of(self.project.after)
        found = []
        for kind, body in self.live():
            record = owners.read(body.get("metadata"))[1]
            if kind == "TunnelCredential" and record is not None:
                held = (self.root / files[record.address.name]).read_text()
                if not held.startswith(body["id"].removeprefix("cr_")):
                    found.append(f"nobody holds the token of {record.address}")
        return found

    def _halves(self) -> list[str]:
        secrets = self.root / "secrets"
        declared = {Path(token).name for token in tokens_of((*self.project.before, *self.project.after)).values()}
        files = {path.name for path in secrets.iterdir()} if secrets.exists() else set()
        return [f"secrets/{name} is left over" for name in sorted(files - declared)]


def _of_log(path: str) -> str:
    return path if path.count("/") < 3 else f"…/{path.rpartition('/')[2]}"


def _collection(kind: str) -> str:
    path = kinds.get(kind).path
    return path if "{" not in path else f"…/{path.rpartition('/')[2]}"


def prepare(project: CrashProject, home: Path) -> Path:
    """A folder with the project as applied before the change, and the sandbox's file beside it."""
    root = home / "project"
    project.write(root, project.before)
    with SandboxProcess(db=home / "platform.db") as sandbox:
        scene = Scene(project, root, sandbox)
        if project.before:
            assert scene.run() == 0
        for kind, name, module in project.undone:
            (path,) = (
                body["uri"].partition("//")[2].partition("/")[2] if "//" in body["uri"] else body["uri"].strip("/")
                for found, body in scene.live()
                if found == kind and (record := owners.read(body["metadata"])[1]) and record.address.name == name
            )
            sandbox.delete(f"/{path}/{module}")
    project.write(root, project.after)
    return home


@contextmanager
def scene(project: CrashProject, prepared: Path, home: Path) -> Iterator[Scene]:
    """A copy of what was prepared, to be spoilt."""
    shutil.copytree(prepared, home, dirs_exist_ok=True)
    with SandboxProcess(db=home / "platform.db") as sandbox:
        yield Scene(project, home / "project", sandbox)


def moments(project: CrashProject, prepared: Path, home: Path) -> list[Moment]:
    """Every moment of an apply that nobody disturbs, in order."""
    record = home / "moments"
    with scene(project, prepared, home / "recorded") as undisturbed:
        process = undisturbed.start({"record": str(record)})
        _, output = process.communicate(timeout=60)
        assert process.returncode == 0, output
    return [tuple(json.loads(line)) for line in record.read_text().splitlines()]
