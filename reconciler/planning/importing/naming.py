"""What people would call a live object: the name of a declaration that is made for it. The same for the same account.

Knows nothing of what is declared already; whoever asks says which names are gone.
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

_LONGEST = 60  # characters: the rest of a long description tells no more
_ROUGH = re.compile(r"[^a-z0-9._]+")
_TITLES = ("name", "domain")
_PLACES = ("hostports", "url", "address", "cidr", "labels", "type", "match")
_OUTPUTS = ("subject_common_name", "addr")
_EARLY_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def to_kebab_case(kind: str) -> str:
    """`HTTPSEdgeRoute` as `https-edge-route`."""
    return _EARLY_CAPITAL.sub("-", kind).lower()


def slugify(text: str) -> str:
    """The text as a name: lower case letters, digits, `.`, `_` and `-`; empty if nothing of it is left."""
    text = text.strip().replace("*.", "wildcard.", 1) if text.strip().startswith("*.") else text
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    name = _ROUGH.sub("-", plain).strip("-._")
    if len(name) > _LONGEST:
        cut = name[:_LONGEST]
        name = (cut.rpartition("-")[0] or cut) if name[_LONGEST] != "-" else cut
    return name.strip("-._")


def choose_name(kind: Kind, live: Live, called: Callable[[str, str], str | None], gone: Collection[str]) -> str:
    """The first good name that is not gone, or the best one with a number.

    `called` answers what an object (kind, id) is called already. `gone` are names in lower case.
    """
    best = next((slugged for title in _find_titles(kind, live, called) if (slugged := slugify(title))), None)
    best = best or f"{to_kebab_case(kind.name)}-{slugify(live.id[-6:]) or 'x'}"
    found, number = best, 1
    while found.lower() in gone:
        number += 1
        found = f"{best}-{number}"
    return found


def _find_titles(kind: Kind, live: Live, called: Callable[[str, str], str | None]) -> Iterator[str]:
    """From what it is named to what it is seen by."""
    values = {field.name: read(field, live.body) for field in kind.fields}
    yield from (text for title in _TITLES if (text := values.get(title)) and isinstance(text, str))
    description = live.body.get("description")
    if isinstance(description, str):
        yield description.strip().partition("\n")[0]
    yield from _read_metadata_name(live.metadata)
    above = _find_parent_name(kind, live, values, called)
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
    except (ValueError, RecursionError):  # it is anybody's text
        return
    title = parsed.get("name") if isinstance(parsed, dict) else None
    if isinstance(title, str):
        yield title


def _find_parent_name(
    kind: Kind, live: Live, values: Mapping[str, Json], called: Callable[[str, str], str | None]
) -> str | None:
    """What the object that it belongs to is called."""
    for part in kind.identity:
        field = kind.by_name[part]
        for target in field.refs:
            id = live.parent_id if kind.parent is not None and kind.parent.field == part else values.get(part)
            if isinstance(id, str) and (found := called(target, id)):
                return found
    return None


def _find_text(value: Json) -> Iterator[str]:
    match value:
        case str():
            yield value.partition("://")[2] or value
        case [str(first), *_]:
            host, colon, port = first.rpartition(":")
            yield host if colon and port == "443" else first
        case dict():
            yield from (str(each) for each in list(value.values())[:1])
