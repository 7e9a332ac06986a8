"""Runs tests against one mutant after the other, in a copy of the repository: `python -P worker.py COPY`.

Reads one job per line from stdin and writes one result per line to stdout, both as JSON. Nothing of the product or its
tests is ever imported in this process. It loads the libraries that they use, once; each job is a fork of it, which
imports the product with the mutant already in its file.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MEMORY = 6 << 30  # bytes
PROFILE = "mutation"  # of hypothesis, in tests/conftest.py
OPTIONS = ("-q", "-x", "--no-header", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning")
STARTING = 90.0  # seconds for imports and collection


class Chosen:
    """A plugin of pytest that runs the given tests in the given order, until one fails or the CPU time is used up."""

    def __init__(self, job: dict[str, Any]) -> None:
        self._order = {test: place for place, test in enumerate(job["tests"])}
        self._also = tuple(job["also"])
        self._cpu: dict[str, float] = job["cpu"]
        self._budget: float = job["budget"]
        self._least: float = job["least"]
        self._began = 0.0
        self.ran = 0
        self.skipped = 0  # for want of time
        self.failed = ""
        self.why = ""

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        chosen = [item for item in items if item.nodeid in self._order or item.nodeid.startswith(self._also or "\0")]
        items[:] = sorted(chosen, key=lambda item: self._order.get(item.nodeid, -1))
        self._began = time.process_time()

    def pytest_runtest_protocol(self, item: Any) -> bool | None:
        if time.process_time() - self._began > self._budget:
            self.skipped += 1
            return True  # as if it had been run
        self.ran += 1
        _limit(item.nodeid, self._least + 12 * self._cpu.get(item.nodeid, 2.0))
        return None

    def pytest_collectreport(self, report: Any) -> None:
        self._note(report)

    def pytest_runtest_logreport(self, report: Any) -> None:
        self._note(report)

    def _note(self, report: Any) -> None:
        if report.failed and not self.failed:
            self.failed = report.nodeid or "collection"
            self.why = str(getattr(getattr(report.longrepr, "reprcrash", None), "message", report.longrepr))[:300]


def _limit(test: str, seconds: float) -> None:
    """The process is killed by a signal after this much CPU time, or after five times as much time."""
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, 5 * seconds)


def _run(job: dict[str, Any], answer: Path) -> None:
    """In the fork: never returns."""
    os.setsid()
    log = os.open(answer.with_suffix(".log"), os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ["TMPDIR"] = os.environ["PYTEST_DEBUG_TEMPROOT"] = str(answer.parent)
    tempfile.tempdir = None
    sys.dont_write_bytecode = not job.get("warm")
    code = 99
    try:
        _limit("", STARTING)
        import pytest

        files = dict.fromkeys(test.partition("::")[0] for test in [*job["also"], *job["tests"]])
        chosen = Chosen(job)
        words = [*OPTIONS, f"--hypothesis-profile={PROFILE}", *job.get("options", ()), *files]
        code = int(pytest.main(words, plugins=[] if job.get("warm") else [chosen]))
        result = {
            "code": code,
            "failed": chosen.failed,
            "why": chosen.why,
            "ran": chosen.ran,
            "skipped": chosen.skipped,
        }
        if job.get("warm"):
            result["modules"] = _list_libraries()
        answer.write_text(json.dumps(result))
    finally:
        os._exit(code)


def _list_libraries() -> list[str]:
    """What a run of tests has loaded, besides the product and the tests."""
    return [
        name
        for name, module in sys.modules.items()
        if name.partition(".")[0] not in ("reconciler", "tests", "__main__", "conftest")
        and getattr(module, "__spec__", None) is not None
    ]


@contextlib.contextmanager
def _plant(file: Path, text: str) -> Iterator[None]:
    """Puts the text in the place of the file's, and hides what was compiled of it."""
    original, state = file.read_bytes(), file.stat()
    compiled = Path(importlib.util.cache_from_source(str(file)))
    hidden = compiled.with_suffix(".original")
    if compiled.exists():
        compiled.rename(hidden)
    try:
        file.write_text(text)
        yield
    finally:
        file.write_bytes(original)
        os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))
        compiled.unlink(missing_ok=True)
        if hidden.exists():
            hidden.rename(compiled)


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    """Beside the copy. No TemporaryDirectory: a process that a test forks would delete it when it exits."""
    folder = Path(tempfile.mkdtemp(prefix="mutant-", dir=Path.cwd().parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _attempt(job: dict[str, Any]) -> dict[str, Any]:
    began = time.monotonic()
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(_folder())
        if job["file"]:
            stack.enter_context(_plant(Path(job["file"]), job["text"]))
        answer = folder / "answer.json"
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        child = os.fork()
        if not child:
            _run(job, answer)
        status = _wait(child, job["seconds"])
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        result = json.loads(answer.read_text()) if answer.exists() else {}
        result["log"] = answer.with_suffix(".log").read_text(errors="replace")[-3000:]
    result["cpu"] = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    result["seconds"] = time.monotonic() - began
    result["signal"] = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    return result


def _wait(child: int, seconds: float) -> int:
    """The status of the process, which is killed after so many seconds, with all that it started."""
    deadline = time.monotonic() + seconds
    pause = 0.005
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if not ended and time.monotonic() > deadline:
            os.kill(child, signal.SIGALRM)
            ended, status = os.waitpid(child, 0)
        if ended:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)
            return status
        time.sleep(pause)
        pause = min(0.1, pause * 1.5)


def _warm_up() -> None:
    """Collects all tests in a fork, so that everything is compiled, and loads the libraries that they use."""
    result = _attempt(
        {"file": "", "tests": [], "also": [], "cpu": {}, "budget": 0, "least": 0, "seconds": 900, "warm": True,
         "options": ["--collect-only", "-qq", "tests"]}
    )  # fmt: skip
    if result.get("code") != 0:
        raise SystemExit(f"the tests cannot be collected in the copy:\n{result['log']}")
    for name in result["modules"]:
        with contextlib.suppress(Exception):  # what needs the product, or its own order of imports, is left to the fork
            importlib.import_module(name)
    if loaded := [name for name in sys.modules if name.partition(".")[0] in ("reconciler", "tests")]:
        raise SystemExit(f"the product must not be loaded here: {loaded[:5]}")
    threads = Path("/proc/self/task")
    if threads.is_dir() and len(list(threads.iterdir())) > 1:
        raise SystemExit("a library has started a thread: a fork of this process would not be sound")


def main(copy: str) -> None:
    os.chdir(copy)
    sys.path.insert(0, copy)
    os.environ["PYTHONPATH"] = copy
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    _warm_up()
    for line in sys.stdin:
        print(json.dumps(_attempt(json.loads(line))), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
