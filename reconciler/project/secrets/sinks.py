"""Delivers one-time secrets: to a file, a dotenv entry, a Kubernetes Secret manifest, or a command's standard input.

The output of a command is never shown: it may contain the secret.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import shutil
import signal
import socket
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

from reconciler.engine.ports import Stop, Undeliverable
from reconciler.model.manifest import Delivery
from reconciler.model.snapshot import Place
from reconciler.model.value import Secret
from reconciler.project import processes
from reconciler.project.secrets import dotenv
from reconciler.project.secrets import files as secret_files
from reconciler.project.secrets.reserved_places import Reserved

WAYS = ("to_file", "to_dotenv", "to_kubernetes_secret", "to_command")
PATIENCE = 60.0  # seconds: timeout of a command
GRACE = 5.0  # seconds until a command is killed after the run was interrupted
_PRIVATE = "RECONCILER_"  # settings of this program, such as the API key, are never passed to commands
_PASSED = ("PATH", "HOME", "LANG", "LANGUAGE")  # passed to every command, besides LC_*
_MACHINE = Path("/etc/machine-id")
_TRIAL_SECRET = Secret("secret", "proof")

OwnPlaces = Callable[[], Mapping[str, str]]


class ProjectSinks:
    """Implements the engine's port `Sinks`, with paths relative to the project's root."""

    def __init__(
        self, root: Path, own: OwnPlaces = dict, stop: Stop | None = None, environ: Mapping[str, str] = os.environ
    ) -> None:
        """`own`: real paths of the project's own files and folders, with their purpose. `stop`: interrupts commands.
        `environ`: of which commands get what they may know."""
        self._root = root
        self._environ = environ
        self._own = own
        self._stop = stop
        self._turn = asyncio.Lock()  # deliveries can share files

    @cached_property
    def _reserved_paths(self) -> Reserved:
        return Reserved(os.path.realpath(self._root), self._own())

    def place(self, delivery: Delivery) -> Place:
        return place(self._root, delivery)

    async def check(self, delivery: Delivery, *, overwrites: bool = False) -> None:
        if delivery.way not in WAYS:
            raise Undeliverable(f"unknown sink {delivery.way!r}")
        if delivery.way != "to_command":
            content = _make_content(delivery, _TRIAL_SECRET, overwrites)
            async with self._turn:
                await asyncio.to_thread(
                    secret_files.prove, self._root, delivery.target, content, await self._load_reserved()
                )
            return
        program = delivery.target
        if "/" in program:
            program = str(self._root.absolute() / program)  # the working directory of `_run`
        if shutil.which(program, path=self._environ.get("PATH")) is None:
            raise Undeliverable(f"command {delivery.target} not found; install it, or correct the name")
        if check := delivery.settings.get("check"):
            await self._run(check, b"", delivery.settings.get("env", ()))

    async def deliver(self, delivery: Delivery, secret: Secret, *, overwrites: bool = False) -> None:
        if delivery.way == "to_command":
            settings = delivery.settings
            await self._run(settings["run"], secret.reveal().encode(), settings.get("env", ()))
            return
        content = _make_content(delivery, secret, overwrites)
        async with self._turn:
            await asyncio.to_thread(
                secret_files.write, self._root, delivery.target, content, await self._load_reserved()
            )

    async def _load_reserved(self) -> Reserved:
        return await asyncio.to_thread(lambda: self._reserved_paths)

    async def _run(self, arguments: Sequence[str], text: bytes, passed: Collection[str]) -> None:
        program = arguments[0]
        starting = asyncio.ensure_future(
            processes.start_command(arguments, command_environment(self._environ, passed), self._root)
        )
        try:
            process = await asyncio.shield(starting)
        except asyncio.CancelledError:
            await _kill(await starting)  # it may have started child processes
            raise
        except OSError as failure:
            raise Undeliverable(f"{program} cannot be run: {failure.strerror or failure}") from None
        talking = asyncio.ensure_future(process.communicate(text))
        try:
            why = await self._wait(talking)
        finally:
            if not talking.done():
                talking.cancel()
                await _kill(process)
                await asyncio.gather(talking, return_exceptions=True)
        if why:
            raise Undeliverable(f"{program} {why}")
        if process.returncode:
            raise Undeliverable(
                f"{program} {_describe_end(process.returncode)}; its output is hidden, "
                "since it may contain the secret: run it by hand to see it"
            )

    async def _wait(self, talking: asyncio.Future[tuple[bytes, bytes]]) -> str:
        """Waits for a command. Returns the reason to kill it, or an empty text if it ended."""
        stopping = asyncio.ensure_future(self._stop.wait()) if self._stop is not None else None
        both: set[asyncio.Future[Any]] = {talking} if stopping is None else {talking, stopping}
        try:
            await asyncio.wait(both, timeout=PATIENCE, return_when=asyncio.FIRST_COMPLETED)
            if talking.done():
                return ""
            if stopping is None or not stopping.done():
                return f"did not finish within {PATIENCE:.0f} seconds and was killed"
            await asyncio.wait({talking}, timeout=GRACE)
            return "" if talking.done() else "was killed, because the run was interrupted"
        finally:
            if stopping is not None:
                stopping.cancel()


def command_environment(environ: Mapping[str, str], passed: Iterable[str]) -> dict[str, str]:
    """The environment of a command: PATH, HOME, the locale and the names in `passed`, but no settings of reconciler."""
    names = {*_PASSED, *passed}
    return {
        name: value
        for name, value in environ.items()
        if (name in names or name.startswith("LC_")) and not name.startswith(_PRIVATE)
    }


def place(root: Path, delivery: Delivery) -> Place:
    """The place of a delivery, as recorded in receipts."""
    settings, entry = delivery.settings, ""
    if delivery.way == "to_dotenv":
        entry = str(settings["name"])
    elif delivery.way == "to_kubernetes_secret":
        entry = "/".join(str(settings.get(name, "")) for name in ("namespace", "name", "key"))
    return Place(delivery.way, delivery.target, entry, socket.gethostname(), _checkout(root))


def _checkout(root: Path) -> str:
    """A digest that identifies a project's folder, even among equal paths on machines of the same name."""
    real = os.path.realpath(root)
    parts = [real]
    with suppress(OSError):
        parts.append(str(os.stat(real).st_ino))  # noqa: PTH116 - a real path
    with suppress(OSError):
        parts.append(_MACHINE.read_text(encoding="utf-8").strip())
    return hashlib.blake2b("\0".join(parts).encode(errors="surrogateescape"), digest_size=8).hexdigest()


