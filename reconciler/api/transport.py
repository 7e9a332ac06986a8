"""The transport under the client, with one habit taken from it: aiohttp sends a request whose connection broke a second
time, unasked and unseen. One exchange is to be one request, or the limiter and the engine count wrongly.

Imported when the first client is opened: aiohttp is heavy.
"""

from __future__ import annotations

from aiohttp import ClientSession
from httpx_aiohttp import AiohttpTransport


class OneRequest(AiohttpTransport):
    def get_client(self) -> ClientSession:
        session = super().get_client()
        session._retry_connection = False  # there is no public way to say it
        return session
