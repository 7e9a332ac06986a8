"""A file that cannot be written is named as the user named it, and nothing is left beside it."""

from __future__ import annotations

import os
import resource
import signal
import socket
import stat
from pathlib import Path

import pytest

from reconciler.project import atomic_write
from tests.harness.platform import Sandbox
from tests.harness.project import Shell


def test_a_failure_names_the_file_and_not_its_draft(tmp_path: Path) -> None:
    (tmp_path / "plan.json").mkdir()
    with pytest.raises(OSError) as caught:  # noqa: PT011 - the name is what matters
        atomic_write.write(tmp_path / "plan.json", "{}")
    assert caught.value.filename == str(tmp_path / "plan.json")
    assert [path.name for path in tmp_path.iterdir()] == ["plan.json"]


def test_a_folder_that_is_not_there_is_no_place_for_a_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        atomic_write.write(tmp_path / "absent/plan.json", "{}")
    assert caught.value.filename == str(tmp_path / "absent/plan.json")


def test_what_is_no_file_is_left_as_it_is(tmp_path: Path) -> None:
    """A device would be lost to the whole machine."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "null").symlink_to("/dev/null")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        for name, what in (("pipe", "a pipe"), ("null", "a device"), ("socket", "a socket")):
            before = os.lstat(tmp_path / name)
            with pytest.raises(OSError, match=f"{what}, not a regular file"):
                atomic_write.write(tmp_path / name, "{}")
            assert os.lstat(tmp_path / name) == before
    assert len(list(tmp_path.iterdir())) == 3


def test_standard_output_is_left_as_it_is_wherever_it_leads(tmp_path: Path) -> None:
    """It is a link, and here perhaps one to a file: replaced, nobody would have it any more."""
    before = os.lstat("/dev/stdout")
    with (tmp_path / "out").open("w") as out:
        kept = os.dup(1)
        os.dup2(out.fileno(), 1)
        try:
            assert atomic_write.describe_non_file(Path("/dev/stdout")) == "a device"
        finally:
            os.dup2(kept, 1)
            os.close(kept)
    assert stat.S_ISLNK(before.st_mode)


def test_a_link_is_replaced_and_what_it_leads_to_is_not(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("kept")
    (tmp_path / "plan.json").symlink_to("other")
    atomic_write.write(tmp_path / "plan.json", "{}")
    assert ((tmp_path / "plan.json").is_symlink(), (tmp_path / "plan.json").read_text()) == (False, "{}")
    assert (tmp_path / "other").read_text() == "kept"


@pytest.mark.parametrize("form", ["text", "markdown", "html", "json", "sarif", "github", "gitlab"])
def test_a_form_that_cannot_be_written_leaves_the_file_that_was_there(
    shell: Shell, sandbox: Sandbox, form: str
) -> None:
    """The disk is full for whatever is larger than a byte, as the process sees it."""
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


def test_an_output_goes_into_a_pipe_as_it_is(shell: Shell, sandbox: Sandbox) -> None:
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
    said = shell(*words, "--out", "-")
    first = said.err.splitlines()[0]
    assert (said.code, said.out) == (64, "")
    assert first == f"error: invalid value for '--out': '-' is not supported; {instead}"
    assert not (shell.root / "-").exists()


@pytest.mark.parametrize("words", [("plan",), ("snapshot",), ("agent", "config", "berlin")], ids=lambda words: words[0])
def test_a_device_is_refused_before_anything_is_asked(shell: Shell, words: tuple[str, ...]) -> None:
    said = shell(*words, "--out", "/dev/null")
    assert said.code == 64
    assert said.err.startswith(
        "error: invalid value for '--out': '/dev/null' is a device, not a regular file; name a file"
    )


def test_a_form_goes_to_no_file_called_dash(shell: Shell) -> None:
    said = shell("plan", "--format", "json=-")
    assert (said.code, said.err.splitlines()[0]) == (
        64,
        "error: invalid value for '--format': '-' is not supported; use json without a file for standard output",
    )
