"""Checks where an output is written: not over a file of the project, nor over a one-time secret that was delivered."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from reconciler.model.manifest import Declaration
from reconciler.operations.errors import UnusableOutput
from reconciler.project.manifests.checks.deliveries import find_overlapping_delivery
from reconciler.project.manifests.load import own_places
from reconciler.project.secrets.reserved_places import Reserved
from reconciler.project.settings.config import Config


def check_output(
    file: Path, config: Config, declarations: Iterable[Declaration], remedy: str, *, has_secret: bool = False
) -> None:
    """Raises UnusableOutput for a file of the project or of a delivery; with a secret, for each reserved place.

    A symlink and its target are both checked.
    """
    reserved = Reserved(config.place("."), own_places(config))
    for place in dict.fromkeys((f"{os.path.realpath(file.parent)}/{file.name}", os.path.realpath(file))):
        use = reserved.use(place) if has_secret else reserved.own_use(place)
        if use is not None:
            raise UnusableOutput(f"{file} is reserved: {use}; {remedy}")
        delivered = find_overlapping_delivery(place, declarations, config.place)
        if delivered is not None:
            raise UnusableOutput(f"{file} overlaps with a delivery: {delivered}; {remedy}")
