"""The bar of an apply: what its one line says, and what it leaves on a terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.cli.applying.bar import State, fit_line, format_duration
from tests.harness.platform import Sandbox
from tests.harness.project import Shell

SHOW, HIDE, ERASE = b"\x1b[?25h", b"\x1b[?25l", b"\x1b[2K"

STATES = st.builds(
    State,
    ended=st.integers(0, 100_000),
    total=st.integers(1, 100_000),
    rate=st.none() | st.floats(0.01, 500),
    wait=st.just(0.0) | st.floats(1, 3600),
)


@given(STATES, st.integers(20, 200))
def test_it_fits_in_one_line_and_always_says_how_many(state: State, width: int) -> None:
    before, bar, after = fit_line(state, width)
    assert sum(len(each) + 1 for each in (before, *after) if each) + bar <= width
    assert any(each.endswith(f"/{state.total}") for each in after)


def test_a_wide_terminal_is_told_all() -> None:
    assert fit_line(State(12, 34, 3.25), 100) == ("applying", 40, ["12/34", "3.2/s", "0:07 left"])


def test_a_narrow_terminal_loses_the_rate_first() -> None:
    assert fit_line(State(12, 134, 3.25), 40) == ("applying", 12, [" 12/134", "0:38 left"])


def test_a_wait_is_told_and_counted_into_what_is_left() -> None:
    before, _, after = fit_line(State(50, 100, 10.0, wait=41.0), 100)
    assert (before, after) == ("waiting 0:41 for the request budget", [" 50/100", "10/s", "0:46 left"])


def test_nothing_is_said_of_a_rate_before_there_is_one() -> None:
    assert fit_line(State(0, 9), 80) == ("applying", 40, ["0/9"])


@pytest.mark.parametrize(("seconds", "told"), [(0.2, "0:00"), (7.4, "0:07"), (750, "12:30"), (3723, "1:02:03")])
def test_times_read_as_on_a_clock(seconds: float, told: str) -> None:
    assert format_duration(seconds) == told


@dataclass
class Terminal:
    """A process on a real terminal, and the bytes it wrote there."""

    process: subprocess.Popen[bytes]
    _device: int
    shown: bytes = b""

    def read_until(self, wanted: bytes | None = None) -> bytes:
        """All it wrote so far, once that holds the bytes, or the process has left."""
        while wanted is None or wanted not in self.shown:
            try:
                self.shown += os.read(self._device, 65536)
            except OSError:  # Linux's way to say that nobody writes there any more
                break
        return self.shown


@contextmanager
def terminal(*words: str, width: int, environment: Mapping[str, str] | None = None) -> Iterator[Terminal]:
    device, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    clean = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR")}
    command = [sys.executable, "-m", "reconciler", *words]
    settings = {**clean, "TERM": "xterm-256color", **(environment or {})}
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=settings) as process:
        os.close(theirs)
        try:
            yield Terminal(process, device)
        finally:
            process.kill()
            os.close(device)


@pytest.mark.usefixtures("over_socket")
def test_the_bar_is_gone_when_the_apply_is_over(shell: Shell, sandbox: Sandbox) -> None:
    with terminal("apply", "-y", width=60) as screen:
        shown = screen.read_until()
        assert screen.process.wait() == 0
    assert b"applying" in shown
    assert b"applying" not in shown[shown.rindex(ERASE) :]
    assert shown.rindex(SHOW) > shown.rindex(HIDE)
    assert b"Applied: 3 created." in shown


@pytest.mark.parametrize("setting", [{"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=str)
@pytest.mark.usefixtures("over_socket")
def test_a_terminal_that_wants_plain_text_gets_lines(shell: Shell, sandbox: Sandbox, setting: dict[str, str]) -> None:
    with terminal("apply", "-y", width=40, environment=setting) as screen:
        shown = screen.read_until()
        assert screen.process.wait() == 0
    assert b"\x1b" not in shown
    assert b"1/3  create " in shown


def test_an_interrupt_leaves_a_clean_screen(
    shell: Shell, start_sandbox: Callable[..., Sandbox], monkeypatch: pytest.MonkeyPatch
) -> None:
    platform = start_sandbox(latency_ms=150)
    monkeypatch.setenv("RECONCILER_BASE_URL", platform.base_url)
    monkeypatch.setenv("RECONCILER_API_KEY", platform.api_key)
    with terminal("apply", "-y", width=50) as screen:
        screen.read_until(b"applying")
        screen.process.send_signal(signal.SIGINT)
        shown = screen.read_until()
        assert screen.process.wait() == 130
    assert b"applying" not in shown[shown.rindex(ERASE) :]
    assert shown.rindex(SHOW) > shown.rindex(HIDE)
    assert b"skipped" in shown
