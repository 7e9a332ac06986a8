"""Responses are read as h11 reads them, however they are split, and what could be read in two ways is refused."""

from __future__ import annotations

import gc
import weakref
from itertools import pairwise

import h11
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from reconciler.api.headers import Headers
from reconciler.api.response_reader import LARGEST_HEAD, MOST_FIELDS, Malformed, ResponseReader
from tests.harness.tiers import examples

HEAD = b"HTTP/1.1 200 OK\r\n"


class Recorder:
    """A receiver that records what it gets."""

    def __init__(self, *, takes_body: bool = True) -> None:
        self._takes_body = takes_body
        self.status = 0
        self.headers = Headers()
        self.body = b""

    def begin(self, status: int, headers: Headers) -> bool:
        assert not self.status
        self.status, self.headers = status, headers
        return self._takes_body

    def feed(self, piece: bytes) -> None:
        assert piece
        self.body += piece


def read(pieces: list[bytes], method: str = "GET", *, ends: bool = True) -> tuple[Recorder, ResponseReader]:
    """What is received of a response. `ends`: the connection is closed after the last piece."""
    recorder = Recorder()
    reader = ResponseReader(recorder, method)
    for piece in pieces:
        reader.feed(piece)
    if ends:
        reader.end()
    return recorder, reader


def read_with_h11(content: bytes, method: str = "GET") -> tuple[int, bytes] | None:
    """Status and body as h11 reads them; None if it refuses the response."""
    connection = h11.Connection(h11.CLIENT, max_incomplete_event_size=10 * LARGEST_HEAD)
    target = "example.com:443" if method == "CONNECT" else "/"
    connection.send(h11.Request(method=method, target=target, headers=[("Host", "example.com")]))
    connection.send(h11.EndOfMessage())
    status, body = 0, b""
    try:
        connection.receive_data(content)
        connection.receive_data(b"")
        while True:
            event = connection.next_event()
            if isinstance(event, h11.Response):
                status = event.status_code
            elif isinstance(event, h11.Data):
                body += event.data
            elif not isinstance(event, h11.InformationalResponse):
                return status, body
    except h11.RemoteProtocolError:
        return None


def split(content: bytes, places: list[int]) -> list[bytes]:
    cuts = sorted({place % (len(content) + 1) for place in places} | {0, len(content)})
    return [content[start:end] for start, end in pairwise(cuts)]


# --- any response -----------------------------------------------------------------------------------------------------


def chunk(piece: bytes, extension: bytes = b"") -> bytes:
    return b"%x%s\r\n%s\r\n" % (len(piece), extension, piece)


NAMES = st.sampled_from([b"Date", b"X-Y", b"content-type", b"Server", b"Connection", b"Keep-Alive"])
VALUES = st.sampled_from([b"", b"close", b"keep-alive", b" a, b ", b"application/json", b"\xc3\xbc\t!", b"timeout=5"])
FIELDS = st.lists(st.tuples(NAMES, VALUES), max_size=4)
STATUS = st.sampled_from([200, 201, 202, 302, 400, 404, 429, 500, 599])


