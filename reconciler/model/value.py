"""What a field may hold: plain JSON, and what is not plain yet.

A `Ref` stands for a field of another resource, a `Template` for text with references inside, a `JsonTemplate` for a
document with them that is sent as text, a `Secret` for text that must never be shown. Containers are plain dicts and
lists, treated as frozen by everybody.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NoReturn

from reconciler.model.address import Address

Json = Any
Value = Any  # Json, or a Ref, Template, JsonTemplate or Secret anywhere inside it


@dataclass(frozen=True, slots=True)
class Ref:
    """A field of another declared resource; its `id` unless said otherwise."""

    target: Address
    output: str = "id"

    def __str__(self) -> str:
        return str(self.target) if self.output == "id" else f"{self.target}.{self.output}"


@dataclass(frozen=True, slots=True)
class Template:
    """Text with `${{ Kind/name.field }}` inside: literal parts and references, in order."""

    parts: tuple[str | Ref, ...]

    def __str__(self) -> str:
        return "".join(part if isinstance(part, str) else f"${{{{ {part} }}}}" for part in self.parts)


@dataclass(frozen=True, slots=True)
class JsonTemplate:
    """JSON text in the making: literal parts, and values that are not known yet, each to be spelt as JSON."""

    parts: tuple[str | Ref | Template, ...]


PENDING: Final = Template(())  # stands for what could not be resolved: its problem has been told


class Secret:
    """Text that cannot print itself. `source` says where it came from (`env:NAME`, `file:path`, `manifest:…`)."""

    __slots__ = ("_text", "source")

    def __init__(self, text: str, source: str) -> None:
        self._text = text
        self.source = source

    def reveal(self) -> str:
        """The text itself: for the wire, a sink or a comparison, never for a person."""
        return self._text

    def __repr__(self) -> str:
        return f"Secret({self.source})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret is not written to disk")


class Sealed(Secret):
    """A secret of which only digests are known: it stands for the text where that must not be, or cannot be had.

    digests    by salt, as `digest` would have them
    spellings  digests, with `salt`, of the texts that count as the same: who shares one is equal
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
        raise TypeError(f"nobody knows the text of {self!r}")

    def digest(self, salt: str) -> str:
        """With a salt that nobody foresaw, something else that stays the same."""
        return self.digests.get(salt) or digest([self.source, sorted(self.spellings), salt])

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Sealed):
            same = self.source == other.source and not self.spellings and not other.spellings
            return same or not self.spellings.isdisjoint(other.spellings)
        return isinstance(other, Secret) and digest(other, self.salt) in self.spellings

    __hash__ = None  # type: ignore[assignment]  # equal ones may differ in all but one of their spellings


def reveal_text(value: Value) -> str | None:
    """A text that is known already, be it secret: to look at, never to show."""
    if isinstance(value, Secret) and not isinstance(value, Sealed):
        return value.reveal()
    return value if isinstance(value, str) else None


@dataclass(frozen=True, slots=True)
class Hidden:
    """What stands in a plan for a sensitive value: equal digests, equal values."""

    digest: str


def references(value: Value) -> Iterator[Ref]:
    """Every reference inside, depth first."""
    found: list[Ref] = []
    _collect(value, found)
    return iter(found)


def _collect(value: Value, found: list[Ref]) -> None:
    match value:
        case Ref():
            found.append(value)
        case dict():
            for item in value.values():
                if item.__class__ not in _PLAIN:
                    _collect(item, found)
        case list() | tuple():
            for item in value:
                if item.__class__ not in _PLAIN:
                    _collect(item, found)
        case Template(parts) | JsonTemplate(parts):
            for part in parts:
                _collect(part, found)


_PLAIN = frozenset({str, int, float, bool, type(None)})  # what most of a spec is


def is_known(value: Value) -> bool:
    """Whether nothing inside waits for another resource."""
    return value.__class__ in _PLAIN or next(references(value), None) is None


def substitute(value: Value, resolve: Callable[[Ref], Value]) -> Value:
    """The same value with each reference replaced by what `resolve` answers (the Ref itself: not known yet)."""
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
            return "".join(resolved) if is_known(resolved) else JsonTemplate(tuple(resolved))
        case dict():
            return {key: substitute(item, resolve) for key, item in value.items()}
        case list() | tuple():
            return [substitute(item, resolve) for item in value]
    return value


def _within_text(value: Value) -> str:
    return value if isinstance(value, str) else json_text(value)


def _within_json(value: Value) -> str | Ref | Template:
    return value if isinstance(value, (Ref, Template)) else json_text(value)


def json_text(value: Json) -> str:
    """A plain value as inline documents are sent: with the keys in the order they were written in."""
    return json.dumps(value, ensure_ascii=False)


def reveal(value: Value) -> Json:
    """The value as the wire needs it: secrets in the clear. For request bodies only."""
    match value:
        case Secret():
            return value.reveal()
        case dict():
            return {key: reveal(item) for key, item in value.items()}
        case list() | tuple():
            return [reveal(item) for item in value]
    return value


def has_secret(value: Value) -> bool:
    match value:
        case Secret():
            return True
        case dict():
            return any(has_secret(item) for item in value.values())
        case list() | tuple():
            return any(has_secret(item) for item in value)
    return False


def secrets_in(value: Value) -> Iterator[Secret]:
    """Every secret inside, as often as it is there."""
    match value:
        case Secret():
            yield value
        case dict() | Mapping():
            for item in value.values():
                if item.__class__ not in _PLAIN:
                    yield from secrets_in(item)
        case list() | tuple():
            for item in value:
                if item.__class__ not in _PLAIN:
                    yield from secrets_in(item)


def canonical(value: Json) -> bytes:
    """One spelling of a plain value: compact JSON with sorted keys."""
    # JSON may hold half a character, and so may what a platform answers.
    return _CANONICAL.encode(value).encode(errors="surrogatepass")


_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def digest(value: Value, salt: str = "") -> str:
    """Ten hex digits that stand for a known value in owner records and plans.

    A value with a secret inside goes through scrypt with the salt, so that the digest, which lives where others
    may read it, does not help to guess a short secret.
    """
    if isinstance(value, Sealed):
        return value.digest(salt)
    if has_secret(value):
        return _slow_digest(canonical(reveal(_replace_sealed(value, salt))), salt)
    return hashlib.blake2b(canonical(value), digest_size=5).hexdigest()


def _replace_sealed(value: Value, salt: str) -> Value:
    match value:
        case Sealed():
            return value.digest(salt)
        case dict():
            return {key: _replace_sealed(item, salt) for key, item in value.items()}
        case list() | tuple():
            return [_replace_sealed(item, salt) for item in value]
    return value


@lru_cache(maxsize=4096)
def _slow_digest(text: bytes, salt: str) -> str:
    # n=2**13, r=8: about 10 ms and 8 MB a guess, cheap for a project and dear for a word list
    return hashlib.scrypt(text, salt=salt.encode(errors="surrogatepass"), n=2**13, r=8, p=1, dklen=5).hex()
