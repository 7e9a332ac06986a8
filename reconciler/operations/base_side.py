"""The base of a review, as it was read from Git: its rules and its manifests."""

from __future__ import annotations

from msgspec import Struct

from reconciler.model.manifest import Manifest
from reconciler.model.plan import Base
from reconciler.model.value import Json
from reconciler.planning.judging.rules import Rules


class Unreadable(Struct, frozen=True):
    """Rules of the base that cannot be read.

    part    settings, policies, access-tests or manifests
    causes  what identifies the problems
    """

    part: str
    why: str
    causes: Json


class BaseSide(Struct, frozen=True):
    """What a review compares the branch with.

    base        the commit, and why changes cannot be attributed to it
    rules       None if the base has no project, or its settings cannot be read
    unreadable  rules of the base that are not known
    manifest    None if it cannot be read
    """

    base: Base
    rules: Rules | None = None
    unreadable: tuple[Unreadable, ...] = ()
    manifest: Manifest | None = None
