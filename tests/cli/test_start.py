"""What a command loads before it answers: heavy modules only on the path that needs them."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from reconciler.cli.main import main

HEAVY = {
    "aiohttp",
    "asyncio",
    "cryptography",
    "deepdiff",
    "httpx",
    "networkx",
    "pydantic",
    "rich",
    "ruamel",
    "sqlalchemy",
    "starlette",
    "uvicorn",
    "yaml",
}
_RUN = "import sys; from reconciler.cli.main import main; main(sys.argv[1:]); print(*sys.modules, file=sys.stderr)"


def loaded(*words: str, environment: dict[str, str] | None = None, folder: Path | None = None) -> set[str]:
    """The top-level modules that a process has loaded once the command is through."""
    ran = subprocess.run(
        [sys.executable, "-c", _RUN, *words],
        env={**os.environ, **(environment or {})},
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    return {name.partition(".")[0] for name in ran.stderr.splitlines()[-1].split()}


@pytest.mark.parametrize("words", [("--version",), ("--help",), ("plan", "--help"), ("completion", "bash")])
def test_what_needs_no_project_loads_nothing_heavy(words: tuple[str, ...]) -> None:
    assert loaded(*words) & HEAVY == set()


def test_a_command_is_completed_without_loading_anything_heavy() -> None:
    completing = {"_RECONCILER_COMPLETE": "bash_complete", "COMP_WORDS": "reconciler pl", "COMP_CWORD": "1"}
    assert loaded(environment=completing) & HEAVY == set()


def test_validation_loads_neither_network_nor_database(tmp_path: Path) -> None:
    (tmp_path / "reconciler.yaml").write_text("version: 1\nstack: prod\nmanifests: [m.yaml]\n")
    (tmp_path / "m.yaml").write_text("kind: IPPolicy\nname: office\nspec: {description: ours}\n")
    needed = {"pydantic", "yaml"}
    assert loaded("validate", folder=tmp_path) & (HEAVY - {"asyncio"}) == needed


def test_a_sandbox_on_a_port_in_use_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["sandbox", "--port", str(port)]) == 1
    assert capsys.readouterr().err == f"error: port {port} is in use already; 0 picks a free one\n"
