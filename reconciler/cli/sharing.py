"""Finds deliveries of several environments to one target: the later apply would overwrite the other's secret."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from reconciler.model.problem import Problem, Rejected

if TYPE_CHECKING:
    from reconciler.cli.terminal.options import Options
    from reconciler.model.manifest import Declaration, Manifest
    from reconciler.model.value import Value


def check(common: Options, loaded: Mapping[str | None, Sequence[Declaration]]) -> Sequence[Problem]:
    """A warning for each target that environments share, of those that an environment in `loaded` has a part in.

    `loaded` holds the declarations with deliveries of environments that are loaded already. The others are loaded only
    if there is something to compare them with. What is wrong within an environment is not told here; one that cannot be
    loaded is left out.
    """
    from reconciler.project.manifests import crosschecks
    from reconciler.project.settings import environments

    names = environments.names(common.project)
    if not names or not any(loaded.values()):
        return ()
    declared = {name: loaded[name] if name in loaded else _declarations(common, name) for name in (None, *names)}
    root = os.path.realpath(common.project)
    found = crosschecks.shared_between(declared, lambda path: os.path.realpath(f"{root}/{path}"))
    return [problem for problem, involved in found if not loaded.keys().isdisjoint(involved)]


def deliveries(manifest: Manifest) -> Sequence[Declaration]:
    """The declarations that `check` compares."""
    return tuple(each for each in manifest.declarations.values() if each.deliver)


def _declarations(common: Options, name: str | None) -> Sequence[Declaration]:
    from reconciler.project.manifests import load as manifests
    from reconciler.project.settings import config

    environ = {key: value for key, value in os.environ.items() if key != "RECONCILER_ENV"}
    try:
        project = config.load(common.project, environ, name, stand_in)
        loaded = manifests.load(project, environ, common.variables, stand_in)
    except Rejected:
        return ()
    return deliveries(loaded.manifest)


def stand_in(source: str, is_secret: bool) -> Value:
    """What stands for the value of an environment variable or secret file that is not there."""
    from reconciler.model.value import PENDING, Sealed

    return Sealed(source) if is_secret else PENDING
