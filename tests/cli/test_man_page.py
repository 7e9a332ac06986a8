"""The man page is complete, and man reads it without warnings."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from reconciler.cli.dev import man_page
from reconciler.cli.main import COMMANDS
from reconciler.cli.main import reconciler as command

ROOT = Path(__file__).parents[2]
PAGE = man_page.render_page(command)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_on_the_man_page(name: str) -> None:
    assert f"\n.SS reconciler {name} " in PAGE


def test_every_environment_variable_is_on_the_man_page() -> None:
    code = "\n".join(file.read_text(encoding="utf-8") for file in (ROOT / "reconciler").rglob("*.py"))
    pipelines = ("RECONCILER_READ_KEY", "RECONCILER_PACKAGE")  # variables of pipelines, named by `init`
    read = {name for name in re.findall(r"RECONCILER_[A-Z_]+", code) if not name.startswith(pipelines)}
    assert {name for name in read if not name.endswith("COMPLETE")} == {
        name for name in man_page.ENVIRONMENT if name.startswith("RECONCILER_")
    }


def test_man_formats_the_page_without_warnings() -> None:
    if (groff := shutil.which("groff")) is None:
        pytest.skip("groff is not installed")
    ran = subprocess.run(
        [groff, "-man", "-ww", "-Kutf8", "-Tutf8"], input=PAGE, capture_output=True, text=True, check=True
    )
    assert ran.stderr == ""
    assert "plan --detailed-exitcode" in " ".join(re.sub(".\b", "", ran.stdout).split())
