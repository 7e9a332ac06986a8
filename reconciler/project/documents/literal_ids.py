"""Checks ids that are written in manifests, by their prefix. Whether an object has the id is checked by plans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from reconciler import kinds
from reconciler.project.documents import phrases

_USER = "usr_"  # users own credentials, as bot users do, and are no kind


def find_other_kind(id: str, allowed: Sequence[str]) -> str:
    """The kind that ids with this prefix belong to, if a field takes ids of other kinds only; else empty."""
    kind = _kinds_by_prefix().get(f"{id.partition('_')[0]}_", "")
    return "" if not kind or any(id.startswith(prefix) for prefix in _prefixes(tuple(allowed))) else kind


def is_unusual(id: str, allowed: Sequence[str]) -> bool:
    """Whether no kind has such ids as far as is known: the specification lists observed prefixes only."""
    return not any(id.startswith(prefix) and id != prefix for prefix in _prefixes(tuple(allowed)))


def describe_prefixes(allowed: Sequence[str]) -> str:
    return phrases.join_words(_prefixes(tuple(allowed)))


@cache
def _prefixes(allowed: tuple[str, ...]) -> tuple[str, ...]:
    own = [kind.id_prefix for name in allowed if (kind := kinds.find(name)) is not None]
    return tuple(dict.fromkeys([*own, *([_USER] if "BotUser" in allowed else [])]))


@cache
def _kinds_by_prefix() -> Mapping[str, str]:
    return {kind.id_prefix: kind.name for kind in reversed(kinds.declarable()) if kind.id_prefix}
