"""The documentation page of a kind, as Markdown, and an index of them. Everything on it follows from the kind."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from textwrap import dedent, indent

from reconciler.model.fields.annotations import Behavior
from reconciler.model.fields.field import Field, Shape
from reconciler.model.kind import Home, Kind

_PLAIN = {
    Shape.TEXT: "text",
    Shape.INTEGER: "whole number",
    Shape.NUMBER: "number",
    Shape.FLAG: "true or false",
    Shape.OBJECT: "object",
    Shape.ANY: "text or inline YAML",
}
_SAID = {
    Behavior.IMMUTABLE: "another value replaces the resource",
    Behavior.INPUT_ONLY: "never read back; a change on the platform goes unseen",
    Behavior.SERVER_DEFAULT: "left to the platform unless declared, and again once declared no more",
    Behavior.UNORDERED: "the order means nothing",
    Behavior.SENSITIVE: "never shown",
    Behavior.PATH_ONLY: "part of the address",
    Behavior.UPDATE_ONLY: "set right after the create",
}


def page(kind: Kind) -> str:
    """The whole page."""
    sections = (
        [f"# {kind.name}", _purpose(kind)],
        ["## Example", f"```yaml\n{example(kind)}```"],
        ["## Fields", *_tables("", kind.fields)],
        *([["## Use", _use(kind)]] if kind.home is Home.FILE else _as_object(kind)),
    )
    return "\n\n".join(block for section in sections for block in section) + "\n"


def _as_object(kind: Kind) -> list[list[str]]:
    return [["## Outputs", _outputs(kind)], ["## Identity and replacement", _identity(kind)]]


def _use(kind: Kind) -> str:
    return "It is rendered to a file, and is no object: it has no id and no lifecycle, and nothing refers to it."


def index(kinds: Iterable[Kind]) -> str:
    """The list of all pages."""
    rows = [
        f"| [{kind.name}]({kind.name}.md) | {_collection(kind)} | {_cell(_purpose(kind))} |"
        for kind in sorted(kinds, key=lambda kind: kind.name)
    ]
    head = ["| kind | collection | what it is |", "| --- | --- | --- |"]
    return "# Kinds\n\nWhat can be declared. Each page follows from the kind's own file.\n\n" + "\n".join(
        [*head, *rows, ""]
    )


def project_page(fields: Iterable[Field]) -> str:
    """The page of the project file, which has these fields."""
    return f"{_PROJECT}\n## Settings\n\n" + "\n\n".join(_tables("", fields)) + "\n"


_PROJECT = """\
# The project file

`reconciler.yaml` says whose account a project is about and where its manifests are; `init` writes one. `stack` has to
be there. Commands that meet the platform want `platform.base_url` and `platform.api_key` too, from here or from the
environment.

```yaml
version: 1
stack: shop
platform:
  base_url: https://api.example.com
  api_key: {from_env: RECONCILER_API_KEY}
  account: production
manifests: [manifests/]
policies: [policies/]
limits: {concurrency: 8}
guards: {max_delete_percent: 10}
variables:
  region: eu
  domain: {type: string, description: Below which the shops are.}
defaults:
  ReservedDomain: {lifecycle: {protect: true}}
store: state/reconciler.db
```

`RECONCILER_BASE_URL`, `RECONCILER_API_KEY`, `RECONCILER_AGENT_URL` and `RECONCILER_STORE` override what is written
here; `environments/NAME.yaml` lies above it with `--env NAME` ([environments](environments.md), which also shows
variables and defaults). What manifests say is told in [manifests](manifests.md).
"""


def _collection(kind: Kind) -> str:
    return {Home.PLATFORM: f"`{kind.path}`", Home.AGENT: f"the agent's `{kind.path}`", Home.FILE: "a file"}[kind.home]


def example(kind: Kind) -> str:
    """A manifest document that declares one."""
    body = indent(dedent(kind.example).strip("\n").rstrip(), "  ")
    text = f"kind: {kind.name}\nname: example\n"
    if kind.one_time:
        text += f"deliver: {{{kind.one_time}: {{to_file: secrets/example.{kind.one_time}}}}}\n"
    return f"{text}spec:\n{body}\n"


def _purpose(kind: Kind) -> str:
    return " ".join((kind.spec.__doc__ or "").split())


# --- fields -----------------------------------------------------------------------------------------------------------


def _tables(prefix: str, fields: Iterable[Field]) -> Iterator[str]:
    """One table for these fields, then one for each object inside them."""
    fields = tuple(fields)
    rows = [
        f"| `{prefix}{field.name}` | {_cell(sort(field))} | {_default(field)} | {_cell(told(field))} |"
        for field in fields
    ]
    yield "\n".join(["| field | type | default | what it is |", "| --- | --- | --- | --- |", *rows])
    for field in fields:
        inner = field.item if field.item is not None else field
        mark = {Shape.LIST: "[]", Shape.MAP: ".*"}.get(field.shape, "")
        if inner.fields:
            yield f"### `{prefix}{field.name}{mark}`"
            yield from _tables(f"{prefix}{field.name}{mark}.", inner.fields)


def sort(field: Field) -> str:
    """The field's type and limits, in words."""
    match field.shape:
        case Shape.LIST if field.item is not None:
            return f"list: {sort(field.item)}"
        case Shape.MAP if field.item is not None:
            return f"map of text to {sort(field.item)}"
    if field.choices:
        return " or ".join(f"`{choice}`" for choice in field.choices)
    words = _PLAIN[field.shape]
    if field.refs:
        words = f"id of {' or '.join(f'`{ref}`' for ref in field.refs)}"
    if field.max_bytes is not None:
        words += f", at most {field.max_bytes} bytes"
    if field.between is not None:
        words += f" from {field.between[0]} to {field.between[1]}"
    return words


