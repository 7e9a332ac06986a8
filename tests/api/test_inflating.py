"""The body of a response is decompressed up to its limit, and only from encodings that were accepted."""

from __future__ import annotations

import asyncio
import gzip
import tracemalloc
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.api.code_hosts import GitHub
from reconciler.api.exchange import NoResponse, open_connection
from reconciler.api.inflating import Body, TooLarge, UnusableBody
from reconciler.api.origin import Origin
from reconciler.api.platform import open_platform
from reconciler.engine.ports import Failure, Lost, Refused, Transient
from reconciler.model.value import Secret
from tests.api.wire import answer, wire
from tests.harness.tiers import examples

NOT_ACCEPTED = [
    "gzip, gzip",
    "gzip,gzip,gzip",
    "deflate",
    "br",
    "zstd",
    "compress",
    "gzip, br",
    "x-unknown",
    "GZIP, gzip",
]


def read(encoding: str, content: bytes, largest: int, step: int = 7) -> bytes:
    body = Body(encoding, largest)
    for start in range(0, len(content), step):
        body.feed(content[start : start + step])
    return body.end()


@settings(max_examples=examples(60))
@given(
    st.binary(max_size=500),
    st.integers(0, 500),
    st.integers(1, 50),
    st.sampled_from(["", "identity", "gzip", "x-gzip"]),
)
def test_a_body_is_complete_or_refused_however_it_is_split(
    content: bytes, largest: int, step: int, encoding: str
) -> None:
    packed = gzip.compress(content, 1) if "gzip" in encoding else content
    if max(len(content), len(packed)) <= largest:
        assert read(encoding, packed, largest, step) == content
    else:
        with pytest.raises(TooLarge):
            read(encoding, packed, largest, step)


def test_a_compressed_body_takes_no_more_memory_than_its_limit() -> None:
    bomb = gzip.compress(b"x" * 200_000_000, 9)
    tracemalloc.start()
    with pytest.raises(TooLarge):
        read("gzip", bomb, 1_000_000, step=len(bomb))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10_000_000


def test_content_after_the_compressed_stream_counts_for_the_limit() -> None:
    with pytest.raises(TooLarge):
        read("gzip", gzip.compress(b"{}") + b"\0" * 1000, 500)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"zz", "is not valid gzip"),
        (zlib.compress(b"{}"), "is not valid gzip"),
        (gzip.compress(b"{}" * 500)[:-9], "ends in the middle of its gzip stream"),
        (gzip.compress(b"{}")[:-8] + b"\0" * 8, "is not valid gzip"),
    ],
    ids=["no gzip", "deflate", "cut off", "wrong checksum"],
)
def test_a_damaged_body_is_refused(content: bytes, why: str) -> None:
    with pytest.raises(UnusableBody) as wrong:
        read("gzip", content, 5_000)
    assert (str(wrong.value), wrong.value.lasting) == (why, False)


@pytest.mark.parametrize("encoding", NOT_ACCEPTED)
async def test_an_encoding_that_was_not_accepted_is_refused_by_every_client(encoding: str) -> None:
    content = answer(gzip.compress(gzip.compress(b"{}")), Content_Encoding=encoding)
    async with wire(content) as server:
        async with open_platform(server.account()) as platform:
            with pytest.raises(Refused) as refused:
                await platform.get("/x")
            assert "only gzip, once, is accepted" in str(refused.value)
            with pytest.raises(Lost):
                await platform.send("POST", "/x", {})
        async with open_connection(Origin.parse(server.base_url), seconds=5) as connection:
            with pytest.raises(NoResponse):
                await connection.send("GET", f"{server.base_url}/x", {}, largest=100)
        with pytest.raises(Failure):
            await asyncio.to_thread(GitHub(server.base_url, Secret("key", "test"), "octo/infra", 1).find_comment, bool)
    accepted = {request.headers.get("accept-encoding") for request in server.requests}
    assert accepted == {"gzip", None}


async def test_a_damaged_body_is_read_again() -> None:
    damaged = answer(gzip.compress(b'{"id": "x"}')[:-4], Content_Encoding="gzip")
    async with wire(damaged, answer({"id": "x"})) as server, open_platform(server.account()) as platform:
        assert await platform.get("/x") == {"id": "x"}
    async with wire(damaged) as server, open_platform(server.account()) as platform:
        with pytest.raises((Transient, Lost)):
            await platform.send("DELETE", "/x")
