"""Renders the configuration file of an agent as YAML, merged from declarations of the kind AgentConfig.

Pure: the caller passes the token and the live agent ingress. Declarations with different values are a problem.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import yaml
from msgspec import Struct, field

from reconciler import kinds
from reconciler.kinds.rules import syntax
from reconciler.model.address import Address
from reconciler.model.manifest import Declaration, Path
from reconciler.model.problem import Position, Problem
from reconciler.model.value import Json, Ref, Secret, Value

VERSION = "2"  # of the file's format
FIRST_WORDS = "# Written by `reconciler agent config "  # by which such a file is recognized
_HIDDEN = "# The authtoken is not printed; --out FILE writes it.\n"


class Setting(Struct, frozen=True):
    """A value with the declaration and position that it comes from."""

    value: Value
    declared_by: Address
    position: Position


class Merged(Struct, frozen=True):
    """Several declarations, merged.

    version      of the file's format
    signs_in     a Secret, or the Ref of the credential
    connects_to  text, or the Ref or id of the ingress; None: the agent's default
    region       of the ingress
    """

    names: tuple[str, ...]
    version: str = VERSION
    signs_in: Setting | None = None
    connects_to: Setting | None = None
    region: str | None = None
    tunnels: Mapping[str, Mapping[str, Json]] = field(default_factory=dict)


def merge(names: Sequence[Address], declared: Mapping[Address, Declaration]) -> tuple[Merged, list[Problem]]:
    """Merges these declarations and all that they extend. Each name must be declared."""
    wanted = [declared[address] for address in _with_extended(names, declared)]
    problems: list[Problem] = []

    def find_setting(*paths: Path) -> Setting | None:
        settings = [
            setting for declaration in wanted for path in paths for setting in _find_settings(declaration, path)
        ]
        problems.extend(_report_conflicts(settings, paths[0]))
        return settings[0] if settings else None

    version, region = find_setting(("version",)), find_setting(("region",))
    signs_in = find_setting(("authtoken",), ("credential",))
    connects_to = find_setting(("server_addr",), ("ingress",))
    tunnels: dict[str, Mapping[str, Json]] = {}
    for name in dict.fromkeys(name for declaration in wanted for name in declaration.spec.get("tunnels") or {}):
        setting = find_setting(("tunnels", name))
        if setting is not None:
            tunnels[name] = setting.value
    problems += _report_unknown_values(wanted)
    if signs_in is None:
        text = "the configuration has no authtoken"
        problems.append(
            Problem(
                text,
                "set credential or authtoken",
                str(names[0]),
                declared[names[0]].position,
                code="missing-field",
            )
        )
    merged = Merged(
        names=tuple(address.name for address in names),
        version=str(version.value) if version else VERSION,
        signs_in=signs_in,
        connects_to=connects_to,
        region=str(region.value) if region else None,
        tunnels=tunnels,
    )
    return merged, problems


def find_regional_domain(region_domains: Iterable[str], domain: str, region: str | None) -> str | None:
    """The ingress's domain for a region, or its only one; None if there is none or more than one.

    Names that are not below the ingress's own domain are ignored.
    """
    below = [name for name in region_domains if syntax.plain_host(name) is None and name.endswith(f".{domain}")]
    matches = [name for name in below if region is None or region.lower() in _labels(name, domain)]
    return matches[0] if len(matches) == 1 else None


def render_file(merged: Merged, server_addr: str | None, token: str | None) -> str:
    """The text of the file. Without a token, a comment says how to write one."""
    document: dict[str, Any] = {"version": merged.version}
    if token is not None:
        document["authtoken"] = token
    if server_addr is not None:
        document["server_addr"] = server_addr
    if merged.tunnels:
        document["tunnels"] = {name: _tunnel(settings) for name, settings in merged.tunnels.items()}
    named = " ".join(merged.names)
    head = f"{FIRST_WORDS}{named}`: change the manifests, and write it again.\n"
    body = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, default_flow_style=False, width=1000)
    return f"{head}{_HIDDEN if token is None else ''}{body}"


def _with_extended(names: Sequence[Address], declared: Mapping[Address, Declaration]) -> list[Address]:
    """The declarations and all that they extend, each once, before those that it extends."""
    found: dict[Address, None] = {}
    waiting = list(names)
    while waiting:
        address = waiting.pop(0)
        if address not in found and address in declared:
            found[address] = None
            extended = declared[address].spec.get("extends") or []
            waiting += [reference.target for reference in extended if isinstance(reference, Ref)]
    return list(found)


def _find_settings(declaration: Declaration, path: Path) -> Iterator[Setting]:
    value: Value = declaration.spec
    for step in path:
        value = value.get(step) if isinstance(value, Mapping) else None
    if value is not None:
        yield Setting(value, declaration.address, declaration.at(*path))


def _report_conflicts(settings: Sequence[Setting], path: Path) -> Iterator[Problem]:
    for setting in settings[1:]:
        first = settings[0]
        if _canonicalize(setting.value) != _canonicalize(first.value):
            where = ".".join(str(step) for step in path)
            yield Problem(
                f"differs from {first.declared_by} ({first.position})",
                "remove one of the two values",
                f"{setting.declared_by}.{where}",
                setting.position,
                code="conflicting-agent-configs",
            )


def _canonicalize(value: Value) -> Value:
    """The value for a comparison: the settings of a tunnel in canonical form."""
    if not isinstance(value, Mapping):
        return value
    fields = {field.name: field for field in _tunnel_fields()}
    return {
        name: canonical(item) if (canonical := fields[name].canonical) and isinstance(item, str) else item
        for name, item in value.items()
        if item is not None
    }


def _tunnel_fields() -> tuple[Any, ...]:
    item = kinds.get("AgentConfig").by_name["tunnels"].item
    assert item is not None
    return item.fields


def _report_unknown_values(wanted: Iterable[Declaration]) -> Iterator[Problem]:
    """Finds values that are known only after an apply: the file needs them now."""
    for declaration in wanted:
        for name, words in _REFERENCES.items():
            value = declaration.spec.get(name)
            for item in value if isinstance(value, list) else [value]:
                if item is not None and not isinstance(item, Ref):
                    yield Problem(
                        f"expected a reference, found {item!r}",
                        words,
                        f"{declaration.address}.{name}",
                        declaration.at(name),
                        code="wrong-type",
                    )
        for path, value in _texts(declaration.spec, ()):
            if not isinstance(value, (str, bool, Secret)) and path[0] not in _REFERENCES:
                where = ".".join(str(step) for step in path)
                yield Problem(
                    "is known only after an apply",
                    "write the value instead of a reference",
                    f"{declaration.address}.{where}",
                    declaration.at(*path),
                    code="known-after-apply",
                )


_REFERENCES = {
    "extends": "write {ref: AgentConfig/name}",
    "credential": "write {ref: TunnelCredential/name}, or set authtoken",
    "ingress": "write {ref: AgentIngress/name}, or set server_addr",
}


def _texts(value: Value, path: Path) -> Iterator[tuple[Path, Value]]:
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from _texts(item, (*path, name))
    elif value is not None:
        yield path, value


def _labels(domain: str, base: str) -> list[str]:
    """The labels before the base: `["eu"]` of `eu.connect.example.com`."""
    return re.split(r"[.-]", domain.lower().removesuffix(f".{base}"))


def _tunnel(settings: Mapping[str, Json]) -> dict[str, Json]:
    order = ("proto", "domain", "remote_addr", "addr", "inspect")
    return {name: settings[name] for name in order if settings.get(name) is not None}
