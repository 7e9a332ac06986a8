"""Commands import heavy modules only where they need them."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness.platform import Sandbox
from tests.harness.project import Shell
from tests.kinds import pems

HEAVY = {
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
NEEDED_FOR_CHANGES = {  # and for stored, signed and written files
    "reconciler.access.compare",
    "reconciler.api.code_hosts",
    "reconciler.operations.applying.apply",
    "reconciler.operations.applying.plan_files",
    "reconciler.cli.applying.progress",
    "reconciler.cli.terminal.telemetry",
    "reconciler.engine.apply",
    "reconciler.engine.requests",
    "reconciler.kinds.read_only",
    "reconciler.model.history",
    "reconciler.planning.access",
    "reconciler.planning.deciding.decide",
    "reconciler.planning.deciding.risks",
    "reconciler.planning.importing.survey",
    "reconciler.planning.ordering.sequence",
    "reconciler.planning.policies.evaluate",
    "reconciler.project.policies.load",
    "reconciler.project.secrets.sinks",
    "reconciler.project.snapshots",
    "reconciler.rendering.wire.codec",
    "reconciler.rendering.wire.plan_json",
    "reconciler.rendering.plan.health_section",
    "reconciler.rendering.plan.markdown",
    "reconciler.rendering.plan.pem",
    "reconciler.sandbox",
    "reconciler.store.database",
    "reconciler.store.store",
}
_RUN = (
    "import sys; from reconciler.cli.main import main; main(sys.argv[1:]);"
    "print(*filter(sys.modules.get, sys.modules), file=sys.stderr)"
)


def load_modules(*words: str, environment: dict[str, str] | None = None, folder: Path | None = None) -> set[str]:
    """The modules that a process has imported at the end of a command."""
    ran = subprocess.run(
        [sys.executable, "-c", _RUN, *words],
        env={**os.environ, **(environment or {})},
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    return set(ran.stderr.splitlines()[-1].split())


def load_packages(*words: str, environment: dict[str, str] | None = None, folder: Path | None = None) -> set[str]:
    """The top-level packages of these modules."""
    return {name.partition(".")[0] for name in load_modules(*words, environment=environment, folder=folder)}


def python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("words", [("--version",), ("--help",), ("plan", "--help"), ("completion", "bash")])
def test_help_and_completion_load_no_heavy_module(words: tuple[str, ...]) -> None:
    assert load_packages(*words) & HEAVY == set()


def test_completion_of_a_command_loads_no_heavy_module() -> None:
    completing = {"_RECONCILER_COMPLETE": "bash_complete", "COMP_WORDS": "reconciler pl", "COMP_CWORD": "1"}
    assert load_packages(environment=completing) & HEAVY == set()


def test_validation_loads_neither_network_nor_database(tmp_path: Path) -> None:
    (tmp_path / "reconciler.yaml").write_text("version: 1\nstack: prod\nmanifests: [m.yaml]\n")
    policy = "{on_http_request: [{expressions: [req.url.port == 443], actions: [{type: deny}]}]}"
    endpoint = f"spec:\n  url: https://shop.internal\n  bindings: [internal]\n  traffic_policy: '{policy}'\n"
    (tmp_path / "m.yaml").write_text(f"kind: CloudEndpoint\nname: shop\n{endpoint}")
    found = load_modules("validate", folder=tmp_path)
    assert {name.partition(".")[0] for name in found} & (HEAVY - {"asyncio"}) == {"yaml"}
    assert {"html", "cel_expr_python"}.isdisjoint(found)
    planning = {
        "reconciler.engine.ports",
        "reconciler.model.event",
        "reconciler.model.plan",
        "reconciler.model.snapshot",
    }
    assert found & planning == set()


@pytest.mark.usefixtures("over_socket")
def test_a_plan_without_changes_loads_only_what_a_refresh_needs(shell: Shell, sandbox: Sandbox) -> None:
    assert shell("apply", "--auto-approve").code == 0
    with sqlite3.connect(shell.root / "state/reconciler.db") as connection:  # the objects are no longer new
        connection.execute("UPDATE intents SET concluded = 0")
    connection.close()
    found = load_modules("plan", folder=shell.root)
    assert found & (NEEDED_FOR_CHANGES | {"html"}) == set()
    assert "reconciler.store.reading" in found
    assert {name.partition(".")[0] for name in found} & HEAVY == {"asyncio", "yaml"}
    assert not {name for name in found if "judging" in name or "agent_files" in name}
    assert len(found) <= 515, "each module takes a third of a millisecond of every plan"
    for words in (("drift", "--record"), ("status",)):
        assert "sqlalchemy" not in load_packages(*words, folder=shell.root)


@pytest.mark.usefixtures("over_socket")
def test_only_a_plan_that_shows_a_certificate_loads_cryptography(shell: Shell, sandbox: Sandbox) -> None:
    assert shell("apply", "--auto-approve").code == 0
    assert "cryptography" not in load_packages("plan", folder=shell.root)
    text = "kind: IPPolicy\nname: more\nspec: {description: '-----BEGIN of the certificate'}\n"
    shell.write("manifests/more.yaml", text)
    assert "cryptography" not in load_packages("plan", folder=shell.root)
    sandbox.post("/certificate_authorities", {"ca_pem": pems.certificate("ca", ca=True)})
    shell.write("ca.pem", pems.certificate("other", ca=True))
    text = "kind: CertificateAuthority\nname: ca\nspec: {ca_pem: {from_file: ca.pem}}\n"
    shell.write("manifests/ca.yaml", text)
    assert "cryptography" in load_packages("plan", folder=shell.root)


@pytest.mark.parametrize("words", [["--version"], ["--help"], [], ["paln"], ["completion", "bash"]])
def test_commands_without_a_project_load_no_library(words: list[str]) -> None:
    output = python(
        "import contextlib, io, json, sys\n"
        "from reconciler.cli.main import main\n"
        "with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):\n"
        f"    main({words!r})\n"
        "print(json.dumps(sorted(filter(sys.modules.get, sys.modules))))"
    )
    names = json.loads(output)
    assert [name for name in names if name.partition(".")[0] in HEAVY] == []
    assert [name for name in names if name.startswith(("reconciler.kinds", "reconciler.api"))] == []


def test_completion_of_a_command_prints_candidates_and_loads_no_library() -> None:
    output = python(
        "import contextlib, io, os, sys\n"
        "os.environ.update(_RECONCILER_COMPLETE='bash_complete', COMP_WORDS='reconciler pl', COMP_CWORD='1')\n"
        "from reconciler.cli.main import main\n"
        "main([])\n"
        f"print([name for name, module in sys.modules.items() if module and name.partition('.')[0] in {HEAVY!r}])"
    )
    assert output == "plain,plan\n[]\n"
