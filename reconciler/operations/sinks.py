"""The sinks of a project: files and commands on this machine, Vault, and secrets of GitHub Actions."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING

from reconciler.engine.ports import Sinks, Stop, Undeliverable
from reconciler.model.address import Address
from reconciler.model.manifest import REMOTE_WAYS, Delivery
from reconciler.model.snapshot import Place
from reconciler.model.value import Secret

if TYPE_CHECKING:
    from reconciler.api.github_secrets import GitHubSecrets
    from reconciler.api.vault import Vault

_AT_ONCE = 8  # requests that inform a plan


class RemoteSinks:
    """Implements the engine's port `Sinks` for Vault and GitHub. The environment is read when a delivery needs it."""

    def __init__(self, environ: Mapping[str, str], stop: Stop | None = None) -> None:
        self._environ = environ
        self._stop = stop
        self._opened: dict[str, Vault | GitHubSecrets] = {}

    def place(self, delivery: Delivery) -> Place:
        return remote_place(delivery, self._environ)

    async def check(self, delivery: Delivery, *, overwrites: bool = False) -> None:
        await self._open(delivery.way).check(delivery, overwrites=overwrites)

    async def deliver(self, delivery: Delivery, secret: Secret, *, overwrites: bool = False) -> None:
        await self._open(delivery.way).deliver(delivery, secret, overwrites=overwrites)

    async def exists(self, delivery: Delivery) -> bool:
        """Whether the target has a value; raises Undeliverable if that cannot be read."""
        return await self._open(delivery.way).exists(delivery)

    def _open(self, way: str) -> Vault | GitHubSecrets:
        if way not in self._opened:
            self._opened[way] = _open(way, self._environ, self._stop)
        return self._opened[way]


class RoutedSinks:
    """Sends each delivery to `remote`, if it leaves this machine over HTTP, or else to `local`."""

    def __init__(self, local: Sinks, remote: Sinks) -> None:
        self._local = local
        self._remote = remote

    def place(self, delivery: Delivery) -> Place:
        return self._sinks(delivery).place(delivery)

    async def check(self, delivery: Delivery, *, overwrites: bool = False) -> None:
        await self._sinks(delivery).check(delivery, overwrites=overwrites)

    async def deliver(self, delivery: Delivery, secret: Secret, *, overwrites: bool = False) -> None:
        await self._sinks(delivery).deliver(delivery, secret, overwrites=overwrites)

    def _sinks(self, delivery: Delivery) -> Sinks:
        return self._remote if delivery.way in REMOTE_WAYS else self._local


def remote_place(delivery: Delivery, environ: Mapping[str, str]) -> Place:
    """The place of a delivery to Vault or GitHub, as recorded in receipts."""
    if delivery.way == "to_vault":
        from reconciler.api.vault import vault_place

        return vault_place(delivery, environ)
    from reconciler.api.github_secrets import github_place

    return github_place(delivery, environ)


async def find_existing(deliveries: Mapping[Address, Delivery], environ: Mapping[str, str]) -> frozenset[Address]:
    """The deliveries whose targets at Vault or GitHub have a value already. A target that cannot be read counts as
    free: a plan needs no credentials of a secret store, and the apply checks it again."""
    from reconciler.api.secret_store import Unavailable

    remote, turns = RemoteSinks(environ), asyncio.Semaphore(_AT_ONCE)
    unavailable: set[str] = set()  # not asked again, since each request would wait for its timeout

    async def exists(delivery: Delivery) -> bool:
        async with turns:
            if delivery.way in unavailable:
                return False
            try:
                return await remote.exists(delivery)
            except Unavailable:
                unavailable.add(delivery.way)
            except Undeliverable:
                pass
            return False

    found = await asyncio.gather(*map(exists, deliveries.values()))
    return frozenset(address for address, is_there in zip(deliveries, found, strict=True) if is_there)


def _open(way: str, environ: Mapping[str, str], stop: Stop | None) -> Vault | GitHubSecrets:
    if way == "to_vault":
        from reconciler.api.vault import Vault

        return Vault(environ, stop)
    from reconciler.api.github_secrets import GitHubSecrets

    return GitHubSecrets(environ, stop)
