"""The owner record: ownership of a live object, stored in the object's `metadata` together with the user's text.

If the user's text is empty or a JSON object with members, the record is the last member, `reconciler`. Otherwise the
record is the last line, `#reconciler {…}`. The user's text is returned byte for byte. A record is also recognized after
it was reformatted or text was added behind it, because an object whose record is lost would be created a second time.

A record holds a digest for each leaf inside a field, or one digest for the whole field if space is short.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import msgspec

from reconciler.model.address import Address
from reconciler.model.canonical import leaf_at
from reconciler.model.fields.annotations import InputOnly, ServerDefault
from reconciler.model.fields.field import Field
from reconciler.model.kind import Kind
from reconciler.model.numerals import dump_json, keep_spelling
from reconciler.model.value import digest

KEY = "reconciler"
LIMIT: Final = 4096  # bytes of metadata that the platform accepts
MOST: Final = 1280  # bytes of the longest record of any kind, with the separator
_MARK = f"#{KEY} "
_NAME = f'"{KEY}"'
_MEMBER = f"{_NAME}:"
_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


class Owner(NamedTuple):
    """The content of an owner record: the stack and address that an object belongs to. A tuple for speed.

    intent     the random id of the create, which identifies the object after a lost response
    applied    a digest for each field that was last applied with a value other than its default; see `fold`
    protect    deleting the object requires approval, even after its declaration was removed
    pending    the one-time secret of the object was not delivered yet
    replaces   the id of the object that this one replaces, while both exist
    sources    a digest for each top-level field with secrets: which environment variables and files it names for them
    """

    stack: str
    address: Address
    intent: str
    applied: Mapping[str, str] = _NOTHING
    protect: bool = False
    pending: bool = False
    replaces: str | None = None
    sources: Mapping[str, str] = _NOTHING


def write(text: str, owner: Owner) -> str:
    """Returns the `metadata` with the user's text and the record."""
    record = _encode(owner)
    if text == "":
        return f"{{{_MEMBER}{record}}}"
    parsed = _parse_json(text)
    if isinstance(parsed, dict) and parsed:
        head, tail = _split_last_brace(text)
        return f"{head},{_MEMBER}{record}}}{tail}"
    return f"{text}\n{_MARK}{record}"


def fit(text: str, record: Owner, kind: Kind) -> Owner:
    """Returns the record in a size that fits beside the user's text.

    While the metadata would exceed LIMIT bytes, the digests inside one more field are bundled, largest field first.
    """
    over = _bytes(write(text, record)) - LIMIT
    if over <= 0:
        return record
    folded = {field.name: fold(field, record.applied) for field in kind.fields}
    for name in sorted(folded, key=lambda name: (_length(folded[name]), name)):
        applied = fold(kind.by_name[name], record.applied)
        if over > 0 and _length(applied) < _length(record.applied):
            over -= _length(record.applied) - _length(applied)
            record = record._replace(applied=applied)
    return record


def fold(field: Field, applied: Mapping[str, str]) -> dict[str, str]:
    """Returns the digests with those inside one field replaced by one digest of them, under `field.*`.

    Digests that are needed individually are not bundled: those of input-only fields and of server defaults.
    """
    inside = {path: value for path, value in applied.items() if path.startswith(f"{field.name}.")}
    bundled = {path: value for path, value in inside.items() if may_bundle(leaf_at((field,), path))}
    if not bundled:
        return dict(applied)
    rest = {path: value for path, value in applied.items() if path not in bundled}
    return {**rest, bundle(field.name): digest(bundled)}


def bundle(name: str) -> str:
    """The path of a field's bundled digest in a record."""
    return f"{name}.*"


def may_bundle(leaf: Field | None) -> bool:
    """Whether the digest of a leaf may be bundled with the others inside the same field."""
    return leaf is not None and InputOnly not in leaf and ServerDefault not in leaf


def _bytes(text: str) -> int:
    return len(text.encode(errors="surrogatepass"))


def _length(applied: Mapping[str, str]) -> int:
    return len(json.dumps(dict(applied), separators=(",", ":")))


def room(text: str, record: Owner, kind: Kind) -> int:
    """The bytes that are available for the user's text beside the record. At least LIMIT - MOST."""
    size = _bytes(text)
    if size <= LIMIT - MOST:
        return LIMIT - MOST
    full = record._replace(intent="0" * 16, applied=dict.fromkeys(record.applied, "0" * 10))
    full = full._replace(sources=dict.fromkeys(record.sources, "0" * 10))
    return LIMIT - _bytes(write(text, fit(text, full, kind))) + size


def read(metadata: str | None) -> tuple[str, Owner | None]:
    """Returns the user's text and the record, None if there is none. An invalid record is part of the user's text."""
    text = metadata or ""
    record = _find_record(text)
    return (text, None) if record is None else record[:2]


