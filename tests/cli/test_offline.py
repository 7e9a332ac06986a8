"""Commands that need no network, compared whole."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from reconciler.cli.main import COMMANDS
from tests.harness.project import Output, Shell

HEAVY = ("cryptography", "httpx", "networkx", "pydantic", "rich", "ruamel", "sqlalchemy", "starlette", "yaml")


def python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("words", [["--version"], ["--help"], [], ["paln"], ["completion", "bash"]])
def test_what_needs_no_library_loads_none(words: list[str]) -> None:
    loaded = python(
        "import contextlib, io, json, sys\n"
        "from reconciler.cli.main import main\n"
        "with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):\n"
        f"    main({words!r})\n"
        "print(json.dumps(sorted(filter(sys.modules.get, sys.modules))))"
    )
    modules = json.loads(loaded)
    assert [name for name in modules if name.partition(".")[0] in HEAVY] == []
    assert [name for name in modules if name.startswith(("reconciler.kinds", "reconciler.api"))] == []


def test_completing_a_command_loads_no_library() -> None:
    loaded = python(
        "import contextlib, io, os, sys\n"
        "os.environ.update(_RECONCILER_COMPLETE='bash_complete', COMP_WORDS='reconciler pl', COMP_CWORD='1')\n"
        "from reconciler.cli.main import main\n"
        "main([])\n"
        f"print([name for name, module in sys.modules.items() if module and name.partition('.')[0] in {HEAVY!r}])"
    )
    assert loaded == "plain,plan\n[]\n"


def test_the_version_is_one_line(shell: Shell) -> None:
    from reconciler import __version__

    assert shell("--version") == Output(0, f"reconciler {__version__}\n", "")


def test_without_a_command_the_help_is_shown_and_the_exit_says_usage(shell: Shell) -> None:
    said = shell()
    assert said.code == 64
    assert said.out.startswith("Usage: reconciler [OPTIONS] [COMMAND] [ARGS]...\n")
    assert said.err == ""


@pytest.mark.parametrize("name", COMMANDS)
def test_every_help_ends_with_examples(shell: Shell, name: str) -> None:
    said = shell(name, "--help")
    _, _, examples = said.out.partition("\nExamples:\n")
    assert said.code == 0
    assert examples
    assert all(line.startswith("  reconciler ") for line in examples.splitlines())


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["paln"], "unknown command 'paln'; did you mean 'plan'?"),
        (["xyzzy"], "unknown command 'xyzzy'; `reconciler --help` lists all commands"),
        (["plan", "--detailed-exitcod"], "no such option '--detailed-exitcod'. Did you mean '--detailed-exitcode'?"),
        (["explain", "TLSEge"], "unknown kind 'TLSEge'; did you mean 'TLSEdge'?"),
        (["explain", "TLSEdge.hostport"], "unknown field 'hostport' in TLSEdge; did you mean 'hostports'?"),
        (["plan", "--allow", "delete"], "invalid value for '--allow': 'delete' is not RULE:KIND=N, as in "
         "delete:ReservedDomain=1"),
        (["validate", "--var", "x"], "invalid value for '--var': 'x' is not name=value"),
        (["validate", "--env", ""], "invalid value for '--env': is empty; name an environment, or omit --env"),
        (["plan", "--format", "xml"], "invalid value for '--format': unknown format 'xml'; use one of "
         "text, markdown, html, json, sarif, github, gitlab"),
        (["plan", "--format", "text", "--format", "json"], "invalid value for '--format': only one format can use "
         "standard output; add files, as in json=plan.json"),
    ],
)  # fmt: skip
def test_wrong_usage_exits_64_with_a_hint(shell: Shell, words: list[str], error: str) -> None:
    said = shell(*words)
    assert said.code == 64
    assert said.out == ""
    assert said.err.splitlines()[0].rstrip("?") == f"error: {error}".rstrip("?")
    assert said.err.splitlines()[1].startswith("usage: reconciler")


def test_valid_manifests_are_counted(shell: Shell) -> None:
    assert shell("validate") == Output(0, "Valid: 3 resources in 1 file.\n", "")


def test_problems_go_to_standard_error_one_a_line_and_are_counted(shell: Shell) -> None:
    shell.write("manifests/bad.yaml", "kind: TLSEdge\nname: x\nspec:\n  hostport: []\n  tls_termination: 3\n")
    said = shell("validate")
    assert said.code == 1
    assert said.out == ""
    *lines, summary = said.err.splitlines()
    assert [line.partition(": ")[0] for line in lines] == ["manifests/bad.yaml:4:3", "manifests/bad.yaml:5:20"]
    assert summary == "2 errors"


def test_a_missing_project_file_is_one_problem(shell: Shell) -> None:
    (shell.root / "reconciler.yaml").unlink()
    said = shell("validate")
    assert (said.code, said.out) == (1, "")
    assert said.err.startswith("there is no file reconciler.yaml; ")
    assert said.err.endswith("\n1 error\n")


def test_fmt_check_names_what_it_would_change_and_changes_nothing(shell: Shell) -> None:
    crooked = "name: b\nkind: BotUser\nspec:\n    name:   bot\n"
    shell.write("manifests/bot.yaml", crooked)
    said = shell("fmt", "--check")
    assert (said.code, said.out.splitlines()[0], said.err) == (1, "manifests/bot.yaml", "")
    assert (shell.root / "manifests/bot.yaml").read_text() == crooked


def test_fmt_lays_out_once_and_then_has_nothing_to_do(shell: Shell) -> None:
    shell.write("manifests/bot.yaml", "name: b\nkind: BotUser\nspec:\n    name:   bot\n")
    assert shell("fmt") == Output(0, "manifests/bot.yaml\n", "")
    assert (shell.root / "manifests/bot.yaml").read_text() == "kind: BotUser\nname: b\nspec:\n  name: bot\n"
    assert shell("fmt") == Output(0, "", "")


def test_kinds_is_a_line_per_kind(shell: Shell) -> None:
    from reconciler import kinds

    said = shell("kinds")
    assert said.code == 0
    assert [line.split()[0] for line in said.out.splitlines()] == [kind.name for kind in kinds.declarable()]


def test_explain_tells_of_a_field(shell: Shell) -> None:
    assert shell("explain", "ReservedDomain.region") == Output(
        0,
        """\
