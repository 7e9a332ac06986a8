"""Fails each test in which the product prints a one-time token or leaves one in a file.

Tokens that the sandbox issues are known by their shape, made-up secrets by the word `canary` in them. Searched are what
a test captures of its own or of a process's output, what pytest captures, and stores, plans and event files in the
test's folder. A pipe that a test reads itself is not searched. `tests/security/test_silence.py` searches for secrets in
each encoding and in part.
"""

from __future__ import annotations

import base64
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

_TOKEN = re.compile(rb"_[0-9A-Za-z]{21}(?![0-9A-Za-z])")  # an expression that begins with a constant is fast
_BEFORE_TOKEN = re.compile(rb"[0-9A-Za-z]{27}")
_CANARY = re.compile(rb"canary-[0-9A-Za-z]{4,}")
_CODED = re.compile(rb"[0-9A-Za-z+/]{64,}={0,2}")  # what a token in base64 takes at least
_IS_CODED = bytes(b"+/".find(octet) >= 0 or (chr(octet).isalnum() and octet < 128) for octet in range(256))
_LEFT = re.compile(r".*\.(db|db-wal|db-shm|ndjson|html|md|sarif)|.*plan.*\.json|\..*\.new")
_searched = {"texts": 0, "bytes": 0}
_printed: list[str] = []  # the secrets in what the current test captured


def secrets_in(text: str | bytes) -> list[str]:
    """Every secret in a text, as it is or in base64."""
    octets = text.encode(errors="replace") if isinstance(text, str) else text
    _searched["texts"] += 1
    _searched["bytes"] += len(octets)
    found = _plain_secrets_in(octets)
    if b"\1" * 64 in octets.translate(_IS_CODED):  # the expression alone takes twenty times as long
        for coded in _CODED.finditer(octets):
            for start in range(4):
                piece = coded[0].rstrip(b"=")[start:]
                found += _plain_secrets_in(base64.b64decode(piece[: len(piece) // 4 * 4], validate=False))
    return found


def _plain_secrets_in(octets: bytes) -> list[str]:
    tokens = [
        octets[hit.start() - 27 : hit.end()]
        for hit in _TOKEN.finditer(octets)
        if _BEFORE_TOKEN.fullmatch(octets, max(0, hit.start() - 27), hit.start())
    ]
    return [hit.decode() for hit in (*tokens, *_CANARY.findall(octets))]


@pytest.fixture
def tmp_path(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """pytest's folder of the test. When all fixtures that use it have ended, its files are searched."""
    yield tmp_path
    left = [hit for path in _list_files(tmp_path) for hit in secrets_in(path.read_bytes())]
    if "may_tell_secrets" not in request.keywords:
        assert left == [], "a secret was left in a file that is no sink"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Any:
    """A hook, since an automatic fixture of each test would take a quarter of the time of a short one."""
    try:
        result = yield
    finally:
        printed, _printed[:] = [*_printed], []
    if "may_tell_secrets" not in item.keywords:
        assert printed == [], "a secret was printed"
    return result


def _search_outputs() -> None:
    """Searches whatever a test captures of its own or of a process's output."""
    read, communicate = pytest.CaptureFixture.readouterr, subprocess.Popen.communicate

    def search_captured(self: pytest.CaptureFixture[Any]) -> Any:
        captured = read(self)
        _printed.extend(secrets_in(captured.out) + secrets_in(captured.err))
        return captured

    def search_output(self: subprocess.Popen[Any], *words: Any, **more: Any) -> Any:
        out, err = communicate(self, *words, **more)
        _printed.extend(secrets_in(out or "") + secrets_in(err or ""))
        return out, err

    pytest.CaptureFixture.readouterr = search_captured  # type: ignore[method-assign]
    subprocess.Popen.communicate = search_output  # type: ignore[method-assign]


def _list_files(folder: Path) -> Iterator[Path]:
    for above, _, names in os.walk(folder):
        found = (Path(above, name) for name in names if _LEFT.fullmatch(name))
        yield from (path for path in found if path.is_file() and not path.is_symlink())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    report = yield
    if report.passed and "may_tell_secrets" not in item.keywords:
        found = [hit for name, text in report.sections if name.startswith("Captured") for hit in secrets_in(text)]
        if found:
            report.outcome, report.longrepr = "failed", f"a secret was printed: {found}"
    return report


# --- how much was searched, by all workers together ------------------------------------------------------------------


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "may_tell_secrets: this test prints a secret itself, to see it found")
    _search_outputs()


def pytest_sessionfinish(session: pytest.Session) -> None:
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["silence"] = dict(_searched)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    for name, number in getattr(node, "workeroutput", {}).get("silence", {}).items():
        _searched[name] += number


def pytest_terminal_summary(terminalreporter: Any) -> None:
    terminalreporter.write_line(
        f"silence: {_searched['bytes']:,} bytes in {_searched['texts']:,} outputs and files searched for secrets"
    )
