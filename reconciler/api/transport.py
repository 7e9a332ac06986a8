"""The transport under the client, without two habits of aiohttp.

It sends a request whose connection broke a second time, unasked and unseen: one exchange is to be one request, or the
limiter and the engine count wrongly. And it reads the machine's certificates as it is imported, twice, for contexts
that nobody here uses: every client brings its own. Imported when the first client is opened: aiohttp is heavy.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def _no_certificates() -> Iterator[None]:
    """Contexts made meanwhile trust nobody, and cost nothing."""
    ssl.SSLContext.set_default_verify_paths = lambda self: None  # type: ignore[method-assign]
    try:
        yield
    finally:
        del ssl.SSLContext.set_default_verify_paths  # what it hid, of the class that it inherits from, is there again


with _no_certificates():
    from aiohttp import ClientSession
    from httpx_aiohttp import AiohttpTransport
    from httpx_aiohttp import HttpxAiohttpClient as HTTP

__all__ = ["HTTP", "OneRequest"]


class OneRequest(AiohttpTransport):
    def get_client(self) -> ClientSession:
        session = super().get_client()
        session._retry_connection = False  # there is no public way to say it
        return session
