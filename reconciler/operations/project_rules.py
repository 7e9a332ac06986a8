"""Reads the rules of a project from its settings, policies and manifests, to compare those of a branch and its base."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from reconciler.model.access_test import AccessTest
from reconciler.model.dialect import DIALECTS
from reconciler.model.manifest import Manifest
from reconciler.model.problem import Position, Problem
from reconciler.model.value import Json, Secret
from reconciler.planning.judging.rules import Rules
from reconciler.planning.judging.strictness import PLACE, SETTINGS
from reconciler.planning.policies.rule import Rule
from reconciler.project.documents import phrases
from reconciler.project.settings.config import DEFAULT_STORE, FILE, Config
from reconciler.project.settings.connection import resolve_base_url
from reconciler.project.settings.project_file import ProjectFile


def read_rules(config: Config, policies: Sequence[Rule], manifest: Manifest, tests: Sequence[AccessTest] = ()) -> Rules:
    """The rules of a project in one environment. No value in them is secret."""
    file = config.stated or ProjectFile(stack=config.stack)
    settings = {name: _read_setting(name, file, config.written) for name, order in SETTINGS.items() if order}
    positions = {name: _find_position(config, name) for name in settings}
    return Rules(settings, {rule.name: rule for rule in policies}, manifest, positions, tuple(tests))


def find_unread(config: Config) -> Iterator[Problem]:
    """The rules whose value comes from a source that is missing here, so that their default does not count."""
    file = config.stated or ProjectFile(stack=config.stack)
    for name in SETTINGS:
        section, _, key = name.rpartition(".")
        if section not in ("guards", "limits", "snapshots"):
            continue
        if _find_written(config.written, name) is not None and key not in getattr(file, section).model_fields_set:
            text = f"{name}: its source cannot be read"
            yield Problem(
                text, "set it here too", position=_find_position(config, name), code="unset-environment-variable"
            )


def _read_setting(name: str, file: ProjectFile, written: Mapping[str, Json]) -> Json:
    """The effective value; of a place that comes from elsewhere, the expression that names its source."""
    source = _find_expression(written, name)
    value: Any = file
    for part in name.split("."):
        value = getattr(value, part)
    match name:
        case "limits.requests_per_minute":
            return DIALECTS[file.platform.profile].requests_per_minute if value is None else int(value)
        case "drift.ignore":
            return _latest((entry.match, entry.until) for entry in file.drift.ignore)
        case "manifests" | "policies":
            return [*sorted({os.path.normpath(path) for path in value})]
        case "store":
            return source or _describe_store(value if isinstance(value, str) else DEFAULT_STORE)
        case "platform.api_key":
            return source or _describe_key(value)
    if source is not None and "from_env" in source and SETTINGS[name] is PLACE:
        return source  # both sides read the same environment
    if name == "platform.base_url":
        return resolve_base_url(value, file.platform.profile)
    if name == "agent.base_url":
        return str(value).rstrip("/")
    return value if isinstance(value, str | int | float | list) else None


def _latest(entries: Iterable[tuple[str, str]]) -> Json:
    """The last day of each pattern."""
    found: dict[str, Json] = {}
    for pattern, until in entries:
        found[pattern] = max(until, str(found.get(pattern, "")))
    return found


def _describe_store(location: str) -> Json:
    """The place of a store without the credentials in its address."""
    if "://" not in location:
        return os.path.normpath(location)
    try:
        parts = urlsplit(location)
    except ValueError:
        return {"url": _digest(location)}
    if parts.username is None and not parts.query:
        return location
    _, _, host = parts.netloc.rpartition("@")
    return {"url": f"{parts.scheme}://{host}{parts.path}", "digest": _digest(location)}


def _describe_key(key: object) -> Json:
    return {"written here": _digest(key.reveal())} if isinstance(key, Secret) else None


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=8).hexdigest()


def _find_written(written: Mapping[str, Json], name: str) -> Json:
    value: Json = dict(written)
    for part in name.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _find_expression(written: Mapping[str, Json], name: str) -> dict[str, Json] | None:
    value = _find_written(written, name)
    return value if isinstance(value, dict) and not value.keys().isdisjoint(phrases.EXPRESSIONS) else None


def _find_position(config: Config, name: str) -> Position:
    """The position of a setting, or of the nearest one around it."""
    path = tuple(name.split("."))
    while path and path not in config.positions:
        path = path[:-1]
    return config.positions.get(path, Position(FILE, 1, 1))
