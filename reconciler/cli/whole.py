"""Writes a file whole or not at all, readable by nobody it should not be at any time. Knows no format."""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def write(file: Path, text: str, mode: int = 0o600) -> None:
    """In the place of whatever is there; through no link, and by a draft with a name that nobody can prepare."""
    draft = file.with_name(f".{file.name[:200]}.{secrets.token_hex(6)}")
    try:
        _write(draft, text, mode)
        draft.replace(file)
    except BaseException as error:
        with contextlib.suppress(OSError):
            draft.unlink()
        if isinstance(error, OSError):
            raise OSError(error.errno, error.strerror, str(file)) from error  # by the name that the user knows
        raise


def _write(draft: Path, text: str, mode: int) -> None:
    descriptor = os.open(draft, _NEW, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as out:
        os.fchmod(out.fileno(), 0o600)
        out.write(text)
        out.flush()
        os.fchmod(out.fileno(), mode)
