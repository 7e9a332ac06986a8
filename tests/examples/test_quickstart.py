"""The examples are valid and formatted, and the demo runs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness.tiers import is_quick

EXAMPLES = Path(__file__).parents[2] / "examples"
PROJECTS = sorted(file.parent for file in EXAMPLES.glob("*/reconciler.yaml"))

# The demo, with another command than `python -m reconciler`.
FORKING = """
import os, sys
_, script, command = sys.argv
del sys.argv[1:]
sys.path.insert(0, os.path.dirname(script))
import demo
demo.COMMAND = (command,)
sys.exit(demo.main())
"""


def test_the_quickstart_is_among_the_examples() -> None:
    assert EXAMPLES / "quickstart" in PROJECTS


@pytest.mark.parametrize("project", PROJECTS, ids=lambda path: path.name)
def test_an_example_is_valid(project: Path, tmp_path: Path, commands: Path) -> None:
    copy = tmp_path / project.name
    shutil.copytree(project, copy, ignore=shutil.ignore_patterns("pki", "secrets", "state", "__pycache__"))
    if (copy / "certificates.py").exists():
        make = "import certificates, pathlib; certificates.write_all(pathlib.Path('pki'))"
        subprocess.run([sys.executable, "-c", make], cwd=copy, check=True)
    command = [str(commands / "reconciler"), "validate", "--strict"]
    environ = {**os.environ, "STRIPE_KEY": "made up for it", "METRICS_API_KEY": "made up as well"}
    done = subprocess.run(command, cwd=copy, env=environ, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("problem")) == (0, 0), done.stderr


@pytest.mark.parametrize("project", PROJECTS, ids=lambda path: path.name)
def test_an_example_is_formatted(project: Path, commands: Path) -> None:
    command = [str(commands / "reconciler"), "fmt", "--check"]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("environment", ["staging", "prod"])
def test_the_example_is_valid_in_each_of_its_environments(environment: str, commands: Path) -> None:
    command = [str(commands / "reconciler"), "validate", "--strict", "--env", environment]
    done = subprocess.run(command, cwd=EXAMPLES / "environments", capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_all_steps_of_the_demo_pass(tmp_path: Path, commands: Path) -> None:
    before = {path.name for path in (EXAMPLES / "quickstart").iterdir()}
    script = [str(EXAMPLES / "quickstart" / "demo.py")]
    done = subprocess.run(
        [sys.executable, *(["-c", FORKING, *script, str(commands / "reconciler")] if is_quick() else script)],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert done.stdout.endswith("\nAll steps passed.\n")
    assert len(done.stdout.splitlines()) < 300
    for text in (
        "Plan: 34 to create",
        "Access was widened on the platform",
        "Applied: 34 created",
        "blocked: delete:",
    ):
        assert text in done.stdout
    assert {path.name for path in (EXAMPLES / "quickstart").iterdir()} - {"__pycache__"} == before - {"__pycache__"}
    assert list(tmp_path.iterdir()) == []
