"""Values of fields: plain JSON, references, templates and secrets, and the functions that resolve and digest them.

A `Ref` stands for a field of another resource, a `Template` for text that contains references, a `JsonTemplate` for a
document that contains references and is sent as text, a `Secret` for text that must never be displayed. Containers are
plain dicts and lists, which must not be modified.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from operator import is_
from typing import Any, Final, NoReturn

from msgspec import Struct

from reconciler.model import numerals
from reconciler.model.address import Address

Json = Any
Value = Any  # Json, or a Ref, Template, JsonTemplate or Secret anywhere inside it

OMITTED: Final = object()
"""The value of a field that a manifest should omit."""


class Ref(Struct, frozen=True):
    """A reference to an output of another declared resource; by default its `id`."""

    target: Address
    output: str = "id"

    def __str__(self) -> str:
        return str(self.target) if self.output == "id" else f"{self.target}.{self.output}"


class Template(Struct, frozen=True):
    """Text with `${{ Kind/name.field }}` inside: literal parts and references, in order."""

    parts: tuple[str | Ref, ...]

    def __str__(self) -> str:
        return "".join(part if isinstance(part, str) else f"${{{{ {part} }}}}" for part in self.parts)


class JsonTemplate(Struct, frozen=True):
    """JSON text with literal parts, and references, templates and secrets whose values are inserted as JSON."""

    parts: tuple[str | Ref | Template | Secret, ...]


PENDING: Final = Template(())  # a value that could not be resolved; its problem was reported


class Secret:
    """Text that is never displayed. `source` names its origin: `env:NAME`, `file:path`, `manifest:…`."""

    __slots__ = ("_text", "source")

    def __init__(self, text: str, source: str) -> None:
        self._text = text
        self.source = source

    def reveal(self) -> str:
        """The text itself: for requests, sinks and comparisons, never for output."""
        return self._text

    def __repr__(self) -> str:
        return f"Secret({self.source})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret cannot be pickled")


class Sealed(Secret):
    """A secret of which only digests are known, as in snapshots and plan files.

    digests    the results of `digest`, by salt
    spellings  digests with `salt` of the equivalent texts; two secrets with a common one are equal
    """

    __slots__ = ("digests", "salt", "spellings")

    def __init__(
        self, source: str, digests: Mapping[str, str] | None = None, spellings: Iterable[str] = (), salt: str = ""
    ) -> None:
        super().__init__("", source)
        self.digests = dict(digests or {})
        self.spellings = frozenset(spellings)
        self.salt = salt

    def reveal(self) -> str:
        raise TypeError(f"the text of {self!r} is not known")

    def digest(self, salt: str) -> str:
        """The digest with this salt; for other salts than those of `digests`, a stable substitute."""
        return self.digests.get(salt) or digest([self.source, sorted(self.spellings), salt])

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Sealed):
            same = self.source == other.source and not self.spellings and not other.spellings
            return same or not self.spellings.isdisjoint(other.spellings)
        return isinstance(other, Secret) and digest(other, self.salt) in self.spellings

    __hash__ = None  # type: ignore[assignment]  # equal secrets may have only one spelling in common


class UnreadSecret(Sealed):
    """A secret that this run may not read. It has digests if its value is assumed to be the one last applied."""

    __slots__ = ()

    @property
    def is_assumed(self) -> bool:
        return bool(self.digests)


def reveal_text(value: Value) -> str | None:
    """The text of a plain text or a secret, None for any other value. For checks, never for output."""
    if isinstance(value, Secret) and not isinstance(value, Sealed):
        return value.reveal()
    return value if isinstance(value, str) else None


class Hidden(Struct, frozen=True):
    """The digest of a sensitive value, which replaces the value in a plan. Equal digests: equal values.

    unread   the source of a value that was not read and is not known, such as `env:NAME`; the digest is empty
    """

    digest: str
    unread: str = ""


def references(value: Value) -> Iterator[Ref]:
    """Yields every reference inside a value, depth first."""
    found: list[Ref] = []
    _collect(value, found)
    return iter(found)


def _collect(value: Value, found: list[Ref]) -> None:
    match value:
        case Ref():
            found.append(value)
        case dict():
            for item in value.values():
                if item.__class__ not in PLAIN:
                    _collect(item, found)
        case list() | tuple():
            for item in value:
                if item.__class__ not in PLAIN:
                    _collect(item, found)
        case Template(parts) | JsonTemplate(parts):
            for part in parts:
                _collect(part, found)


PLAIN = frozenset({str, int, float, bool, type(None)})  # the types of most values, checked first for speed


def is_known(value: Value) -> bool:
    """Whether a value contains no reference."""
    return value.__class__ in PLAIN or next(references(value), None) is None


def substitute(value: Value, resolve: Callable[[Ref], Value]) -> Value:
    """The value with each reference replaced by the result of `resolve`, which returns the Ref itself if it is unknown.

    A template whose references are all known becomes text.
    """
    if value.__class__ is str:
        return value
    match value:
        case Ref():
            return resolve(value)
        case Template(parts):
            resolved = [part if isinstance(part, str) else resolve(part) for part in parts]
            if any(isinstance(part, Ref) for part in resolved):
                return Template(tuple(part if isinstance(part, Ref) else _within_text(part) for part in resolved))
            return "".join(_within_text(part) for part in resolved)
        case JsonTemplate(parts):
            resolved = [part if isinstance(part, str) else _within_json(substitute(part, resolve)) for part in parts]
            is_text = all(part.__class__ is str for part in resolved)
            return "".join(resolved) if is_text else JsonTemplate(tuple(resolved))
        case dict():
            return {key: substitute(item, resolve) for key, item in value.items()}
        case list() | tuple():
            return [substitute(item, resolve) for item in value]
    return value


def _within_text(value: Value) -> str:
    return value if isinstance(value, str) else json_text(value)


def _within_json(value: Value) -> str | Ref | Template | Secret:
    return value if isinstance(value, (Ref, Template, Secret)) else json_text(value)


def json_text(value: Json) -> str:
    """JSON text of a plain value, with the keys in their order, as inline documents are sent."""
    if isinstance(value, numerals.Spelled):
        return repr(numerals.in_json(value))
    return json.dumps(value, ensure_ascii=False)


def reveal(value: Value) -> Json:
    """The value with the text of its secrets. For request bodies only."""
    match value:
        case Secret():
            return value.reveal()
        case JsonTemplate(parts) if is_known(value):
            return "".join(part if isinstance(part, str) else json_text(reveal(part)) for part in parts)
        case dict():
            return {key: reveal(item) for key, item in value.items()}
        case list() | tuple():
            return [reveal(item) for item in value]
    return value


def has_secret(value: Value) -> bool:
    match value:
        case Secret():
            return True
        case JsonTemplate(parts):
            return any(isinstance(part, Secret) for part in parts)
        case dict():
            return any(has_secret(item) for item in value.values())
        case list() | tuple():
            return any(has_secret(item) for item in value)
    return False


def secrets_in(value: Value) -> Iterator[Secret]:
    """Yields every secret inside a value, including repeated ones."""
    found: list[Secret] = []
    _collect_secrets(value, found)
    return iter(found)


def _collect_secrets(value: Value, found: list[Secret]) -> None:
    match value:
        case dict() | Mapping():  # first: most values that are not plain
            for item in value.values():
                if item.__class__ not in PLAIN:
                    _collect_secrets(item, found)
        case list() | tuple():
            for item in value:
                if item.__class__ not in PLAIN:
                    _collect_secrets(item, found)
        case Secret():
            found.append(value)
        case JsonTemplate(parts):
            found += [part for part in parts if isinstance(part, Secret)]


def replace_secrets(value: Value, convert: Callable[[Secret], Secret]) -> Value:
    """The value with each secret replaced by the result of `convert`; the value itself if nothing changes."""
    if value.__class__ in PLAIN:
        return value
    match value:
        case Secret():
            return convert(value)
        case JsonTemplate(parts):
            return JsonTemplate(tuple(convert(part) if isinstance(part, Secret) else part for part in parts))
        case dict():
            members = {key: replace_secrets(item, convert) for key, item in value.items()}
            return value if all(map(is_, members.values(), value.values())) else members
        case list() | tuple():
            items = [replace_secrets(item, convert) for item in value]
            return value if all(map(is_, items, value)) else items
    return value


def find_secrets(value: Value, at: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Secret]]:
    """Yields each secret in maps and lists, with its path."""
    match value:
        case Secret():
            yield at, value
        case dict():
            for key, item in value.items():
                if item.__class__ not in PLAIN:
                    yield from find_secrets(item, (*at, key))
        case list() | tuple():
            for index, item in enumerate(value):
                if item.__class__ not in PLAIN:
                    yield from find_secrets(item, (*at, index))


def value_at(value: Value, path: Iterable[str | int], missing: Any = None) -> Value:
    """The value at a path; `missing` if there is none."""
    for part in path:
        try:
            value = value[part]
        except (KeyError, IndexError, TypeError):
            return missing
    return value


def walk_texts(value: Value, at: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Each text in maps and lists, with its path. Keys are not among them."""
    match value:
        case str():
            yield at, value
        case Mapping():
            for key, item in value.items():
                yield from walk_texts(item, (*at, key))
        case list() | tuple():
            for index, item in enumerate(value):
                yield from walk_texts(item, (*at, index))


