"""Dask clusters for tests: a scheduler and workers in the test's event loop, and certificates."""

from __future__ import annotations

import asyncio
import datetime
import os
import socket
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from distributed import Scheduler, Worker

from reconciler.fleet.ports import Pool, TaskEnd
from reconciler.model.fleet import Task


@asynccontextmanager
async def start_scheduler(port: int = 0, **options: Any) -> AsyncIterator[Scheduler]:
    async with Scheduler(host="127.0.0.1", port=port, dashboard_address="127.0.0.1:0", **options) as scheduler:
        yield scheduler


@asynccontextmanager
async def start_cluster(*workers: dict[str, Any], **options: Any) -> AsyncIterator[Scheduler]:
    """A scheduler and a worker for each of `workers` (its options), all in this process."""
    async with AsyncExitStack() as stack:
        scheduler = await stack.enter_async_context(start_scheduler(**options))
        for worker in workers:
            running = Worker(scheduler.address, host="127.0.0.1", nthreads=2, memory_limit=0, **options, **worker)
            await stack.enter_async_context(running)
        yield scheduler


async def run_all(
    pool: Pool, tasks: Iterable[Task], *, resubmit: bool = True, on_end: Callable[[TaskEnd], None] | None = None
) -> list[TaskEnd]:
    """Runs tasks, and resubmits those that the engine lost, as a coordinator does. Returns the end of each task."""
    waiting: asyncio.Queue[Task] = asyncio.Queue()
    for task in tasks:
        waiting.put_nowait(task)
    remaining, ends = waiting.qsize(), []

    async def submit() -> AsyncIterator[Task]:
        while remaining:
            try:
                yield await asyncio.wait_for(waiting.get(), 0.05)
            except TimeoutError:
                continue

    async for end in pool.run(submit()):
        if on_end is not None:
            on_end(end)
        if end.error and resubmit:
            waiting.put_nowait(end.task)
        else:
            remaining -= 1
            ends.append(end)
    return ends


class Authority:
    """A certificate authority with one certificate for every role, as files."""

    def __init__(self, folder: Path, name: str) -> None:
        key, now = ec.generate_private_key(ec.SECP256R1()), datetime.datetime.now(datetime.UTC)
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])

        def build(own: str, public: Any, *, is_authority: bool) -> x509.Certificate:
            return (
                x509.CertificateBuilder()
                .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, own)]))
                .issuer_name(subject)
                .public_key(public)
                .serial_number(x509.random_serial_number())
                .not_valid_before(now - datetime.timedelta(hours=1))
                .not_valid_after(now + datetime.timedelta(hours=1))
                .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
                .sign(key, hashes.SHA256())
            )

        own = ec.generate_private_key(ec.SECP256R1())
        self.ca_file, self.cert, self.key = (folder / f"{name}-{part}.pem" for part in ("ca", "cert", "key"))
        pem = serialization.Encoding.PEM
        self.ca_file.write_bytes(build(name, key.public_key(), is_authority=True).public_bytes(pem))
        self.cert.write_bytes(build(f"{name}-member", own.public_key(), is_authority=False).public_bytes(pem))
        form, no_password = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        self.key.write_bytes(own.private_bytes(pem, form, no_password))

    def settings(self) -> dict[str, str]:
        """Dask's settings of clients, schedulers and workers."""
        prefix = "distributed.comm.tls"
        found = {f"{prefix}.ca-file": str(self.ca_file)}
        for role in ("client", "scheduler", "worker"):
            found |= {f"{prefix}.{role}.cert": str(self.cert), f"{prefix}.{role}.key": str(self.key)}
        return found

    def environ(self) -> dict[str, str]:
        """The same as environment variables."""
        return {
            f"DASK_{name.replace('.', '__').replace('-', '_')}".upper(): value
            for name, value in self.settings().items()
        }


class ProcessCluster:
    """A scheduler and workers as processes that are restarted when they end, as by systemd or Kubernetes.

    environ  variables of all processes, in addition to those of this one
    """

    def __init__(self, authority: Authority, workers: int, threads: int, environ: Mapping[str, str]) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.address = f"tls://127.0.0.1:{port}"
        local = ["--host", "127.0.0.1", "--dashboard-address", "127.0.0.1:0"]
        size = ["--nworkers", str(workers), "--nthreads", str(threads), "--memory-limit", "1GiB"]
        self._commands = {
            "scheduler": ["scheduler", "--protocol", "tls", "--port", str(port), *local],
            "workers": ["worker", self.address, *size, *local],
        }
        self._environ = {**os.environ, **authority.environ(), **environ}
        self._running: dict[str, asyncio.subprocess.Process] = {}

    async def __aenter__(self) -> ProcessCluster:
        self._restarting = [asyncio.create_task(self._restart(name)) for name in self._commands]
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._restarting:
            task.cancel()
        await asyncio.gather(*self._restarting, return_exceptions=True)

    def kill_scheduler(self) -> None:
        self._running["scheduler"].kill()

    async def _restart(self, name: str) -> None:
        """Runs a command, and again whenever it ends."""
        while True:
            process = self._running[name] = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "dask",
                *self._commands[name],
                env=self._environ,
                stderr=asyncio.subprocess.DEVNULL,
            )
            try:
                await process.wait()
            finally:
                if process.returncode is None:
                    process.terminate()
                    await process.wait()
            await asyncio.sleep(1.0)
