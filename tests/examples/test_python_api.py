"""The examples of docs/python-api.md run as they are written."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.forked import start_program
from tests.harness.platform import SandboxProcess

ROOT = Path(__file__).parents[2]
EXAMPLES = re.findall(
    r"^```python\n(.*?)^```$", (ROOT / "docs" / "python-api.md").read_text(), re.MULTILINE | re.DOTALL
)
OFFICE = "kind: IPPolicy\nname: office\nspec: {description: Head office}\n"
SHOP = """
kind: ReservedDomain
name: shop
spec: {domain: shop.example.com}
---
kind: CloudEndpoint
name: shop
spec:
  url: https://shop.example.com
  traffic_policy: {on_http_request: [{actions: [{type: custom-response, config: {status_code: 200}}]}]}
"""
TOKEN = "kind: TunnelCredential\nname: berlin\ndeliver:\n  token: {to_file: secrets/berlin}\nspec: {}\n"


@pytest.fixture(scope="module")
def platform() -> Iterator[SandboxProcess]:
    with SandboxProcess() as sandbox:
        yield sandbox


@pytest.fixture
def sandbox(platform: SandboxProcess) -> SandboxProcess:
    platform.reset()
    return platform


def example(beginning: str) -> str:
    (found,) = (example for example in EXAMPLES if example.startswith(f'"""{beginning}'))
    return found


def project(folder: Path, manifest: str = OFFICE) -> Path:
    (folder / "manifests").mkdir(parents=True)
    (folder / "reconciler.yaml").write_text("version: 1\nstack: prod\n")
    (folder / "manifests" / "all.yaml").write_text(manifest)
    return folder


def run(folder: Path, sandbox: SandboxProcess, *words: str) -> tuple[int, str]:
    environ = {**os.environ, **sandbox.environ}
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = start_program(run_python, [sys.executable], words, cwd=folder, env=environ, **streams)
    out, err = process.communicate()
    assert "Traceback" not in err, err
    return process.returncode, out


def run_python(words: list[str]) -> None:
    """As the interpreter does with `-c CODE` or `-m MODULE`, and with the folder as the first of its path."""
    how, what, *sys.argv[1:] = words
    sys.path.insert(0, "")
    if how == "-m":
        runpy.run_module(what, run_name="__main__", alter_sys=True)
    else:
        exec(compile(what, "<string>", "exec"), {"__name__": "__main__"})  # noqa: S102 - an example of the page


def test_the_page_has_an_example_for_each_use() -> None:
    assert len(EXAMPLES) == 5


def test_a_script_plans_and_applies(tmp_path: Path, sandbox: SandboxProcess) -> None:
    folder = project(tmp_path / "shop")
    assert run(folder, sandbox, "-c", example("Plans, shows")) == (0, "create IPPolicy/office\napplied\n")
    assert run(folder, sandbox, "-c", example("Plans, shows")) == (0, "unchanged\n")
    (folder / "manifests" / "all.yaml").write_text("")
    code, output = run(folder, sandbox, "-c", example("Plans, shows"))
    assert (code, output.splitlines()[-1]) == (2, "deletes something: left for a person")
    (folder / "manifests" / "all.yaml").write_text(OFFICE.replace("description", "descripton"))
    code, output = run(folder, sandbox, "-c", example("Plans, shows"))
    assert (code, output.split()[0]) == (1, "unknown-field")


def test_a_project_is_rehearsed_in_pytest(tmp_path: Path, sandbox: SandboxProcess) -> None:
    folder = project(tmp_path / "shop")
    (folder / "test_edges.py").write_text(example("tests/test_edges.py"))
    words = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "anyio", "-k", "asyncio", "test_edges.py")
    code, output = run(folder, sandbox, *words)
    assert (code, "2 passed" in output) == (0, True), output


def test_a_scheduler_checks_many_projects(tmp_path: Path, sandbox: SandboxProcess) -> None:
    folder = project(tmp_path / "shop")
    run(folder, sandbox, "-c", example("Plans, shows"))
    assert run(tmp_path, sandbox, "-c", example("Checks every"), ".") == (0, "shop in sync\n")
    (live,) = sandbox.get("/ip_policies")["ip_policies"]
    sandbox.patch(f"/ip_policies/{live['id']}", {"description": "by hand"})
    assert run(tmp_path, sandbox, "-c", example("Checks every"), ".") == (2, "shop drifted: IPPolicy/office\n")


def test_a_script_reports_who_can_reach_what(tmp_path: Path, sandbox: SandboxProcess) -> None:
    folder = project(tmp_path / "shop", SHOP)
    opened = "exposes https://shop.example.com no way in → everyone: `GET https://shop.example.com/` from 192.0.2.1\n"
    assert run(folder, sandbox, "-c", example("Prints what")) == (0, f"{opened}public:\n")
    run(folder, sandbox, "-c", example("Plans, shows"))
    public = "public: https://shop.example.com\n"
    assert run(folder, sandbox, "-c", example("Prints what")) == (1, public)
    assert run(folder, sandbox, "-c", example("Prints what"), "https://shop.example.com") == (0, public)


def test_a_token_is_delivered_to_a_custom_sink(tmp_path: Path, sandbox: SandboxProcess) -> None:
    folder = project(tmp_path / "shop", TOKEN)
    assert run(folder, sandbox, "-c", example("Applies a project")) == (0, "applied ['secrets/berlin']\n")
    assert not (folder / "secrets").exists()
