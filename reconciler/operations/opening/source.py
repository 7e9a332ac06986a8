"""Locates a project and reads its settings. Imports little, since `validate` and shell completion use it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from msgspec.structs import replace

from reconciler.model.problem import Rejected
from reconciler.operations.errors import InvalidProject
from reconciler.operations.runtime import Runtime
from reconciler.project.documents.resolve import Variable
from reconciler.project.manifests.load import Loaded, load_manifests
from reconciler.project.settings.config import Config, load_config


@dataclass(frozen=True)
class ProjectSource:
    """The location of a project, and how to read it.

    environment  name of a file in `environments/`
    variables    values for `${{ var.NAME }}`
    parallelism  requests at a time; None: as in the project file
    assumes_secrets  secrets that cannot be read are assumed to be as last applied; without it they are an error
    """

    path: Path
    environment: str | None = None
    variables: Mapping[str, Variable] = field(default_factory=dict, repr=False)
    parallelism: int | None = None
    runtime: Runtime = field(default_factory=Runtime)
    assumes_secrets: bool = False

    @property
    def chosen_environment(self) -> str | None:
        """The environment named by the caller or by RECONCILER_ENV."""
        return self.environment or self.runtime.environ.get("RECONCILER_ENV") or None

    def read_settings(self) -> Config:
        """The project file with its environment; raises InvalidProject."""
        with invalid_project():
            found = load_config(self.path, self.runtime.environ, self.environment)
        location = found.store if self.runtime.store is None else self.runtime.store
        return replace(found, store=location, store_scope=self.runtime.store_scope)


def read_project(source: ProjectSource) -> tuple[Config, Loaded]:
    """The project file and the manifests, for operations that need no account and no API key."""
    settings = source.read_settings()
    with invalid_project():
        return settings, load_manifests(settings, source.runtime.environ, source.variables)


@contextmanager
def invalid_project() -> Iterator[None]:
    """Raises a Rejected of the block as InvalidProject."""
    try:
        yield
    except InvalidProject:
        raise
    except Rejected as rejected:
        raise InvalidProject(rejected.problems) from rejected
