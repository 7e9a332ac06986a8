"""The wheel and the source distribution contain what they need, and the installed command runs."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

from reconciler import __version__
from tests.harness.tiers import full

ROOT = Path(__file__).parents[2]
WHEEL = f"reconciler-{__version__}-py3-none-any.whl"
SDIST = f"reconciler-{__version__}.tar.gz"


def build(source: Path, target: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(target)]
    environ = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000"}
    subprocess.run(command, cwd=source, env=environ, check=True, capture_output=True)


def read_wheel(folder: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(folder / WHEEL) as wheel:
        return {name: wheel.read(name) for name in wheel.namelist()}


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    build(ROOT, folder)
    return folder


@pytest.fixture(scope="module")
def installed(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel in an environment of its own. Its dependencies are those of the tests; no index is used."""
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder, with_pip=False)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = folder / "lib" / version / "site-packages"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-index", "--no-deps"]
    subprocess.run(
        [*pip, "--prefix", str(folder), "--ignore-installed", str(dist / WHEEL)], check=True, capture_output=True
    )
    # .pth files in folders that a .pth file names are not run, so the editable install is not used.
    (packages / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    script = folder / "bin" / "reconciler"
    lines = script.read_text().splitlines(keepends=True)
    script.write_text("".join([f"#!{folder / 'bin' / 'python'}\n", *lines[1:]]))
    return folder


def run(installed: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "RECONCILER_"))}
    command = [str(installed / "bin" / "reconciler"), *arguments]
    return subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=False)


@full
def test_the_source_distribution_builds_the_same_wheel(dist: Path, tmp_path: Path) -> None:
    subprocess.run(["tar", "-xf", dist / SDIST], cwd=tmp_path, check=True)  # extractall differs between versions
    build(tmp_path / f"reconciler-{__version__}", tmp_path / "dist")
    assert read_wheel(tmp_path / "dist") == read_wheel(dist)


@full
def test_two_builds_have_the_same_bytes(dist: Path, tmp_path: Path) -> None:
    build(ROOT, tmp_path)
    digests = [hashlib.sha256((folder / WHEEL).read_bytes()).hexdigest() for folder in (dist, tmp_path)]
    assert digests[0] == digests[1]


def test_the_distributions_contain_only_what_they_need(dist: Path) -> None:
    wheel = read_wheel(dist)
    assert {name.split("/")[0] for name in wheel} == {
        "reconciler",
        f"reconciler-{__version__}.data",
        f"reconciler-{__version__}.dist-info",
    }
    sources = {file.relative_to(ROOT).as_posix() for file in (ROOT / "reconciler").rglob("*.py")}
    assert {name for name in wheel if name.endswith(".py")} == sources
    with tarfile.open(dist / SDIST) as archive:
        top = {name.split("/")[1] for name in archive.getnames()}
    assert top & {".git", ".venv", "state", "build", "dist"} == set()


def test_the_installed_command_runs(installed: Path, tmp_path: Path) -> None:
    version = run(installed, tmp_path, "--version")
    assert (version.returncode, version.stdout.split()[-1]) == (0, __version__)
    package = "git+https://git.example.com/reconciler@0123456"
    options = ("--auto-approve", "--example", "--no-check", "--ci", "github", "--package", package)
    created = run(installed, tmp_path, "init", "site", *options, "--base-url", "http://127.0.0.1:9")
    assert created.returncode == 0, created.stderr
    project = tmp_path / "site"
    assert (project / ".github" / "workflows" / "plan.yml").is_file()
    validated = run(installed, project, "validate")
    assert (validated.returncode, validated.stderr) == (0, "")


def test_the_man_page_is_installed(installed: Path) -> None:
    assert (installed / "share" / "man" / "man1" / "reconciler.1").is_file()
