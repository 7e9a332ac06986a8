"""Reads one HTTP/1.1 response from the bytes of a connection, however they are split. Knows no sockets.

Whatever two programs could read differently is refused: two lengths, a length beside chunks, lines that are continued
or end without CR. Otherwise a server, or a proxy before it, could pass a part of one response off as the next one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Protocol

from reconciler.api.headers import Headers

LARGEST_HEAD = 65_536  # bytes of all heads and trailers of one response; real ones have less than 2,000
MOST_FIELDS = 128
_LONGEST_LINE = 8_190  # bytes
_BEGINNING = b"HTTP/1."
_STATUS_LINE = re.compile(rb"HTTP/1\.([01]) ([1-9][0-9][0-9])(?: [\t -~\x80-\xff]*)?")
_FIELD = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):([\t -~\x80-\xff]*)")
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,15})[\t ]*(?:;[\t -~\x80-\xff]*)?")  # 15 digits: no body is larger
_LENGTH = re.compile(r"[0-9]{1,18}")


class Receiver(Protocol):
    """Takes one response."""

    def begin(self, status: int, headers: Headers) -> bool:
        """Called once, with the head of the response; returns whether its body is to be read."""

    def feed(self, piece: bytes) -> None:
        """Called with each piece of the body, in order."""


class Malformed(Exception):
    """What is wrong with the response, in words that follow `its response `."""


class ResponseReader:
    """Passes one response to a receiver, whose exceptions it lets through.

    is_complete  the response was read to its end
    is_reusable  and another request may follow on the connection
    """

    def __init__(self, receiver: Receiver, method: str) -> None:
        self._receiver = receiver
        self._method = method
        self.is_complete = False
        self._keeps_open = True
        self._buffer = bytearray()
        self._searched = 0  # bytes of the buffer that do not begin the end of the head
        self._room = LARGEST_HEAD
        self._left = 0  # bytes of the body or chunk
        self._read_next: Callable[[ResponseReader], bool] = ResponseReader._read_head  # bound, it would be a cycle

    @property
    def is_reusable(self) -> bool:
        return self.is_complete and self._keeps_open and not self._buffer

    @property
    def is_empty(self) -> bool:
        """Whether no byte of the response has arrived."""
        return not self.is_complete and self._read_next == ResponseReader._read_head and not self._buffer

    def feed(self, received: bytes) -> None:
        """Reads on. Raises Malformed."""
        self._buffer += received
        while not self.is_complete and self._read_next(self):
            pass

    def end(self) -> None:
        """The server has closed the connection. Raises Malformed unless the response is complete."""
        if not self.is_complete and self._read_next != ResponseReader._read_rest:
            raise Malformed("ends in the middle")
        self.is_complete, self._keeps_open = True, False

    # Each of these reads one part from the buffer, and returns False if it needs more bytes for it.

    def _read_head(self) -> bool:
        end = self._buffer.find(b"\r\n\r\n", self._searched)
        if not self._buffer.startswith(_BEGINNING[: len(self._buffer)]):
            raise Malformed("is not HTTP/1.1")
        if max(end, len(self._buffer) if end < 0 else 0) > self._room:
            raise Malformed(f"has headers of more than {LARGEST_HEAD:,} bytes")
        if end < 0:
            self._searched = max(0, len(self._buffer) - 3)
            return False
        lines = self._take(end + 4)[:-4].split(b"\r\n")
        self._room -= end
        self._searched = 0
        found = _STATUS_LINE.fullmatch(lines[0])
        if found is None:
            raise Malformed("has a malformed status line")
        self._begin(int(found[2]), _parse_fields(lines[1:]), is_old=found[1] == b"0")
        return True

    def _begin(self, status: int, headers: Headers, *, is_old: bool) -> None:
        if status < 200:
            if status == 101:
                raise Malformed("changes to another protocol")
            return  # the response follows
        self._keeps_open = not is_old and "close" not in map(
            str.strip, headers.get("connection", "").lower().split(",")
        )
        self._find_end(status, headers, is_old=is_old)
        if not self._receiver.begin(status, headers) and not self.is_complete:
            self.is_complete, self._keeps_open = True, False

    def _find_end(self, status: int, headers: Headers, *, is_old: bool) -> None:
        """Finds where the body ends."""
        if self._method == "CONNECT" and status < 300:  # a tunnel follows, which its headers do not describe
            self.is_complete = self._keeps_open = True
            return
        is_chunked = "transfer-encoding" in headers
        length = _length(headers, is_chunked=is_chunked, is_old=is_old)
        if status in (204, 304) or self._method == "HEAD":
            self.is_complete = True
            # A server may send a body nevertheless.
            self._keeps_open = self._keeps_open and not length and not is_chunked
        elif length is not None:
            self._left, self._read_next, self.is_complete = length, ResponseReader._read_counted, not length
        elif is_chunked:
            self._read_next = ResponseReader._read_size
        else:
            self._read_next, self._keeps_open = ResponseReader._read_rest, False

    def _read_counted(self) -> bool:
        self._pass_on()
        self.is_complete = not self._left
        return False

    def _read_rest(self) -> bool:
        self._left = len(self._buffer)
        self._pass_on()
        return False

    def _read_size(self) -> bool:
        line = self._take_line()
        if line is None:
            return False
        found = _CHUNK.fullmatch(line)
        if found is None:
            raise Malformed("has a malformed chunk size")
        self._left = int(found[1], 16)
        self._read_next = ResponseReader._read_chunk if self._left else ResponseReader._read_trailer
        return True

    def _read_chunk(self) -> bool:
        self._pass_on()
        if self._left or len(self._buffer) < 2:
            return False
        if self._take(2) != b"\r\n":
            raise Malformed("has a chunk of another size than announced")
        self._read_next = ResponseReader._read_size
        return True

    def _read_trailer(self) -> bool:
        line = self._take_line()
        if line is None:
            return False
        self._room -= len(line) + 2
        if self._room < 0:
            raise Malformed(f"has headers of more than {LARGEST_HEAD:,} bytes")
        if line:
            _parse_field(line)
        self.is_complete = not line
        return True

    def _pass_on(self) -> None:
        """Passes what there is of the body or chunk to the receiver."""
        piece = self._take(self._left)
        self._left -= len(piece)
        if piece:
            self._receiver.feed(piece)

    def _take_line(self) -> bytes | None:
        end = self._buffer.find(b"\r\n", 0, _LONGEST_LINE + 2)
        if end < 0:
            if len(self._buffer) > _LONGEST_LINE:
                raise Malformed(f"has a line of more than {_LONGEST_LINE:,} bytes")
            return None
        return self._take(end + 2)[:-2]

    def _take(self, size: int) -> bytes:
        taken = bytes(self._buffer[:size])
        del self._buffer[:size]
        return taken


def _parse_fields(lines: list[bytes]) -> Headers:
    if len(lines) > MOST_FIELDS:
        raise Malformed(f"has more than {MOST_FIELDS} headers")
    return Headers([_parse_field(line) for line in lines])


def _parse_field(line: bytes) -> tuple[str, str]:
    if len(line) > _LONGEST_LINE:
        raise Malformed(f"has a line of more than {_LONGEST_LINE:,} bytes")
    found = _FIELD.fullmatch(line)
    if found is None:
        raise Malformed("has a malformed header")
    return found[1].decode(), found[2].strip(b" \t").decode(errors="replace")


def _length(headers: Headers, *, is_chunked: bool, is_old: bool) -> int | None:
    """The length of the body that the headers announce; None if it is chunked, or ends with the connection."""
    length = headers.get("content-length")  # of several, their values joined by a comma
    if is_chunked and (length is not None or is_old or headers.get("transfer-encoding", "").lower() != "chunked"):
        raise Malformed("has an ambiguous length")
    if length is not None and _LENGTH.fullmatch(length) is None:
        raise Malformed("has an ambiguous length")
    return None if length is None else int(length)
