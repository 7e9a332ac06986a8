"""`python -m reconciler.sandbox [agent]`: starts the sandbox or an agent without loading the command line program."""

from __future__ import annotations

import gc
import sys
from pathlib import Path


def _options(words: list[str]) -> dict[str, str]:
    """The options of a list of `--name value` pairs. `reconciler sandbox` has help and validation."""
    if len(words) % 2 or any(not name.startswith("--") for name in words[::2]):
        raise SystemExit("usage: python -m reconciler.sandbox [--port N] [--db FILE] [--host H] [--api-key KEY] …")
    return {name.removeprefix("--"): value for name, value in zip(words[::2], words[1::2], strict=True)}


def _serve_agent(options: dict[str, str]) -> None:
    from reconciler.sandbox.agent.program import serve_agent

    configs = [Path(options["config"])] if "config" in options else []
    serve_agent(options["server"], configs, int(options.get("port", "0")), options.get("agent-version", ""))


def _serve(options: dict[str, str]) -> None:
    from reconciler.sandbox.server.process import serve

    budget = options.get("requests-per-minute")
    serve(
        host=options.get("host", "127.0.0.1"),
        port=int(options.get("port", "0")),
        db=options.get("db", ":memory:"),
        api_key=options.get("api-key", "sandbox"),
        seed=[Path(options["seed"])] if "seed" in options else [],
        accounts=options.get("accounts", 0),
        requests_per_minute=int(budget) if budget else None,
        latency=float(options.get("latency", "0")) / 1000,
        agent_port=int(options["agent-port"]) if "agent-port" in options else None,
        faults=Path(options["faults"]) if "faults" in options else None,
        nameserver=options.get("nameserver"),
        agent_configs=[Path(options["agent-config"])] if "agent-config" in options else [],
    )


def main(arguments: list[str]) -> None:
    """Serves until a signal."""
    gc.set_threshold(1_000_000, 20, 100)  # as the command line does
    match arguments:
        case ["agent", *words]:
            _serve_agent(_options(words))
        case words:
            _serve(_options(words))


if __name__ == "__main__":
    main(sys.argv[1:])
