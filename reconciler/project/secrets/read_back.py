"""Reads a delivered one-time secret back from its file or dotenv entry.

Commands and Kubernetes Secrets cannot be read back.
"""

from __future__ import annotations

from pathlib import Path

from reconciler.engine.ports import Undeliverable
from reconciler.model.manifest import Delivery
from reconciler.model.value import Secret
from reconciler.project import files
from reconciler.project.secrets import dotenv

WAYS = ("to_file", "to_dotenv")
_LARGEST = 2**20  # bytes


def read_secret(root: Path, delivery: Delivery) -> Secret:
    """Reads the secret of a delivery. Raises Undeliverable with the reason if it cannot be read."""
    if delivery.way not in WAYS:
        raise Undeliverable(f"a secret delivered with {delivery.way} cannot be read back")
    try:
        text = files.read(root, delivery.target, _LARGEST).decode()
    except files.Unreadable as wrong:
        raise Undeliverable(str(wrong)) from None
    except UnicodeDecodeError:
        raise Undeliverable(f"{delivery.target} is not UTF-8") from None
    try:
        found = text.strip() if delivery.way == "to_file" else dotenv.entry(text, str(delivery.settings["name"]))
    except Undeliverable as why:
        raise Undeliverable(f"{delivery.target}: {why}") from None
    if not found:
        what = f"no entry {delivery.settings['name']}" if delivery.way == "to_dotenv" else "no content"
        raise Undeliverable(f"{delivery.target} has {what}")
    return Secret(found, f"file:{delivery.target}")
