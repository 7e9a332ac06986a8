"""Delivers one-time secrets to the KV engine of Vault, version 2 (`to_vault`).

Every write is bound to the version that was read (check-and-set), so that no other key and no concurrent write is lost.
https://developer.hashicorp.com/vault/api-docs/secret/kv/kv-v2
"""

from __future__ import annotations

import asyncio
import errno
import os
import stat
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import quote

from msgspec import Struct

from reconciler.api.exchange import Response
from reconciler.api.secret_store import SecretStore, Unavailable, read_origin, read_token
from reconciler.engine.ports import Stop, Undeliverable
from reconciler.model.manifest import Delivery
from reconciler.model.snapshot import Place
from reconciler.model.value import Json, Secret

_CONFLICTS = 8  # writes that are attempted while other writers change the entry
_FAILURES = 4  # writes that are attempted while Vault does not respond
_PAUSE = 0.5  # seconds between attempts
_LONGEST_TOKEN = 64 * 1024  # bytes of a file with a token


class _Entry(Struct, frozen=True):
    """A secret of Vault with all its keys. `version` is that of the next write's check-and-set: 0 if there is none."""

    data: Mapping[str, Any]
    version: int


def vault_place(delivery: Delivery, environ: Mapping[str, str]) -> Place:
    """The place of a delivery, which is the same from every machine."""
    address, namespace = environ.get("VAULT_ADDR", "").strip(), environ.get("VAULT_NAMESPACE", "").strip("/ ")
    below = f"{namespace}/" if namespace else ""
    return Place(delivery.way, f"{address.rstrip('/')}/v1/{below}{delivery.target}", str(delivery.settings["key"]))


