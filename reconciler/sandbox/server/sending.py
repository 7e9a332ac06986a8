"""Sends responses, and what an injected fault leaves of one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from functools import partial

from msgspec import Struct
from starlette.requests import Request
from starlette.types import Message, Scope, Send

from reconciler.engine.ports import Clock
from reconciler.model.value import Json
from reconciler.sandbox.server import faults
from reconciler.sandbox.server.faults import Fault

Cut = Callable[[Scope], None]
Answer = tuple[int, Json, dict[str, str]]  # status, body, headers


class FaultySender(Struct, frozen=True):
    """Applies injected faults to responses.

    cut           resets the connection of a request
    clock         sleeps for the pace of a fault
    build_answer  the response of a fault that replaces that of the request
    """

    cut: Cut
    clock: Clock
    build_answer: Callable[[Fault], Answer]

    async def send(
        self, fault: Fault, request: Request, log: Callable[[int], None], send: Send, answer: Answer
    ) -> None:
        """Sends the response, or what the fault leaves of it."""
        match fault.then:
            case faults.CUT | faults.COMMIT_THEN_CUT:
                log(0)
                await self._sever(request)
            case faults.HANG | faults.COMMIT_THEN_HANG:
                log(0)
                while (await request.receive())["type"] != "http.disconnect":
                    pass
            case faults.COMMIT_THEN_TRUNCATE:
                log(answer[0])
                await send_answer(send, *answer, share=0.5)
                await self._sever(request)
            case _:
                if fault.then != faults.ANSWER:
                    answer = self.build_answer(fault)
                log(answer[0])
                await send_answer(send, *answer, pace=partial(self.clock.sleep, fault.pace) if fault.pace else None)

    async def _sever(self, request: Request) -> None:
        self.cut(request.scope)
        await asyncio.sleep(0)  # lets the server notice, so that it does not log an incomplete response


async def send_answer(
    send: Send,
    status: int,
    body: Json,
    headers: dict[str, str],
    *,
    share: float = 1.0,
    pace: Callable[[], Awaitable[None]] | None = None,
) -> None:
    """Sends a response, or the first `share` of it. With `pace`, sends it in pieces and awaits `pace` after each."""
    raw = b"" if body is None else body.encode() if isinstance(body, str) else json.dumps(body).encode()
    lines = {"content-type": "application/json", **{name.lower(): value for name, value in headers.items()}}
    if not raw:
        del lines["content-type"]
    if status != 204:
        lines["content-length"] = str(len(raw))
    start: Message = {
        "type": "http.response.start",
        "status": status,
        "headers": [(name.encode("latin-1"), value.encode("latin-1")) for name, value in lines.items()],
    }
    content = b"" if status == 204 else raw[: int(len(raw) * share)]
    if share < 1 and not content:
        return  # a response without a body is truncated before its head
    await send(start)
    if pace is not None and content:
        size = -(-len(content) // faults.PIECES)
        for place in range(0, len(content), size):
            await send({"type": "http.response.body", "body": content[place : place + size], "more_body": True})
            await pace()
        content = b""
    await send({"type": "http.response.body", "body": content, "more_body": share < 1})
