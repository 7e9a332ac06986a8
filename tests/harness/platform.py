"""The platform that tests run on: the sandbox in this process, or as a process with a socket."""

from __future__ import annotations

import ssl
import subprocess
import sys
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager

import httpx

from reconciler import testing
from reconciler.api.client import Account
from reconciler.engine.ports import Platform, Reader
from reconciler.operations.runtime import HTTPAccess, OnRetry, OnWait, PlatformAccess
from reconciler.sandbox.__main__ import main
from reconciler.sandbox.base.ids import Ksuids
from reconciler.testing import Emulator as Sandbox
from tests.harness.forked import start_program

__all__ = ["HEADERS", "KEY", "Reachable", "Sandbox", "SandboxProcess", "open_client", "restore_objects", "save_objects"]

KEY = "sandbox"
HEADERS = {"Authorization": f"Bearer {KEY}", "Service-Version": "2"}


def open_client(url: str) -> httpx.Client:
    """A client for an address without TLS, such as that of an agent. It has read no certificates, which takes 15 ms."""
    return httpx.Client(base_url=url, trust_env=False, verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))


def save_objects(sandbox: testing.Sandbox) -> bytes:
    """All objects of a platform in process, for `restore_objects`."""
    return sandbox._database._sql.serialize()


def restore_objects(sandbox: testing.Sandbox, saved: bytes) -> None:
    """Replaces all objects by saved ones. New ids follow theirs."""
    database = sandbox._database
    database._sql.deserialize(saved)
    database._ids = Ksuids(database.fact("last_id") or "")


class SandboxProcess(testing.SandboxProcess):
    """The sandbox as a process, in `make test` without an interpreter of its own."""

    def _spawn(self, words: list[str]) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "reconciler.sandbox"]
        return start_program(main, command, words, stdout=subprocess.PIPE)


class Reachable(PlatformAccess):
    """What a command in this process reaches: the sandbox at its address, in process or not, and otherwise the
    network."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox

    def open_reader(
        self, account: Account, *, on_wait: OnWait, on_retry: OnRetry
    ) -> AbstractAsyncContextManager[Reader]:
        return self._at(account).open_reader(account, on_wait=on_wait, on_retry=on_retry)

    def open_platform(
        self, account: Account, *, on_wait: OnWait, on_retry: OnRetry, before_write: Callable[[], Awaitable[None]]
    ) -> AbstractAsyncContextManager[Platform]:
        platform = self._at(account)
        return platform.open_platform(account, on_wait=on_wait, on_retry=on_retry, before_write=before_write)

    def _at(self, account: Account) -> PlatformAccess:
        at_home = f"{account.base_url}/".startswith(f"{self._sandbox.base_url}/")
        return self._sandbox if at_home else HTTPAccess()
