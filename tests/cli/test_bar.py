"""The progress bar of an apply: its line, and the state of the terminal after it."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import struct
import subprocess
import termios
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.cli.applying.bar import State, fit_line, format_duration
from tests.harness.forked import start_command
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
def test_the_bar_fits_one_line_and_always_shows_the_count(state: State, width: int) -> None:
    before, bar, after = fit_line(state, width)
    assert sum(len(part) + 1 for part in (before, *after) if part) + bar <= width
    assert any(part.endswith(f"/{state.total}") for part in after)


def test_a_wide_terminal_shows_counts_rate_and_remaining_time() -> None:
    assert fit_line(State(12, 34, 3.25), 100) == ("applying", 40, ["12/34", "3.2/s", "0:07 left"])


def test_a_narrow_terminal_loses_the_rate_first() -> None:
    assert fit_line(State(12, 134, 3.25), 40) == ("applying", 12, [" 12/134", "0:38 left"])


def test_a_wait_is_shown_and_added_to_the_remaining_time() -> None:
    before, _, after = fit_line(State(50, 100, 10.0, wait=41.0), 100)
    assert (before, after) == ("waiting 0:41 for the request budget", [" 50/100", "10/s", "0:46 left"])


def test_the_bar_shows_no_rate_before_the_first_call_ended() -> None:
    assert fit_line(State(0, 9), 80) == ("applying", 40, ["0/9"])


@pytest.mark.parametrize(("seconds", "text"), [(0.2, "0:00"), (7.4, "0:07"), (750, "12:30"), (3723, "1:02:03")])
def test_durations_are_formatted_as_on_a_clock(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


@dataclass
class Terminal:
    """A process on a pseudo-terminal, and the bytes that it wrote."""

    process: subprocess.Popen[str]
    _device: int
    output: bytes = b""

    def read_until(self, wanted: bytes | None = None) -> bytes:
        """All output so far, once it contains the bytes or the process has ended."""
        while wanted is None or wanted not in self.output:
            try:
                self.output += os.read(self._device, 65536)
            except OSError:  # raised by Linux once the other end is closed
                break
        return self.output


@contextmanager
def terminal(*words: str, width: int, environment: Mapping[str, str] | None = None) -> Iterator[Terminal]:
    device, other_end = pty.openpty()
    fcntl.ioctl(other_end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    clean = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR")}
    settings = {**clean, "TERM": "xterm-256color", **(environment or {})}
    with start_command(words, stdin=other_end, stdout=other_end, stderr=other_end, env=settings) as process:
        os.close(other_end)
        try:
            yield Terminal(process, device)
        finally:
            process.kill()
            os.close(device)


@pytest.mark.usefixtures("over_socket")
def test_the_bar_is_erased_at_the_end_of_an_apply(shell: Shell, sandbox: Sandbox) -> None:
    with terminal("apply", "-y", width=60) as screen:
        output = screen.read_until()
        assert screen.process.wait() == 0
    assert b"applying" in output
    assert b"applying" not in output[output.rindex(ERASE) :]
    assert output.rindex(SHOW) > output.rindex(HIDE)
    assert b"Applied: 3 created." in output


@pytest.mark.parametrize("setting", [{"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=str)
@pytest.mark.usefixtures("over_socket")
def test_a_plain_terminal_shows_lines_instead_of_the_bar(
    shell: Shell, sandbox: Sandbox, setting: dict[str, str]
) -> None:
    with terminal("apply", "-y", width=40, environment=setting) as screen:
        output = screen.read_until()
        assert screen.process.wait() == 0
    assert b"\x1b" not in output
    assert b"1/3  create " in output


def test_an_interrupt_erases_the_bar(
    shell: Shell, start_sandbox: Callable[..., Sandbox], monkeypatch: pytest.MonkeyPatch
) -> None:
    platform = start_sandbox(latency_ms=150)
    monkeypatch.setenv("RECONCILER_BASE_URL", platform.base_url)
    monkeypatch.setenv("RECONCILER_API_KEY", platform.api_key)
    with terminal("apply", "-y", width=50) as screen:
        screen.read_until(b"applying")
        screen.process.send_signal(signal.SIGINT)
        output = screen.read_until()
        assert screen.process.wait() == 130
    assert b"applying" not in output[output.rindex(ERASE) :]
    assert output.rindex(SHOW) > output.rindex(HIDE)
    assert b"skipped" in output
