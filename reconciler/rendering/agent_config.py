"""Renders the configuration file of an agent as YAML, merged from declarations of the kind AgentConfig.

Pure: the caller passes the token and the live agent ingress. Declarations with different values are a problem. The
table of both versions of the file is in `kinds.types.agent_files`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import yaml
from msgspec import Struct, field

from reconciler import kinds
from reconciler.kinds.rules import syntax
from reconciler.kinds.rules import traffic_policy as policies
from reconciler.kinds.types.agent_files import LAYOUTS, check_version, choose_version
from reconciler.languages.yaml import scalars
from reconciler.model.address import Address
from reconciler.model.canonical import canonicalize
from reconciler.model.fields.field import Field, Shape
from reconciler.model.manifest import Declaration, Path
from reconciler.model.numerals import to_plain
from reconciler.model.problem import Position, Problem, Severity
from reconciler.model.value import JsonTemplate, Ref, Sealed, Secret, Template, Value

FIRST_WORDS = "# Written by `reconciler agent config "  # by which such a file is recognized
_SIGN_IN: tuple[Path, ...] = (("authtoken",), ("credential",))
_CONNECTION: tuple[Path, ...] = (("server_addr",), ("connect_url",), ("ingress",))


class Setting(Struct, frozen=True):
    """A value with the declaration and position that it comes from."""

    value: Value
    declared_by: Address
    path: Path
    position: Position

    @property
    def subject(self) -> str:
        return f"{self.declared_by}.{'.'.join(map(str, self.path))}"


class Merged(Struct, frozen=True):
    """Several declarations, merged.

    version      of the file
    signs_in     a Secret, or the Ref of the credential
    connects_to  text, or the Ref or id of the ingress; None: the agent's default
    region       of the ingress
    options      the other settings of the agent
    """

    names: tuple[str, ...]
    version: str = "2"
    signs_in: Setting | None = None
    connects_to: Setting | None = None
    region: str | None = None
    options: Mapping[str, Value] = field(default_factory=dict)
    tunnels: Mapping[str, Value] = field(default_factory=dict)
    endpoints: Mapping[str, Value] = field(default_factory=dict)


def merge(names: Sequence[Address], declared: Mapping[Address, Declaration]) -> tuple[Merged, list[Problem]]:
    """Merges these declarations and all that they extend. Each name must be declared."""
    wanted = [declared[address] for address in _with_extended(names, declared)]
    problems: list[Problem] = []

    def settle(settings: Iterable[Setting]) -> Setting | None:
        found = [*settings]
        problems.extend(_report_conflicts(found))
        return found[0] if found else None

    def find(*paths: Path) -> Setting | None:
        return settle(setting for declaration in wanted for path in paths for setting in _find(declaration, path))

    signs_in, connects_to = find(*_SIGN_IN), find(*_CONNECTION)
    settings = {name: found for name in _OPTIONS if (found := find((name,))) is not None}
    tunnels = {name: settle(found) for name, found in _group(wanted, "tunnels").items()}
    endpoints = {name: settle(found) for name, found in _group(wanted, "endpoints").items()}
    problems += [*_report_unknown_values(wanted), *_report_version(wanted)]
    if signs_in is None:
        text, remedy = "the configuration has no authtoken", "set credential or authtoken"
        problems.append(Problem(text, remedy, str(names[0]), declared[names[0]].position, code="missing-field"))
    values = {name: found.value for name, found in settings.items()}
    merged = Merged(
        names=tuple(address.name for address in names),
        version=choose_version(_all_settings(wanted)),
        signs_in=signs_in,
        connects_to=connects_to,
        region=values.pop("region", None),
        options={name: value for name, value in values.items() if name != "version"},
        tunnels={name: found.value for name, found in tunnels.items() if found is not None},
        endpoints={name: found.value for name, found in endpoints.items() if found is not None},
    )
    return merged, problems


def find_conflicts(declared: Mapping[Address, Declaration]) -> list[Problem]:
    """Problems of each configuration with all that it extends, which no manifest shows by itself."""
    extended = {address for own in declared.values() for address in _with_extended(_extends(own), declared)}
    found: dict[Problem, None] = {}
    for address in declared:
        if address not in extended:
            found |= dict.fromkeys(problem for problem in merge([address], declared)[1] if problem.code in _OF_SEVERAL)
    return list(found)


_OF_SEVERAL = ("conflicting-agent-configs", "field-not-applicable")


def find_regional_domain(region_domains: Iterable[str], domain: str, region: str | None) -> str | None:
    """The ingress's domain for a region, or its only one; None if there is none or more than one.

    Names that are not below the ingress's own domain are ignored.
    """
    below = [name for name in region_domains if syntax.plain_host(name) is None and name.endswith(f".{domain}")]
    matches = [name for name in below if region is None or region.lower() in _labels(name, domain)]
    return matches[0] if len(matches) == 1 else None


def render_file(merged: Merged, server: str | None, token: str | None) -> str:
    """The text of the file. Without a token, no secret is in it, and a comment lists what is missing."""
    layout = LAYOUTS[merged.version]
    values = {**merged.options, "authtoken": token and Secret(token, "authtoken"), layout.server: server}
    hidden = [] if token is not None else ["authtoken"]
    fields = kinds.get("AgentConfig").by_name

    def write(field: Field, value: Value, *at: str) -> Any:
        return _write(field, value, at, None if token is not None else hidden)

    options = {name: write(fields[name], values[name], name) for name in layout.options if values.get(name) is not None}
    document: dict[str, Any] = {"version": merged.version}
    document |= {layout.below: options} if layout.below else options
    if merged.endpoints:
        document["endpoints"] = [
            write(_item(fields["endpoints"]), value, "endpoints", name) for name, value in merged.endpoints.items()
        ]
    if merged.tunnels:
        tunnel = _item(fields["tunnels"])
        document["tunnels"] = {name: write(tunnel, value, "tunnels", name) for name, value in merged.tunnels.items()}
    named = " ".join(merged.names)
    head = f"{FIRST_WORDS}{named}`: change the manifests, and write it again.\n"
    if hidden:
        head += f"# Secrets are not printed; --out FILE writes them: {', '.join(hidden)}.\n"
    return head + yaml.dump(
        _without_hidden(document),
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=False,
        width=1000,
    )


class _Dumper(yaml.SafeDumper):
    """Quotes text that YAML 1.2 reads as a number, such as a tunnel named `1e3`; PyYAML writes YAML 1.1."""


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if _is_plain(text) else "'")


def _is_plain(text: str) -> bool:
    try:
        return isinstance(scalars.plain(text), str)
    except ValueError:
        return False


_Dumper.add_representer(str, _represent_text)


_HIDDEN = object()


def _write(field: Field | None, value: Value, at: tuple[str, ...], hidden: list[str] | None) -> Any:
    """The value as it is written. `hidden`: gets the place of each secret, which is then not written; None: all are."""
    match value:
        case Secret() if hidden is not None:
            hidden.append(".".join(at))
            return _HIDDEN
        case Secret():
            return _write(field, value.reveal(), at, hidden)
        case str() if field is not None and field.shape is Shape.ANY and field.conceals is not None:
            return _write(None, policies.parse(value), at, hidden)
        case dict() if field is not None and field.shape is Shape.OBJECT:
            present = [inner for inner in field.fields if value.get(inner.name) is not None]
            return {inner.name: _write(inner, value[inner.name], (*at, inner.name), hidden) for inner in present}
        case dict():
            return {key: _write(None, item, (*at, key), hidden) for key, item in value.items()}
        case list():
            item_field = field.item if field is not None else None
            return [_write(item_field, item, (*at, str(index)), hidden) for index, item in enumerate(value)]
    return to_plain(value)


def _without_hidden(value: Any) -> Any:
    match value:
        case dict():
            return {key: _without_hidden(item) for key, item in value.items() if item is not _HIDDEN}
        case list():
            return [_without_hidden(item) for item in value if item is not _HIDDEN]
    return value


def _item(field: Field) -> Field:
    assert field.item is not None
    return field.item


def _with_extended(names: Sequence[Address], declared: Mapping[Address, Declaration]) -> list[Address]:
    """The declarations and all that they extend, each once, before those that it extends."""
    found: dict[Address, None] = {}
    waiting = list(names)
    while waiting:
        address = waiting.pop(0)
        if address not in found and address in declared:
            found[address] = None
            waiting += _extends(declared[address])
    return list(found)


def _extends(declaration: Declaration) -> list[Address]:
    extended = declaration.spec.get("extends") or []
    return [reference.target for reference in extended if isinstance(reference, Ref)]


_OPTIONS = tuple(
    name
    for name in dict.fromkeys(["version", "region", *(name for at in LAYOUTS.values() for name in at.options)])
    if (name,) not in (*_SIGN_IN, *_CONNECTION)
)


def _find(declaration: Declaration, path: Path) -> Iterator[Setting]:
    value: Value = declaration.spec
    for step in path:
        value = value.get(step) if isinstance(value, Mapping) else None
    if value is not None:
        yield Setting(value, declaration.address, path, declaration.at(*path))


def _group(wanted: Iterable[Declaration], name: str) -> dict[str, list[Setting]]:
    """The tunnels or endpoints of all declarations, by their names."""
    groups: dict[str, list[Setting]] = {}
    for declaration in wanted:
        for key, item in _items(declaration.spec.get(name) or ()):
            found = str(item.get("name")) if isinstance(key, int) else key
            setting = Setting(item, declaration.address, (name, key), declaration.at(name, key))
            groups.setdefault(found, []).append(setting)
    return groups


def _items(value: Value) -> Iterable[tuple[str | int, Any]]:
    return value.items() if isinstance(value, Mapping) else enumerate(value)


def _all_settings(wanted: Iterable[Declaration]) -> dict[str, Value]:
    """The settings of all declarations, without an order between different values."""
    found: dict[str, Value] = {}
    for declaration in wanted:
        for name, value in declaration.spec.items():
            earlier = found.get(name)
            found[name] = {**value, **earlier} if isinstance(earlier, dict) and isinstance(value, dict) else value
    return found


def _report_version(wanted: Sequence[Declaration]) -> Iterator[Problem]:
    """Finds settings that the version of the file does not have, and names that an endpoint and a tunnel share."""
    for finding in check_version(_all_settings(wanted)):
        path = finding.path
        holder = next(declaration for declaration in wanted if next(_find(declaration, path), None) is not None)
        where = ".".join(map(str, path))
        if finding.severity is Severity.ERROR:
            subject, position = f"{holder.address}.{where}", holder.at(*path)
            yield Problem(finding.text, finding.remedy, subject, position, code=finding.code)
    tunnels = _group(wanted, "tunnels")
    for name, (setting, *_) in _group(wanted, "endpoints").items():
        if name in tunnels:
            text, remedy = f"{name!r} is also the name of a tunnel ({tunnels[name][0].position})", "use another name"
            yield Problem(text, remedy, setting.subject, setting.position, code="conflicting-agent-configs")


def _report_conflicts(settings: Sequence[Setting]) -> Iterator[Problem]:
    for setting in settings[1:]:
        first = settings[0]
        is_resolved = _is_resolved(setting.value) and _is_resolved(first.value)
        if is_resolved and _canonicalize(setting) != _canonicalize(first):
            yield Problem(
                f"differs from {first.declared_by} ({first.position})",
                "remove one of the two values",
                setting.subject,
                setting.position,
                code="conflicting-agent-configs",
            )


def _is_resolved(value: Value) -> bool:
    """Whether the value can be compared: `validate` does without the values of environment variables."""
    return not any(isinstance(leaf, (Template, Sealed)) for _, leaf in _leaves(value, ()))


def _canonicalize(setting: Setting) -> Value:
    name, *inside = setting.path
    field = kinds.get("AgentConfig").by_name[str(name)]
    return canonicalize(_item(field) if inside else field, setting.value)


def _report_unknown_values(wanted: Iterable[Declaration]) -> Iterator[Problem]:
    """Finds values that are known only after an apply: the file needs them now."""
    for declaration in wanted:
        for name, words in _REFERENCES.items():
            value = declaration.spec.get(name)
            for item in value if isinstance(value, list) else [value]:
                if item is not None and not isinstance(item, Ref):
                    yield Problem(
                        f"expected a reference, found {str(item)!r}",
                        words,
                        f"{declaration.address}.{name}",
                        declaration.at(name),
                        code="wrong-type",
                    )
        for path, value in _leaves(declaration.spec, ()):
            if isinstance(value, (Ref, Template, JsonTemplate)) and path[0] not in _REFERENCES:
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


def _leaves(value: Value, path: Path) -> Iterator[tuple[Path, Value]]:
    if isinstance(value, (Mapping, list)):
        for name, item in _items(value):
            yield from _leaves(item, (*path, name))
    elif value is not None:
        yield path, value


def _labels(domain: str, base: str) -> list[str]:
    """The labels before the base: `["eu"]` of `eu.connect.example.com`."""
    return re.split(r"[.-]", domain.lower().removesuffix(f".{base}"))
