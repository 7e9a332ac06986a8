"""The emulated agent as a program that clients start in place of the real one: its command line, and its log.

`start` runs a sandbox with an agent that has read the configuration file. The log names the address of the agent's API
as the real log does, and that of the sandbox in a line of its own.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import signal
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, TextIO, cast

import yaml

from reconciler.sandbox.server.process import serve

VERSION = "3.39.10"


def main() -> int:
    parser = argparse.ArgumentParser(prog="ngrok")
    parser.add_argument("--version", action="version", version=f"ngrok version {VERSION}")
    commands = parser.add_subparsers(dest="command", required=True)
    common = argparse.ArgumentParser(add_help=False)
    for option in ("--config", "--log", "--authtoken", "--region"):
        common.add_argument(option)
    start = commands.add_parser("start", parents=[common])
    start.add_argument("--none", action="store_true", required=True)
    commands.add_parser("update", parents=[common])
    config = commands.add_parser("config").add_subparsers(dest="action", required=True)
    for action in ("add-authtoken", "add-api-key"):
        config.add_parser(action, parents=[common]).add_argument("value")
    config.add_parser("upgrade", parents=[common]).add_argument("--relocate", action="store_true")
    asked = parser.parse_args()
    match asked.command, getattr(asked, "action", None):
        case "start", _:
            run(Path(asked.config) if asked.config else None, asked.authtoken)
        case "config", "upgrade":
            upgrade(Path(asked.config))
        case "config", "add-authtoken":
            add_secret(Path(asked.config), "authtoken", asked.value)
            print(f"Authtoken saved to configuration file: {asked.config}")
        case "config", "add-api-key":
            add_secret(Path(asked.config), "api_key", asked.value)
            print(f"API key saved to configuration file: {asked.config}")
        case _:
            print(f"No update available, this is the latest version: {VERSION}")
    return 0


def add_secret(path: Path, key: str, value: str) -> None:
    """Writes a secret to a configuration file: at the top level in version 2, below `agent` in version 3."""
    read = yaml.safe_load(path.read_text(encoding="utf-8")) if path.exists() else {"version": "3"}
    config: dict[str, Any] = read
    place: dict[str, Any] = config.setdefault("agent", {}) if str(config["version"]) == "3" else config
    place[key] = value
    path.write_text(yaml.safe_dump(config), encoding="utf-8")


def upgrade(path: Path) -> None:
    """Adds the version that a configuration file lacks."""
    config = yaml.safe_load(path.read_text(encoding="utf-8"))
    path.write_text(yaml.safe_dump({"version": "2", **config}), encoding="utf-8")
    print(f"Upgraded config file: {path}")


# --- start ------------------------------------------------------------------------------------------------------------


def run(config: Path | None, authtoken: str | None) -> None:
    """Serves until a signal ends the process."""
    serve(out=cast("TextIO", Addresses(authtoken)), agent_port=0, agent_configs=[] if config is None else [config])


class Addresses(io.TextIOBase):
    """Receives the two addresses that the sandbox prints, and then logs the start of the agent."""

    def __init__(self, authtoken: str | None) -> None:
        self._authtoken = authtoken
        self._text = ""

    def write(self, text: str) -> int:
        self._text += text
        if self._text.count("\n") == 2:
            sandbox, agent = (line.rpartition(" ")[2] for line in self._text.splitlines())
            threading.Thread(target=log_start, args=(sandbox, agent, self._authtoken), daemon=True).start()
        return len(text)


def log_start(sandbox: str, agent: str, authtoken: str | None) -> None:
    log("info", "open config file")
    log("info", "sandbox started", url=sandbox)
    log("info", "starting web service", obj="web", addr=agent.removeprefix("http://"))
    status = start_session(sandbox, agent, authtoken)
    if status != "online":
        log("eror", "failed to auth", obj="tunnels.session", err=status)
        os.kill(os.getpid(), signal.SIGTERM)
        return
    close_all(agent)  # `start --none` opens nothing of the file
    log("info", "client session established", obj="csess")
    log("info", "tunnel session started", obj="tunnels.session")


def start_session(sandbox: str, agent: str, authtoken: str | None) -> str:
    """The status of the agent with this token: `online`, or what is wrong."""
    if authtoken is not None:
        try:
            call("POST", f"{sandbox}/_sandbox/agent", {"authtoken": authtoken})
        except urllib.error.HTTPError as error:
            return str(json.loads(error.read())["msg"])
    return str(call("GET", f"{agent}/api/status")["status"])


def close_all(agent: str) -> None:
    for kind in ("endpoints", "tunnels"):
        for running in call("GET", f"{agent}/api/{kind}")[kind]:
            call("DELETE", f"{agent}{running['uri']}")


def call(method: str, url: str, body: Any = None) -> Any:
    content = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, content, {"Content-Type": "application/json"}, method=method)  # noqa: S310
    with urllib.request.urlopen(request, timeout=10) as response:  # noqa: S310
        read = response.read()
    return json.loads(read) if read else None


def log(level: str, message: str, **more: str) -> None:
    moment = time.strftime("%Y-%m-%dT%H:%M:%S+0000", time.gmtime())
    pairs = [f"t={moment}", f"lvl={level}", f'msg="{message}"', *(f"{key}={quote(more[key])}" for key in more)]
    print(" ".join(pairs), flush=True)


def quote(value: str) -> str:
    return json.dumps(value) if any(sign in value for sign in ' "=\\') else value


if __name__ == "__main__":
    sys.exit(main())
