"""What all stores have in common: the version of the tables, and the encoding and the seal of rows."""

from __future__ import annotations

import hashlib
import json

VERSION = 8  # that of the first release; stores of earlier versions were written before it, and are refused
NAME = "reconciler"  # the schema of the tables on a server

encode_json = json.JSONEncoder(sort_keys=True).encode
"""Encodes JSON for a row, as `json.dumps` would, which builds a new encoder for each call."""


def seal(*content: object) -> str:
    """The digest of a row's content."""
    return hashlib.blake2b(encode_json(content).encode(), digest_size=8).hexdigest()
