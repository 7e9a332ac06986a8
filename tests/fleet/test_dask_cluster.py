"""Connections to a Dask scheduler: no secret of a worker is sent, and clients without a certificate are refused."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import ssl
import sys
from collections.abc import AsyncIterator, Generator, Iterator, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any, ClassVar

import dask
import distributed
import pytest
from distributed import Client, Nanny, Security

from reconciler.fleet.dask_cluster import (
    RECONNECT,
    _require_dask,
    _security,
    dask_setup,
    open_cluster_pool,
    open_local_pool,
)
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


# --- what Dask is asked for


class Opened:
    """A cluster or client that notes how it was made, and fails as the test says."""

    made: ClassVar[list[tuple[str, tuple[Any, ...], dict[str, Any]]]] = []
    fails: ClassVar[dict[str, Exception]] = {}
    seen: ClassVar[list[str]] = []

    def __init__(self, *words: Any, **options: Any) -> None:
        name = type(self).__name__
        self.made.append((name, words, options))
        if name in self.fails:
            raise self.fails[name]

    def __await__(self) -> Generator[None, None, Opened]:
        if "connect" in self.fails:
            raise self.fails["connect"]
        yield from ()
        return self

    async def __aenter__(self) -> Opened:
        self.seen.append(f"{type(self).__name__} opened")
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        self.seen.append(f"{type(self).__name__} closed")


class StubCluster(Opened):
    pass


class StubClient(Opened):
    pass


@pytest.fixture
def clients(monkeypatch: pytest.MonkeyPatch) -> type[Opened]:
    for notes in (Opened.made, Opened.fails, Opened.seen):
        notes.clear()
    monkeypatch.setattr(distributed, "LocalCluster", StubCluster)
    monkeypatch.setattr(distributed, "Client", StubClient)
    return Opened


LOCAL = {
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    "distributed.worker.profile.enabled": False,
    "distributed.scheduler.active-memory-manager.start": False,
    "distributed.admin.system-monitor.disk": False,
    "distributed.admin.system-monitor.gil.enabled": False,
    "distributed.diagnostics.nvml": False,
}
"""A local cluster serves no pages, and does not spend time on measurements of the machine."""


@pytest.mark.parametrize("given", [{}, {"threads": 3, "memory_limit": "2GiB", "environ": {"A": "b"}}])
async def test_a_local_cluster_has_these_settings_and_leaves_the_environment_as_it_was(
    clients: type[Opened], monkeypatch: pytest.MonkeyPatch, given: dict[str, Any]
) -> None:
    monkeypatch.setattr(Security, "temporary", lambda: "certificates")
    for name in ("TO_CHANGE", "TO_REMOVE"):
        monkeypatch.setenv(name, "before")
    before, settings_before = dict(os.environ), {name: dask.config.get(name, "unset") for name in LOCAL}
    async with open_local_pool(stub_tasks.work, 5, **given) as pool:
        os.environ |= {"ADDED_BY_DASK": "1", "TO_CHANGE": "1"}
        del os.environ["TO_REMOVE"]
        assert {name: dask.config.get(name) for name in LOCAL} == LOCAL
        assert vars(pool).keys() == {"_client", "_where", "_run", "_patience"}
        assert isinstance(pool._client, StubClient)
        assert (pool._where, pool._run, pool._patience) == ("the scheduler of this command", stub_tasks.work, 300.0)
        (_, _, options), (_, (cluster,), of_client) = clients.made
        folder = Path(options.pop("local_directory"))
        assert folder.is_dir()
    assert options == {
        "n_workers": 5,
        "threads_per_worker": given.get("threads", 8),
        "memory_limit": given.get("memory_limit", "1GiB"),
        "host": "127.0.0.1",
        "protocol": "tls",
        "security": "certificates",
        "dashboard_address": None,
        "scheduler_kwargs": {"dashboard_address": "127.0.0.1:0"},
        "silence_logs": logging.CRITICAL,
        "preload": ["reconciler.fleet.dask_cluster"],
        "env": given.get("environ", {}),
        "asynchronous": True,
    }
    assert isinstance(cluster, StubCluster)
    assert of_client == {"asynchronous": True, "set_as_default": False}
    assert clients.seen == ["StubCluster opened", "StubClient opened", "StubClient closed", "StubCluster closed"]
    assert not folder.exists()
    assert dict(os.environ) == before
    assert {name: dask.config.get(name, "unset") for name in LOCAL} == settings_before


@pytest.mark.parametrize(("reconnect", "first"), [(60.0, 15.0), (15.0, 15.0), (3.0, 3.0)])
async def test_a_client_of_a_cluster_waits_for_its_scheduler(
    clients: type[Opened], monkeypatch: pytest.MonkeyPatch, reconnect: float, first: float
) -> None:
    waits, levels, address = list[float](), list[int](), "tcp://127.0.0.1:1"
    timeout = asyncio.timeout

    def wait(seconds: float) -> asyncio.Timeout:
        waits.append(seconds)
        return timeout(seconds)

    def silence(level: int) -> AbstractContextManager[None]:
        levels.append(level)
        return nullcontext()

    monkeypatch.setattr(asyncio, "timeout", wait)
    monkeypatch.setattr(distributed.utils, "silence_logging_cmgr", silence)
    options = {} if reconnect == RECONNECT else {"reconnect": reconnect, "patience": 7.0}
    async with open_cluster_pool(stub_tasks.work, address, **options) as pool:
        assert (pool._where, pool._run, pool._patience) == (address, stub_tasks.work, 7.0 if options else 300.0)
    ((_, words, of_client),) = clients.made
    assert words == (address,)
    assert of_client.pop("security").require_encryption is False
    assert of_client == {"asynchronous": True, "set_as_default": False, "timeout": reconnect}
    assert (waits, levels, clients.seen) == ([first], [logging.CRITICAL], ["StubClient closed"])


UNREACHABLE = "cannot connect to the scheduler tcp://[::1]:1"
CERTIFICATE = "tcp://[::1]:1: the certificate or key cannot be used: "


@pytest.mark.parametrize(
    ("where", "error", "text"),
    [
        ("connect", OSError("refused"), UNREACHABLE),
        ("connect", TimeoutError(), UNREACHABLE),
        ("StubClient", OSError(2, "No such file"), f"{CERTIFICATE}No such file"),
        ("StubClient", OSError("odd"), f"{CERTIFICATE}odd"),
        ("StubClient", ValueError("no key"), f"{CERTIFICATE}no key"),
    ],
)
async def test_a_failure_to_connect_is_one_of_the_cluster(
    clients: type[Opened], where: str, error: Exception, text: str
) -> None:
    clients.fails[where] = error
    with pytest.raises(UnusableCluster) as caught:
        async with open_cluster_pool(stub_tasks.work, "tcp://[::1]:1"):
            pass
    assert str(caught.value).partition("\n")[0] == text
    assert bool(caught.value.remedy) is (where == "connect")
    assert caught.value.__cause__ is error
    assert clients.seen == (["StubClient closed"] if where == "connect" else [])
    clients.fails[where] = LookupError("of the program")
    with pytest.raises(LookupError):
        async with open_cluster_pool(stub_tasks.work, "tcp://[::1]:1"):
            pass


NO_ADDRESS, NO_TLS, NO_CERTIFICATE = "is not the address", "without TLS", "no client certificate is set"
TLS = {"distributed.comm.tls.ca-file": "/ca", "distributed.comm.tls.client.cert": "/cert"}
OPEN = {"distributed.comm.require-encryption": False}
CLOSED = {"distributed.comm.require-encryption": True}


@pytest.mark.parametrize(
    ("address", "given", "result"),
    [
        *((address, {}, NO_ADDRESS) for address in ("", "tls:", "tls://", "tls://:8786", "host:8786", "ucx://host:1")),
        *((f"tcp://{host}:1", {}, False) for host in ("localhost", "127.0.0.1", "127.9.9.9", "[::1]")),
        *((f"tcp://{host}:1", CLOSED, False) for host in ("localhost", "127.0.0.1")),
        *((f"tcp://{host}:1", {}, NO_TLS) for host in ("host", "10.0.0.1", "127.0.0.1.host", "[::2]")),
        ("tcp://host:1", CLOSED, NO_TLS),
        ("tcp://host:1", OPEN, False),
        *(("tls://host:1", {name: path}, NO_CERTIFICATE) for name, path in TLS.items()),
        ("tls://host:1", TLS, True),
        ("tls://host:1", {**TLS, **OPEN}, True),
        ("tls://localhost:1", {}, NO_CERTIFICATE),
    ],
)
def test_a_scheduler_is_reached_with_tls_or_on_this_machine_or_in_a_closed_network(
    address: str, given: dict[str, Any], result: bool | str
) -> None:
    """The result: whether encryption is required, or why the scheduler is refused."""
    unset = dict.fromkeys([*TLS, "distributed.comm.require-encryption"])
    with dask.config.set({**unset, **given}):
        if isinstance(result, bool):
            assert _security(address).require_encryption is result
        else:
            with pytest.raises(UnusableCluster, match=result) as caught:
                _security(address)
            assert repr(address)[1:-1] in str(caught.value)
            assert caught.value.remedy


def test_a_machine_without_dask_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(UnusableCluster, match="Dask is not installed") as caught:
        _require_dask()
    assert caught.value.remedy == "install reconciler with the extra fleet"
    assert isinstance(caught.value.__cause__, ImportError)


def test_a_local_worker_ignores_the_signals_of_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = dict[int, Any]()
    monkeypatch.setattr(signal, "signal", seen.__setitem__)
    dask_setup(object())
    assert seen == {signal.SIGINT: signal.SIG_IGN, signal.SIGHUP: signal.SIG_IGN}
