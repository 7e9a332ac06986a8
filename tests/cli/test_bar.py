"""The progress bar of an apply: its line, and the state of the terminal after it."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import signal
import struct
import subprocess
import termios
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from reconciler.cli.applying.bar import Bar, Line, State, _render_line, fit_line, format_duration, show_bar
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


LINES = {
    (State(0, 9), 60): "applying                                          0/9",
    (State(5, 10, 2.0), 50): "applying ━━━━━━━━━           5/10 2.0/s 0:02 left",
    (State(10, 10, 12.5), 40): "applying ━━━━━━━━━ 10/10 12/s 0:00 left",
    (State(3, 10, 0.5, 90.0), 80): "waiting 1:30 for the request budget ━━━━━━                 3/10 0.5/s 1:44 left",
    (State(3, 10, 0.5, 90.0), 50): "waiting 1:30 ━━━━            3/10 0.5/s 1:44 left",
    (State(3, 10, 0.5), 28): "━━━          3/10 0:14 left",
    (State(3, 10, 0.5), 16): "━━╸        3/10",
    (State(3, 10), 12): " 3/10",
    (State(3, 100_000), 8): "     3/…",  # cut, and never a second line
}


def draw(*parts: Any, width: int, color: bool = False) -> str:
    file = io.StringIO()
    console = Console(file=file, width=width, force_terminal=color, color_system="standard" if color else None)
    console.print(*parts)
    return file.getvalue()


@pytest.mark.parametrize(("state", "width"), LINES)
def test_a_line_has_the_label_the_bar_and_the_numbers(state: State, width: int) -> None:
    assert draw(_render_line(state, width), width=width).rstrip("\n") == LINES[state, width]


def test_only_what_follows_the_count_is_dim() -> None:
    assert "\x1b[2m2.0/s\x1b[0m \x1b[2m0:02 left\x1b[0m" in draw(
        _render_line(State(5, 10, 2.0), 60), width=60, color=True
    )
    assert " 5/10 \x1b[2m" in draw(_render_line(State(5, 10, 2.0), 60), width=60, color=True)


def test_the_rate_is_that_of_the_whole_run_after_its_first_second() -> None:
    now = 100.0
    line = Line(console=Console(file=io.StringIO()), get_time=lambda: now)
    drawing = Bar(line, line.add_task("applying", total=9))
    assert line.state(line.tasks[0]) == State(0, 9)
    drawing.advance(3)
    now = 100.99
    assert line.state(line.tasks[0]) == State(3, 9)
    now = 101.0
    assert line.state(line.tasks[0]) == State(3, 9, 3.0)
    drawing.wait(4.0)
    now = 102.0
    assert line.state(line.tasks[0]) == State(3, 9, 1.5, 3.0)
    drawing.advance(0)
    assert line.state(line.tasks[0]) == State(0, 9, None, 3.0)


def fill_disk() -> None:
    raise OSError("full")


def test_lines_are_printed_above_the_bar_and_it_is_erased_after_an_error() -> None:
    file = io.StringIO()
    console = Console(file=file, width=60, force_terminal=True, color_system="standard", legacy_windows=False)
    with ExitStack() as opened:
        opened.enter_context(pytest.raises(OSError, match="full"))
        drawing = opened.enter_context(show_bar(3, console))
        drawing.print("created [bold]IPPolicy/a[/bold] 12", is_bad=False)
        drawing.print("failed " + "x" * 80, is_bad=True)
        drawing.advance(2)
        drawing.line.refresh()
        opened.callback(fill_disk)
    output = file.getvalue()
    assert "  created [bold]IPPolicy/a[/bold] 12\n" in output
    assert f"\x1b[31m  failed {'x' * 80}\x1b[0m\n" in output
    assert "2/3" in output
    assert output.endswith("\x1b[2K")


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
