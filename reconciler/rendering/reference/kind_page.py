"""Reference pages of kinds and of the project file, as Markdown, and their index. Generated from the kinds."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from textwrap import dedent, indent

from reconciler import kinds
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
_TRAITS = {
    Behavior.IMMUTABLE: "a change replaces the resource",
    Behavior.CREATE_ONLY: "sent only by the create: a later change has no effect",
    Behavior.INPUT_ONLY: "not returned by the platform; a change there is not detected",
    Behavior.SOMETIMES_RETURNED: "not returned by every agent",
    Behavior.SERVER_DEFAULT: "chosen by the platform if not declared",
    Behavior.UNORDERED: "the order is not significant",
    Behavior.SENSITIVE: "never shown",
    Behavior.PATH_ONLY: "part of the path",
    Behavior.UPDATE_ONLY: "set by an update right after the create",
}


def page(kind: Kind) -> str:
    """The whole page."""
    sections = (
        [f"# {kind.name}", _purpose(kind)],
        ["## Example", f"```yaml\n{example(kind)}```"],
        ["## Fields", *_tables("", kind.fields)],
        *([["## Children", *_children(kind)]] if kinds.inline_children(kind.name) else []),
        *([["## Use", _use(kind)]] if kind.home is Home.FILE else _as_object(kind)),
    )
    return "\n\n".join(block for section in sections for block in section) + "\n"


def _children(kind: Kind) -> Iterator[str]:
    """How a manifest of the kind declares its children, with an example of each."""
    for key, child in kinds.inline_children(kind.name).items():
        assert child.part_of is not None
        above = f"{child.part_of.field}:"
        lines = dedent(child.example).strip().splitlines()
        entry = indent("\n".join(line for line in lines if not line.startswith(above)), "    ")
        spec = indent(dedent(kind.example).strip(), "  ")
        yield (
            f"A manifest can declare its [{child.name}]({child.name}.md) resources under `{key}`, beside `spec`: a "
            f"map from name to spec. The entry below is `{child.name}/example-main`; an entry can also have `id`, "
            "`ensure`, `moved` and `lifecycle`."
        )
        yield f"```yaml\nkind: {kind.name}\nname: example\nspec:\n{spec}\n{key}:\n  main:\n{entry}\n```"


def _as_object(kind: Kind) -> list[list[str]]:
    return [["## Outputs", _outputs(kind)], ["## Identity and replacement", _identity(kind)]]


def _use(kind: Kind) -> str:
    return "It is written to a file and has no object on the platform: no id, no lifecycle, no references to it."


def index(every: Iterable[Kind]) -> str:
    """The list of all pages."""
    rows = [
        f"| [{kind.name}]({kind.name}.md) | {_collection(kind)} | {_cell(_purpose(kind))} |"
        for kind in sorted(every, key=lambda kind: kind.name)
    ]
    head = ["| kind | collection | description |", "| --- | --- | --- |"]
    return "# Kinds\n\nThe kinds of resources that manifests can declare. The pages are generated.\n\n" + "\n".join(
        [*head, *rows, ""]
    )


def project_page(fields: Iterable[Field]) -> str:
    """The page of the project file, which has these fields."""
    return f"{_PROJECT}\n## Settings\n\n" + "\n\n".join(_tables("", fields)) + "\n"


def fleet_page(fields: Iterable[Field]) -> str:
    """The page of the fleet file, which has these fields."""
    return f"{_FLEET}\n## Fields\n\n" + "\n\n".join(_tables("", fields)) + "\n"


_PROJECT = """\
# The project file

`reconciler.yaml` names the account and stack of a project and the folders of its manifests; `init` writes one. `stack`
is required. Commands that use the platform also need `platform.base_url` and `platform.api_key`, from this file or from
environment variables.

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
  domain: {type: string, description: The parent domain of the shops.}
defaults:
  ReservedDomain: {lifecycle: {protect: true}}
