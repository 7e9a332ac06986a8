"""Indented JSON, in a small part of the time of `json.dumps`, whose fast encoder does not indent."""

from __future__ import annotations

import json
from typing import Any

import msgspec


def write_json(value: Any, indent: int = 2) -> str:
    """Returns the same text as `json.dumps(value, indent=indent)`."""
    try:
        return msgspec.json.format(json.dumps(value), indent=indent)
    except (msgspec.DecodeError, RecursionError):  # half of a character, or a number that JSON does not have
        return json.dumps(value, indent=indent)