def _describe_end(code: int) -> str:
    """How a command ended that did not succeed; a negative code is that of a signal."""
    if code > 0:
        return f"failed with exit code {code}"
    with suppress(ValueError):
        return f"was killed by signal {-code} ({signal.Signals(-code).name})"
    return f"was killed by signal {-code}"


async def _kill(process: asyncio.subprocess.Process) -> None:
    processes.kill(process)
    await process.wait()


def target_exists(root: Path, delivery: Delivery) -> bool | None:
    """Whether a delivery to a file would overwrite a value; None if that is unknown."""
    try:
        return _is_taken(delivery, secret_files.read(root, delivery.target))
    except Undeliverable:
        return None


def _is_taken(delivery: Delivery, present: str | None) -> bool:
    if delivery.way == "to_dotenv":
        return dotenv.has_value(present or "", str(delivery.settings["name"]))
    return bool(present)


def _make_content(delivery: Delivery, secret: Secret, overwrites: bool) -> secret_files.Content:
    def content(present: str | None) -> str:
        if not overwrites and _is_taken(delivery, present):
            what = f"the entry {delivery.settings['name']}" if delivery.way == "to_dotenv" else "it"
            remedy = "move it away, or plan again with `--allow overwrite:KIND=N`"
            raise Undeliverable(f"{what} exists and was not written by this project; {remedy}")
        match delivery.way:
            case "to_file":
                return secret.reveal()
            case "to_dotenv":
                return dotenv.with_entry(present or "", str(delivery.settings["name"]), _quote_dotenv(secret.reveal()))
        return _kubernetes_secret(delivery, secret.reveal())

    return content


def _quote_dotenv(secret: str) -> str:
    """Quotes a secret as the value of a dotenv entry."""
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
