"""Chooses the name of a declaration for a live object, the same one for the same account.

The caller passes the names that are already used.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Collection, Iterator, Mapping

from reconciler.model.canonical import read
from reconciler.model.kind import Kind
from reconciler.model.snapshot import Live
from reconciler.model.value import Json

_LONGEST = 60  # characters of a name
_LONGEST_BELOW = 90  # characters of a child's name that begins with its parent's: leaves room for a number
_ROUGH = re.compile(r"[^a-z0-9._]+")
_TITLES = ("name", "domain")
_PLACES = ("hostports", "url", "address", "cidr", "labels", "type", "match")
_OUTPUTS = ("subject_common_name", "addr")
_EARLY_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def to_kebab_case(kind: str) -> str:
    """`HTTPSEdgeRoute` as `https-edge-route`."""
    return _EARLY_CAPITAL.sub("-", kind).lower()


def slugify(text: str) -> str:
    """The text as a name of lower-case letters, digits, `.`, `_` and `-`; may be empty."""
    text = text.strip().replace("*.", "wildcard.", 1) if text.strip().startswith("*.") else text
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    name = _ROUGH.sub("-", plain).strip("-._")
    if len(name) > _LONGEST:
        cut = name[:_LONGEST]
        name = (cut.rpartition("-")[0] or cut) if name[_LONGEST] != "-" else cut
    return name.strip("-._")


def choose_name(kind: Kind, live: Live, name_of: Callable[[str, str], str | None], used: Collection[str]) -> str:
    """The best name for a live object, with a number if it is used.

    name_of   the name that an object (kind, id) already has, or None
    used      the used names, in lower case
    """
    best = next((slugged for title in _find_titles(kind, live, name_of) if (slugged := slugify(title))), None)
    best = best or f"{to_kebab_case(kind.name)}-{slugify(live.id[-6:]) or 'x'}"
    above = _find_whole(kind, live, name_of)
    if above and not best.startswith(f"{above}-") and len(above) + len(best) <= _LONGEST_BELOW:
        best = f"{above}-{best}"  # as an inline child it has this name
    name, number = best, 1
    while name.lower() in used:
        number += 1
        name = f"{best}-{number}"
    return name


def _find_titles(kind: Kind, live: Live, name_of: Callable[[str, str], str | None]) -> Iterator[str]:
    """The texts that may name the object, the best first: name, description, metadata, then values such as its url."""
    values = {field.name: read(field, live.body) for field in kind.fields}
    yield from (text for title in _TITLES if (text := values.get(title)) and isinstance(text, str))
    description = live.body.get("description")
    if isinstance(description, str):
        yield description.strip().partition("\n")[0]
    yield from _read_metadata_name(live.metadata)
    above = _find_parent_name(kind, live, values, name_of)
    for place in _PLACES:
        for text in _find_text(values.get(place)):
            yield f"{above}-{text}" if above else text
    yield from (text for output in _OUTPUTS if isinstance(text := live.body.get(output), str))
    key = values.get("public_key")
    if isinstance(key, str) and "BEGIN" not in key:
        yield " ".join(key.split()[2:])  # the comment of an authorized-keys line


def _read_metadata_name(metadata: str) -> Iterator[str]:
    try:
        parsed = json.loads(metadata) if metadata.startswith("{") else None
    except (ValueError, RecursionError):  # any text, set by a user
        return
    title = parsed.get("name") if isinstance(parsed, dict) else None
    if isinstance(title, str):
        yield title


def _find_parent_name(
    kind: Kind, live: Live, values: Mapping[str, Json], name_of: Callable[[str, str], str | None]
) -> str | None:
    """The name of the object that a field of the natural key refers to, such as its parent."""
    for part in kind.identity:
        field = kind.by_name[part]
        for target in field.refs:
            id = live.parent_id if kind.parent is not None and kind.parent.field == part else values.get(part)
            if isinstance(id, str) and (name := name_of(target, id)):
                return name
    return None


def _find_whole(kind: Kind, live: Live, name_of: Callable[[str, str], str | None]) -> str | None:
    """The name of the parent whose manifest can declare the object inline."""
    if kind.part_of is None or not kind.part_of.inline:
        return None
    id = live.parent_id if kind.parent is not None else read(kind.by_name[kind.part_of.field], live.body)
    return name_of(kind.part_of.kind, id) if isinstance(id, str) else None


def _find_text(value: Json) -> Iterator[str]:
    match value:
        case str():
            yield value.partition("://")[2] or value
        case [str(first), *_]:
            host, colon, port = first.rpartition(":")
            yield host if colon and port == "443" else first
        case dict():
            yield from (str(first) for first in list(value.values())[:1])
