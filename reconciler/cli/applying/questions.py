"""The question before an apply, at the terminal."""

from __future__ import annotations

import asyncio
import sys


async def is_confirmed(question: str) -> bool:
    """Asks at the terminal. The event loop keeps running meanwhile, to renew the lock of the stack."""
    print(f"\n{question}\nOnly 'yes' will be accepted: ", end="", file=sys.stderr, flush=True)
    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    loop.add_reader(sys.stdin.fileno(), readable.set)
    try:
        await readable.wait()
    finally:
        loop.remove_reader(sys.stdin.fileno())
    return sys.stdin.readline().strip() == "yes"
