"""Reads one file of a downloaded archive in memory: of limited size, by its name, without trust in the archive."""

from __future__ import annotations

import io
import zipfile
import zlib

LARGEST = 64 * 2**20  # bytes of a plan file; one of 10,000 changes has 20 MB
_MOST_ENTRIES = 1000
_ENTRY = b"PK\x01\x02"  # begins each entry of the directory of an archive
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # the others need memory of a size that the archive chooses
_ENCRYPTED = 0x1
_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, ValueError, NotImplementedError)


class UnusableArchive(Exception):
    """Why the file cannot be read from the archive."""


def extract(archive: bytes, name: str) -> bytes:
    """The content of the only entry with this name. Raises UnusableArchive."""
    if archive.count(_ENTRY) > _MOST_ENTRIES:
        raise UnusableArchive(f"has more than {_MOST_ENTRIES} files")
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as opened:
            found = [entry for entry in opened.infolist() if entry.filename == name]
            if len(found) != 1:
                raise UnusableArchive(f"has no file {name}" if not found else f"has {len(found)} files {name}")
            if found[0].compress_type not in _METHODS or found[0].flag_bits & _ENCRYPTED:
                raise UnusableArchive(f"has {name} in an unsupported form")
            with opened.open(found[0]) as file:
                content = file.read(LARGEST + 1)
    except _BROKEN as error:
        raise UnusableArchive(f"is damaged: {error}") from None
    if len(content) > LARGEST:
        raise UnusableArchive(f"has {name}, which is larger than {LARGEST // 2**20} MB")
    return content
