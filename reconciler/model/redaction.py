"""Removes secrets from text of other programs, such as errors of the platform or a database driver that quote input.

A secret is replaced as a whole value, not inside a longer word or number. With the secret `http://127.0.0.1:80`, the
text `cannot reach http://127.0.0.1:809` is not changed. A long secret is replaced inside a longer word too. Three
things are replaced anywhere, since they cannot occur by chance: encoded secrets (base64, hexadecimal), parts of random
text, and the beginning of a secret before the end of a truncated quotation.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator
from typing import Final
from urllib.parse import quote, quote_plus

PIECE: Final = 8  # characters of a random secret that reveal too much of it
RANDOM: Final = 12  # characters without punctuation that are random text if they mix cases or digits
LEAST: Final = 4  # characters of an encoded secret; shorter ones occur in many words
_SPACE = re.compile(r"\s+")
_WORD = re.compile(rf"[A-Za-z0-9_]{{{RANDOM},}}")
_CLASSES = (re.compile(r"[a-z]"), re.compile(r"[A-Z]"), re.compile(r"[0-9]"))
_ESCAPE = re.compile(r"(%[0-9A-Fa-f]{2}|\\(u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2}|[abfnrtv0]))\Z")  # ends before the value
_PERCENT = re.compile(r"%[0-9A-F]{2}")
_CUT = re.compile(r"\s*(…|\.\.\.)")


class Redactor:
    """Removes the same secrets from many texts. `replacement` replaces each of them.

    White space inside a long secret is ignored, since messages are often wrapped or put on one line.
    """

    def __init__(self, secrets: Iterable[str], replacement: str = "(secret)") -> None:
        self._new = list(secrets)
        self._replacement = replacement
        self._random = ""  # random parts of all spellings, one on each line
        self._whole: set[str] = set()  # replaced only between word boundaries
        self._short: set[str] = set()  # short secrets, with their white space
        self._anywhere: set[str] = set()

    def add(self, secret: str) -> None:
        self._new.append(secret)

    def redact(self, text: str) -> str:
        """The text without the secrets."""
        if not text:
            return text
        self._learn()
        kept = [place for place, character in enumerate(text) if not character.isspace()]
        bare = "".join(text[place] for place in kept)
        covered = bytearray(len(text))
        for start, end in self._runs(text, bare, kept):
            first, last = kept[start], kept[end - 1] + 1
            covered[first:last] = b"\1" * (last - first)
        parts, done = [], 0
        for run in re.finditer(rb"\x01+", covered):
            parts += [text[done : run.start()], self._replacement]
            done = run.end()
        return "".join([*parts, text[done:]])

    def _learn(self) -> None:
        """Computes the spellings of new secrets. Done on the first text, because most runs redact none."""
        random = [self._random] if self._random else []
        for secret in self._new:
            plain, coded = _spellings(secret)
            self._short |= {text for text in (secret.strip(), *plain, *coded) if len(text) < 2 * PIECE}
            self._whole |= plain | {text for text in coded if len(text) < PIECE}
            self._anywhere |= {text for text in coded if len(text) >= PIECE}
            random += [part for text in plain for part in _WORD.findall(text) if _is_random(part)]
            random += [text for text in coded if len(text) >= RANDOM]
        self._new = []
        self._random = "\n".join(random)

    def _runs(self, text: str, bare: str, kept: list[int]) -> Iterator[tuple[int, int]]:
        """Yields the ranges of secrets in `bare`, the text without white space."""
        random = self._random
        pieces = {bare[start : start + PIECE] for start in range(len(bare) - PIECE + 1)} if random else set()
        # One pass over the secrets: a message has a few hundred pieces, and a project may have a megabyte of keys.
        secret_pieces = {piece for start in range(len(random)) if (piece := random[start : start + PIECE]) in pieces}
        for start in range(len(bare) - PIECE + 1) if secret_pieces else ():
            if bare[start : start + PIECE] in secret_pieces:
                yield start, start + PIECE
        for secret in self._anywhere:
            for start in _places(secret, bare):
                yield start, start + len(secret)
        for secret in self._whole:
            for start in _places(secret[:PIECE], bare):
                end = start + _common(secret, bare, start)
                is_whole = end - start == len(secret)
                first, last = kept[start], kept[end - 1] + 1
                if is_whole and len(secret) < PIECE and text[first:last] not in self._short:
                    continue  # different white space: other words than the short secret
                if is_whole and len(secret) >= RANDOM:
                    if not _is_within_number(text, first, last):
                        yield start, end
                elif _begins(text, first) and (_ends(text, last) if is_whole else _CUT.match(text, last)):
                    yield start, end


def _places(part: str, bare: str) -> Iterator[int]:
    start = bare.find(part)
    while start >= 0:
        yield start
        start = bare.find(part, start + 1)


def _common(secret: str, bare: str, start: int) -> int:
    """The number of characters of the secret that `bare` has at `start`."""
    if bare.startswith(secret, start):
        return len(secret)
    return next((at for at, char in enumerate(secret) if bare[start + at : start + at + 1] != char), len(secret))


def _begins(text: str, start: int) -> bool:
    """Whether a value at `start` does not begin inside a word or number. An escape sequence is neither."""
    joined = start > 0 and text[start].isalnum() and text[start - 1].isalnum()
    return not joined or _ESCAPE.search(text, max(0, start - 6), start) is not None


def _ends(text: str, end: int) -> bool:
    return end >= len(text) or not (text[end - 1].isalnum() and text[end].isalnum())


def _is_within_number(text: str, start: int, end: int) -> bool:
    """Whether the range is part of a longer number, such as `80` in `809`."""
    if end < len(text) and text[end - 1].isdigit() and text[end].isdigit():
        return True
    joined = start > 0 and text[start].isdigit() and text[start - 1].isdigit()
    return joined and _ESCAPE.search(text, max(0, start - 6), start) is None


def _is_random(part: str) -> bool:
    """Whether text without punctuation mixes lower case, upper case or digits, unlike words."""
    return sum(cls.search(part) is not None for cls in _CLASSES) > 1


def redact(text: str, secrets: Iterable[str], replacement: str = "(secret)") -> str:
    """Returns one text without these secrets; see `Redactor`."""
    return Redactor(secrets, replacement).redact(text)


def _spellings(secret: str) -> tuple[set[str], set[str]]:
    """The spellings of a secret: plain, and encoded.

    Plain: unchanged, and escaped for JSON (once, and inside a JSON text), Python, URLs and HTML. Encoded: as base64 and
    hexadecimal digits.
    """
    import html  # imported here, because it loads a table of two thousand names

    octets = secret.encode(errors="surrogatepass")
    addressed = (quote(octets, safe=""), quote(octets), quote_plus(octets))
    plain = {
        json.dumps(secret)[1:-1],
        json.dumps(secret, ensure_ascii=False)[1:-1],
        json.dumps(json.dumps(secret))[3:-3],
        json.dumps(json.dumps(secret, ensure_ascii=False), ensure_ascii=False)[3:-3],
        repr(secret)[1:-1],
        repr(octets)[2:-1],
        *addressed,
        *(_PERCENT.sub(lambda match: match[0].lower(), text) for text in addressed),
        html.escape(secret),
    }
    coded = {octets.hex(), octets.hex().upper()}
    for before in range(3):
        # Characters at either end that also encode bits of the neighboring text are omitted.
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            text = encode(b"\0" * before + octets).decode().rstrip("=")
            coded.add(text[(before * 8 + 5) // 6 : (before + len(octets)) * 8 // 6])
    own = _SPACE.sub("", secret)
    return (
        {bare for text in plain if len(bare := _SPACE.sub("", text)) >= LEAST} | ({own} if own else set()),
        {text for text in coded if len(text) >= LEAST} - {own},
    )
