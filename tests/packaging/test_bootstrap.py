"""Which interpreter `scripts/bootstrap` takes, among scripts that say what they are and create no environment."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLAIN = {"CONFIG_ARGS": "'--enable-shared'", "PGO_PROF_USE_FLAG": "-fprofile-use -fprofile-correction"}
OPTIMIZED = PLAIN | {"CONFIG_ARGS": "'--enable-shared' '--enable-optimizations'"}
DEBIAN = PLAIN | {"PGO_PROF_USE_FLAG": ""}
INCOMPLETE = PLAIN | {"without": "ensurepip"}
_ANSWER = """
import sys, sysconfig
known, sys.version_info = {known!r}, (3, {minor})
sysconfig.get_config_var = known.get
sys.modules.update(dict.fromkeys(known.get("without", "").split()))
exec(sys.argv[1])
"""


class Machine:
    """A copy of what the script reads, and folders with interpreters."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folders: list[Path] = []
        for name in ("scripts/bootstrap", "pyproject.toml", "requirements/run.txt"):
            (root / name).parent.mkdir(exist_ok=True)
            shutil.copy(ROOT / name, root / name)
        for name in ("sh", "cksum", "dirname", "flock", "rm", "id", "env"):
            (root / "tools").mkdir(exist_ok=True)
            (root / "tools" / name).symlink_to(shutil.which(name) or "/nowhere")

    def install(self, folder: str, name: str, known: dict[str, str], minor: int = 12) -> None:
        """A script that answers questions as such an interpreter, and notes that it is asked for an environment."""
        place = self.root / folder
        place.mkdir(exist_ok=True)
        self.folders = [*dict.fromkeys((*self.folders, place))]
        (place / f"{name}.py").write_text(_ANSWER.format(known=known, minor=minor))
        (place / name).write_text(
            f"#!/bin/sh\ncase $1 in\n-c) exec {sys.executable} -I -S '{place}/{name}.py' \"$2\" ;;\n"
            f"-m) echo {folder}/{name} >{self.root}/chosen; exit 1 ;;\nesac\n"
        )
        (place / name).chmod(0o755)

    def choose(self, **environment: str) -> str:
        """The interpreter that is asked for an environment; otherwise what the script says."""
        path = os.pathsep.join(map(str, (*self.folders, self.root / "tools")))
        ran = subprocess.run(
            ["/bin/sh", str(self.root / "scripts/bootstrap"), "run"],
            env={"PATH": path, **environment},
            capture_output=True,
            text=True,
            check=False,
        )
        chosen = self.root / "chosen"
        return chosen.read_text().strip() if chosen.exists() else ran.stderr


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.mark.parametrize(
    ("installed", "chosen"),
    [
        ({"python3.13": PLAIN, "python3.12": PLAIN, "python3.11": PLAIN}, "python3.12"),
        ({"python3.13": PLAIN, "python3.11": PLAIN}, "python3.11"),
        ({"python3.12": PLAIN, "python3.11": OPTIMIZED}, "python3.11"),
        ({"python3.11": PLAIN, "python3.13": OPTIMIZED}, "python3.13"),
        ({"python3.12": PLAIN, "python3": DEBIAN}, "python3"),
        ({"python3.12": INCOMPLETE, "python3.13": PLAIN}, "python3.13"),
        ({"python3": PLAIN}, "python3"),
    ],
)
def test_an_optimized_interpreter_is_taken_and_3_13_last(
    machine: Machine, installed: dict[str, dict[str, str]], chosen: str
) -> None:
    for name, known in installed.items():
        machine.install("bin", name, known)
    assert machine.choose() == f"bin/{chosen}"


def test_an_optimized_interpreter_behind_another_of_its_name_is_taken(machine: Machine) -> None:
    machine.install("a folder", "python3.12", PLAIN)
    machine.install("usr", "python3.12", DEBIAN)
    assert machine.choose() == "usr/python3.12"


def test_the_interpreter_that_a_user_names_is_taken(machine: Machine) -> None:
    machine.install("bin", "python3.12", OPTIMIZED)
    machine.install("mine", "python", PLAIN)
    assert machine.choose(PYTHON=str(machine.root / "mine/python")) == "mine/python"


def test_an_interpreter_that_is_too_old_is_not_taken(machine: Machine) -> None:
    machine.install("bin", "python3", OPTIMIZED, minor=10)
    assert "found no Python 3.11 or newer" in machine.choose()
    machine.install("new", "python3", PLAIN)
    assert machine.choose() == "new/python3"
