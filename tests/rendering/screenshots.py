"""Takes the pictures of the documentation: the comment and the page of one pull request, in `docs/images`.

`python -m tests.rendering.screenshots` needs Chromium. Each picture has a digest of the text that it shows, which a
test compares with today's rendering: a picture of other words than the program's is found without looking at it.
"""

from __future__ import annotations

import hashlib
import html
import re
import struct
import sys
import tempfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path

from markdown_it import MarkdownIt

from reconciler.rendering.html import plan_page
from reconciler.rendering.plan import overview_markdown
from tests.harness import browser
from tests.rendering.shop import CONTEXT, PRODUCTION, STAGING

FOLDER = Path(__file__).parents[2] / "docs" / "images"
LARGEST = 100_000  # bytes of a picture, which every clone of the repository has
_KEY = b"reconciler-text"
_SIGNATURE = 8  # bytes before the first chunk of a PNG file
_WIDTH = 960

_COMMENT = Path(__file__).with_name("pages") / "comment.html"  # like a comment of a code host; BODY stands for its text


def render_comment() -> str:
    """The comment as a code host shows it."""
    text = overview_markdown.render_overview([STAGING, PRODUCTION])
    body = MarkdownIt("commonmark").enable("table").render(text)
    return _COMMENT.read_text(encoding="utf-8").replace("BODY", body)


def render_page() -> str:
    """The page of both plans."""
    return plan_page.render_overview([STAGING, PRODUCTION], context=CONTEXT, digests=["blake2b:0a1b", "blake2b:2c3d"])


PICTURES: Mapping[str, tuple[Callable[[], str], int]] = {
    "comment.png": (render_comment, 720),
    "page.png": (render_page, 660),
}
"""By file: the HTML, and the height of the picture in pixels."""


def digest_text(page: str) -> str:
    """The digest of what a page says: neither of its markup nor of its style."""
    visible = re.sub(r"<(script|style)\b.*?</\1>|<[^>]*>", " ", page, flags=re.DOTALL)
    return hashlib.sha256(" ".join(html.unescape(visible).split()).encode()).hexdigest()


def mark(picture: bytes, digest: str) -> bytes:
    """The PNG file with the digest in a text chunk behind its header."""
    content = b"tEXt" + _KEY + b"\0" + digest.encode()
    chunk = struct.pack(">I", len(content) - 4) + content + struct.pack(">I", zlib.crc32(content))
    (length,) = struct.unpack(">I", picture[_SIGNATURE : _SIGNATURE + 4])
    end = _SIGNATURE + 12 + length
    return picture[:end] + chunk + picture[end:]


def read_mark(picture: bytes) -> str:
    """The digest in a PNG file; empty if it has none."""
    found = re.search(re.escape(b"tEXt" + _KEY) + b"\0([0-9a-f]{64})", picture)
    return found[1].decode() if found else ""


def main() -> int:
    program = browser.program()
    if program is None:
        print("Chromium is not installed", file=sys.stderr)
        return 1
    FOLDER.mkdir(exist_ok=True)
    running = browser.Browser(program)
    with tempfile.TemporaryDirectory() as folder:
        for name, (render, height) in PICTURES.items():
            page, shot = Path(folder, "page.html"), Path(folder, name)
            page.write_text(render(), encoding="utf-8")
            running.open(page, width=_WIDTH, height=height)
            running.screenshot(shot)
            (FOLDER / name).write_bytes(mark(shot.read_bytes(), digest_text(render())))
            print(f"{FOLDER / name}: {(FOLDER / name).stat().st_size:,} bytes")
    running.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
