"""An HTML page as text: an element a line, indented by its depth, with its attributes and text.

Code is text in backticks. Style and scripts are left out. Data in JSON has a line for each flat
list or object.
"""

from __future__ import annotations

import json
from html.parser import HTMLParser
from typing import Any

_EMPTY = {"br", "hr", "input", "link", "meta", "path", "rect", "circle", "line", "polyline", "use", "img", "col"}


class _Outline(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self._open: list[str] = []
        self._text = ""
        self._is_data = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "code" and not attrs:
            self._text += "`"
            return
        words = [tag, *(name if value is None else f"{name}={value!r}" for name, value in attrs if name != "content")]
        self._add(" ".join(words))
        self._is_data = ("type", "application/json") in attrs
        if tag not in _EMPTY:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in _EMPTY:
            self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        if tag == "code" and "code" not in self._open:
            self._text += "`"
        if tag in self._open:
            self._end_text()
            while self._open.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        if self._open[-1:] == ["script"] and self._is_data:
            for line in _list_values(json.loads(data)):
                self._add(line)
        elif self._open[-1:] not in (["script"], ["style"]):
            self._text += data

    def _add(self, line: str) -> None:
        self._end_text()
        self.lines.append(f"{'  ' * len(self._open)}{line}")

    def _end_text(self) -> None:
        lines = self._text.splitlines() if "pre" in self._open else [self._text]
        self.lines += [f"{'  ' * len(self._open)}| {' '.join(line.split())}" for line in lines if line.strip()]
        self._text = ""


def _list_values(value: Any, path: str = "") -> list[str]:
    items = list(value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ())
    if not any(isinstance(item, (dict, list)) for _, item in items):
        return [f"{path[1:]}: {json.dumps(value, ensure_ascii=False)}"]
    return [line for key, item in items for line in _list_values(item, f"{path}.{key}")]


def outline(page: str) -> str:
    reading = _Outline()
    reading.feed(page)
    reading.close()
    return "\n".join((*reading.lines, ""))
