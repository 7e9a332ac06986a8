"""The command line itself: version, help, usage errors, tracebacks, closed pipes, and errors before any request."""

from __future__ import annotations

import atexit
import os
import signal
import subprocess
import sys
import threading
from io import BufferedWriter, BytesIO, StringIO, TextIOWrapper
from unittest.mock import Mock, call

import click
import pytest

from reconciler.cli import main as main_module
from reconciler.cli.main import COMMANDS, GROUPS, _handle_sigterm, entry
from reconciler.cli.terminal.group import Command
from tests.harness.project import Output, Shell

HEAVY = ("cryptography", "httpx", "networkx", "pydantic", "rich", "ruamel", "sqlalchemy", "starlette", "yaml")


def python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_the_version_is_one_line(shell: Shell) -> None:
    from reconciler import __version__

    assert shell("--version") == Output(0, f"reconciler {__version__}\n", "")


def test_without_a_command_the_help_is_printed_and_the_exit_code_is_64(shell: Shell) -> None:
    result = shell()
    assert result.code == 64
    assert result.out.startswith("Usage: reconciler [OPTIONS] [COMMAND] [ARGS]...\n")
    assert result.err == ""


@pytest.mark.parametrize("name", COMMANDS)
def test_every_help_ends_with_examples(shell: Shell, name: str) -> None:
    result = shell(name, "--help")
    _, _, examples = result.out.partition("\nExamples:\n")
    assert result.code == 0
    assert examples
    assert all(line.startswith("  reconciler ") for line in examples.splitlines())


def test_the_help_has_each_command_once_in_its_group_and_the_options_of_most_commands(shell: Shell) -> None:
    text = shell("--help").out
    for title, group in GROUPS.items():
        block = text.partition(f"\n{title}:\n")[2].partition("\n\n")[0]
        assert [line.split()[0] for line in block.splitlines()] == list(group)
    assert text.index("Every day:") < text.index("Options of most commands:") < text.index("Examples:")
    assert "--project DIR " in text


@pytest.mark.parametrize("words", [("plan",), ("status",), ("fleet", "drift")])
def test_the_help_of_a_command_names_the_options_of_most_commands_and_does_not_repeat_them(
    shell: Shell, words: tuple[str, ...]
) -> None:
    text = shell(*words, "--help").out
    assert "Format of messages on standard error" in shell("--help").out
    assert "Format of messages on standard error" not in text
    assert "--log-format, --trace: see" in text


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["paln"], "unknown command 'paln'; did you mean plan?"),
        (["xyzzy"], "unknown command 'xyzzy'; `reconciler --help` lists all commands"),
        (["plan", "--detailed-exitcod"], "no such option '--detailed-exitcod'. Did you mean '--detailed-exitcode'?"),
        (["explain", "TLSEge"], "unknown kind 'TLSEge'; did you mean TLSEdge?"),
        (["explain", "TLSEdge.hostport"], "unknown field 'hostport' in TLSEdge; did you mean hostports?"),
        (["plan", "--allow", "delete"], "invalid value for '--allow': 'delete' is not RULE:KIND=N, as in "
         "delete:ReservedDomain=1"),
        (["validate", "--var", "x"], "invalid value for '--var': 'x' is not name=value"),
        (["validate", "--env", ""], "invalid value for '--env': is empty; name an environment, or omit --env"),
        (["plan", "--format", "xml"], "invalid value for '--format': unknown format 'xml'; use one of "
         "text, markdown, html, json, sarif, github, gitlab, junit"),
        (["plan", "--format", "text", "--format", "json"], "invalid value for '--format': only one format can use "
         "standard output; add files, as in json=plan.json"),
    ],
)  # fmt: skip
def test_wrong_usage_exits_64_with_a_hint(shell: Shell, words: list[str], error: str) -> None:
    result = shell(*words)
    assert result.code == 64
    assert result.out == ""
    assert result.err.splitlines()[0].rstrip("?") == f"error: {error}".rstrip("?")
    assert result.err.splitlines()[1].startswith("usage: reconciler")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("schema", "--all"), "option '--all' requires DIR, as in `reconciler schema --all .reconciler/schemas`"),
        (
            ("plan", "--out"),
            "option '--out' requires FILE, as in `reconciler plan --out .reconciler/plan.json --detailed-exitcode`",
        ),
        (("drift", "--parallelism"), "option '--parallelism' requires N"),
    ],
)
def test_an_option_without_its_value_is_reported_with_an_example(
    shell: Shell, words: tuple[str, ...], text: str
) -> None:
    result = shell(*words)
    assert result.code == 64
    assert result.err.startswith(f"error: {text}")
    assert result.err.splitlines()[1].startswith(f"usage: reconciler {words[0]}")


def test_plan_without_a_base_url_or_key_reports_both(shell: Shell) -> None:
    assert shell("plan") == Output(
        1,
        "",
        """\
reconciler.yaml:1:1: platform.base_url: the URL of the platform is not set; set base_url under platform:, or \
RECONCILER_BASE_URL
reconciler.yaml:1:1: platform.api_key: no API key is set; set api_key: {from_env: NAME} under platform:, or \
RECONCILER_API_KEY
2 errors
""",
    )


