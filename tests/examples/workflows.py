"""Runs the steps of a GitHub workflow's job or of a GitLab job in a shell.

GitHub's own actions are emulated: artifacts are folders. Nothing is installed: the arguments of pip and its environment
are recorded beside the artifacts. Expressions are supported in `env` and `with` only; they name a value, or several of
which the first that is set is used. Conditions have three forms. Anything else is an error, so that no pipeline
contains what is not tested.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

_EXPRESSION = re.compile(r"\$\{\{\s*([a-zA-Z0-9_.-]+(?: \|\| [a-zA-Z0-9_.-]+)*)\s*\}\}")
_AFTER = re.compile(r"\$\{\{ !cancelled\(\) && steps\.([\w-]+)\.outcome == 'success' \}\}")
_IF_SET = re.compile(r"(steps\.[\w-]+\.outputs\.[\w-]+) != ''")
_BIN = Path(sys.executable).parent
_PYTHON = """\
#!/bin/sh
case "$*" in
  "-P -m pip "*) ;;
  "-m pip "*) {python} -m pip --version > /dev/null || exit ;; # may be a module of the checkout
  *) exec {python} "$@" ;;
esac
for word in "$@"; do :; done
printf '%s\\n' "$word" >> {installs}/packages
env >> {installs}/environ
"""


def read(file: Path) -> Any:
    return yaml.safe_load(file.read_text(encoding="utf-8"))


@dataclass
class Ran:
    """`code` is that of the first step that failed, or 0."""

    code: int = 0
    out: str = ""
    err: str = ""
    steps: list[str] = field(default_factory=list)  # names of the steps that ran in a shell


@dataclass
class Runner:
    """A machine with a clone. `artifacts` outlive it; `context` has the values of expressions, such as `secrets.X`."""

    clone: Path
    artifacts: Path
    context: dict[str, str] = field(default_factory=dict)
    environ: dict[str, str] = field(default_factory=dict)
    findings: dict[str, Any] = field(default_factory=dict)  # uploaded to code scanning, by category
    commands: Path = _BIN  # where the command `reconciler` is

    def __post_init__(self) -> None:
        """Puts a Python first on the path that records the calls of pip."""
        self.installs = self.artifacts / "installs"
        self.installs.mkdir(exist_ok=True)
        python = self.installs / "python"
        python.write_text(_PYTHON.format(python=sys.executable, installs=self.installs))
        python.chmod(0o755)

    @property
    def installed_packages(self) -> list[str]:
        """The packages that pip was called with: the last word of each call."""
        kept = self.installs / "packages"
        return kept.read_text().splitlines() if kept.exists() else []

    @property
    def shown_to_pip(self) -> str:
        return (self.installs / "environ").read_text()

    def job(self, workflow: str, job: str) -> Ran:
        """A job of `.github/workflows/<workflow>`."""
        described = read(self.clone / ".github" / "workflows" / workflow)["jobs"][job]
        return self.steps(described["steps"], self._expand(described.get("env", {})))

    def steps(self, steps: list[Any], env: Mapping[str, str], inputs: Mapping[str, str] | None = None) -> Ran:
        ran = Ran()
        self.context |= {f"inputs.{name}": value for name, value in (inputs or {}).items()}
        for step in steps:
            if not self._is_due(step.get("if", ""), ran):
                continue
            here = Ran()
            if "uses" in step:
                self._use(step["uses"], self._expand(step.get("with", {})), env, here)
            else:
                self._run(step, {**env, **self._expand(step.get("env", {}))}, here)
            if "id" in step:
                self.context[f"steps.{step['id']}.outcome"] = "failure" if here.code else "success"
            ran.out, ran.err, ran.steps = ran.out + here.out, ran.err + here.err, ran.steps + here.steps
            if not step.get("continue-on-error"):
                ran.code = ran.code or here.code
        return ran

    def _is_due(self, condition: str, ran: Ran) -> bool:
        if found := _AFTER.fullmatch(condition):
            return self.context.get(f"steps.{found[1]}.outcome") == "success"
        if found := _IF_SET.fullmatch(condition):
            return not ran.code and bool(self.context.get(found[1]))
        assert condition in ("", "always()"), f"no test evaluates {condition!r}"
        return condition == "always()" or not ran.code

    def _run(self, step: Any, env: Mapping[str, str], ran: Ran) -> None:
        assert "${{" not in step["run"], "the title of a request could inject commands"
        command = {
            "python": [sys.executable, "-c", step["run"]],
            "bash": ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        }.get(step.get("shell", ""), ["bash", "-e", "-c", step["run"]])
        output = self.artifacts / "output"
        output.write_text("")
        done = self._shell(command, {**env, "GITHUB_OUTPUT": str(output)})
        for line in output.read_text().splitlines():
            name, _, value = line.partition("=")
            self.context[f"steps.{step['id']}.outputs.{name}"] = value
        ran.steps.append(step["name"])
        ran.code, ran.out, ran.err = ran.code or done.returncode, ran.out + done.stdout, ran.err + done.stderr

    def script(self, lines: list[str], env: Mapping[str, str]) -> Ran:
        """Runs the script of a GitLab job in one shell."""
        done = self._shell(["bash", "-eo", "pipefail", "-c", "\n".join(lines)], env)
        return Ran(done.returncode, done.stdout, done.stderr)

    def _shell(self, command: list[str], env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        clean = {name: os.environ[name] for name in ("HOME", "LANG", "TMPDIR") if name in os.environ}
        return subprocess.run(
            command,
            cwd=self.clone,
            env={
                **clean,
                "PATH": f"{self.installs}:{self.commands}:{_BIN}:/usr/bin:/bin",
                "CI": "true",
                **self.environ,
                **env,
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    def _use(self, action: str, arguments: Mapping[str, str], env: Mapping[str, str], ran: Ran) -> None:
        name = action.partition("@")[0]
        if name.startswith("./"):
            described = read(self.clone / name / "action.yml")
            inputs = {key: arguments.get(key, option["default"]) for key, option in described["inputs"].items()}
            inner = self.steps(described["runs"]["steps"], env, inputs)
            ran.code, ran.out, ran.err = inner.code, ran.out + inner.out, ran.err + inner.err
        elif name == "actions/upload-artifact":
            paths, missing = arguments["path"].split(), arguments["if-no-files-found"]
            if arguments.get("include-hidden-files") != "True":  # files in a folder whose name begins with a dot
                paths = [path for path in paths if not path.startswith(".")]
            if missing == "error" and not any(any(self.clone.glob(path)) for path in paths):
                ran.code = 1
            else:
                self._upload(arguments["name"], paths, missing)
        elif name == "actions/download-artifact":
            place = self.clone / arguments["path"]
            shutil.copytree(self.artifacts / arguments["run-id"] / arguments["name"], place, dirs_exist_ok=True)
        elif name == "github/codeql-action/upload-sarif":
            if (file := self.clone / arguments["sarif_file"]).exists():
                self.findings[arguments["category"]] = json.loads(file.read_text())["runs"]
            else:
                ran.code = 1
        else:
            assert name in ("actions/checkout", "actions/setup-python"), f"{name} is not emulated"

    def _upload(self, name: str, paths: list[str], missing: str) -> None:
        files = [file for path in paths for file in sorted(self.clone.glob(path))]
        # Without any plan there is still a page, which says so. GitHub keeps what there is, too.
        is_planned = any(file.suffix == ".json" for file in files)
        is_whole = all(any(self.clone.glob(path)) for path in paths)
        assert is_whole or not is_planned or missing == "ignore", f"of {paths} only {files}"
        home = self.artifacts / self.environ["GITHUB_RUN_ID"] / name
        home.mkdir(parents=True, exist_ok=True)
        for file in files:
            shutil.copy(file, home)

    def _expand(self, written: Mapping[str, Any]) -> dict[str, str]:
        def value(found: re.Match[str]) -> str:
            values = (self.context.get(name, "") for name in found[1].split(" || "))
            return next(filter(None, values), "")  # a secret that is not set is an empty text

        expanded = {name: _EXPRESSION.sub(value, str(text)) for name, text in written.items()}
        assert not any("${{" in text for text in expanded.values()), f"more than a name in {written}"
        return expanded
