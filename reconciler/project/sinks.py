"""Hands one-time secrets over: to a file, a dotenv entry, a Kubernetes Secret manifest, or a command's standard input.

What a command prints is not shown: it may hold the secret.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from reconciler.engine.ports import Undeliverable
from reconciler.model.manifest import Delivery
from reconciler.model.value import Secret
from reconciler.project import dotenv, secret_files

WAYS = ("to_file", "to_dotenv", "to_kubernetes_secret", "to_command")
PATIENCE = 60.0  # seconds that a command may take
_PRIVATE = "RECONCILER_"  # our own settings, the API key among them, are none of a command's business
_STAND_IN = Secret("secret", "proof")


class ProjectSinks:
    """The engine's sinks, with paths below the project's root."""

    def __init__(self, root: Path, withheld: Collection[str] = ()) -> None:
        """`withheld`: names in the environment that hold the project's own secrets."""
        self._root = root
        self._withheld = frozenset(withheld)
        self._turn = asyncio.Lock()  # entries share files, and to prove a file is to make its folder and remove it

    async def prove(self, delivery: Delivery) -> None:
        if delivery.way not in WAYS:
            raise Undeliverable(f"no way to deliver is called {delivery.way!r}")
        if delivery.way != "to_command":
            async with self._turn:
                await asyncio.to_thread(secret_files.prove, self._root, delivery.target, _contents(delivery, _STAND_IN))
            return
        program = delivery.target
        if "/" in program:
            program = str(self._root.absolute() / program)  # where `_run` runs it
        if shutil.which(program, path=os.environ.get("PATH")) is None:
            raise Undeliverable(f"there is no command {delivery.target}; install it, or correct the name")
        if check := delivery.settings.get("check"):
            await self._run(check, b"")

    async def deliver(self, delivery: Delivery, secret: Secret) -> None:
        if delivery.way == "to_command":
            await self._run(delivery.settings["run"], secret.reveal().encode())
            return
        content = _contents(delivery, secret)
        async with self._turn:
            await asyncio.to_thread(secret_files.write, self._root, delivery.target, content)

    async def _run(self, arguments: Sequence[str], text: bytes) -> None:
        environ = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(_PRIVATE) and name not in self._withheld
        }
        try:
            process = await asyncio.create_subprocess_exec(
                *arguments,
                cwd=self._root,
                env=environ,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
            )
        except OSError as failure:
            raise Undeliverable(f"{arguments[0]} cannot be run: {failure.strerror or failure}") from None
        try:
            await asyncio.wait_for(process.communicate(text), PATIENCE)
        except TimeoutError:
            process.kill()
            await process.wait()
            raise Undeliverable(f"{arguments[0]} has not ended after {PATIENCE:.0f} seconds") from None
        if process.returncode:
            raise Undeliverable(f"{arguments[0]} ended with exit code {process.returncode}; run it by hand to see why")


def _contents(delivery: Delivery, secret: Secret) -> Callable[[str], str]:
    match delivery.way:
        case "to_file":
            return lambda present: secret.reveal()
        case "to_dotenv":
            return lambda present: dotenv.with_entry(present, str(delivery.settings["name"]), _spelt(secret.reveal()))
    return lambda present: _kubernetes_secret(delivery, secret.reveal())


def _spelt(secret: str) -> str:
    """As the value of a dotenv entry."""
    return secret if re.fullmatch(r"[A-Za-z0-9_./:@%+=-]*", secret) else json.dumps(secret)


def _kubernetes_secret(delivery: Delivery, secret: str) -> str:
    settings = delivery.settings
    namespace = f"  namespace: {json.dumps(settings['namespace'])}\n" if settings.get("namespace") else ""
    return (
        "apiVersion: v1\n"
        "kind: Secret\n"
        "metadata:\n"
        f"  name: {json.dumps(settings['name'])}\n"
        f"{namespace}"
        "type: Opaque\n"
        "stringData:\n"
        f"  {json.dumps(settings['key'])}: {json.dumps(secret)}\n"
    )
