"""Decompresses the body of a response piece by piece, so that a small response cannot fill the memory.

Requests accept gzip once, or no encoding. Others, and several, are refused: no server may send what was not accepted.
"""

from __future__ import annotations

import zlib
from typing import Final

ACCEPTED: Final = "gzip"
"""The value of Accept-Encoding of requests to the platform and to agents; others have none."""

_GZIP: Final = zlib.MAX_WBITS | 16  # with the header and the checksum of gzip
_SAME: Final = ("", "identity")


class UnusableBody(Exception):
    """Why a body cannot be decompressed, in words that follow `the response of PEER`.

    lasting  a retry would fail in the same way
    """

    def __init__(self, why: str, *, lasting: bool) -> None:
        super().__init__(why)
        self.lasting = lasting


class TooLarge(Exception):
    """The body is larger than the limit."""


class Body:
    """The content of one response, of at most `largest` bytes, before and after decompression.

    encoding  the value of Content-Encoding
    """

    def __init__(self, encoding: str, largest: int) -> None:
        """Raises UnusableBody for an encoding that was not accepted."""
        names = [name for part in encoding.split(",") if (name := part.strip().lower()) not in _SAME]
        if names not in ([], ["gzip"], ["x-gzip"]):
            readable = "".join(letter for letter in encoding[:60] if letter.isalnum() or letter in " ,-")
            raise UnusableBody(f"has the content encoding {readable!r}; only gzip, once, is accepted", lasting=True)
        self._stream = zlib.decompressobj(_GZIP) if names else None
        self._largest = largest
        self._received = 0
        self._content = bytearray()

    def feed(self, chunk: bytes) -> None:
        """Adds a piece as it was received. Raises TooLarge or UnusableBody."""
        self._received += len(chunk)
        if self._received > self._largest:
            raise TooLarge
        if self._stream is None:
            self._content += chunk
            return
        try:
            # One byte more than may follow, so that the decompressor stops right after the limit.
            self._content += self._stream.decompress(chunk, self._largest - len(self._content) + 1)
        except zlib.error:
            raise UnusableBody("is not valid gzip", lasting=False) from None
        if len(self._content) > self._largest:
            raise TooLarge

    def end(self) -> bytes:
        """The whole content. Raises UnusableBody if a compressed body was cut off."""
        if self._stream is not None and self._received and not self._stream.eof:
            raise UnusableBody("ends in the middle of its gzip stream", lasting=False)
        return bytes(self._content)
