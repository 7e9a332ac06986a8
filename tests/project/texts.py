"""Manifests from texts in memory, as if they were files of a project, and a project on disk from texts."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from reconciler.model.manifest import Declaration
from reconciler.model.problem import Rejected
from reconciler.project.documents.resolve import Variable
from reconciler.project.manifests.load import Loaded, load_manifests, load_manifests_with
from reconciler.project.settings.config import Config, load_config
from reconciler.project.settings.variables import Setting

POLICY = "kind: IPPolicy\nname: office\nspec: {description: base}\n"


def load_texts(
    texts: Mapping[str, bytes],
    stack: str,
    environ: Mapping[str, str],
    variables: Mapping[str, Variable] | None = None,
    root: Path = Path(),
) -> Loaded:
    """The manifests of a project with these files, by name, and these declared variables."""
    settings = {name: Setting(value) for name, value in (variables or {}).items()}
    return load_manifests_with(Config(root, stack, settings=settings), environ, None, texts, {})


def load(text: str, environ: Mapping[str, str] | None = None, **more: Any) -> Loaded:
    """The manifests of a project with this text as `a.yaml`."""
    return load_texts({"a.yaml": textwrap.dedent(text).encode()}, "prod", environ or {}, **more)


def load_one(text: str, environ: Mapping[str, str] | None = None, **more: Any) -> Declaration:
    """The first declaration of a text."""
    return next(iter(load(text, environ, **more).manifest.declarations.values()))


def problem_lines(text: str, environ: Mapping[str, str] | None = None, **more: Any) -> list[str]:
    """The problems of an invalid text, as lines."""
    with pytest.raises(Rejected) as caught:
        load(text, environ, **more)
    return [str(problem) for problem in caught.value.problems]


def deliver_each(*deliveries: str) -> str:
    """A credential for each delivery, `a` to `z`, with the delivery in the third of its four lines."""
    return "".join(
        f"kind: TunnelCredential\nname: {name}\ndeliver: {{token: {{{delivery}}}}}\n---\n"
        for name, delivery in zip("abcdefgh", deliveries, strict=False)
    )


class ProjectFolder:
    """A project on disk, whose files are written as texts."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.write("reconciler.yaml", "stack: shop\n")
        self.write("manifests/a.yaml", POLICY)

    def write(self, name: str, text: str) -> None:
        (self.root / name).parent.mkdir(parents=True, exist_ok=True)
        (self.root / name).write_text(text)

    def config(self, environment: str | None = None, environ: Mapping[str, str] | None = None) -> Config:
        return load_config(self.root, environ or {}, environment)

    def load(self, environment: str | None = None, **variables: str) -> Loaded:
        return load_manifests(self.config(environment), {}, variables)

    def declarations(self, environment: str | None = None, **variables: str) -> dict[str, Declaration]:
        """The declarations by address."""
        found = self.load(environment, **variables).manifest.declarations
        return {str(address): declaration for address, declaration in found.items()}

    def problem_lines(self, environment: str | None = None, **variables: str) -> list[str]:
        """The problems of the project, which is invalid, as lines."""
        with pytest.raises(Rejected) as caught:
            self.load(environment, **variables)
        return [str(problem) for problem in caught.value.problems]
