"""The options that most commands share act in each command that has them: project, environment, variables, messages,
telemetry. Also the table of every option, `interface.txt`, which is a promise to scripts.
"""

from __future__ import annotations

import asyncio
import io
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.core import Option

from reconciler.cli.fleets.options import FleetOptions
from reconciler.cli.main import reconciler
from reconciler.cli.terminal import output, telemetry
from reconciler.cli.terminal.options import Options
from reconciler.testing import Sandbox
from tests.harness.golden import compare_golden
from tests.harness.project import Output, Shell

WORDS = {
    "accept": "",
    "adopt": "IPPolicy/office -y",
    "agent config": "base",
    "apply": "-y",
    "destroy": "-y",
    "explain": "IPPolicy/office",
    "fleet apply": "-y",
    "fleet retry": "a1b2",
    "forget": "IPPolicy/office",
    "rename": "IPPolicy/office IPPolicy/new",
    "schema": "--all schemas",
    "show": "plan.json",
    "snapshot": "--out x.json",
}
"""What else a command needs to be parsed."""


def walk(command: click.Command, context: click.Context, *path: str) -> Iterator[tuple[str, click.Command]]:
    if not isinstance(command, click.Group):
        yield " ".join(path), command
        return
    for name in command.list_commands(context):
        found = command.get_command(context, name)
        assert found is not None
        yield from walk(found, click.Context(found, info_name=name, parent=context), *path, name)


EVERY = dict(walk(reconciler, click.Context(reconciler, info_name="reconciler")))


def list_with(name: str) -> list[str]:
    """The commands with an option of this name."""
    return [path for path, command in EVERY.items() if any(param.name == name for param in command.params)]


def run(shell: Shell, path: str, *words: str) -> Output:
    return shell(*path.split(), *WORDS.get(path, "").split(), *words)


