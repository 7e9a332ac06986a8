from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.kills import real
from tests.faults.kills.projects import CrashProject
from tests.faults.kills.real import Moment


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Callable[[CrashProject], Path]:
    """The folder of a project as applied before its change; made when it is first asked for."""
    homes: dict[CrashProject, Path] = {}

    def get(project: CrashProject) -> Path:
        if project not in homes:
            homes[project] = real.prepare(project, tmp_path_factory.mktemp(project.name))
        return homes[project]

    return get


@pytest.fixture(scope="session")
def moments_of(
    prepared: Callable[[CrashProject], Path], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[CrashProject], list[Moment]]:
    """Every moment at which a real apply of the project can be killed."""
    known: dict[CrashProject, list[Moment]] = {}

    def get(project: CrashProject) -> list[Moment]:
        if project not in known:
            known[project] = real.moments(project, prepared(project), tmp_path_factory.mktemp("recorded"))
        return known[project]

    return get
