"""Reads files and streams that the user names, which may be anywhere: only regular files, up to a size.

`files` reads those below the project's root.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO, Final, TextIO

from reconciler.project.files import Unreadable, format_size

LARGEST_PLAN: Final = 256 * 2**20  # bytes of a plan or snapshot; of 50,000 resources it takes about a third
LARGEST_TEXT: Final = 16 * 2**20  # bytes of any other file


def read_bytes(file: Path, largest: int) -> bytes:
    """The content of a regular file. Raises Unreadable for another type and for more than `largest` bytes, or OSError.

    A FIFO would block until another process writes to it, and a device may never end.
    """
    # Without O_NONBLOCK opening a FIFO would block already.
    descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as opened:  # noqa: PTH123 - Path has no form for a descriptor
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise Unreadable(f"{file} is not a regular file", "write the content to a file, and name that")
        return _read(opened, str(file), largest)


def read_text(file: Path, largest: int) -> str:
    """The text of a regular file, with `\\n` at the end of each line. Raises as `read_bytes`, and Unreadable if it is
    not UTF-8."""
    try:
        text = read_bytes(file, largest).decode()
    except UnicodeDecodeError:
        raise Unreadable(f"{file}: not UTF-8 text") from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def read_stream(stream: TextIO, name: str, largest: int) -> str:
    """The text of a stream, up to its end. Raises Unreadable for more than `largest` characters, and if it is not
    UTF-8."""
    try:
        text = stream.read(largest + 1)
    except UnicodeDecodeError:
        raise Unreadable(f"{name}: not UTF-8 text") from None
    if len(text) > largest:
        raise Unreadable(f"{name} is larger than {format_size(largest)}")
    return text


def _read(stream: BinaryIO, name: str, largest: int) -> bytes:
    content = stream.read(largest + 1)
    if len(content) > largest:
        raise Unreadable(f"{name} is larger than {format_size(largest)}")
    return content