def test_a_missing_plan_file_is_one_line(shell: Shell) -> None:
    missing = Output(1, "", "error: nowhere.json: no such file or directory\n")
    assert shell("show", "nowhere.json") == missing
    assert shell("apply", "nowhere.json") == shell("apply", "nowhere.json", "-y") == missing
    shell.write("reconciler.yaml", "stack: [")
    assert shell("apply", "nowhere.json", "--target", "x") == missing


def test_apply_without_a_terminal_requires_auto_approve(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    with open(os.devnull) as stream:  # noqa: PTH123 - a stream
        monkeypatch.setattr(sys, "stdin", stream)
        assert shell("apply") == Output(
            64, "", "error: stdin is not a terminal; pass --auto-approve to apply without confirmation\n"
        )


def test_a_pipe_that_is_closed_early_is_no_error() -> None:
    script = f"{sys.executable} -m reconciler explain TLSEdge | head -1"
    ran = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout == "TLSEdge: Serves TLS on reserved domains, terminated at the edge or upstream.\n"
    assert ran.stderr == ""


def test_a_pipe_that_was_closed_before_output_is_no_error() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as pipe:
        ran = subprocess.run([sys.executable, "-m", "reconciler", "kinds"], stdout=pipe, stderr=subprocess.PIPE)
    assert ran.stderr == b""


@pytest.mark.parametrize(
    ("threads", "code", "is_profiled", "is_quick"),
    [(1, 0, False, True), (1, 2, False, True), (2, 0, False, False), (2, 130, False, True), (1, 0, True, False)],
)
def test_a_process_skips_the_end_of_the_interpreter_if_no_thread_has_work(
    monkeypatch: pytest.MonkeyPatch, threads: int, code: int, is_profiled: bool, is_quick: bool
) -> None:
    def run() -> int:
        sys.stdout.write("out")
        sys.stderr.write("err")
        return code

    def end(code: int) -> None:
        raise SystemExit(code, streams[0].buffer.raw.getvalue() + streams[1].buffer.raw.getvalue())

    streams = [TextIOWrapper(BufferedWriter(BytesIO())) for _ in range(2)]
    exit_handler = Mock()
    for target, name, value in (
        (main_module, "main", run),
        (threading, "active_count", lambda: threads),
        (sys, "getprofile", lambda: print if is_profiled else None),
        (sys, "stdout", streams[0]),
        (sys, "stderr", streams[1]),
        (os, "_exit", end),
        (atexit, "_run_exitfuncs", exit_handler),
    ):
        monkeypatch.setattr(target, name, value)
    with pytest.raises(SystemExit) as ended:
        entry()
    assert ended.value.args == ((code, b"outerr") if is_quick else (code,))
    assert exit_handler.call_count == is_quick


def test_a_process_ends_with_its_code_without_its_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = StringIO()
    closed.close()
    monkeypatch.setattr(main_module, "main", lambda: 3)
    monkeypatch.setattr(threading, "active_count", lambda: 1)
    monkeypatch.setattr(atexit, "_run_exitfuncs", lambda: None)
    monkeypatch.setattr(os, "_exit", Mock(side_effect=SystemExit))
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", closed)
    with pytest.raises(SystemExit):
        entry()
    assert os._exit.mock_calls == [call(3)]  # type: ignore[attr-defined]


def test_an_unexpected_error_is_one_line_with_the_variable_for_a_traceback(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reconciler.kinds.declarable", lambda: 1 / 0)
    monkeypatch.delenv("RECONCILER_DEBUG", raising=False)
    assert shell("kinds") == Output(
        1,
        "",
        "error: unexpected ZeroDivisionError: division by zero; set RECONCILER_DEBUG=1 for a traceback\n",
    )


def test_the_debug_variable_prints_the_traceback(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reconciler.kinds.declarable", lambda: 1 / 0)
    monkeypatch.setenv("RECONCILER_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        shell("kinds")


def test_options_are_listed_without_arguments_and_hidden_ones(shell: Shell) -> None:
    for name in COMMANDS:
        text = shell(name, "--help").out.partition("\nOptions:\n")[2].partition("\n\n")[0]
        assert all(line.startswith(("  -", " " * 6)) for line in text.splitlines()), name
    argument, option = click.Argument(["what"]), click.Option(["--shown"], help="It is shown.")
    command = Command("x", params=[argument, option, click.Option(["--secret"], hidden=True)], examples="x --shown")
    help_text = command.get_help(click.Context(command, info_name="x"))
    assert help_text.splitlines() == [
        "Usage: x [OPTIONS] WHAT",
        "",
        "Options:",
        "  --shown TEXT  It is shown.",
        "  --help        Show this message and exit.",
        "",
        "Examples:",
        "  x --shown",
    ]


def test_sigterm_interrupts_a_command_and_is_restored_after_it() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with _handle_sigterm():
        assert signal.getsignal(signal.SIGTERM) is signal.default_int_handler
    assert signal.getsignal(signal.SIGTERM) is before

    def act() -> None:
        with _handle_sigterm():
            found.append(signal.getsignal(signal.SIGTERM))

    found: list[object] = []
    thread = threading.Thread(target=act)
    thread.start()
    thread.join()
    assert found == [before]