ReservedDomain.region (au | eu | ap | us | jp | in | sa)

Deprecated by the platform: domains are served in all regions.

- immutable: cannot be updated in place: another value replaces the object
- input only: never returned by the platform: compared by the digest in the owner record
""",
        "",
    )


def test_graph_draws_the_manifests(shell: Shell) -> None:
    assert shell("graph", "--format", "mermaid") == Output(
        0,
        """\
flowchart LR
  n1["IPPolicy<br/>office"]
  n2["ReservedDomain<br/>pay"]
  n3["TLSEdge<br/>payments"]
  n1 --> n3
  n2 --> n3
""",
        "",
    )


def test_plan_without_an_address_or_key_says_what_is_missing(shell: Shell) -> None:
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


def test_apply_in_a_pipeline_does_not_guess(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    with open(os.devnull) as nobody:  # noqa: PTH123 - a stream
        monkeypatch.setattr(sys, "stdin", nobody)
        assert shell("apply") == Output(
            64, "", "error: stdin is not a terminal; pass --auto-approve to apply without confirmation\n"
        )


def test_a_reader_that_leaves_early_is_no_error_to_speak_of() -> None:
    script = f"{sys.executable} -m reconciler explain TLSEdge | head -1"
    ran = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout == "TLSEdge: Serves TLS on reserved domains, terminated at the edge or upstream.\n"
    assert ran.stderr == ""


def test_a_reader_that_is_gone_before_we_write_is_no_error_to_speak_of() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as pipe:
        ran = subprocess.run([sys.executable, "-m", "reconciler", "kinds"], stdout=pipe, stderr=subprocess.PIPE)
    assert ran.stderr == b""


def test_an_unexpected_error_is_one_line_and_says_how_to_see_more(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reconciler.kinds.declarable", lambda: 1 / 0)
    monkeypatch.delenv("RECONCILER_DEBUG", raising=False)
    assert shell("kinds") == Output(
        1,
        "",
        "error: unexpected ZeroDivisionError: division by zero; set RECONCILER_DEBUG=1 for a traceback\n",
    )


def test_the_traceback_is_there_for_who_asks(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reconciler.kinds.declarable", lambda: 1 / 0)
    monkeypatch.setenv("RECONCILER_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        shell("kinds")
