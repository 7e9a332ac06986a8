"""Random secrets, and a search for any piece of them in each usual encoding."""

from __future__ import annotations

import base64
import html
import json
import re
import secrets
import string
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, quote_plus

RUN = 8  # characters in a row that count as a match
# The shape of a one-time token of the sandbox: the id of its credential, which begins with a digit, and 21 characters.
# The columns of a store lie side by side: words, and then an id, are no token.
TOKEN = re.compile(rb"[0-9][0-9A-Za-z]{26}_[0-9A-Za-z]{21}")
_LETTERS = string.ascii_letters + string.digits


def fresh(awkward: str = "") -> str:
    """A secret of at least 32 random characters; `awkward` ones in the middle are spelt differently everywhere."""
    half = ["".join(secrets.choice(_LETTERS) for _ in range(16)) for _ in range(2)]
    return awkward.join(half)


def spellings(secret: str) -> Iterator[str]:
    """A secret as plain text, JSON, URL, HTML, hexadecimal, and base64 in both alphabets at all three alignments."""
    octets = secret.encode()
    yield secret
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    yield repr(secret)[1:-1]
    yield quote(octets, safe="")
    yield quote_plus(octets)
    yield html.escape(secret)
    yield octets.hex()
    yield octets.hex().upper()
    for before in range(3):
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            # The characters at the ends hold bits of the neighbours.
            yield encode(b"\0" * before + octets).decode().rstrip("=")[(before * 8 + 5) // 6 : -1]


@dataclass
class Canaries:
    """Secrets by what they are."""

    known: Mapping[str, str]
    searched: int = 0  # bytes searched
    places: set[str] = field(default_factory=set)
    _runs: dict[bytes, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        for what, secret in self.known.items():
            for spelling in spellings(secret):
                text = spelling.encode()
                for start in range(len(text) - RUN + 1):
                    self._runs.setdefault(text[start : start + RUN], what)

    @property
    def runs(self) -> int:
        return len(self._runs)

    def find(self, place: str, text: bytes) -> list[str]:
        """Which secrets show in the text, each as `what in place: …around it…`."""
        self.places.add(place)
        self.searched += len(text)
        runs = self._runs
        hits: dict[str, str] = {}
        for start in range(len(text) - RUN + 1):
            if (run := text[start : start + RUN]) in runs:
                around = text[max(0, start - 40) : start + RUN + 20]
                hits.setdefault(runs[run], f"{runs[run]} in {place}: {around!r}")
        return list(hits.values())

    def within(self, texts: Iterable[tuple[str, bytes]]) -> list[str]:
        return [hit for place, text in texts for hit in self.find(place, text)]
