"""Keeps delivered one-time secrets in memory: a rehearsal changes no file, runs no command and asks no secret store."""

from __future__ import annotations

from reconciler.model.manifest import Delivery
from reconciler.model.snapshot import Place
from reconciler.model.value import Secret


class MemorySinks:
    """Implements the engine's port `Sinks`.

    deliveries  the secrets by target: a file or program, or `TARGET:NAME` for an entry, a key or a secret with a name
    """

    def __init__(self) -> None:
        self.deliveries: dict[str, str] = {}

    def place(self, delivery: Delivery) -> Place:
        return Place("memory", _name_target(delivery))

    async def check(self, delivery: Delivery, *, overwrites: bool) -> None:
        """Accepts everything: nothing here is of anyone else."""

    async def deliver(self, delivery: Delivery, secret: Secret, *, overwrites: bool) -> None:
        self.deliveries[_name_target(delivery)] = secret.reveal()


def _name_target(delivery: Delivery) -> str:
    name = delivery.settings.get("key") or delivery.settings.get("name")
    return f"{delivery.target}:{name}" if name else delivery.target