class Vault(SecretStore):
    """The Vault that the environment names: VAULT_ADDR, VAULT_TOKEN or VAULT_TOKEN_FILE, VAULT_NAMESPACE."""

    def __init__(self, environ: Mapping[str, str], stop: Stop | None = None) -> None:
        """Raises Undeliverable if the environment names no Vault or has no token."""
        address = environ.get("VAULT_ADDR", "")
        if not address.strip():
            raise Undeliverable(
                "VAULT_ADDR is not set; set it to the address of Vault, as in https://vault.example.com:8200"
            )
        super().__init__("Vault", read_origin(address, "VAULT_ADDR"), _read_token(environ), stop)
        self._namespace = environ.get("VAULT_NAMESPACE", "").strip()
        if not (self._namespace.isascii() and self._namespace.isprintable()):
            raise Undeliverable("VAULT_NAMESPACE contains characters that no namespace has")
        self._writing = asyncio.Lock()  # deliveries can share an entry

    def _headers(self) -> dict[str, str]:
        headers = {"X-Vault-Token": self._token.reveal(), "X-Vault-Request": "true"}
        if self._namespace:
            headers["X-Vault-Namespace"] = self._namespace
        return headers

    async def exists(self, delivery: Delivery) -> bool:
        """Whether the key has a value. One attempt, since it only informs a plan."""
        entry = await self._read(delivery, attempts=1)
        return delivery.settings["key"] in entry.data

    async def read_key(self, mount: str, path: str, key: str) -> Secret | None:
        """A key of a secret; None if the secret or the key does not exist. Raises Undeliverable."""
        entry = await self._read(Delivery("to_vault", path, settings={"mount": mount, "path": path, "key": key}))
        value = entry.data.get(key)
        return None if value is None else Secret(str(value), f"vault:{mount}/{path}")

    async def check(self, delivery: Delivery, *, overwrites: bool) -> None:
        """Proves that the engine is KV version 2, that the entry can be read, and that the token may write it."""
        await self._check_engine(delivery)
        entry = await self._read(delivery)
        _refuse_existing(delivery, entry, overwrites)
        await self._check_capabilities(delivery, entry)

    async def deliver(self, delivery: Delivery, secret: Secret, *, overwrites: bool) -> None:
        """Sets the key. Other keys stay as they are."""
        async with self._writing:
            await self._write(delivery, secret, overwrites)

    async def _write(self, delivery: Delivery, secret: Secret, overwrites: bool) -> None:
        key, why, conflicts, failures = str(delivery.settings["key"]), "", 0, 0
        while True:
            if why:
                await self.pause(_PAUSE, why)
            entry = await self._read(delivery)
            if entry.data.get(key) == secret.reveal():
                return  # a write whose response was lost
            if conflicts == _CONFLICTS or failures == _FAILURES:
                raise Undeliverable(why)
            _refuse_existing(delivery, entry, overwrites)
            body: Json = {"options": {"cas": entry.version}, "data": {**entry.data, key: secret.reveal()}}
            try:
                response = await self.send("POST", _data_path(delivery), body, attempts=1)
            except Unavailable as failure:
                why, failures = str(failure), failures + 1
                continue
            if response.is_success:
                return
            if response.status != HTTPStatus.BAD_REQUEST or "check-and-set" not in self._errors(response):
                raise self._refusal(response, delivery)
            why, conflicts = f"other writers keep changing {delivery.target} of {self.name}", conflicts + 1

    async def _check_engine(self, delivery: Delivery) -> None:
        mount = str(delivery.settings["mount"])
        response = await self.send("GET", f"/v1/sys/internal/ui/mounts/{quote(mount)}")
        if response.status == HTTPStatus.FORBIDDEN:
            raise Undeliverable(
                f"{self.name} has no engine at {mount}/, or the token has no access to it; "
                "correct `mount`, VAULT_NAMESPACE or the policy of the token"
            )
        if not response.is_success:
            raise self._refusal(response, delivery)
        data = self._data(response)
        options = data.get("options")
        version = options.get("version") if isinstance(options, Mapping) else None
        if data.get("type") != "kv" or str(version) != "2" or str(data.get("path", "")).strip("/") != mount:
            raise Undeliverable(f"{self.name} has no KV engine of version 2 at {mount}/; correct `mount`")

    async def _read(self, delivery: Delivery, **options: int) -> _Entry:
        response = await self.send("GET", _data_path(delivery), **options)
        if response.is_success:
            data = self._data(response)
            return _Entry(_as_map(data.get("data")), self._version(data))
        if response.status != HTTPStatus.NOT_FOUND:
            raise self._refusal(response, delivery)
        if "no handler for route" in self._errors(response):
            raise Undeliverable(f"{self.name} has no engine at {delivery.settings['mount']}/; correct `mount`")
        # A deleted or destroyed version is not found either, but its number counts for check-and-set.
        body = self.read_json(response)
        data = _as_map(body.get("data"))
        return _Entry({}, self._version(data) if data else 0)

    async def _check_capabilities(self, delivery: Delivery, entry: _Entry) -> None:
        path = f"{delivery.settings['mount']}/data/{delivery.settings['path']}"
        response = await self.send("POST", "/v1/sys/capabilities-self", {"paths": [path]})
        if response.status == HTTPStatus.FORBIDDEN:
            raise Undeliverable(
                f"{self.name} does not tell what the token may write; "
                "allow `update` on sys/capabilities-self, as the policy `default` does"
            )
        if not response.is_success:
            raise self._refusal(response, delivery)
        found = self._data(response).get(path)
        capabilities = set(found) if isinstance(found, list) else set()
        needed = "update" if entry.version else "create"
        if not capabilities & {"root", needed}:
            raise Undeliverable(f"the token may not write {path} of {self.name}; its policy must allow `{needed}`")

    def _refusal(self, response: Response, delivery: Delivery) -> Undeliverable:
        path = f"{delivery.settings['mount']}/data/{delivery.settings['path']}"
        if response.status == HTTPStatus.FORBIDDEN:
            return Undeliverable(
                f"{self.name} denies access to {path}; the token is invalid, or its policy must allow "
                "`create`, `read` and `update`"
            )
        if response.status == HTTPStatus.TEMPORARY_REDIRECT:
            return Undeliverable(f"{self.name} is a standby node; set VAULT_ADDR to the active node")
        return Undeliverable(f"{self.name} returned status {response.status} for {path}")

    def _data(self, response: Response) -> Mapping[str, Any]:
        return _as_map(self.read_json(response).get("data"))

    def _version(self, data: Mapping[str, Any]) -> int:
        version = _as_map(data.get("metadata")).get("version")
        if not isinstance(version, int):
            raise Undeliverable(f"{self.name} returned no version of the secret; is the engine KV version 2?")
        return version

    def _errors(self, response: Response) -> str:
        """The error texts of a response, for comparison only: they are never shown."""
        return str(self.read_json(response).get("errors", ""))


def _read_token(environ: Mapping[str, str]) -> Secret:
    if text := environ.get("VAULT_TOKEN", ""):
        return read_token(text, "VAULT_TOKEN")
    if not (file := environ.get("VAULT_TOKEN_FILE", "")):
        raise Undeliverable("neither VAULT_TOKEN nor VAULT_TOKEN_FILE is set; set one of them to a token of Vault")
    try:
        return read_token(_read_small(Path(file)), "the file in VAULT_TOKEN_FILE")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise Undeliverable(f"the file in VAULT_TOKEN_FILE cannot be read: {why}") from None


def _read_small(file: Path) -> str:
    """The text of a regular file, up to the largest token. A FIFO would block, and a device may never end."""
    with open(os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as opened:  # noqa: PTH123
        if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        return opened.read(_LONGEST_TOKEN).decode()


def _refuse_existing(delivery: Delivery, entry: _Entry, overwrites: bool) -> None:
    if not overwrites and delivery.settings["key"] in entry.data:
        raise Undeliverable(
            f"{delivery.label} exists and was not written by this project; delete it, "
            "or plan again with `--allow overwrite:KIND=N` and access to Vault"
        )


def _as_map(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _data_path(delivery: Delivery) -> str:
    return f"/v1/{quote(str(delivery.settings['mount']))}/data/{quote(str(delivery.settings['path']))}"
