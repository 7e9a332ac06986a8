"""The command `reconciler` and the sandbox as forks of a process that has imported the product and run it.

A command takes a tenth of the CPU that it takes with an interpreter of its own. It still is a process with the
arguments, folder, environment and streams of its caller. Used in `make test`; in `make test-full` the same tests start
each process anew.

- `serve_commands`: for tests that run many commands, and for shells. The command is not the caller's child: a signal
  does not reach it.
- `start_command`, `start_program`: a child of the tests, which they can kill, suspend and wait for.
"""

from __future__ import annotations

import ast
import contextlib
import gc
import importlib
import io
import os
import pkgutil
import select
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from tests.harness.tiers import is_quick

_CLIENT = """\
#!{python} -IS
import os, sys
if sys.argv[1:2] == ["sandbox"]:  # runs until it gets a signal
    os.execv("{python}", ["{python}", "-m", "reconciler", *sys.argv[1:]])
import _socket  # json and socket take twice as long to import as the interpreter to start
asked = _socket.socket(_socket.AF_UNIX)
asked.connect("{address}")
streams = b"".join(number.to_bytes(4, sys.byteorder) for number in (0, 1, 2))
asked.sendmsg([b"\\n"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
asked.sendall(ascii([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode())
asked.shutdown(_socket.SHUT_WR)
os._exit(int(asked.recv(16) or b"70"))
"""


Program = Callable[[list[str]], object]
"""Runs with the arguments, and returns the exit code or None."""


def start_command(words: Sequence[str], **options: Any) -> subprocess.Popen[str]:
    """Starts the command `reconciler`. `options` are those of `subprocess.Popen`."""
    return start_program(_run_command, [sys.executable, "-m", "reconciler"], words, **options)


def start_program(
    program: Program,
    command: Sequence[str],
    words: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    **options: Any,
) -> subprocess.Popen[str]:
    """Starts a fork of this process that runs the program; in `make test-full`, the command that runs it."""
    if not is_quick():
        return subprocess.Popen([*command, *words], env=env, text=True, **options)
    environ = dict(os.environ if env is None else env)
    # The child never returns from here to start another program. Popen waits for the end of one of its own pipes.
    # Restored signals would be those of no interpreter: a client that is killed would end a sandbox by SIGPIPE.
    run = partial(_run_instead, program, list(words), environ)
    return subprocess.Popen(list(command), env=env, text=True, preexec_fn=run, restore_signals=False, **options)


def _run_instead(program: Program, words: list[str], environ: Mapping[str, str]) -> NoReturn:
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    gc.freeze()
    _run_here(program, words, environ)


@contextmanager
def serve_commands(folder: Path) -> Iterator[Path]:
    """A folder for the PATH, with the command `reconciler`. `folder` needs a path short enough for a socket."""
    address = folder / "socket"
    client = folder / "bin/reconciler"
    client.parent.mkdir()
    client.write_text(_CLIENT.format(python=sys.executable, address=address))
    client.chmod(0o755)
    words = [sys.executable, "-m", "tests.harness.forked", str(address)]
    with subprocess.Popen(
        words, cwd=Path(__file__).parents[2], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == "ready\n"
        yield client.parent
        server.communicate()


def _serve(address: str) -> None:
    """Until the standard input ends, which it also does when the tests are killed."""
    running: dict[int, socket.socket] = {}
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(address)
        listening.listen()
        print("ready", flush=True)
        while sys.stdin not in (ready := select.select([listening, woken, sys.stdin], [], [])[0]):
            if woken in ready:
                os.read(woken, 1024)
                _reap(running)
            if listening in ready:
                asking, _ = listening.accept()
                command = os.fork()
                if not command:
                    _answer(asking, [woken, wake, *(other.fileno() for other in (listening, *running.values()))])
                running[command] = asking


def _reap(running: dict[int, socket.socket]) -> None:
    """Sends the exit codes of the commands that ended, as a shell would tell them. Their CPU time then counts as the
    server's, and in the end as that of the tests."""
    for command in list(running):
        ended, status = os.waitpid(command, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            with running.pop(command) as asking, contextlib.suppress(BrokenPipeError):
                asking.sendall(b"%d" % (code if code >= 0 else 128 - code))


def _answer(asking: socket.socket, others: Iterable[int]) -> NoReturn:
    """Runs one command in this process, without the other descriptors of the server."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for other in others:
        os.close(other)
    _, streams, _, _ = socket.recv_fds(asking, 1, 3)
    words, folder, environ = ast.literal_eval(asking.makefile("rb").read().decode("ascii"))
    asking.close()
    _run(words, folder, environ, streams)


def _run(words: list[str], folder: str, environ: dict[str, str], streams: list[int]) -> NoReturn:
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(folder)
    _run_here(_run_command, words, environ)


def _run_command(words: list[str]) -> None:
    from reconciler.cli.main import entry

    sys.argv[1:] = words
    entry()


def _run_here(program: Program, words: list[str], environ: Mapping[str, str]) -> NoReturn:
    """Runs a program as if this process had just been started for it."""
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - open until the process ends
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)  # noqa: SIM115
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(environ)
    code: object = 0
    try:
        code = program(words)
    except SystemExit as ended:
        code = ended.code
    except BaseException:  # noqa: BLE001 - as the interpreter does
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    os._exit(code if isinstance(code, int) else 1 if code else 0)


def _prepare() -> None:
    """Imports the product and runs some commands: with filled caches, an apply takes a third less."""
    import reconciler

    for module in pkgutil.walk_packages(reconciler.__path__, "reconciler."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    _fill_caches()
    gc.collect()
    gc.freeze()  # collecting them would copy the pages that a fork shares


def _fill_caches() -> None:
    from reconciler.cli.main import main
    from reconciler.operations.runtime import Runtime
    from reconciler.testing import Sandbox

    with tempfile.TemporaryDirectory() as folder, Sandbox() as sandbox:
        (Path(folder) / "manifests").mkdir()
        (Path(folder) / "reconciler.yaml").write_text("stack: prepared\n", encoding="utf-8")
        (Path(folder) / "manifests/all.yaml").write_text("kind: IPPolicy\nname: a\nspec: {}\n", encoding="utf-8")
        runtime = Runtime(environ={**os.environ, **sandbox.environ}, platform=sandbox)
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            for words in ("validate", "plan", "apply -y", "drift", "destroy -y"):
                assert main([*words.split(), "--project", folder], runtime) == 0, words


if __name__ == "__main__":
    _prepare()
    _serve(sys.argv[1])
