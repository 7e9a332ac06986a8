"""The owner record: whose a live object is, kept in the object's own `metadata` beside the user's text.

An empty text or a JSON object with members carries the record as its last key, `reconciler`; any other text as a last
line `#reconciler {…}`. The user's text reads back byte for byte. A record that somebody re-formatted, or wrote text
behind, still counts: who loses sight of an object makes it a second time.

A record holds a digest for each field inside a field, or one for all of them where that would take too many bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from reconciler.model.address import Address
from reconciler.model.canonical import leaf_at
from reconciler.model.fields.annotations import InputOnly, ServerDefault
from reconciler.model.fields.field import Field
from reconciler.model.kind import Kind
from reconciler.model.value import digest

KEY = "reconciler"
LIMIT: Final = 4096  # bytes of metadata that the platform takes
MOST: Final = 1280  # bytes of the longest record of any kind, with what separates it from the user's text
_MARK = f"#{KEY} "
_NAME = f'"{KEY}"'
_MEMBER = f"{_NAME}:"
_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


class Owner(NamedTuple):
    """Which declaration of which stack an object belongs to. A tuple, because a look makes one for every object.

    intent     random, new with every create: finds the object of a create whose answer was lost
    applied    a digest per field that was last applied with a value other than its default, or per `fold`
    protect    the object may not be deleted, even when its declaration is gone
    pending    the object's one-time secret has not been delivered yet
    replaces   id of the object this one was created to replace; tells the two apart while both live
    """

    stack: str
    address: Address
    intent: str
    applied: Mapping[str, str] = _NOTHING
    protect: bool = False
    pending: bool = False
    replaces: str | None = None


def write(text: str, owner: Owner) -> str:
    """The user's text with the record added."""
    record = _encode(owner)
    if text == "":
        return f"{{{_MEMBER}{record}}}"
    parsed = _parse_json(text)
    if isinstance(parsed, dict) and parsed:
        head, tail = _split_last_brace(text)
        return f"{head},{_MEMBER}{record}}}{tail}"
    return f"{text}\n{_MARK}{record}"


def fit(text: str, record: Owner, kind: Kind) -> Owner:
    """The record as it is written beside the user's text: where it would exceed LIMIT, the digests inside the largest
    fields are bundled, one field after the other, until it fits."""
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
    """The digests with those inside one field bundled under `field.*`: a digest of their paths and digests.

    Digests that are asked for each by itself stay: of values that responses never show, and of the platform's choices.
    """
    inside = {path: told for path, told in applied.items() if path.startswith(f"{field.name}.")}
    bundled = {path: told for path, told in inside.items() if may_bundle(leaf_at((field,), path))}
    if not bundled:
        return dict(applied)
    rest = {path: told for path, told in applied.items() if path not in bundled}
    return {**rest, bundle(field.name): digest(bundled)}


def bundle(name: str) -> str:
    """The path under which a record holds the bundled digests of a field."""
    return f"{name}.*"


def may_bundle(leaf: Field | None) -> bool:
    """Whether the digest of a field inside another may be bundled with those beside it."""
    return leaf is not None and InputOnly not in leaf and ServerDefault not in leaf


def _bytes(text: str) -> int:
    return len(text.encode(errors="surrogatepass"))


def _length(applied: Mapping[str, str]) -> int:
    return len(json.dumps(dict(applied), separators=(",", ":")))


def room(text: str, record: Owner, kind: Kind) -> int:
    """The bytes that the user's text may have beside the record, whatever its digests. At least LIMIT - MOST."""
    size = _bytes(text)
    if size <= LIMIT - MOST:
        return LIMIT - MOST
    full = record._replace(intent="0" * 16, applied=dict.fromkeys(record.applied, "0" * 10))
    return LIMIT - _bytes(write(text, fit(text, full, kind))) + size


def read(metadata: str | None) -> tuple[str, Owner | None]:
    """The user's text, and the record if there is one. A record that cannot be read is the user's text."""
    text = metadata or ""
    found = _find_record(text)
    return (text, None) if found is None else found[:2]


def _find_record(text: str) -> tuple[str, Owner, Any] | None:
    """The text around the record, what the record says, and the record itself: the last line that is one, or else the
    member of an object."""
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
    """Whether anything was applied to this field, or inside it."""
    if isinstance(applied, _Applied) and not applied.may_name(name):
        return False
    return any(key == name or key.startswith(f"{name}.") for key in applied)


def _lines(text: str) -> Iterator[tuple[str, Any]]:
    """What may be a record, and the text around it: lines from the last to the first."""
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
    # Somebody may have re-written the object around our record: then its meaning is all that is left to keep.
    return original if _parse_json(original) == rest else json.dumps(rest, separators=(",", ":"), ensure_ascii=False)


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
    return json.dumps(record, separators=(",", ":"), ensure_ascii=False)


class _Applied(Mapping[str, str]):
    """What a record says was applied, read when somebody asks: of most objects nobody does, and there are many."""

    __slots__ = ("_metadata", "_read")

    def __init__(self, metadata: str) -> None:
        self._metadata = metadata
        self._read: Mapping[str, str] | None = None

    @property
    def _digests(self) -> Mapping[str, str]:
        if self._read is None:
            found = _find_record(self._metadata)
            assert found is not None
            self._read = {_once(path): str(told) for path, told in found[2]["applied"].items()}
        return self._read

    def may_name(self, word: str) -> bool:
        """False: the record surely says nothing of it, for which it need not be read."""
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
    told = record.get
    stack, address, intent = told("stack"), told("address"), told("intent")
    if not (isinstance(stack, str) and isinstance(address, str) and isinstance(intent, str)):
        return None
    try:
        where = Address.parse(address)
    except ValueError:
        return None
    applied, replaces = told("applied"), told("replaces")
    return Owner(
        _once(stack),
        where,
        intent,
        _Applied(metadata) if isinstance(applied, dict) and applied else _NOTHING,
        told("protect") is True,
        told("pending") is True,
        replaces if isinstance(replaces, str) else None,
    )


@lru_cache(maxsize=1024)
def _once(word: str) -> str:
    """One object for all equal words: thousands of records name the same stack and the same fields."""
    return word


_DECODER: Final = json.JSONDecoder()  # what json.loads has, without its looks at what it was given


def _parse_json(text: str) -> Any:
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError):  # the text is anybody's, and may be nested without end
        return None
