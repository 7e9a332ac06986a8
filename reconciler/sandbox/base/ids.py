"""Ids and tokens in the platform's format: a prefix and a KSUID, 27 base62 characters that sort by creation time."""

from __future__ import annotations

import re
import secrets
import string
import time

ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase
LENGTH = 27  # base62 digits that hold 20 bytes
_EPOCH = 1_400_000_000  # KSUID counts seconds from 2014-05-13
_PAIRS = [high + low for high in ALPHABET for low in ALPHABET]
_KSUID = re.compile(rf"[0-9A-Za-z]{{{LENGTH}}}")


class Ksuids:
    """Generates KSUIDs that strictly increase, even within one second or when the clock is set back."""

    def __init__(self, last: str = "") -> None:
        self._last = _number(last) if is_ksuid(last) else 0

    def new(self) -> str:
        chance = int.from_bytes(secrets.token_bytes(16))
        fresh = (int(time.time()) - _EPOCH << 128) + chance
        # Within one second the random part may be less than that of the last id: add a random step to the last id.
        self._last = fresh if fresh > self._last else self._last + 1 + chance % (1 << 96)
        return _text(self._last)


def is_ksuid(text: str) -> bool:
    return _KSUID.fullmatch(text) is not None


def is_id(text: str, prefix: str) -> bool:
    return text.startswith(prefix) and is_ksuid(text[len(prefix) :])


def prefix_of(text: str) -> str:
    """The prefix of a well-formed id, such as `edgtls_`; empty for any other text."""
    prefix, underscore, rest = text.rpartition("_")
    return prefix + underscore if underscore and is_ksuid(rest) else ""


def token(identity: str) -> str:
    """A one-time token: the KSUID of the id and 21 random characters."""
    secret = "".join(secrets.choice(ALPHABET) for _ in range(21))
    return f"{identity.rpartition('_')[2]}_{secret}"


def _text(number: int) -> str:
    pairs = []
    for _ in range(3):  # ten digits fit into a machine word, which is divided faster
        number, part = divmod(number, 62**10)
        for _ in range(5):
            part, pair = divmod(part, 62**2)
            pairs.append(_PAIRS[pair])
    return "".join(reversed(pairs))[-LENGTH:]


def _number(text: str) -> int:
    number = 0
    for digit in text:
        number = number * 62 + ALPHABET.index(digit)
    return number