def _find_record(text: str) -> tuple[str, Owner, Any] | None:
    """Finds the record: the last line that is one, otherwise the member of a JSON object.

    Returns the text without the record, the parsed record, and its JSON value.
    """
    is_marked = _MARK in text
    if not is_marked and _NAME not in text:
        return None
    for rest, record in _lines(text) if is_marked else ():
        if (owner := _decode(record, text)) is not None:
            return rest, owner, record
    parsed = _parse_json(text)
    member = parsed.get(KEY) if isinstance(parsed, dict) else None
    owner = _decode(member, text)
    return None if owner is None else (_without_member(text, parsed), owner, member)


def holds(applied: Mapping[str, str], name: str) -> bool:
    """Whether `applied` has a digest for this field or for a leaf inside it."""
    if isinstance(applied, _Applied) and not applied.may_name(name):
        return False
    return any(key == name or key.startswith(f"{name}.") for key in applied)


def _lines(text: str) -> Iterator[tuple[str, Any]]:
    """Yields the lines that may be a record, last line first: the text without the line, and its JSON value."""
    start = len(text)
    while (start := text.rfind(_MARK, 0, start)) >= 0:
        if start > 0 and text[start - 1] != "\n":
            continue
        line, newline, after = text[start + len(_MARK) :].partition("\n")
        before = text[: start - 1] if start else ""
        yield (f"{before}{newline}{after}" if start else after), _parse_json(line)


def _without_member(text: str, parsed: dict[str, Any]) -> str:
    if len(parsed) == 1:
        return ""
    rest = {key: value for key, value in parsed.items() if key != KEY}
    _, tail = _split_last_brace(text)
    original = text[: text.rfind(_MEMBER)].removesuffix(",") + "}" + tail
    if _parse_json(original) == rest:
        return original
    # The object was reformatted around the record: its text cannot be restored, only its value.
    spelled = json.loads(text, parse_float=lambda number: keep_spelling(number, float(number)))
    return dump_json({key: value for key, value in spelled.items() if key != KEY})


def _split_last_brace(text: str) -> tuple[str, str]:
    end = text.rindex("}")
    return text[:end], text[end + 1 :]


def _encode(owner: Owner) -> str:
    record: dict[str, Any] = {"stack": owner.stack, "address": str(owner.address), "intent": owner.intent}
    if owner.applied:
        record["applied"] = dict(sorted(owner.applied.items()))
    if owner.protect:
        record["protect"] = True
    if owner.pending:
        record["pending"] = True
    if owner.replaces:
        record["replaces"] = owner.replaces
    if owner.sources:
        record["sources"] = dict(sorted(owner.sources.items()))
    return json.dumps(record, separators=(",", ":"), ensure_ascii=False)


class _Applied(Mapping[str, str]):
    """The `applied` digests of a record, parsed on first use: most objects never need them."""

    __slots__ = ("_metadata", "_read")

    def __init__(self, metadata: str) -> None:
        self._metadata = metadata
        self._read: Mapping[str, str] | None = None

    @property
    def _digests(self) -> Mapping[str, str]:
        if self._read is None:
            found = _find_record(self._metadata)
            assert found is not None
            self._read = {_once(path): str(value) for path, value in found[2]["applied"].items()}
        return self._read

    def may_name(self, word: str) -> bool:
        """False if the record cannot contain the word. Does not parse the record."""
        return word in self._metadata or "\\" in self._metadata

    def __getitem__(self, path: str) -> str:
        return self._digests[path]

    def __iter__(self) -> Iterator[str]:
        return iter(self._digests)

    def __len__(self) -> int:
        return len(self._digests)

    def __repr__(self) -> str:
        return repr(self._digests)


def _decode(record: Any, metadata: str) -> Owner | None:
    if not isinstance(record, dict):
        return None
    stack, address, intent = record.get("stack"), record.get("address"), record.get("intent")
    if not (isinstance(stack, str) and isinstance(address, str) and isinstance(intent, str)):
        return None
    try:
        where = Address.parse(address)
    except ValueError:
        return None
    applied, replaces, sources = record.get("applied"), record.get("replaces"), record.get("sources")
    return Owner(
        _once(stack),
        where,
        intent,
        _Applied(metadata) if isinstance(applied, dict) and applied else _NOTHING,
        record.get("protect") is True,
        record.get("pending") is True,
        replaces if isinstance(replaces, str) else None,
        {_once(name): str(value) for name, value in sources.items()} if isinstance(sources, dict) else _NOTHING,
    )


@lru_cache(maxsize=1024)
def _once(word: str) -> str:
    """Returns one shared string for equal words: thousands of records have the same stack and fields."""
    return word


_DECODER: Final = msgspec.json.Decoder()


def _parse_json(text: str) -> Any:
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError):  # the text is not trusted, and may be nested too deeply
        return _parse_loosely(text)


def _parse_loosely(text: str) -> Any:
    """Parses NaN and unpaired surrogates too: a record in the same text still counts."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
