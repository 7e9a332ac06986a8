"""The public names: cheap to import, and all there."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import reconciler
from reconciler import ReconcilerError

PAGE = (Path(__file__).parents[2] / "docs/python-api.md").read_text(encoding="utf-8")
IMPORTS = re.findall(r"^from (reconciler[\w.]*) import \(?([\w, \n]+)\)?$", PAGE, re.MULTILINE)
DOTTED = sorted(set(re.findall(r"`(?:await )?((?:reconciler|workspace|Workspace|Runtime|[a-z_]+_\w+)\.[\w.]+)", PAGE)))

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


def test_each_name_that_the_page_imports_exists() -> None:
    assert len(IMPORTS) > 8
    for module, names in IMPORTS:
        for name in filter(None, re.split(r"[,\s]+", names)):
            assert hasattr(importlib.import_module(module), name), f"{module}.{name}"


@pytest.mark.parametrize("name", DOTTED)
def test_each_name_that_the_page_mentions_exists(name: str) -> None:
    """`workspace.plan`, `import_files.write`, `reconciler.testing`: methods, functions of operations, modules."""
    root, *path = name.rstrip(".").split(".")
    if root == "reconciler":
        assert importlib.util.find_spec(name) is not None or hasattr(reconciler, path[0])
        return
    if root.lower() == "workspace" or root == "Runtime":
        found: object = getattr(reconciler, root.title())
    else:
        places = (f"reconciler.operations{folder}.{root}" for folder in ("", ".authoring", ".applying"))
        found = importlib.import_module(next(place for place in places if importlib.util.find_spec(place)))
    for part in path:
        assert hasattr(found, part), name
        found = getattr(found, part)


def test_the_page_names_every_exception_of_the_family_and_every_export() -> None:
    exported = [getattr(reconciler, name) for name in reconciler.__all__]
    family = [item for item in exported if isinstance(item, type) and issubclass(item, ReconcilerError)]
    assert len(family) > 30
    assert [name for name in reconciler.__all__ if f"`{name}`" not in PAGE] == []
