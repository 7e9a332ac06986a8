"""Starts Dask workers on this machine, or connects to the scheduler of a cluster, for a pool of a fleet."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import os
import signal
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from reconciler.fleet.dask_pool import PATIENCE, DaskPool, RunTask
from reconciler.operations.errors import UnusableCluster

if TYPE_CHECKING:
    from distributed import Security

THREADS = 8
"""Number of tasks at a time in one local worker."""

RECONNECT = 60.0
"""Seconds that the scheduler of a cluster may take to restart."""

_CONNECT = 15.0  # seconds
_MEMORY = "1GiB"  # of one local worker

# A local cluster serves no web pages, which would require no certificate, and records no profiles.
_LOCAL = {
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    "distributed.worker.profile.enabled": False,
    "distributed.scheduler.active-memory-manager.start": False,
    "distributed.admin.system-monitor.disk": False,
    "distributed.admin.system-monitor.gil.enabled": False,
    "distributed.diagnostics.nvml": False,
}


@asynccontextmanager
async def open_local_pool(
    run: RunTask,
    workers: int,
    *,
    threads: int = THREADS,
    memory_limit: str = _MEMORY,
    environ: Mapping[str, str] | None = None,
) -> AsyncIterator[DaskPool]:
    """Starts a scheduler in this process and workers in separate processes, for the duration of the block.

    Only this process and its workers have the certificate of their connections.

    threads       tasks at a time in one worker
    memory_limit  a worker that uses more is replaced
    environ       variables for the workers, in addition to those of this process
    """
    _require_dask()
    import dask
    from distributed import Client, LocalCluster, Security

    async with AsyncExitStack() as stack:
        stack.enter_context(_restore_environment())
        stack.enter_context(dask.config.set(_LOCAL))
        cluster = LocalCluster(
            n_workers=workers,
            threads_per_worker=threads,
            memory_limit=memory_limit,
            host="127.0.0.1",
            protocol="tls",
            security=Security.temporary(),
            dashboard_address=None,
            scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
            silence_logs=logging.CRITICAL,
            local_directory=stack.enter_context(tempfile.TemporaryDirectory()),
            preload=[__name__],
            env=dict(environ or {}),
            asynchronous=True,
        )
        await stack.enter_async_context(cluster)
        client = Client(cluster, asynchronous=True, set_as_default=False)
        await stack.enter_async_context(client)
        yield DaskPool(client, "the scheduler of this command", run)


@asynccontextmanager
async def open_cluster_pool(
    run: RunTask, scheduler: str, *, patience: float = PATIENCE, reconnect: float = RECONNECT
) -> AsyncIterator[DaskPool]:
    """Connects to the workers of a running scheduler. Raises UnusableCluster.

    scheduler  such as `tls://host:8786`; certificates are Dask's settings
    patience   seconds until a task that no worker can run is returned
    reconnect  seconds that the scheduler may take to restart
    """
    _require_dask()
    from distributed import Client
    from distributed.utils import silence_logging_cmgr

    security = _security(scheduler)
    async with AsyncExitStack() as stack:
        stack.enter_context(silence_logging_cmgr(logging.CRITICAL))
        try:
            client = Client(scheduler, security=security, asynchronous=True, set_as_default=False, timeout=reconnect)
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            raise UnusableCluster(f"{scheduler}: the certificate or key cannot be used: {why}") from error
        stack.push_async_callback(client.close)
        try:
            async with asyncio.timeout(min(_CONNECT, reconnect)):
                await client
        except (OSError, TimeoutError) as error:
            raise UnusableCluster(
                f"cannot connect to the scheduler {scheduler}",
                remedy="check that it runs, and that its certificate and this one are of the same authority",
            ) from error
        yield DaskPool(client, scheduler, run, patience)


def _security(scheduler: str) -> Security:
    """The certificates for a scheduler: everyone who can connect to it can run any code on its workers."""
    import dask
    from distributed import Security

    parts = urlsplit(scheduler)
    if parts.scheme not in ("tls", "tcp") or not parts.hostname:
        raise UnusableCluster(f"{scheduler!r} is not the address of a scheduler", remedy="write tls://HOST:8786")
    if parts.scheme == "tcp":
        if not _is_local(parts.hostname) and dask.config.get("distributed.comm.require-encryption", None) is not False:
            raise UnusableCluster(
                f"{scheduler}: without TLS, everyone who reaches the scheduler can run code where the keys are",
                remedy="use tls://, or set DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION=False in a closed network",
            )
        return Security(require_encryption=False)
    security = Security(require_encryption=True)
    if not (security.tls_ca_file and security.tls_client_cert):
        raise UnusableCluster(
            f"{scheduler}: no client certificate is set",
            remedy="set DASK_DISTRIBUTED__COMM__TLS__CA_FILE, …__TLS__CLIENT__CERT and …__TLS__CLIENT__KEY",
        )
    return security


def _is_local(host: str) -> bool:
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"


def _require_dask() -> None:
    try:
        import distributed  # noqa: F401
    except ImportError as error:
        raise UnusableCluster("Dask is not installed", remedy="install reconciler with the extra fleet") from error


def dask_setup(_worker: object) -> None:
    """Called by Dask when a local worker starts. It ignores Ctrl-C, and ends with the command after running tasks."""
    for name in (signal.SIGINT, signal.SIGHUP):
        signal.signal(name, signal.SIG_IGN)


@contextmanager
def _restore_environment() -> Iterator[None]:
    """Restores the variables that Dask sets in this process for its workers."""
    before = dict(os.environ)
    try:
        yield
    finally:
        for name in os.environ.keys() - before.keys():
            del os.environ[name]
        os.environ.update(before)
