"""Using the client changes nothing that others in the process share, and the command line has its cheaper imports."""

from __future__ import annotations

import subprocess
import sys

import pytest

_UNCHANGED = """
import asyncio, gc, os, signal, ssl, sys
before = ({**vars(ssl.SSLContext)}, {**os.environ}, gc.get_threshold(), [*sys.meta_path], os.getcwd(),
    [signal.getsignal(each) for each in signal.valid_signals()])
from reconciler.api.client import Account
from reconciler.api.platform import open_platform
from reconciler.engine.ports import Failure
from reconciler.model.value import Secret
async def main():
    async with open_platform(Account(sys.argv[1], Secret("key", "test"), agent=sys.argv[1])) as platform:
        try:
            await platform.send("POST", "/x", {})
        except Failure as failure:
            assert "cannot reach" in str(failure), failure
asyncio.run(main())
assert before == ({**vars(ssl.SSLContext)}, {**os.environ}, gc.get_threshold(), [*sys.meta_path], os.getcwd(),
    [signal.getsignal(each) for each in signal.valid_signals()])
import aiohttp.connector
for context in (aiohttp.connector._SSL_CONTEXT_VERIFIED, ssl.create_default_context()):
    assert context.cert_store_stats() == ssl.create_default_context().cert_store_stats()
from httpx import _main
assert _main is not None
"""

_LEAN = """
import ssl, sys
from reconciler.cli.terminal import lean_imports
lean_imports.install()
lean_imports.install()
before = {**vars(ssl.SSLContext)}
import reconciler.api.transport
assert before == {**vars(ssl.SSLContext)}
assert not any(type(each).__module__ == lean_imports.__name__ for each in sys.meta_path)
import aiohttp.connector
assert aiohttp.connector._SSL_CONTEXT_VERIFIED.cert_store_stats()["x509"] == 0
assert not {"rich", "pygments"} & set(sys.modules)
"""


def run(script: str, *words: str) -> None:
    done = subprocess.run([sys.executable, "-c", script, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("base_url", ["http://127.0.0.1:1", "https://127.0.0.1:1"])
def test_a_client_changes_nothing_in_its_process(base_url: str) -> None:
    run(_UNCHANGED, base_url)


def test_the_command_line_reads_no_certificates_that_no_client_uses() -> None:
    run(_LEAN)
