"""Delivers one-time secrets to secrets of GitHub Actions, of a repository or an environment (`to_github_secret`).

GitHub takes a value sealed for the public key of the repository or environment (libsodium), and never returns it.
https://docs.github.com/rest/actions/secrets
"""

from __future__ import annotations

import asyncio
import base64
from collections import defaultdict
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from reconciler.api.exchange import Response
from reconciler.api.secret_store import SecretStore, read_origin, read_token
from reconciler.engine.ports import Stop, Undeliverable
from reconciler.model.manifest import Delivery
from reconciler.model.snapshot import Place
from reconciler.model.value import Json, Secret

API_URL = "https://api.github.com"
PROBE = "TEST_OF_RECONCILER"
"""The secret that a check writes and deletes: GitHub has no other way to prove that a token may write secrets."""


def github_place(delivery: Delivery, environ: Mapping[str, str]) -> Place:
    """The place of a delivery, which is the same from every machine."""
    path = _address(environ).rstrip("/") + _secrets_path(delivery)
    return Place(delivery.way, path.lower(), str(delivery.settings["name"]).upper())


class GitHubSecrets(SecretStore):
    """GitHub, with the token in GITHUB_TOKEN; GITHUB_API_URL names an own server."""

    def __init__(self, environ: Mapping[str, str], stop: Stop | None = None) -> None:
        """Raises Undeliverable if there is no token."""
        if not (text := environ.get("GITHUB_TOKEN", "")):
            raise Undeliverable("GITHUB_TOKEN is not set; set it to a token that can write secrets of the repository")
        origin = read_origin(_address(environ), "GITHUB_API_URL")
        super().__init__("GitHub", origin, read_token(text, "GITHUB_TOKEN"), stop)
        self._proving: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._proven: set[str] = set()

    def _headers(self) -> dict[str, str]:
        return {
            "Accept": "application/vnd.github+json",
            "Authorization": f"Bearer {self._token.reveal()}",
            "X-GitHub-Api-Version": "2022-11-28",
        }

    async def exists(self, delivery: Delivery, attempts: int = 1) -> bool:
        """Whether the secret exists. By default one attempt, since it only informs a plan."""
        response = await self.send("GET", _secret_path(delivery), attempts=attempts)
        if response.status == HTTPStatus.NOT_FOUND:
            return False
        if not response.is_success:
            raise self._refusal(response, delivery)
        return True

    async def check(self, delivery: Delivery, *, overwrites: bool) -> None:
        """Proves that the token may write secrets there, once for each repository and environment of a run."""
        _load_nacl()
        await self._refuse_existing(delivery, overwrites)
        where = _secrets_path(delivery)
        async with self._proving[where]:
            if where in self._proven:
                return
            await self._put(delivery, PROBE, "test")
            response = await self.send("DELETE", f"{where}/{PROBE}")
            if not response.is_success and response.status != HTTPStatus.NOT_FOUND:  # another run deleted it
                raise self._refusal(response, delivery)
            self._proven.add(where)

    async def deliver(self, delivery: Delivery, secret: Secret, *, overwrites: bool) -> None:
        await self._refuse_existing(delivery, overwrites)
        await self._put(delivery, str(delivery.settings["name"]), secret.reveal())

    async def _refuse_existing(self, delivery: Delivery, overwrites: bool) -> None:
        if not overwrites and await self.exists(delivery, attempts=4):
            raise Undeliverable(
                f"{delivery.label} exists and was not written by this project; delete it, "
                "or plan again with `--allow overwrite:KIND=N` and access to GitHub"
            )

    async def _put(self, delivery: Delivery, name: str, text: str) -> None:
        """Sets a secret. May be repeated: it sets the same value."""
        response = await self.send("GET", f"{_secrets_path(delivery)}/public-key")
        if not response.is_success:
            raise self._refusal(response, delivery)
        key = self.read_json(response)
        body: Json = {"encrypted_value": self._seal(key.get("key"), text), "key_id": str(key.get("key_id", ""))}
        response = await self.send("PUT", f"{_secrets_path(delivery)}/{name}", body)
        if not response.is_success:
            raise self._refusal(response, delivery)

    def _seal(self, key: Any, text: str) -> str:
        public = _load_nacl()
        try:
            box = public.SealedBox(public.PublicKey(base64.b64decode(str(key), validate=True)))
        except (ValueError, TypeError):  # PyNaCl's errors are of these types too
            raise Undeliverable(f"{self.name} returned a public key that cannot be used") from None
        sealed: bytes = box.encrypt(text.encode())
        return base64.b64encode(sealed).decode()

    def _refusal(self, response: Response, delivery: Delivery) -> Undeliverable:
        environment = delivery.settings.get("environment")
        where = f"the environment {environment} of {delivery.target}" if environment else delivery.target
        match response.status:
            case HTTPStatus.UNAUTHORIZED:
                return Undeliverable(f"{self.name} does not accept the token in GITHUB_TOKEN")
            case HTTPStatus.FORBIDDEN:
                needed = "environments: write" if environment else "secrets: write"
                return Undeliverable(
                    f"the token in GITHUB_TOKEN may not write secrets of {where}: it needs the permission `{needed}`, "
                    "which the automatic token of a workflow cannot have"
                )
            case HTTPStatus.NOT_FOUND:
                return Undeliverable(
                    f"{self.name} does not have {where}, or the token in GITHUB_TOKEN has no access to it"
                )
            case HTTPStatus.MOVED_PERMANENTLY | HTTPStatus.TEMPORARY_REDIRECT | HTTPStatus.PERMANENT_REDIRECT:
                return Undeliverable(f"the GitHub repository {delivery.target} was renamed; correct `repository`")
        return Undeliverable(f"{self.name} returned status {response.status} for the secrets of {where}")


def _load_nacl() -> Any:
    try:
        import nacl.public
    except ImportError:
        raise Undeliverable("PyNaCl is not installed; install the extra `reconciler[github]`") from None
    return nacl.public


def _address(environ: Mapping[str, str]) -> str:
    return environ.get("GITHUB_API_URL", "").strip() or API_URL


def _secrets_path(delivery: Delivery) -> str:
    repository = f"/repos/{quote(delivery.target)}"
    if environment := str(delivery.settings.get("environment") or ""):
        return f"{repository}/environments/{quote(environment, safe='')}/secrets"
    return f"{repository}/actions/secrets"


def _secret_path(delivery: Delivery) -> str:
    return f"{_secrets_path(delivery)}/{delivery.settings['name']}"
