"""Reads and merges the configuration files of the emulated agent, and refuses what real agents refuse of a file.

The keys of both versions and their types are in `kinds.types.agent_files`. What the platform refuses of a tunnel or
endpoint is left to its start.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, field

from reconciler.kinds.types.agent_files import LAYOUTS, Layout, check_certificate_files, check_endpoint_settings
from reconciler.languages.yaml import reader
from reconciler.model.manifest import Path as PathOfValue
from reconciler.model.problem import Position
from reconciler.model.value import Json
from reconciler.sandbox.agent import settings
from reconciler.sandbox.agent.tunnels import AgentError, settings_error
from reconciler.sandbox.base.database import Document

_ERRORS: Final = "YAML parsing error: yaml: unmarshal errors:"
_WHERE_TLS_ENDS: Final = ("edge", "agent", "upstream")


class Configuration(Struct, frozen=True):
    """What the files of an agent contain, merged.

    sources  the names of the files that have a tunnel or endpoint, by its name
    """

    options: Mapping[str, Json] = field(default_factory=dict)
    tunnels: Mapping[str, Document] = field(default_factory=dict)
    endpoints: Sequence[Document] = ()
    sources: Mapping[str, str] = field(default_factory=dict)


class _File(Struct, frozen=True):
    """The content of a file whose keys and types are those of its layout."""

    path: Path
    layout: Layout
    content: Document

    def names(self) -> Iterator[str]:
        yield from self.content.get("tunnels") or {}
        yield from (str(endpoint["name"]) for endpoint in self.content.get("endpoints") or [])


def read(paths: Sequence[Path]) -> Configuration:
    """The configuration in these files; the later ones take precedence. Raises AgentError for an invalid file.

    Maps are merged by key at every depth; any other value, also a list, is that of the last file that has it.
    """
    files = [_read(path) for path in paths]
    if not files:
        return Configuration()
    first, merged = files[0], Document()
    for file in files:
        if file.layout is not first.layout:
            text = f"it has version {file.layout.version}, and '{first.path}' version {first.layout.version}"
            raise _refuse(file.path, f"{text}; files that are read together have one version")
        merged = _merge(merged, file.content)
    sources: dict[str, str] = {}
    for file in files:
        for name in file.names():
            sources[name] = f"{sources[name]} and {file.path.name}" if name in sources else file.path.name
    below = first.layout.below
    return Configuration(
        options=merged.get(below) or {} if below else merged,
        tunnels={name: tunnel or {} for name, tunnel in (merged.get("tunnels") or {}).items()},
        endpoints=merged.get("endpoints") or [],
        sources=sources,
    )


def _merge(earlier: Document, later: Document) -> Document:
    merged = dict(earlier)
    for key, value in later.items():
        old = merged.get(key)
        merged[key] = _merge(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged


def _refuse(path: Path, text: str) -> AgentError:
    return settings_error(f"Error reading configuration file '{path}': {text}")


def _read(path: Path) -> _File:
    content, places = _read_yaml(path)
    version = content.get("version")
    if version is None:
        raise _refuse(path, "the `version` property is required; `config upgrade` adds it")
    layout = LAYOUTS.get(str(version))
    if layout is None:
        raise _refuse(path, f"unknown version '{version}'. valid versions are: [{' '.join(LAYOUTS)}]")
    if isinstance(endpoints := content.get("endpoints"), list):
        for endpoint in endpoints:
            _take_only_url(endpoint)
    wrong = [
        f"  line {places[at].line}: {text}"
        for at, text in settings.check(layout.file, content, f"config.v{layout.version}yamlConfig")
    ]
    if wrong:
        raise _refuse(path, "\n".join([_ERRORS, *wrong]))
    content = settings.to_text(layout.file, content)
    for text in _check_rules(layout, content):
        raise _refuse(path, text)
    if content.get("endpoints"):
        content["endpoints"] = [_with_policy(path, endpoint) for endpoint in content["endpoints"]]
    return _File(path, layout, content)


def _take_only_url(endpoint: Json) -> None:
    """Replaces a list of one URL, which the public documentation describes but never shows, by the URL."""
    if isinstance(endpoint, dict) and isinstance(url := endpoint.get("url"), list) and len(url) == 1:
        endpoint["url"] = url[0]


def _with_policy(path: Path, endpoint: Document) -> Document:
    """The endpoint with the text of its policy file, whose path is relative to the folder of the configuration."""
    rest = {key: value for key, value in endpoint.items() if key != "traffic_policy_file"}
    name = endpoint.get("traffic_policy_file")
    if not name:
        return rest
    try:
        return {**rest, "traffic_policy": (path.parent / name).read_text(encoding="utf-8")}
    except (OSError, ValueError) as error:
        raise _refuse(path, f"Endpoint '{endpoint['name']}': traffic_policy_file '{name}' cannot be read") from error


def _read_yaml(path: Path) -> tuple[Document, Mapping[PathOfValue, Position]]:
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise _refuse(path, error.strerror or "cannot be read") from error
    reading = reader.read(raw, path.name)
    for problem in reading.problems:
        line = problem.position.line if problem.position is not None else 1
        raise _refuse(path, f"YAML parsing error: yaml: line {line}: {problem.text}")
    if not reading.documents:
        return {}, {}
    document = reading.documents[0]
    if not isinstance(document.value, dict | None):
        text = settings.describe_wrong_type(document.value, "map")
        raise _refuse(path, f"{_ERRORS}\n  line {document.places.start.line}: {text}")
    return document.value or {}, document.places


def _check_rules(layout: Layout, content: Document) -> Iterator[str]:
    for name, tunnel in (content.get("tunnels") or {}).items():
        yield from _check_tunnel(layout, name, tunnel or {})
    seen: set[str] = set()
    for index, endpoint in enumerate(content.get("endpoints") or []):
        yield from _check_endpoint(index, endpoint or {}, seen)


def _check_tunnel(layout: Layout, name: str, tunnel: Mapping[str, Any]) -> Iterator[str]:
    if tunnel.get("labels") and layout.version == "3":
        yield f"Tunnel '{name}' has labels, which do not exist in version 3"
    if (tunnel.get("terminate_at") or "edge") not in _WHERE_TLS_ENDS:
        yield f"Tunnel '{name}': terminate_at is none of {', '.join(_WHERE_TLS_ENDS)}\n\nERR_NGROK_224\n"
    for finding in check_certificate_files(tunnel):
        yield f"Tunnel '{name}': {finding.path[0]} {finding.text}"


def _check_endpoint(index: int, endpoint: Mapping[str, Any], seen: set[str]) -> Iterator[str]:
    name = endpoint.get("name")
    upstream = (endpoint.get("upstream") or {}).get("url")
    if not name:
        yield f"Endpoint {index} has no name"
    if name in seen:
        yield f"Endpoint '{name}' is defined twice"
    if not upstream:
        yield f"Endpoint '{name}' has no upstream url"
    elif upstream.lower().startswith("tcp://"):
        yield f"Endpoint '{name}' specifies a URL with an unsupported scheme: tcp"
    for finding in check_endpoint_settings(endpoint):
        yield f"Endpoint '{name}': {finding.path[0]} {finding.text}"
    seen.add(str(name))
