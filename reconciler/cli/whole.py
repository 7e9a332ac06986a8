"""Writes a file whole or not at all, readable by nobody it should not be at any time. Knows no format."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def write(file: Path, text: str, mode: int = 0o600) -> None:
    """In the place of whatever is there; through no link, and by a draft with a name that nobody can prepare."""
    draft = file.with_name(f".{file.name[:200]}.{secrets.token_hex(6)}")
    descriptor = os.open(draft, _NEW, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as out:
            os.fchmod(out.fileno(), 0o600)
            out.write(text)
            out.flush()
            os.fchmod(out.fileno(), mode)
        draft.replace(file)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
