"""Takes secrets out of foreign text: a platform may quote what it refuses, whole or in part, as it is or escaped.

Not for our own words, which never hold a secret in the first place.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator
from urllib.parse import quote, quote_plus

SHORTEST = 8  # characters of a secret that already say too much of it
LEAST = 4  # characters of a spelling that is not the secret's own: shorter ones are in every other word
_SPACE = re.compile(r"\s+")


class Veil:
    """Takes the same secrets out of many texts: whole, and every run of eight characters in any usual spelling.

    White space counts for nothing, since messages are often wrapped or put on one line.
    """

    def __init__(self, secrets: Iterable[str], shown: str = "(secret)") -> None:
        self._new = list(secrets)
        self._shown = shown
        self._long = ""  # all spellings, each on a line of its own
        self._short: set[str] = set()

    def add(self, secret: str) -> None:
        self._new.append(secret)

    def over(self, text: str) -> str:
        """The text without the secrets."""
        if not text:
            return text
        self._learn()
        kept = [place for place, character in enumerate(text) if not character.isspace()]
        bare = "".join(text[place] for place in kept)
        covered = bytearray(len(text))
        for start, end in self._runs(bare):
            first, last = kept[start], kept[end - 1] + 1
            covered[first:last] = b"\1" * (last - first)
        parts, done = [], 0
        for run in re.finditer(rb"\x01+", covered):
            parts += [text[done : run.start()], self._shown]
            done = run.end()
        return "".join([*parts, text[done:]])

    def _learn(self) -> None:
        """Spelling out waits until there is a text: in most runs there is none."""
        spelt = {spelling for secret in self._new for spelling in _spellings(secret)}
        self._new = []
        self._short |= {each for each in spelt if len(each) < SHORTEST}
        self._long = "\n".join([self._long, *(each for each in spelt if len(each) >= SHORTEST)])

    def _runs(self, bare: str) -> Iterator[tuple[int, int]]:
        said = {bare[start : start + SHORTEST] for start in range(len(bare) - SHORTEST + 1)}
        long = self._long
        # One pass over the secrets: a message has a few hundred runs, and a project may have a megabyte of keys.
        held = {run for start in range(len(long)) if (run := long[start : start + SHORTEST]) in said}
        for start in range(len(bare) - SHORTEST + 1):
            if bare[start : start + SHORTEST] in held:
                yield start, start + SHORTEST
        for secret in self._short:
            for found in re.finditer(re.escape(secret), bare):
                yield found.span()


def conceal(text: str, secrets: Iterable[str], shown: str = "(secret)") -> str:
    """One text without some secrets; see `Veil`."""
    return Veil(secrets, shown).over(text)


def _spellings(secret: str) -> set[str]:
    """The secret as it is, and as JSON, an address, HTML, base64 or hexadecimal digits would have it."""
    import html  # its table of two thousand names is for this alone

    octets = secret.encode(errors="surrogatepass")
    escaped = {
        secret,
        json.dumps(secret)[1:-1],
        json.dumps(secret, ensure_ascii=False)[1:-1],
        quote(octets, safe=""),
        quote(octets),
        quote_plus(octets),
        html.escape(secret),
        octets.hex(),
        octets.hex().upper(),
    }
    for before in range(3):
        # Of the characters at either end some bits belong to the neighbours: those are left out.
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            coded = encode(b"\0" * before + octets).decode().rstrip("=")
            first = (before * 8 + 5) // 6
            whole = (before + len(octets)) * 8 // 6
            escaped.add(coded[first:whole])
    spelt = {bare for each in escaped if len(bare := _SPACE.sub("", each)) >= LEAST}
    return spelt | {bare for bare in [_SPACE.sub("", secret)] if bare}
