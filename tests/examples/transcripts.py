"""The console blocks of a page: runs its commands in one bash, and compares their output with the page.

`python -m tests.examples.transcripts docs/tutorial.md` updates the output on the page.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^\$ (.*\n(?:> .*\n)*)", re.MULTILINE)
_ID = re.compile(r"\b([a-z]+)_[A-Za-z0-9]{27}\b")
_TARGET = re.compile(r"\b[0-9a-f]{17}\.[0-9a-f]{3}\.(cname)\b")
_MINUTE = re.compile(r"\b[0-9]{4}-[0-9]{2}-[0-9]{2}\s+[0-9]{2}:[0-9]{2}\s+UTC\b")  # lines are wrapped
_MARK = "=== end of command ==="
_PORT = "4041"  # on the page; each run uses a free port
_BIN = Path(sys.executable).parent


@dataclass(frozen=True)
class Step:
    command: str  # as bash reads it
    prompt: str  # as the page shows it, with its prompts
    output: str


def steps(page: str) -> list[Step]:
    """The commands of a page in order."""
    found = []
    for block in _BLOCK.findall(page):
        _, *parts = _COMMAND.split(block)
        for command, output in zip(parts[::2], parts[1::2], strict=True):
            found.append(Step(command.replace("\n> ", "\n").strip("\n"), f"$ {command}", output))
    return found


def run(page: str, folder: Path, commands: Path = _BIN, settings: Mapping[str, str] | None = None) -> list[Step]:
    """The same steps with their output.

    commands  the folder with the command `reconciler`
    settings  environment variables of the commands
    """
    port = _free_port()
    expected = steps(page)
    script = "".join(f"{_wait_for_server(step.command)}\nprintf '%s\\n' '{_MARK}'\n" for step in expected)
    environ = {name: os.environ[name] for name in ("HOME", "LANG", "TMPDIR") if name in os.environ}
    environ |= {"PATH": f"{commands}:{_BIN}:{_with_curl(folder)}:/usr/bin:/bin", "COLUMNS": "100", **(settings or {})}
    done = subprocess.run(
        ["bash", "-c", script.replace(_PORT, port)],
        cwd=folder,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    output = done.stdout.replace(port, _PORT).split(f"{_MARK}\n")
    return [Step(step.command, step.prompt, text) for step, text in zip(expected, output, strict=False)]


def number_ids(text: str) -> str:
    """Numbers ids and targets of DNS records in the order of their first occurrence, and removes times."""
    seen: dict[str, str] = {}
    for random in (_ID, _TARGET):
        text = random.sub(lambda found: seen.setdefault(found[0], f"{found[1]}_{len(seen) + 1}"), text)
    return _MINUTE.sub("TIME", text)


def rewrite(page: str, ran: list[Step]) -> str:
    rest = iter(ran)

    def block(found: re.Match[str]) -> str:
        count = len(_COMMAND.findall(found[1]))
        texts = (f"{step.prompt}{step.output}" for step in (next(rest) for _ in range(count)))
        return "```console\n" + "".join(texts) + "```"

    return _BLOCK.sub(block, page)


def compare(page: Path, ran: str, *, write: bool, normalize: Callable[[str], str] = number_ids) -> None:
    """Asserts that a page is the same as what ran. `write`: first write what ran (`--rewrite`)."""
    if write:
        page.write_text(ran, encoding="utf-8")
    assert normalize(ran) == normalize(page.read_text(encoding="utf-8"))


def _wait_for_server(command: str) -> str:
    """The command, and for a server in the background a wait until it has printed its address."""
    log = re.search(r"> (\S+) &$", command)
    return f"{command}\nuntil [ -s {log[1]} ]; do :; done" if log else command


def _free_port() -> str:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return str(found.getsockname()[1])


def _with_curl(folder: Path) -> str:
    """A folder with a small substitute of curl, for machines without it."""
    if shutil.which("curl"):
        return "/usr/bin"
    home = folder / "bin"
    home.mkdir()
    (home / "curl").write_text(f"#!{sys.executable}\n{_CURL}")
    (home / "curl").chmod(0o755)
    return str(home)


_CURL = """\
import sys, urllib.request
words = sys.argv[1:]
headers = dict(words[at + 1].split(": ") for at, word in enumerate(words) if word == "--header")
told = {word: words[at + 1] for at, word in enumerate(words) if word in ("--request", "--data", "--output")}
asked = urllib.request.Request(words[-1], told["--data"].encode(), headers, method=told["--request"])
open(told["--output"], "wb").write(urllib.request.urlopen(asked).read())
"""


if __name__ == "__main__":
    for name in sys.argv[1:]:
        file = Path(name)
        text = file.read_text()
        with tempfile.TemporaryDirectory() as scratch:
            file.write_text(rewrite(text, run(text, Path(scratch))))
