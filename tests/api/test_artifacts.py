"""Archives that anyone may have written: one file of the expected name is read in limited memory, or none."""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Callable

import pytest

from reconciler.api import artifacts
from reconciler.api.artifacts import UnusableArchive, extract


def archive(*files: tuple[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", method) as file:
        for name, content in files:
            file.writestr(name, content)
    return written.getvalue()


GOOD = archive(("plan.json", b"{}"), ("plan.html", b"page"))


def set_flag(content: bytes, flag: int) -> bytes:
    """Sets a flag of every entry of the directory, such as the one of encrypted files."""
    changed = bytearray(content)
    at = changed.find(b"PK\x01\x02")
    while at >= 0:
        (flags,) = struct.unpack_from("<H", changed, at + 8)
        struct.pack_into("<H", changed, at + 8, flags | flag)
        at = changed.find(b"PK\x01\x02", at + 4)
    return bytes(changed)


def set_size(content: bytes, size: int) -> bytes:
    """Sets the size in the first entry of the directory."""
    changed = bytearray(content)
    struct.pack_into("<I", changed, changed.find(b"PK\x01\x02") + 24, size)
    return bytes(changed)


def test_the_file_of_the_expected_name_is_read() -> None:
    assert extract(GOOD, "plan.json") == b"{}"
    assert extract(archive(("plan.json", b"{}"), method=zipfile.ZIP_STORED), "plan.json") == b"{}"


HOSTILE: dict[str, tuple[Callable[[], bytes], str]] = {  # made by the test that needs it
    "no such file": (lambda: archive(("other.json", b"{}")), "has no file plan.json"),
    "a path to it": (
        lambda: archive(("../plan.json", b"{}"), ("/plan.json", b""), ("a/plan.json", b"")),
        "has no file plan.json",
    ),
    "a folder of its name": (lambda: archive(("plan.json/", b"")), "has no file plan.json"),
    "lzma": (lambda: archive(("plan.json", b"{}"), method=zipfile.ZIP_LZMA), "in an unsupported form"),
    "bzip2": (lambda: archive(("plan.json", b"{}"), method=zipfile.ZIP_BZIP2), "in an unsupported form"),
    "encrypted": (lambda: set_flag(GOOD, 1), "in an unsupported form"),
    "cut off": (lambda: GOOD[:-20], "is damaged"),
    "other bytes": (lambda: GOOD.replace(b"PK\x03\x04", b"PK\x03\x05"), "is damaged"),
    "a smaller size": (lambda: set_size(GOOD, 1), "is damaged"),
    "empty": (lambda: b"", "is damaged"),
    "text": (lambda: b"x" * 10_000, "is damaged"),
    "many": (lambda: archive(*((str(number), b"") for number in range(1001))), "has more than 1000 files"),
    "larger than allowed": (lambda: archive(("plan.json", b"\0" * (artifacts.LARGEST + 1))), "is larger than 64 MB"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_any_other_archive_is_refused(case: str) -> None:
    make, why = HOSTILE[case]
    with pytest.raises(UnusableArchive, match=why):
        extract(make(), "plan.json")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_an_archive_with_two_files_of_the_name_is_refused() -> None:
    with pytest.raises(UnusableArchive, match=r"has 2 files plan\.json"):
        extract(archive(("plan.json", b"{}"), ("plan.json", b"[]")), "plan.json")


def test_a_file_of_the_largest_size_is_read() -> None:
    content = b" " * artifacts.LARGEST
    assert extract(archive(("plan.json", content)), "plan.json") == content
