"""`python -m reconciler.sandbox`: the sandbox alone, without the rest of the command line."""

from __future__ import annotations

import sys
from pathlib import Path

from reconciler.sandbox.server.process import serve


def _options(words: list[str]) -> dict[str, str]:
    """`--name value` pairs. Plain, because what has a command line of its own is `reconciler sandbox`."""
    if len(words) % 2 or any(not name.startswith("--") for name in words[::2]):
        raise SystemExit("usage: python -m reconciler.sandbox [--port N] [--db FILE] [--host H] [--api-key KEY] …")
    return {name.removeprefix("--"): value for name, value in zip(words[::2], words[1::2], strict=True)}


if __name__ == "__main__":
    given = _options(sys.argv[1:])
    budget = given.get("requests-per-minute")
    serve(
        host=given.get("host", "127.0.0.1"),
        port=int(given.get("port", "0")),
        db=given.get("db", ":memory:"),
        api_key=given.get("api-key", "sandbox"),
        seed=[Path(given["seed"])] if "seed" in given else [],
        requests_per_minute=int(budget) if budget else None,
        latency=float(given.get("latency", "0")) / 1000,
        agent_port=int(given["agent-port"]) if "agent-port" in given else None,
        agent_configs=[Path(given["agent-config"])] if "agent-config" in given else [],
    )
