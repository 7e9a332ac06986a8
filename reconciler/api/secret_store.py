"""Sends the requests of deliveries to a secret store, such as Vault: with retries, and errors without secrets.

Every request is one that may be repeated: reads, and writes that set the same value again or are bound to a version.
"""

from __future__ import annotations

import asyncio
import random
from abc import ABC, abstractmethod
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from reconciler.api import answers
from reconciler.api.exchange import NoResponse, Response, open_connection
from reconciler.api.origin import Origin
from reconciler.engine.ports import Refused, Stop, Undeliverable
from reconciler.engine.retry import sleep_until_stopped
from reconciler.model.redaction import redact
from reconciler.model.value import Json, Secret

_TIMEOUT = 15.0  # seconds of one request
_LARGEST = 2 * 2**20  # bytes of a response; Vault allows at most 1 MB for a secret
_ATTEMPTS = 4
_FIRST_PAUSE = 0.5  # seconds, doubled with each attempt
_LONGEST_PAUSE = 30.0  # seconds: a server that asks for a longer wait counts as unavailable
_RETRIED = frozenset(
    {
        HTTPStatus.PRECONDITION_FAILED,  # of Vault Enterprise: a replica that is behind
        HTTPStatus.TOO_EARLY,
        HTTPStatus.TOO_MANY_REQUESTS,
        HTTPStatus.INTERNAL_SERVER_ERROR,
        HTTPStatus.BAD_GATEWAY,
        HTTPStatus.SERVICE_UNAVAILABLE,
        HTTPStatus.GATEWAY_TIMEOUT,
    }
)


class Unavailable(Undeliverable):
    """The server did not respond, or not with a usable response; a write may have taken effect."""


class SecretStore(ABC):
    """One server that stores secrets, for one run. `stop` ends the retries."""

    def __init__(self, name: str, origin: Origin, token: Secret, stop: Stop | None) -> None:
        self.name = f"{name} at {origin}"
        self._origin = origin
        self._token = token
        self._stop = stop

    @abstractmethod
    def _headers(self) -> dict[str, str]:
        """The headers of every request, with the token."""

    async def send(self, method: str, path: str, body: Json = None, *, attempts: int = _ATTEMPTS) -> Response:
        """The response, whatever its status; raises Unavailable after the last attempt."""
        why = ""
        for attempt in range(1, attempts + 1):
            pause = _FIRST_PAUSE * 2 ** (attempt - 1) * (1 + random.random())  # noqa: S311 - only spreads the load
            try:
                response = await self._send_once(method, path, body)
            except NoResponse as failure:
                why = str(failure.as_failure("GET", lambda text: redact(text, [self._token.reveal()])))
                if failure.lasting:
                    break
            else:
                if response.status not in _RETRIED and not _is_rate_limit(response):
                    return response
                why = f"{self.name} returned status {response.status}"
                wanted = _read_retry_after(response)
                if wanted is not None and wanted > _LONGEST_PAUSE:
                    why += f" and asks to wait {wanted:.0f} s"
                    break
                pause = max(pause, wanted or 0.0)
            if attempt < attempts:
                await self.pause(pause, why)
        raise Unavailable(f"{why}; run it again later")

    async def pause(self, seconds: float, why: str) -> None:
        """Waits before another attempt; raises Unavailable if the run is interrupted meanwhile."""
        if self._stop is None:
            await asyncio.sleep(seconds)
            return
        if await sleep_until_stopped(asyncio.sleep(seconds), self._stop):
            raise Unavailable(f"{why}, and the run was interrupted")

    async def _send_once(self, method: str, path: str, body: Json) -> Response:
        headers = {"Accept": "application/json", "User-Agent": "reconciler", **self._headers()}
        content = b""
        if body is not None:
            headers["Content-Type"] = "application/json"
            content = answers.encode(body)
        try:
            address = self._origin.at(path)
            async with open_connection(self._origin, seconds=_TIMEOUT, peer=self.name) as connection:
                return await connection.send(method, address, headers, content, largest=_LARGEST)
        except Refused as failure:  # an unusable proxy or certificate
            raise Undeliverable(str(failure)) from None

    def read_json(self, response: Response) -> Mapping[str, Any]:
        """The JSON object of a response; raises Unavailable if it has none."""
        body, _ = answers.decode(response.content)
        if not isinstance(body, Mapping):
            raise Unavailable(f"the response of {self.name} is not a JSON object")
        return body


def read_token(text: str, source: str) -> Secret:
    """A token from the environment; raises Undeliverable if it cannot be part of a header."""
    token = text.strip()
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise Undeliverable(f"{source} is empty or contains characters that no token has")
    return Secret(token, source)


def read_origin(text: str, source: str) -> Origin:
    """The server's address from the environment; raises Undeliverable if it is invalid."""
    try:
        return Origin.parse(text.strip())
    except ValueError as error:
        raise Undeliverable(f"{source}: {error}") from None


def _is_rate_limit(response: Response) -> bool:
    """Whether a 403 is one of GitHub's rate limits, and not a missing permission."""
    return response.status == HTTPStatus.FORBIDDEN and (
        "retry-after" in response.headers or response.headers.get("x-ratelimit-remaining") == "0"
    )


def _read_retry_after(response: Response) -> float | None:
    """The seconds that a server asks to wait; the longest, if a rate limit does not say."""
    text = response.headers.get("retry-after", "")
    if text.isdecimal():
        return float(text[:6])
    return _LONGEST_PAUSE + 1 if response.headers.get("x-ratelimit-remaining") == "0" else None
