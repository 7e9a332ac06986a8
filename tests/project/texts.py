"""Manifests from texts in memory, as if they were files of a project."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from reconciler.project.documents.resolve import Variable
from reconciler.project.manifests.load import Loaded, load_manifests_with
from reconciler.project.settings.config import Config
from reconciler.project.settings.variables import Setting


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
