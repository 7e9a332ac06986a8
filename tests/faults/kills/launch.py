"""`python launch.py SPEC apply …`: the real command in a real process, with a hook that ends it at a chosen moment.

SPEC is JSON: `{"record": FILE}` writes each moment as a line; `{"point", "what", "nth", "signal"}` sends this process
the signal at the n-th such moment. Moments are the engine's points, the store's commits, every fsync, rename
and link.
"""

from __future__ import annotations

import functools
import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy.engine.default import DefaultDialect

from reconciler.cli.main import main
from reconciler.model.plan import Call
from reconciler.operations.runtime import Runtime
from tests.harness.forked import start_program


class Moments:
    def __init__(self, spec: dict[str, Any]) -> None:
        self._spec = spec
        self._seen: Counter[tuple[str, str]] = Counter()
        self._turn = threading.Lock()  # commits come from threads
        self._writing: set[int] = set()  # threads
        self._idle = threading.Condition()
        self._file = os.open(spec["record"], os.O_WRONLY | os.O_CREAT | os.O_APPEND) if "record" in spec else None

    def on_checkpoint(self, point: str, call: Call) -> None:
        self.come(point, call.id)

    def come(self, point: str, what: str = "") -> None:
        with self._turn:
            self._seen[point, what] += 1
            nth = self._seen[point, what]
            if self._file is not None:
                os.write(self._file, f"{json.dumps([point, what, nth])}\n".encode())
                return
        if [point, what, nth] == [self._spec["point"], self._spec["what"], self._spec["nth"]]:
            self._end()

    def _end(self) -> None:
        with self._idle:
            if self._spec["signal"] == signal.SIGSTOP:  # asleep in a transaction it would keep all others out
                self._idle.wait_for(lambda: not self._writing)
            os.kill(os.getpid(), self._spec["signal"])

    def wrap_begin(self, act: Callable[..., Any]) -> Callable[..., Any]:
        def begin(*words: Any) -> Any:
            with self._idle:
                self._writing.add(threading.get_ident())
            return act(*words)

        return begin

    def wrap_end(self, act: Callable[..., Any]) -> Callable[..., Any]:
        def end(*words: Any) -> Any:
            try:
                return act(*words)
            finally:
                with self._idle:
                    self._writing.discard(threading.get_ident())
                    self._idle.notify_all()

        return end

    def around(self, name: str, act: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(act)
        def run_watched(*words: Any, **more: Any) -> Any:
            self.come(f"before {name}")
            answer = act(*words, **more)
            self.come(f"after {name}")
            return answer

        return run_watched

    def install(self) -> None:
        """Over what writes durably, wherever it is called from."""
        commit = self.wrap_end(self.around("commit", DefaultDialect.do_commit))
        setattr(DefaultDialect, "do_begin", self.wrap_begin(DefaultDialect.do_begin))  # noqa: B010 - no mypy in its way
        setattr(DefaultDialect, "do_commit", commit)  # noqa: B010 - as above
        setattr(DefaultDialect, "do_rollback", self.wrap_end(DefaultDialect.do_rollback))  # noqa: B010 - as above
        setattr(os, "fsync", self.around("fsync", os.fsync))  # noqa: B010 - as above
        setattr(os, "rename", self.around("rename", os.rename))  # noqa: B010 - as above
        setattr(os, "link", self.around("link", os.link))  # noqa: B010 - as above


def run(words: list[str]) -> int:
    moments = Moments(json.loads(words[0]))
    moments.install()
    return main(words[1:], Runtime(on_checkpoint=moments.on_checkpoint))


def start(spec: dict[str, Any], words: Sequence[str], **options: Any) -> subprocess.Popen[str]:
    """Starts the command with the hook. `options` are those of `subprocess.Popen`."""
    return start_program(run, [sys.executable, __file__], [json.dumps(spec), *words], **options)


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