def replace_at(value: Value, paths: Iterable[tuple[str | int, ...]], wrap: Callable[[str], Value]) -> Value:
    """The value with the scalars at the paths replaced by `wrap` of their text; the value itself without paths."""
    below: dict[str | int, list[tuple[str | int, ...]]] = {}
    for path in paths:
        if not path:
            return wrap(value if isinstance(value, str) else str(value))
        below.setdefault(path[0], []).append(path[1:])
    if not below:
        return value
    if isinstance(value, dict):
        return {key: replace_at(item, below.get(key, ()), wrap) for key, item in value.items()}
    return [replace_at(item, below.get(index, ()), wrap) for index, item in enumerate(value)]


def canonical(value: Json) -> bytes:
    """A plain value as compact JSON with sorted keys: equal values have equal bytes."""
    if value.__class__ is not str:
        value = numerals.mark_spelled(value)
    # JSON may contain an unpaired surrogate, and so may a response.
    return _CANONICAL.encode(value).encode(errors="surrogatepass")


_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def digest(value: Value, salt: str = "") -> str:
    """The digest of a known value in owner records and plans: ten hex digits.

    The digest of a secret is computed with scrypt and the salt, because others can read owner records and must not be
    able to guess a short secret from its digest. In the digest of a document each secret counts by its own digest, so
    that the document has the same digest where only the digests of its secrets are known.
    """
    if isinstance(value, Sealed):
        return value.digest(salt)
    if isinstance(value, Secret):
        return _slow_digest(canonical(value.reveal()), salt)
    if has_secret(value):
        value = _replace_secrets(value, salt)
    return hashlib.blake2b(canonical(value), digest_size=5).hexdigest()


def _replace_secrets(value: Value, salt: str) -> Value:
    match value:
        case Secret():
            return {"$secret": digest(value, salt)}
        case dict():
            return {key: _replace_secrets(item, salt) for key, item in value.items()}
        case list() | tuple():
            return [_replace_secrets(item, salt) for item in value]
    return value


@lru_cache(maxsize=4096)
def _slow_digest(text: bytes, salt: str) -> str:
    # n=2**13, r=8: about 10 ms and 8 MB for each guess, acceptable for a project and costly for a word list
    return hashlib.scrypt(text, salt=salt.encode(errors="surrogatepass"), n=2**13, r=8, p=1, dklen=5).hex()
