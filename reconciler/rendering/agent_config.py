"""The configuration file of an agent, as YAML, put together from declarations of the kind AgentConfig.

Pure: the token and the live agent ingress are handed in. Two declarations that disagree are a problem, never a choice.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from reconciler import kinds
from reconciler.kinds.rules import syntax
from reconciler.model.address import Address
from reconciler.model.manifest import Declaration, Path
from reconciler.model.problem import Position, Problem
from reconciler.model.value import Json, Ref, Secret, Value

VERSION = "2"  # of the file's format
_HIDDEN = "# The authtoken is left out here: --out FILE writes it.\n"


@dataclass(frozen=True)
class Said:
    """A value, by whom it was said, and where."""

    value: Value
    by: Address
    position: Position


@dataclass(frozen=True)
class Merged:
    """What several declarations say together.

    version      of the file's format
    signs_in     a Secret, or the Ref of the credential
    connects_to  text, or the Ref or id of the ingress; None: wherever the agent thinks best
    region       of the ingress
    """

    names: tuple[str, ...]
    version: str = VERSION
    signs_in: Said | None = None
    connects_to: Said | None = None
    region: str | None = None
    tunnels: Mapping[str, Mapping[str, Json]] = field(default_factory=dict)


def merge(names: Sequence[Address], declared: Mapping[Address, Declaration]) -> tuple[Merged, list[Problem]]:
    """The declarations of these names and of all that they extend, as one. Each name must be declared."""
    wanted = [declared[address] for address in _with_extended(names, declared)]
    problems: list[Problem] = []

    def agreed(*paths: Path) -> Said | None:
        said = [said for declaration in wanted for path in paths for said in _said(declaration, path)]
        problems.extend(_disagreements(said, paths[0]))
        return said[0] if said else None

    version, region = agreed(("version",)), agreed(("region",))
    signs_in = agreed(("authtoken",), ("credential",))
    connects_to = agreed(("server_addr",), ("ingress",))
    tunnels: dict[str, Mapping[str, Json]] = {}
    for name in dict.fromkeys(name for declaration in wanted for name in declaration.spec.get("tunnels") or {}):
        said = agreed(("tunnels", name))
        if said is not None:
            tunnels[name] = said.value
    problems += _unknown(wanted)
    if signs_in is None:
        text = "nothing says with what token the agent signs in"
        problems.append(
            Problem(
                text,
                "name a credential, or an authtoken",
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


def regional(region_domains: Iterable[str], domain: str, region: str | None) -> str | None:
    """The regional domain of an ingress that was asked for, or the only one; None if that is not clear.

    What does not lie below the ingress's own domain is none, whatever the platform says.
    """
    below = [each for each in region_domains if syntax.plain_host(each) is None and each.endswith(f".{domain}")]
    found = [each for each in below if region is None or region.lower() in _labels(each, domain)]
    return found[0] if len(found) == 1 else None


def text(merged: Merged, server_addr: str | None, token: str | None) -> str:
    """The whole file; without a token a remark stands in its place."""
    document: dict[str, Any] = {"version": merged.version}
    if token is not None:
        document["authtoken"] = token
    if server_addr is not None:
        document["server_addr"] = server_addr
    if merged.tunnels:
        document["tunnels"] = {name: _tunnel(settings) for name, settings in merged.tunnels.items()}
    named = " ".join(merged.names)
    head = f"# Written by `reconciler agent config {named}`: change the manifests, and write it again.\n"
    body = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, default_flow_style=False, width=1000)
    return f"{head}{_HIDDEN if token is None else ''}{body}"


def _with_extended(names: Sequence[Address], declared: Mapping[Address, Declaration]) -> list[Address]:
    """Each once, whoever extends before what it extends."""
    found: dict[Address, None] = {}
    waiting = list(names)
    while waiting:
        address = waiting.pop(0)
        if address not in found and address in declared:
            found[address] = None
            extended = declared[address].spec.get("extends") or []
            waiting += [each.target for each in extended if isinstance(each, Ref)]
    return list(found)


def _said(declaration: Declaration, path: Path) -> Iterator[Said]:
    value: Value = declaration.spec
    for step in path:
        value = value.get(step) if isinstance(value, Mapping) else None
    if value is not None:
        yield Said(value, declaration.address, declaration.at(*path))


def _disagreements(said: Sequence[Said], path: Path) -> Iterator[Problem]:
    for each in said[1:]:
        first = said[0]
        if _canonicalize(each.value) != _canonicalize(first.value):
            where = ".".join(str(step) for step in path)
            yield Problem(
                f"differs from what {first.by} says ({first.position})",
                "keep one of the two",
                f"{each.by}.{where}",
                each.position,
                code="conflicting-agent-configs",
            )


def _canonicalize(value: Value) -> Value:
    """What two that agree have in common: of a tunnel, its settings in canonical form."""
    if not isinstance(value, Mapping):
        return value
    fields = {each.name: each for each in _tunnel_fields()}
    return {
        name: canonical(item) if (canonical := fields[name].canonical) and isinstance(item, str) else item
        for name, item in value.items()
        if item is not None
    }


def _tunnel_fields() -> tuple[Any, ...]:
    item = kinds.get("AgentConfig").by_name["tunnels"].item
    assert item is not None
    return item.fields


def _unknown(wanted: Iterable[Declaration]) -> Iterator[Problem]:
    """What a file must say outright: nothing of it is known only after an apply."""
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
                    "is not known before an apply",
                    "write the value itself",
                    f"{declaration.address}.{where}",
                    declaration.at(*path),
                    code="known-after-apply",
                )


_REFERENCES = {
    "extends": "write {ref: AgentConfig/name}",
    "credential": "write {ref: TunnelCredential/name}, or give an authtoken",
    "ingress": "write {ref: AgentIngress/name}, or give a server_addr",
}


def _texts(value: Value, path: Path) -> Iterator[tuple[Path, Value]]:
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from _texts(item, (*path, name))
    elif value is not None:
        yield path, value


def _labels(domain: str, base: str) -> list[str]:
    """What stands before the base: `["eu"]` of `eu.connect.example.com`."""
    return re.split(r"[.-]", domain.lower().removesuffix(f".{base}"))


def _tunnel(settings: Mapping[str, Json]) -> dict[str, Json]:
    order = ("proto", "domain", "remote_addr", "addr", "inspect")
    return {name: settings[name] for name in order if settings.get(name) is not None}
