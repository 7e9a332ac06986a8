"""Reads a one-time secret back from where it was delivered, as far as that is a file or an entry of one.

For what is written from it on this machine; commands and Kubernetes Secrets give nothing back.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from reconciler.engine.ports import Undeliverable
from reconciler.model.manifest import Delivery
from reconciler.model.value import Secret
from reconciler.project import files

WAYS = ("to_file", "to_dotenv")
_LARGEST = 2**20  # bytes


def read(root: Path, delivery: Delivery) -> Secret:
    """Undeliverable says why there is nothing to be had."""
    if delivery.way not in WAYS:
        raise Undeliverable(f"what went {delivery.way.replace('_', ' ')} cannot be read back")
    try:
        text = files.read(root, delivery.target, _LARGEST).decode()
    except files.Unreadable as wrong:
        raise Undeliverable(str(wrong)) from None
    except UnicodeDecodeError:
        raise Undeliverable(f"{delivery.target} is not UTF-8") from None
    found = text.strip() if delivery.way == "to_file" else _entry(text, str(delivery.settings["name"]))
    if not found:
        what = f"no entry {delivery.settings['name']}" if delivery.way == "to_dotenv" else "nothing"
        raise Undeliverable(f"there is {what} in {delivery.target}")
    return Secret(found, f"file:{delivery.target}")


def _entry(text: str, name: str) -> str:
    """The entry of a dotenv text, as our sink writes it; empty if there is none."""
    found = re.search(rf"^\s*(?:export\s+)?{re.escape(name)}\s*=[ \t]*(.*?)[ \t]*$", text, re.MULTILINE)
    if found is None:
        return ""
    if found[1].startswith('"'):
        try:
            return str(json.loads(found[1]))
        except ValueError:
            return ""
    return found[1].strip("'")
