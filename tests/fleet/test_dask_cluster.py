"""Connections to a Dask scheduler: no secret of a worker is sent, and clients without a certificate are refused."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import dask
import pytest
from distributed import Client, Nanny, Security

from reconciler.fleet.dask_cluster import open_cluster_pool, open_local_pool
from reconciler.operations.errors import UnusableCluster
from tests.fleet import stub_tasks
from tests.fleet.clusters import Authority, run_all, start_cluster, start_scheduler
from tests.fleet.stub_tasks import make_task

CANARY = "canary-Jq7vT2mXw9"


def settings(environ: Mapping[str, str]) -> dask.config.set:
    """Sets Dask's settings from environment variables, inside a block."""
    return dask.config.set(dict(flatten(dask.config.collect_env(dict(environ)), "")))


def flatten(values: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, dict):
            yield from flatten(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


class Recorder:
    """A proxy before a scheduler that records all data of workers and clients."""

    def __init__(self, port: int) -> None:
        self.port, self.seen = port, bytearray()

    @asynccontextmanager
    async def listen(self) -> AsyncIterator[str]:
        server = await asyncio.start_server(self._connect, "127.0.0.1", 0)
        try:
            yield f"tcp://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        finally:
            server.close()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        on_reader, on_writer = await asyncio.open_connection("127.0.0.1", self.port)
        await asyncio.gather(self._copy(reader, on_writer), self._copy(on_reader, writer), return_exceptions=True)

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1 << 16):
            self.seen += data
            writer.write(data)
            await writer.drain()
        writer.close()


async def test_no_secret_of_a_worker_reaches_the_scheduler(tmp_path: Path) -> None:
    """Tasks fail with a secret in the message and the cause, on a worker that has it in its environment."""
    async with start_scheduler() as scheduler:
        recorder = Recorder(scheduler.port)
        async with (
            recorder.listen() as address,
            Nanny(address, nthreads=2, memory_limit=0, env={"ACCOUNT_KEY": CANARY}, local_directory=str(tmp_path)),
            open_cluster_pool(stub_tasks.fail, address) as pool,
        ):
            ends = await run_all(pool, [make_task(tmp_path, f"member-{number}") for number in range(4)], resubmit=False)
            async with Client(address, asynchronous=True, set_as_default=False) as client:
                logs = [await client.get_scheduler_logs(), await client.get_worker_logs()]
            state = scheduler._to_dict()
    assert {end.error for end in ends} == {f"ValueError in {stub_tasks.__file__}:{line_of('raise ValueError')}"}
    assert b"member-3" in recorder.seen
    assert b"ValueError" in recorder.seen
    assert CANARY.encode() not in recorder.seen
    assert "member-3" in repr(logs)
    assert CANARY not in repr(logs) + repr(state)


def line_of(code: str) -> int:
    lines = Path(stub_tasks.__file__).read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if code in line)


async def test_tasks_run_over_tls(tmp_path: Path) -> None:
    authority = Authority(tmp_path, "fleet")
    async with tls_cluster(authority) as address:
        with settings(authority.environ()):
            async with open_cluster_pool(stub_tasks.work, address) as pool:
                ends = await run_all(pool, [make_task(tmp_path, "member")])
    assert [end.error for end in ends] == [""]


async def test_a_client_without_the_certificate_is_refused(tmp_path: Path) -> None:
    fleet, other = Authority(tmp_path, "fleet"), Authority(tmp_path, "other")
    async with tls_cluster(fleet) as address:
        with pytest.raises(UnusableCluster, match="no client certificate is set"):
            async with open_cluster_pool(stub_tasks.work, address):
                pass
        with (
            settings(other.environ() | {"DASK_DISTRIBUTED__COMM__TLS__CA_FILE": str(fleet.ca_file)}),
            pytest.raises(UnusableCluster, match="cannot connect to the scheduler tls://"),
        ):
            async with open_cluster_pool(stub_tasks.work, address, reconnect=1.0):
                pass
        with pytest.raises((ssl.SSLError, ConnectionError, asyncio.IncompleteReadError)):
            await read_without_certificate(address, fleet)


async def read_without_certificate(address: str, authority: Authority) -> bytes:
    """The first byte that a scheduler sends to a client without a certificate."""
    host, port = address.removeprefix("tls://").split(":")
    context = ssl.create_default_context(cafile=str(authority.ca_file))
    context.check_hostname = False
    reader, writer = await asyncio.open_connection(host, int(port), ssl=context)
    try:
        return await asyncio.wait_for(reader.readexactly(1), 10)
    finally:
        writer.close()


async def test_other_users_of_the_machine_cannot_connect_to_a_local_cluster(tmp_path: Path) -> None:
    """The scheduler of `--workers` requires a certificate that only its workers have, and serves no web pages."""
    async with open_local_pool(stub_tasks.work, 1) as pool:
        address = pool._client.scheduler.address
        assert address.startswith("tls://127.0.0.1:")
        with pytest.raises(OSError, match=r"."):
            await Client(address, asynchronous=True, set_as_default=False, timeout=1, security=Security.temporary())


async def test_a_certificate_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    authority = Authority(tmp_path, "fleet")
    for file, why in ((authority.key, "PEM"), (authority.ca_file, "No such file")):
        file.unlink()
        if file is authority.key:
            file.write_text("no key")
        with (
            settings(authority.environ()),
            pytest.raises(UnusableCluster, match=f"the certificate or key cannot be used: .*{why}"),
        ):
            async with open_cluster_pool(stub_tasks.work, "tls://127.0.0.1:1"):
                pass


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("tcp://198.51.100.7:8786", "without TLS, everyone who reaches the scheduler can run code"),
        ("tcp://scheduler.example.com:8786", "without TLS"),
        ("scheduler:8786", "is not the address of a scheduler"),
        ("https://scheduler:8786", "is not the address of a scheduler"),
        ("tls://", "is not the address of a scheduler"),
        ("tls://scheduler:8786", "no client certificate is set"),
    ],
)
async def test_unsafe_schedulers_are_refused_before_a_connection(address: str, reason: str) -> None:
    with pytest.raises(UnusableCluster, match=reason):
        async with open_cluster_pool(stub_tasks.work, address):
            pass


async def test_tls_may_be_disabled_in_a_closed_network() -> None:
    with (
        settings({"DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION": "False"}),
        pytest.raises(UnusableCluster, match="cannot connect"),
    ):
        async with open_cluster_pool(stub_tasks.work, "tcp://127.0.0.2:1", reconnect=0.2):
            pass


@asynccontextmanager
async def tls_cluster(authority: Authority) -> AsyncIterator[str]:
    """A scheduler and a worker that require certificates of an authority."""
    files = {"tls_ca_file": str(authority.ca_file)}
    for role in ("client", "scheduler", "worker"):
        files |= {f"tls_{role}_cert": str(authority.cert), f"tls_{role}_key": str(authority.key)}
    security = Security(require_encryption=True, **files)
    async with start_cluster({}, protocol="tls", security=security) as scheduler:
        yield scheduler.address