@st.composite
def length_and_body(draw: st.DrawFn) -> bytes:
    """The headers of a body's length, and the body."""
    body = draw(st.binary(max_size=60) | st.just(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"))
    match draw(st.sampled_from(["counted", "chunked", "rest"])):
        case "counted":
            return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
        case "chunked":
            pieces = [body[place : place + 7] for place in range(0, len(body), 7)]
            extension = draw(st.sampled_from([b"", b";x", b'; x="y"']))
            trailer = draw(st.sampled_from([b"", b"X-Trailer: y\r\n"]))
            chunks = b"".join(chunk(piece, extension) for piece in pieces)
            return b"Transfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n" + trailer + b"\r\n"
    return b"\r\n" + body


@st.composite
def responses(draw: st.DrawFn) -> bytes:
    early = draw(st.sampled_from([b"", b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early\r\nLink: x\r\n\r\n"]))
    fields = b"".join(b"%s:%s\r\n" % field for field in draw(FIELDS))
    status = b"HTTP/1.1 %d %s\r\n" % (draw(STATUS), draw(st.sampled_from([b"", b"OK", b"Not \xe4 word"])))
    return early + status + fields + draw(length_and_body())


@settings(max_examples=examples(200))
@given(responses(), st.lists(st.integers(0, 500), max_size=8))
def test_a_response_is_the_same_however_it_is_split(content: bytes, places: list[int]) -> None:
    recorder, reader = read(split(content, places))
    assert (recorder.status, recorder.body) == read_with_h11(content)
    assert reader.is_complete
    whole, _ = read([content])
    assert recorder.headers.get("x-y") == whole.headers.get("X-Y")
    by_byte, _ = read([content[place : place + 1] for place in range(len(content))])
    assert (by_byte.status, by_byte.body) == (recorder.status, recorder.body)


@settings(max_examples=examples(200))
@given(responses(), st.integers(0, 500))
def test_a_response_that_is_cut_off_is_refused_or_the_same(content: bytes, place: int) -> None:
    cut = content[: place % (len(content) + 1)]
    expected = read_with_h11(content)
    assert expected is not None
    try:
        recorder, _ = read([cut])
    except Malformed:
        return
    is_counted = b"Content-Length:" in content.partition(b"\r\n\r\n")[0] or b"chunked" in content
    if is_counted and recorder.status == expected[0]:
        assert (recorder.status, recorder.body) == expected
    assert (recorder.status, recorder.body) == read_with_h11(cut)


NOISE = st.sampled_from(
    [
        *(bytes([code]) for code in b"\r\n \t:\0,;_01f-+\xff"),
        b"\r\n\r\n",
        b"Content-Length: 3\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"HTTP/1.0 200 OK\r\n",
        b"gzip, chunked",
    ]
)


@settings(max_examples=examples(500))
@given(responses(), st.lists(st.tuples(st.integers(0, 500), st.integers(0, 4), NOISE), min_size=1, max_size=3))
@example(HEAD + b"Content-Length: 3\r\n\r\nabc", [(32, 0, b",")])
@example(HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", [(47, 0, b"_")])
def test_a_damaged_response_is_refused_or_read_as_h11_reads_it(
    content: bytes, changes: list[tuple[int, int, bytes]]
) -> None:
    for place, length, noise in changes:
        start = place % (len(content) + 1)
        content = content[:start] + noise + content[start + length :]
    try:
        recorder, _ = read([content])
    except Malformed:
        return
    assert (recorder.status, recorder.body) == read_with_h11(content)


@settings(max_examples=examples(200))
@given(st.binary(max_size=80) | st.binary(max_size=60).map(HEAD.__add__), st.lists(st.integers(0, 99), max_size=5))
def test_arbitrary_bytes_are_refused_or_read_as_h11_reads_them(content: bytes, places: list[int]) -> None:
    try:
        recorder, _ = read(split(content, places))
    except Malformed:
        return
    assert (recorder.status, recorder.body) == read_with_h11(content)


# --- refused responses ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"SSH-2.0-OpenSSH_9.2\r\n", "is not HTTP/1.1"),
        (b"HTTP/2 200\r\n\r\n", "is not HTTP/1.1"),
        (b"\r\nHTTP/1.1 200 OK\r\n\r\n", "is not HTTP/1.1"),
        (b"HTTP/1.2 200 OK\r\n\r\n", "has a malformed status line"),
        (b"HTTP/1.1  200 OK\r\n\r\n", "has a malformed status line"),
        (b"HTTP/1.1 20 OK\r\n\r\n", "has a malformed status line"),
        (b"HTTP/1.1 2000 OK\r\n\r\n", "has a malformed status line"),
        (b"HTTP/1.1 099 OK\r\n\r\n", "has a malformed status line"),
        (b"HTTP/1.1 200 O\0K\r\n\r\n", "has a malformed status line"),
        (b"HTTP/1.1 200 OK\nX: y\r\n\r\n", "has a malformed status line"),
        (b"HTTP/1.1 101 Switching\r\nUpgrade: h2c\r\n\r\n", "changes to another protocol"),
        (HEAD + b"X: y\r\n continued\r\n\r\n", "has a malformed header"),
        (HEAD + b" X: y\r\n\r\n", "has a malformed header"),
        (HEAD + b"X : y\r\n\r\n", "has a malformed header"),
        (HEAD + b": y\r\n\r\n", "has a malformed header"),
        (HEAD + b"X\r\n\r\n", "has a malformed header"),
        (HEAD + b"X: a\0b\r\n\r\n", "has a malformed header"),
        (HEAD + b"X: a\rb\r\n\r\n", "has a malformed header"),
        (HEAD + b"X: a\nContent-Length: 0\r\n\r\n", "has a malformed header"),
        (HEAD + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", "has an ambiguous length"),
        (HEAD + b"Content-Length: 3\r\ncontent-length: 3\r\n\r\nabc", "has an ambiguous length"),
        (HEAD + b"Content-Length: 3, 3\r\n\r\nabc", "has an ambiguous length"),
        (HEAD + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "has an ambiguous length"),
        (HEAD + b"Content-Length: +3\r\n\r\nabc", "has an ambiguous length"),
        (HEAD + b"Content-Length: -1\r\n\r\nabc", "has an ambiguous length"),
        (HEAD + b"Content-Length: 0x3\r\n\r\nabc", "has an ambiguous length"),
        (HEAD + b"Content-Length: 1_0\r\n\r\nabc", "has an ambiguous length"),
        (HEAD + b"Content-Length: \xd9\xa3\r\n\r\nabc", "has an ambiguous length"),
        (HEAD + b"Content-Length:\r\n\r\nabc", "has an ambiguous length"),
        (HEAD + b"Content-Length: " + b"9" * 30 + b"\r\n\r\nabc", "has an ambiguous length"),
        (HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n", "has an ambiguous length"),
        (HEAD + b"Transfer-Encoding: identity\r\n\r\n", "has an ambiguous length"),
        (HEAD + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", "has an ambiguous length"),
        (b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "has an ambiguous length"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n", "has a malformed chunk size"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n0x1\r\na\r\n", "has a malformed chunk size"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n\r\n", "has a malformed chunk size"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n 1\r\na\r\n", "has a malformed chunk size"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\na\r\n0\r\n", "has a malformed chunk size"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"f" * 16 + b"\r\n", "has a malformed chunk size"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n", "has a chunk of another size than announced"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\nab\n\r0\r\n", "has a chunk of another size than announced"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\nno header\r\n\r\n", "has a malformed header"),
        (HEAD + b"Content-Length: 4\r\n\r\nabc", "ends in the middle"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", "ends in the middle"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n", "ends in the middle"),
        (HEAD, "ends in the middle"),
        (b"HTTP/1.1 100 Continue\r\n\r\n", "ends in the middle"),
        (b"", "ends in the middle"),
    ],
)
def test_a_malformed_or_ambiguous_response_is_refused(content: bytes, why: str) -> None:
    for pieces in ([content], [content[place : place + 1] for place in range(len(content))]):
        with pytest.raises(Malformed) as refused:
            read(pieces)
        assert str(refused.value) == why


LONG = b"X: " + b"y" * 8_000 + b"\r\n"


CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("beginning", "repeated", "why"),
    [
        (HEAD, LONG, "has headers of more than 65,536 bytes"),
        (HEAD + LONG * 9 + b"\r\n", b"", "has headers of more than 65,536 bytes"),
        (b"", b"HTTP/1.1 103 Early\r\n" + LONG + b"\r\n", "has headers of more than 65,536 bytes"),
        (CHUNKED + b"0\r\n", LONG, "has headers of more than 65,536 bytes"),
        (HEAD + b"X: " + b"y" * 8_188 + b"\r\n\r\n", b"", "has a line of more than 8,190 bytes"),
        (CHUNKED + b"1;", b"y", "has a line of more than 8,190 bytes"),
        (HEAD + b"X: y\r\n" * (MOST_FIELDS + 1) + b"\r\n", b"", "has more than 128 headers"),
    ],
)
def test_headers_and_lines_have_limits(beginning: bytes, repeated: bytes, why: str) -> None:
    reader = ResponseReader(Recorder(), "GET")

    def feed() -> None:
        reader.feed(beginning)
        for _ in range(LARGEST_HEAD // len(repeated) + 1 if repeated else 0):
            reader.feed(repeated)

    with pytest.raises(Malformed) as refused:
        feed()
    assert str(refused.value) == why


def test_headers_up_to_the_limits_are_read() -> None:
    fields = b"".join(b"X%d: y\r\n" % number for number in range(MOST_FIELDS - 2))
    long = b"L: " + b"y" * 8_187 + b"\r\n"
    recorder, _ = read([HEAD + fields + long + b"Content-Length: 0\r\n\r\n"], ends=False)
    assert (recorder.headers.get("x7"), len(recorder.headers.get("l", ""))) == ("y", 8_187)


# --- the end of a response --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "reusable"),
    [
        (HEAD + b"Content-Length: 2\r\n\r\n{}", True),
        (HEAD + b"Content-Length: 0\r\n\r\n", True),
        (HEAD + b"Transfer-Encoding: Chunked\r\n\r\n2  \r\n{}\r\n0\r\n\r\n", True),
        (HEAD + b"Content-Length: 2\r\nConnection: Keep-Alive, Close\r\n\r\n{}", False),
        (HEAD + b"Content-Length: 2\r\nConnection: x\r\nConnection: close\r\n\r\n{}", False),
        (HEAD + b"Content-Length: 2\r\nConnection: closer\r\n\r\n{}", True),
        (HEAD + b"Content-Length: 2\r\n\r\n{}HTTP/1.1 200 OK\r\n\r\n", False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}", False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\n{}", False),
        (b"HTTP/1.1 204 No Content\r\n\r\n", True),
        (b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n", True),
        (b"HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\n", False),
        (b"HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\n{}", False),
        (b"HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n", False),
        (b"HTTP/1.1 304 Not Modified\r\n\r\n", True),
    ],
)
def test_a_connection_is_reusable_only_if_its_response_has_ended_without_doubt(content: bytes, reusable: bool) -> None:
    recorder, reader = read([content], ends=False)
    assert reader.is_complete
    assert reader.is_reusable is reusable
    assert recorder.body == (b"{}" if recorder.status == 200 and b"{}" in content else b"")


def test_bytes_after_the_response_make_its_connection_unusable() -> None:
    _, reader = read([HEAD + b"Content-Length: 2\r\n\r\n{}"], ends=False)
    assert reader.is_reusable
    reader.feed(b"HTTP")
    assert not reader.is_reusable


def test_a_response_without_a_length_ends_with_its_connection() -> None:
    recorder, reader = read([HEAD + b"X: y\r\n\r\n{", b"}"], ends=False)
    assert not reader.is_complete
    reader.end()
    assert (recorder.body, reader.is_complete, reader.is_reusable) == (b"{}", True, False)


def test_the_response_to_head_has_no_body() -> None:
    recorder, reader = read([HEAD + b"Content-Length: 2\r\n\r\n"], "HEAD", ends=False)
    assert (recorder.body, reader.is_complete, reader.is_reusable) == (b"", True, False)


@pytest.mark.parametrize("headers", [b"", b"Connection: close\r\n", b"Content-Length: 5\r\nTransfer-Encoding: x\r\n"])
def test_a_tunnel_follows_the_headers_of_a_proxy_whatever_they_say(headers: bytes) -> None:
    _, reader = read([b"HTTP/1.0 200 Connection established\r\n" + headers + b"\r\n"], "CONNECT", ends=False)
    assert reader.is_reusable
    _, reader = read([b"HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n"], "CONNECT", ends=False)
    assert reader.is_complete


def test_a_body_that_is_not_wanted_is_not_read() -> None:
    recorder = Recorder(takes_body=False)
    reader = ResponseReader(recorder, "POST")
    reader.feed(HEAD + b"Content-Length: 2\r\n\r\n{")
    assert (recorder.body, reader.is_complete, reader.is_reusable) == (b"", True, False)
    reader = ResponseReader(Recorder(takes_body=False), "POST")
    reader.feed(HEAD + b"Content-Length: 0\r\n\r\n")
    assert reader.is_reusable


def test_a_response_is_empty_until_its_first_byte() -> None:
    reader = ResponseReader(Recorder(), "GET")
    found = [reader.is_empty]
    for piece in (b"H", HEAD[1:] + b"Content-Length: 0\r\n\r\n"):
        reader.feed(piece)
        found.append(reader.is_empty)
    assert found == [True, False, False]


def test_a_response_is_freed_without_the_garbage_collector() -> None:
    """In a fleet the collector runs once for a million objects."""
    gc.disable()
    try:
        recorder, reader = read([HEAD + b"Content-Length: 2\r\n\r\n{}"])
        remembered = weakref.ref(recorder)
        del recorder, reader
        assert remembered() is None
    finally:
        gc.enable()