store: state/reconciler.db
```

`RECONCILER_BASE_URL`, `RECONCILER_API_KEY`, `RECONCILER_AGENT_URL` and `RECONCILER_STORE` override
this file. With `--env NAME`, `environments/NAME.yaml` overrides it too ([environments](environments.md), also for
variables and defaults). For the format of manifests see [manifests](manifests.md).

Commands find the project from the folders below it: without `--project` and `RECONCILER_PROJECT`, they use the nearest
directory above with a `reconciler.yaml`, within the Git repository. Paths in messages are relative to the project;
files that are arguments, as in `fmt FILE`, are relative to the current directory.
"""


_FLEET = """\
# The fleet file

`fleet.yaml` lists the members of a fleet: accounts that get the same projects, each with values of its own.
`reconciler fleet validate` checks the file, the projects and the values of all members, without network access.
[examples/fleet](../examples/fleet/README.md) is a fleet to start from.

```yaml
version: 1
fleet: shops
members: members.csv
projects:
  - {name: base, path: base}
  - {name: shop, path: shop, after: [base], select: {tier: [gold, silver]}, environment: prod}
api_key:
  from_env: KEY_${{ member.name }}
waves:
  - {name: canary, select: {ring: canary}, min_success_time: 10m}
  - {name: first, percent: 10, max_failures: 2%, approve: true}
guards: {max_changed: 50%, max_deletes: 0}
workers:
  - {select: {region: eu}, needs: keys-eu}
limits: {members_at_once: 16, start_spread: 30s}
store: state/fleet.db
```

## Members

`members` is a list, or the name of a file with one:

```yaml
members:
  - name: berlin
    labels: {tier: gold, region: eu}
    variables: {domain: berlin.example.com}
