"""Output files: never a file of the project or another output, and unchanged if the write fails."""

from __future__ import annotations

import os
import resource
import signal

import pytest

from tests.harness.platform import Sandbox
from tests.harness.project import Shell


@pytest.mark.parametrize("form", ["text", "markdown", "html", "json", "sarif", "github", "gitlab"])
def test_a_format_that_cannot_be_written_does_not_change_the_earlier_file(
    shell: Shell, sandbox: Sandbox, form: str
) -> None:
    """A file of more than one byte exceeds the limit of the process, as on a full disk."""
    shell.write("out/page", "the last one")
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    full = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1, limit[1]))
        refused = shell("plan", "--format", f"{form}=out/page", "--format", "text=/dev/null")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, full)
    assert (refused.code, refused.err.splitlines()[-1]) == (1, "error: out/page: file too large")
    assert [(path.name, path.read_text()) for path in (shell.root / "out").iterdir()] == [("page", "the last one")]


def test_an_output_is_written_to_a_named_pipe(shell: Shell, sandbox: Sandbox) -> None:
    os.mkfifo(shell.root / "pipe")
    with os.fdopen(os.open(shell.root / "pipe", os.O_RDWR | os.O_NONBLOCK), "rb", buffering=0) as pipe:
        assert shell("plan", "--format", "github=pipe").code == 0
        assert b"::notice file=manifests/payments.yaml" in pipe.read(65536)


@pytest.mark.parametrize(
    ("words", "instead"),
    [
        (("plan",), "name a file, or use --format json to print the plan"),
        (("snapshot",), "name a file"),
        (("agent", "config", "berlin"), "name a file, or omit --out to print the configuration without the token"),
        (("report",), "omit --out to print the report"),
        (("import",), "name a folder, or use --dry-run to print the manifests"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_a_dash_is_not_standard_output_and_no_file_either(shell: Shell, words: tuple[str, ...], instead: str) -> None:
    result = shell(*words, "--out", "-")
    first = result.err.splitlines()[0]
    assert (result.code, result.out) == (64, "")
    assert first == f"error: invalid value for '--out': '-' is not supported; {instead}"
    assert not (shell.root / "-").exists()


@pytest.mark.parametrize("words", [("plan",), ("snapshot",), ("agent", "config", "berlin")], ids=lambda words: words[0])
def test_a_device_is_refused_before_any_request(shell: Shell, words: tuple[str, ...]) -> None:
    result = shell(*words, "--out", "/dev/null")
    assert result.code == 64
    assert result.err.startswith(
        "error: invalid value for '--out': '/dev/null' is a device, not a regular file; name a file"
    )


def test_a_format_is_not_written_to_a_file_named_dash(shell: Shell) -> None:
    result = shell("plan", "--format", "json=-")
    assert (result.code, result.err.splitlines()[0]) == (
        64,
        "error: invalid value for '--format': '-' is not supported; use json without a file for standard output",
    )


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("plan", "--out", "x.json", "--format", "html=./x.json"), "x.json is named twice"),
        (("plan", "--out", "x.json", "--format", "html=manifests/../x.json"), "are the same file"),
        (("plan", "--out", "x.json", "--format", "html=link"), "x.json and link are the same file"),
        (("plan", "--format", "html=y", "--format", "sarif=y"), "y is named twice; name a different file for each"),
        (("plan", "--snapshot", "x.json", "--out", "x.json"), "x.json is named twice"),
        (("drift", "--format", "html=y", "--format", "sarif=y"), "y is named twice"),
        (("show", "x.json", "--format", "html=x.json"), "x.json is named twice"),
        (("apply", "x.json", "-y", "--events", "x.json"), "x.json is named twice"),
    ],
)
def test_two_outputs_cannot_name_one_file(shell: Shell, sandbox: Sandbox, words: tuple[str, ...], text: str) -> None:
    shell("plan", "--out", "x.json")
    (shell.root / "link").symlink_to("x.json")
    before = (shell.root / "x.json").read_text()
    result = shell(*words)
    assert result.code == 64
    assert text in result.err
    assert ((shell.root / "x.json").read_text(), (shell.root / "y").exists()) == (before, False)


@pytest.mark.parametrize(
    "words",
    [
        ("plan", "--out"),
        ("plan", "--destroy", "--out"),
        ("plan", "--format", "sarif"),
        ("show", "plan.json", "--format", "html"),
        ("drift", "--format", "html"),
        ("report", "--out"),
        ("snapshot", "--out"),
        ("apply", "-y", "--events"),
    ],
)
@pytest.mark.parametrize(
    ("name", "use"),
    [
        ("manifests/payments.yaml", "manifests"),
        ("manifests/new.yaml", "manifests"),
        ("link", "manifests"),
        ("reconciler.yaml", "settings"),
        ("environments/prod.yaml", "environments"),
        ("policies/all.yaml", "policies"),
    ],
)
def test_no_output_replaces_a_file_of_the_project(
    shell: Shell, sandbox: Sandbox, words: tuple[str, ...], name: str, use: str
) -> None:
    shell("plan", "--out", "plan.json")
    (shell.root / "link").symlink_to("manifests/payments.yaml")
    before = {path: path.read_text() for path in shell.root.rglob("*.yaml")}
    result = shell(*_with_file(words, name))
    assert result.code == 1
    assert f"error: {name} is reserved: it belongs to the project's {use}; write to another file" in result.err
    assert {path: path.read_text() for path in shell.root.rglob("*.yaml")} == before
    assert sandbox.get("/ip_policies")["ip_policies"] == []


def _with_file(words: tuple[str, ...], name: str) -> list[str]:
    """The command with a file as the value of the last word: `--out FILE`, `html=FILE`."""
    return [*words, name] if words[-1].startswith("-") else [*words[:-1], f"{words[-1]}={name}"]


def test_no_output_replaces_a_delivered_token(shell: Shell, sandbox: Sandbox) -> None:
    shell.write("manifests/c.yaml", "kind: TunnelCredential\nname: c\ndeliver: {token: {to_file: secrets/c}}\n")
    assert shell("apply", "-y").code == 0
    token = (shell.root / "secrets/c").read_text()
    result = shell("plan", "--out", "secrets/c")
    assert result.code == 1
    assert "error: secrets/c overlaps with a delivery: TunnelCredential/c to secrets/c (manifests/c.yaml:" in result.err
    assert (shell.root / "secrets/c").read_text() == token


def test_a_device_may_be_named_for_several_outputs(shell: Shell, sandbox: Sandbox) -> None:
    words = [word for form in ("text", "json", "html") for word in ("--format", f"{form}=/dev/null")]
    assert shell("plan", *words).code == 0
    assert shell("apply", "-y", "--events", "/dev/null").code == 0


def test_events_replace_a_symlink_like_every_output(shell: Shell, sandbox: Sandbox) -> None:
    """A branch can contain a symbolic link with the name of an output."""
    (shell.root / "target").write_text("of someone else")
    for name in ("events.ndjson", "plan.html"):
        (shell.root / name).symlink_to("target")
    shell("plan", "--format", "html=plan.html")
    assert shell("apply", "-y", "--events", "events.ndjson").code == 0
    assert (shell.root / "target").read_text() == "of someone else"
    assert [path.name for path in shell.root.iterdir() if path.is_symlink()] == []
    assert '"event":"ended"' in (shell.root / "events.ndjson").read_text().replace(" ", "")