def told(field: Field) -> str:
    """What the field is for and how it behaves, in sentences."""
    behaviours = [said for behaviour, said in _SAID.items() if behaviour in field]
    if field.immutable_part is not None:
        behaviours.append(f"another {field.immutable_part.called} replaces the resource")
    if field.mentions is not None:
        behaviours.append("depends on the reserved domain or address that it names")
    if field.name_of is not None:
        behaviours.append(f"taken for the `{field.name_of}` of what bears that name")
    if field.delete_segment is not None:
        behaviours.append(f"removed by DELETE on `…/{field.delete_segment}`")
    sentences = [field.doc, *(f"{behaviour[0].upper()}{behaviour[1:]}." for behaviour in behaviours)]
    return " ".join(sentence for sentence in sentences if sentence)


def _default(field: Field) -> str:
    if field.required:
        return "**required**"
    if field.default is None:
        return "none"
    return f"`{json.dumps(field.default, ensure_ascii=False)}`"


# --- the rest ---------------------------------------------------------------------------------------------------------


def _outputs(kind: Kind) -> str:
    always = ["uri"] if kind.untimed else ["uri", "created_at"]
    names = dict.fromkeys([*(name for name in kind.outputs if name != kind.one_time), *always])
    text = f"Other resources may refer to {_listed(f'`{name}`' for name in names)}."
    if kind.one_time:
        text += (
            f" The `{kind.one_time}` can be read once, in the answer to the create: say under `deliver` where it goes."
        )
    return text


def _identity(kind: Kind) -> str:
    lines = []
    if kind.identity:
        key = _listed(f"`{name}`" for name in kind.identity)
        lines.append(f"- Found again by {key} when it carries no owner record; taking it over needs consent.")
        if kind.unique:
            shared = f", unless all of them set `{kind.shared_while}`" if kind.shared_while else ""
            lines.append(f"- {str(kind.home).capitalize()} refuses a second one of the same identity{shared}.")
    else:
        lines.append("- Found again by its owner record only.")
    if not kind.keeps_owner:
        lines.append("- It has no metadata: ownership is kept in the local store, or follows what it belongs to.")
    replaced = [f"`{field.name}`" for field in kind.fields if Behavior.IMMUTABLE in field]
    replaced += [
        f"the {field.immutable_part.called} of `{field.name}`" for field in kind.fields if field.immutable_part
    ]
    lines.append(
        f"- Replaced when {_listed(replaced, 'or')} changes."
        if replaced
        else "- Never replaced: every field changes in place."
    )
    if kind.exclusive_modules:
        names = _listed(f"`{name}`" for name in kind.exclusive_modules)
        lines.append(
            f"- Of {names} it has at most one; `{kind.traffic_module}` is off while one takes the place of another."
        )
    if kind.same_as is not None:
        lines.append(f"- The same objects can be declared as `{kind.same_as}`: each by one of the two kinds.")
    if kind.irreplaceable:
        lines.append("- Once deleted it may go to somebody else: deleting one needs consent by name.")
    if kind.required_unless_id:
        names = _listed(f"`{name}`" for name in kind.required_unless_id)
        lines.append(f"- {names} are required, unless the declaration names an existing object by `id`.")
    return "\n".join(lines)


def _listed(words: Iterable[str], conjunction: str = "and") -> str:
    *most, last = words
    return f"{', '.join(most)} {conjunction} {last}" if most else last


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
