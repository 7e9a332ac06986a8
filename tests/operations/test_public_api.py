"""The public names: cheap to import, and all there."""

from __future__ import annotations

import subprocess
import sys

import pytest

import reconciler

HEAVY = {"httpx", "networkx", "pydantic", "sqlalchemy", "ruamel", "yaml", "click", "rich", "starlette", "asyncio"}


def modules_after(script: str) -> set[str]:
    """The modules that a fresh process has loaded after running a script."""
    ran = subprocess.run(
        [sys.executable, "-c", f"{script}; import sys; print(*sys.modules)"], capture_output=True, text=True, check=True
    )
    return set(ran.stdout.split())


def test_importing_the_package_loads_nothing_of_it() -> None:
    assert {name for name in modules_after("import reconciler") if name.partition(".")[0] == "reconciler"} == {
        "reconciler"
    }


def test_importing_the_package_loads_no_library() -> None:
    assert modules_after("import reconciler") & HEAVY <= modules_after("pass") & HEAVY


def test_a_workspace_is_imported_without_http_store_and_command_line() -> None:
    modules = modules_after("from reconciler import Workspace")
    assert {"httpx", "sqlalchemy", "rich", "click", "starlette", "uvicorn"} & modules == set()
    assert not any(name.startswith(("reconciler.cli", "reconciler.sandbox")) for name in modules)


@pytest.mark.parametrize("name", reconciler.__all__)
def test_each_public_name_exists(name: str) -> None:
    assert getattr(reconciler, name).__module__.startswith("reconciler.") or name == "OperationEvent"


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = reconciler.Nothing
