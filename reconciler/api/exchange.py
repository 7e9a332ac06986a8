"""One request to somebody other than the platform: to a code host, or a webhook. Under one deadline and with a largest
answer, for commands that have no event loop.

What went wrong is told in the words of `client`, and without the address: a webhook's is a secret.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

import httpx

from reconciler.api import client, errors
from reconciler.api.origin import Origin
from reconciler.engine.ports import Failure, Refused, Transient


@dataclass(frozen=True)
class Answer:
    status: int
    headers: httpx.Headers
    content: bytes

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300


def ask(
    origin: Origin,
    method: str,
    address: str,
    headers: Mapping[str, str],
    content: bytes | None = None,
    *,
    seconds: float,
    longest: int,
) -> Answer:
    """Whatever it answers, but no redirect is followed. `longest` in bytes; 0: the body is not read.

    Raises Transient or Refused where there is no answer.
    """
    return asyncio.run(
        _asked(origin, httpx.Request(method, address, headers=headers, content=content), seconds, longest)
    )


async def _asked(origin: Origin, request: httpx.Request, seconds: float, longest: int) -> Answer:
    from reconciler.api.transport import OneRequest

    request.extensions["timeout"] = httpx.Timeout(None).as_dict()  # the exchange as a whole has its deadline
    try:
        async with asyncio.timeout(seconds), OneRequest(origin, httpx.Limits()) as transport:
            response = await transport.handle_async_request(request)
            try:
                content = await _content(origin, response, longest)
            finally:
                await response.aclose()
    except TimeoutError:
        raise Transient(f"no answer from {origin} within {seconds:g} s") from None
    except Failure:
        raise
    except Exception as failure:  # noqa: BLE001 - two libraries' worth of network errors, and some unwrapped
        raise _unanswered(origin, failure) from None
    return Answer(response.status_code, response.headers, content)


async def _content(origin: Origin, response: httpx.Response, longest: int) -> bytes:
    content = bytearray()
    if longest:
        async for chunk in response.aiter_bytes():
            content += chunk
            if len(content) > longest:
                raise Refused(f"{origin} answered with more than {longest // 2**20} MB")
    return bytes(content)


def _unanswered(origin: Origin, failure: Exception) -> Failure:
    import aiohttp

    broken, cause = client.network(failure), failure.__cause__ or failure
    why = broken.why
    if isinstance(cause, aiohttp.ClientResponseError) and not isinstance(cause, aiohttp.ClientHttpProxyError):
        why = errors.harmless(cause.message, 200)  # its own words end with the address
    text = f"{origin} broke off: {why}" if broken.sent else f"{origin} cannot be reached: {why}"
    return Refused(text) if broken.lasting else Transient(text)