```

In CSV, the first line names the columns: `name`, `labels.NAME` and `variables.NAME`. An empty cell sets nothing.
Spaces around a cell are removed. JSON and YAML files have the list itself.

```
name,labels.tier,labels.region,variables.domain
berlin,gold,eu,berlin.example.com
```

Labels select members. Variables are values of the variables that a project declares, as of `--var`: text is converted
to the declared type, and a project ignores variables that only other projects declare. They are in Git in plain text:
secrets are read with `{from_env: NAME}` or `{from_file: PATH}` in the manifests of a project.

## Selectors

A selector maps labels to a value or a list of values. A member is selected if it has one of the values of each label;
an empty selector selects every member. The key `name` takes names of members, with `*` and `?` as wildcards:
`{region: eu, name: [berlin, shop-*]}`.

## API keys

The file says where the worker that runs a member's tasks finds the API key, and never contains a key.
`${{ member.name }}` and `${{ member.labels.NAME }}` insert text of the member. In the name of an environment variable,
inserted text is in upper case, with `_` for other characters than letters and digits: `KEY_${{ member.name }}` is
`KEY_NEW_YORK` for the member `new-york`. Members that get the same project must have different keys.

## Waves

An apply finishes a wave before it starts the next. Members of earlier waves are left out of later ones, and a last
wave `rest` takes the members that are left. With `percent`, a wave takes a share of the members that it selects, in an
order that depends on their names only: with `percent: 5` and then `percent: 25`, 30 % of the fleet are done after two
waves.

An apply keeps the waves that it was started with. If `waves` changes before the apply has ended, `fleet resume` and
`fleet retry` refuse to continue it (exit code 3) and say what changed. Start a new apply, in which members that are
up to date need no change, or undo the edit.
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
        " | ".join(
            (f"| `{prefix}{field.name}`", _cell(describe_type(field)), _default(field), _cell(describe_field(field)))
        )
        + " |"
        for field in fields
    ]
    yield "\n".join(["| field | type | default | description |", "| --- | --- | --- | --- |", *rows])
    for field in fields:
        inner = field.item if field.item is not None else field
        mark = {Shape.LIST: "[]", Shape.MAP: ".*"}.get(field.shape, "")
        if inner.fields:
            yield f"### `{prefix}{field.name}{mark}`"
            yield from _tables(f"{prefix}{field.name}{mark}.", inner.fields)


def describe_type(field: Field) -> str:
    """The type and limits of a field."""
    if field.described:
        return field.described
    match field.shape:
        case Shape.LIST if field.item is not None:
            return f"list: {describe_type(field.item)}"
        case Shape.MAP if field.item is not None:
            return f"map of text to {describe_type(field.item)}"
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


def describe_field(field: Field) -> str:
    """The purpose and behavior of a field, in sentences."""
    traits = [text for behaviour, text in _TRAITS.items() if behaviour in field]
    if Behavior.INPUT_ONLY in field and field.read_as is not None:
        traits[traits.index(_TRAITS[Behavior.INPUT_ONLY])] = "a change there is detected only if lists show the field"
    if field.immutable_part is not None:
        traits.append(f"a change of its {field.immutable_part.called} replaces the resource")
    if field.mentions is not None:
        traits.append("depends on the reserved domain or address with this name")
    if field.conceals is not None:
        traits.append("secrets inside are never displayed")
    if field.name_of is not None:
        traits.append(f"refers to the resource whose `{field.name_of}` it is")
    if field.delete_segment is not None:
        traits.append(f"removed by DELETE on `…/{field.delete_segment}`")
    sentences = [field.doc, *(f"{trait[0].upper()}{trait[1:]}." for trait in traits)]
    return " ".join(sentence for sentence in sentences if sentence)


def _default(field: Field) -> str:
    if field.required:
        return "**required**"
    if field.default is None:
        return "none"
    return f"`{json.dumps(field.default, ensure_ascii=False)}`"


# --- the rest ---------------------------------------------------------------------------------------------------------


def _outputs(kind: Kind) -> str:
    always = ["uri"] if kind.wire.untimed else ["uri", "created_at"]
    names = dict.fromkeys([*(name for name in kind.outputs if name != kind.one_time), *always])
    text = f"Other resources may refer to {_join(f'`{name}`' for name in names)}."
    if kind.one_time:
        text += (
            f" The `{kind.one_time}` is returned once, in the response to the create; set its target under `deliver`."
        )
    return text


def _identity(kind: Kind) -> str:
    lines = []
    if kind.identity:
        key = _join(f"`{name}`" for name in kind.identity)
        unchanged = " if a field would change" if kind.parent is None and not kind.keeps_owner else ""
        approval = f"adopting it needs approval{unchanged}"
        if kind.parent is not None and not kind.keeps_owner:  # planning matches it without approval
            approval += f", unless its `{kind.parent.kind}` is managed by the stack"
        lines.append(f"- Without an owner record it is identified by {key}; {approval}.")
        if kind.unique:
            flag = kind.identity_shared_while
            shared = f", unless all of them set `{flag}`" if flag else ""
            lines.append(f"- {str(kind.home).capitalize()} rejects a second object with the same identity{shared}.")
    else:
        lines.append("- It is identified by its owner record only.")
    if not kind.keeps_owner:
        lines.append(
            "- Agents may not return its metadata: ownership is recorded in the local store."
            if "metadata" in kind.by_name
            else "- It has no metadata: ownership is recorded in the local store, or is that of its parent."
        )
    replaced = [f"`{field.name}`" for field in kind.fields if Behavior.IMMUTABLE in field]
    replaced += [
        f"the {field.immutable_part.called} of `{field.name}`" for field in kind.fields if field.immutable_part
    ]
    lines.append(
        f"- Replaced when {_join(replaced, 'or')} changes."
        if replaced
        else "- Never replaced: every field can be updated in place."
    )
    if kind.modules.exclusive:
        names = _join(f"`{name}`" for name in kind.modules.exclusive)
        lines.append(
            f"- It has at most one of {names}; `{kind.modules.traffic}` is disabled while one replaces another."
        )
    if kind.irreplaceable:
        lines.append("- Deletion is irreversible, since another account may reserve it; it needs approval.")
    if kind.required_unless_id:
        names = _join(f"`{name}`" for name in kind.required_unless_id)
        lines.append(f"- {names} are required, unless the declaration names an existing object by `id`.")
    return "\n".join(lines)


def _join(words: Iterable[str], conjunction: str = "and") -> str:
    *most, last = words
    return f"{', '.join(most)} {conjunction} {last}" if most else last


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
