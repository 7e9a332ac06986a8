"""The key that plan files are signed with."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.operations.errors import UnusableSetting

PLAN_KEY = "RECONCILER_PLAN_KEY"
_SHORTEST = 16  # characters: a shorter key can be guessed from a signed file


def find_plan_key(environ: Mapping[str, str]) -> bytes | None:
    """The key that plan files are signed with, or None. Raises UnusableSetting if it is empty or too short."""
    text = environ.get(PLAN_KEY)
    if text is None:
        return None
    if not text:  # how pipelines pass a secret that does not exist
        raise UnusableSetting(f"{PLAN_KEY} is set, but empty; set it to at least {_SHORTEST} characters, or unset it")
    if len(text) < _SHORTEST:
        raise UnusableSetting(f"{PLAN_KEY} must be at least {_SHORTEST} characters long")
    return text.encode(errors="surrogateescape")