@pytest.fixture
def empty(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """Runs commands in an empty folder: each one that needs a project fails."""
    folder = shell.root / "empty"
    (folder / ".git").mkdir(parents=True)
    monkeypatch.chdir(folder)
    return shell


# --- messages


@pytest.mark.parametrize("path", list_with("log_format"))
def test_the_option_or_the_variable_selects_json_for_messages(
    empty: Shell, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    if path == "schema":
        monkeypatch.chdir(empty.root)
        empty.write("manifests/wrong.yaml", "kind: IPPolicy\n")  # the project is not valid, which causes a note
    texts = run(empty, path).err
    assert texts
    assert not texts.startswith("{")
    for words, variable in (("--log-format", "json"), ""), ((), "json"), (("--log-format", "json"), "text"):
        monkeypatch.setenv("RECONCILER_LOG_FORMAT", variable)
        lines = [json.loads(line) for line in run(empty, path, *words).err.splitlines()]
        assert [line["message"] for line in lines] == texts.splitlines()
        assert all({"time", "level", "message"} <= line.keys() for line in lines)
    monkeypatch.setenv("RECONCILER_LOG_FORMAT", "json")
    assert run(empty, path, "--log-format", "text").err == texts


LEVELS = {
    "error: x": "error",
    "blocked: x": "error",
    "failed: x": "error",
    "warning: x": "warning",
    "skipped: x": "warning",
    "unknown: x": "warning",
    "note: x": "info",
    "Wrote x.": "info",
    "x error: y": "info",
}


def test_the_level_of_a_message_in_a_json_log_is_that_of_its_first_word(capsys: pytest.CaptureFixture[str]) -> None:
    output.set_log_format("json")
    for text in LEVELS:
        output.print_note(text)
    found = {line["message"]: line["level"] for line in map(json.loads, capsys.readouterr().err.splitlines())}
    assert found == LEVELS


@pytest.mark.parametrize(
    ("is_terminal", "no_color", "variables", "expected"),
    [
        (True, False, {}, True),
        (False, False, {}, False),
        (True, True, {}, False),
        (True, False, {"NO_COLOR": "1"}, False),
        (True, False, {"NO_COLOR": ""}, True),  # no-color.org: when present and not an empty string
        (True, False, {"TERM": "dumb"}, False),
        (True, False, {"TERM": "xterm"}, True),
    ],
)
def test_colors_are_for_terminals_that_want_them(
    monkeypatch: pytest.MonkeyPatch, is_terminal: bool, no_color: bool, variables: dict[str, str], expected: bool
) -> None:
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: is_terminal)
    assert output.supports_color(stream, no_color) is expected


@pytest.mark.parametrize("options", [Options, FleetOptions])
def test_a_command_at_a_terminal_has_colors_without_no_color(
    monkeypatch: pytest.MonkeyPatch, options: type[Options | FleetOptions]
) -> None:
    """`--no-color` of the commands of a project and of a fleet."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert options(no_color=False).has_color
    assert not options(no_color=True).has_color


@pytest.mark.parametrize(("columns", "expected"), [("80", 80), ("41", 41), ("40", 40), ("39", 40), ("", 100)])
def test_lines_are_as_wide_as_the_terminal_but_not_too_narrow(
    monkeypatch: pytest.MonkeyPatch, columns: str, expected: int
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert output.width() == expected


# --- telemetry

TRACED = (
    {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost"},
    {"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://localhost"},
    {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://localhost"},
    {"OTEL_METRICS_EXPORTER": "otlp"},
    {"OTEL_TRACES_EXPORTER": "console"},
)
UNTRACED: tuple[dict[str, str], ...] = (
    {},
    {"OTEL_TRACES_EXPORTER": "none"},
    {"OTEL_TRACES_EXPORTER": ""},
    {"OTEL_LOGS_EXPORTER": "otlp"},
    {**TRACED[0], "OTEL_SDK_DISABLED": "true"},
    {**TRACED[0], "OTEL_SDK_DISABLED": "True"},
)


@pytest.fixture
def traced(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, bool]]:
    """The names of commands that ran with telemetry, and whether it was required."""
    found: list[tuple[str, bool]] = []

    def run_traced(name: str, _command: object, _describe: object, *, required: bool) -> int:
        found.append((name, required))
        return 0

    monkeypatch.setattr(telemetry, "run_traced", run_traced)
    return found


@pytest.mark.parametrize("path", list_with("trace"))
def test_the_option_or_a_variable_enables_traces_of_a_command(
    empty: Shell, traced: list[tuple[str, bool]], monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    name = path if path.startswith("fleet") else path.split()[-1]
    for variables, words in ((TRACED[0], ()), ({}, ("--trace",)), (UNTRACED[-1], ("--trace",)), ({}, ())):
        with monkeypatch.context() as patch:
            for variable, value in variables.items():
                patch.setenv(variable, value)
            traced.clear()
            run(empty, path, *words)
        is_traced = words or variables == TRACED[0]
        assert traced == ([(name, bool(words))] if is_traced else []), (variables, words)


@pytest.mark.parametrize("variables", [*TRACED, *UNTRACED], ids=str)
def test_an_exporter_in_the_environment_enables_telemetry(
    empty: Shell, traced: list[tuple[str, bool]], monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]
) -> None:
    for variable, value in variables.items():
        monkeypatch.setenv(variable, value)
    empty("history")
    assert bool(traced) is (variables in TRACED)


# --- project, environment and variables

BY_PROJECT = [path for path in list_with("project") if path not in ("show", "schema")]  # these need no project


@pytest.mark.parametrize("path", BY_PROJECT)
def test_the_project_is_that_of_the_option_or_of_the_variable(
    empty: Shell, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    wrong, other = empty.root / "wrong", empty.root / "other"
    empty.write("wrong/reconciler.yaml", "version: 1\nstack: prod\nunkown: 1\n")
    other.mkdir()
    assert "unkown" not in run(empty, path).err
    assert "unkown" in run(empty, path, "--project", str(wrong)).err
    monkeypatch.setenv("RECONCILER_PROJECT", str(other))
    assert "unkown" in run(empty, path, "--project", str(wrong)).err
    monkeypatch.setenv("RECONCILER_PROJECT", str(wrong))
    assert "unkown" in run(empty, path).err
    assert "unkown" not in run(empty, path, "--project", str(other)).err


IN_EVERY_ENVIRONMENT = ("schema", "fmt", "forget", "rename")  # they read the files of all environments


@pytest.mark.parametrize("path", [path for path in list_with("environment") if path not in IN_EVERY_ENVIRONMENT])
def test_the_environment_is_that_of_the_option_or_of_the_variable(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    shell.write("environments/wrong.yaml", "unkown: 1\n")
    shell.write("environments/right.yaml", "{}\n")
    assert "unkown" in run(shell, path, "--env", "wrong").err
    monkeypatch.setenv("RECONCILER_ENV", "right")
    assert "unkown" in run(shell, path, "--env", "wrong").err
    monkeypatch.setenv("RECONCILER_ENV", "wrong")
    assert "unkown" in run(shell, path).err
    assert "unkown" not in run(shell, path, "--env", "right").err
    empty_name = run(shell, path, "--env", "")
    assert (empty_name.code, "is empty; name an environment" in empty_name.err) == (64, True)


WITHOUT_VARIABLES = ("schema", "fmt", "history", "report", "destroy", "list")  # they read no manifests


@pytest.mark.parametrize("path", [path for path in list_with("variables") if path not in WITHOUT_VARIABLES])
def test_a_variable_is_that_of_the_option(shell: Shell, path: str) -> None:
    shell.write("reconciler.yaml", "version: 1\nstack: prod\nvariables: {size: {type: number}}\n")
    wrong = run(shell, path, "--var", "size=a")
    assert (wrong.code, wrong.err.splitlines()[0].startswith("--var size: expected a number")) == (1, True)
    for text in ("size", "=1"):
        invalid = run(shell, path, "--var", text)
        assert (invalid.code, f"{text!r} is not name=value" in invalid.err) == (64, True)


def test_the_value_of_a_variable_is_what_follows_the_first_equals_sign() -> None:
    (option,) = (param for param in EVERY["plan"].params if param.name == "variables")
    words = ["a=1", "b=x=y", "c=", "a=2"]
    assert option.process_value(click.Context(EVERY["plan"]), words) == {"a": "2", "b": "x=y", "c": ""}


# --- the table


def describe(option: click.Parameter) -> str:
    """`--limit  INTEGER 1..1000000000  default 100`"""
    form = option.type
    text = form.name.upper()
    if isinstance(form, click.Choice):
        text = "|".join(map(str, form.choices))
    elif isinstance(form, click.IntRange | click.FloatRange):
        text += f" {'' if form.min is None else form.min}..{'' if form.max is None else form.max}"
    elif isinstance(form, click.Path):
        found = {"existing": form.exists, "file": form.file_okay, "folder": form.dir_okay, "-": form.allow_dash}
        text = " or ".join([word for word in ("file", "folder", "-") if found[word]])
        text = f"existing {text}" if found["existing"] else text
    flags = [
        *(["flag"] if getattr(option, "is_flag", False) else [text]),
        *(["required"] if option.required else []),
        *(["repeatable"] if getattr(option, "multiple", False) or option.nargs == -1 else []),
        *([f"default {_show_default(option.default)}"] if _show_default(option.default) else []),
        *(["default in the help"] if getattr(option, "show_default", None) else []),
        *(["value may be missing"] if isinstance(getattr(option, "flag_value", None), str) else []),
        *(["hidden"] if getattr(option, "hidden", False) else []),
        *(["eager"] if option.is_eager else []),
        *([f"env {option.envvar}"] if option.envvar else []),
    ]
    names = " ".join(option.opts) if isinstance(option, Option) else option.make_metavar(click.Context(reconciler))
    return f"  {names}: {', '.join(flags)}"


def _show_default(value: Any) -> str:
    return "" if value is None or callable(value) or "UNSET" in repr(value) else str(value)


def test_the_options_of_every_command_are_those_that_scripts_use() -> None:
    """A default, a range, a variable or an option that scripts rely on changes only together with this table."""
    lines = []
    sandbox = reconciler.get_command(click.Context(reconciler), "sandbox")
    assert sandbox is not None
    for path, command in {**EVERY, "": reconciler, "sandbox": sandbox}.items():  # groups with options of their own
        lines += [path or "reconciler", *map(describe, command.params), ""]
    compare_golden(Path(__file__).with_name("interface.txt"), "\n".join(lines))


DEFAULT = re.compile(r"default: ([A-Za-z0-9]+)\]")


@pytest.mark.parametrize("path", EVERY)
def test_the_help_of_an_option_names_its_default(path: str) -> None:
    for option in EVERY[path].params:
        found = DEFAULT.search(getattr(option, "help", "") or "")
        if found is not None and _show_default(option.default):
            default = option.default
            assert found[1] == (", ".join(default) if isinstance(default, tuple) else str(default)), option.name


# --- concurrent requests

PARALLEL = [path for path in list_with("parallelism") if path != "adopt"]  # it reads one list


@pytest.mark.parametrize("path", PARALLEL)
def test_no_more_requests_are_sent_at_once_than_the_option_allows(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    running, most = 0, 0

    async def on_request(_method: str, _path: str) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        for _ in range(20):
            await asyncio.sleep(0)
        running -= 1

    with Sandbox(host="emulator", on_request=on_request) as sandbox:
        shell.reach(sandbox)
        for name, value in sandbox.environ.items():
            monkeypatch.setenv(name, value)
        for number in (1, 2):
            most = 0
            run(shell, path, "--parallelism", str(number))
            assert most == number
