"""What a caller of an operation may replace: environment variables, clocks, platform, store, sinks, observer."""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from reconciler.api.observer import Observer

if TYPE_CHECKING:
    from reconciler.api.client import Account
    from reconciler.engine.context import OnCheckpoint
    from reconciler.engine.ports import Clock, Platform, Random, Reader, Sinks, Stop
    from reconciler.model.plan import Plan
    from reconciler.project.settings.config import Config

OnWait = Callable[[float], None]
OpenSinks = Callable[["Config", "Stop"], "Sinks"]
OnRetry = Callable[[float, str], None]


class RunObserver(Observer, Protocol):
    """Notified of every request, and of the plan."""

    def on_plan(self, plan: Plan) -> None:
        """A plan was created; may be called more than once in a run."""


class PlatformAccess(Protocol):
    """Opens the platform of an account."""

    def open_reader(
        self, account: Account, *, on_wait: OnWait, on_retry: OnRetry
    ) -> AbstractAsyncContextManager[Reader]:
        """The platform for operations that change nothing."""

    def open_platform(
        self, account: Account, *, on_wait: OnWait, on_retry: OnRetry, before_write: Callable[[], Awaitable[None]]
    ) -> AbstractAsyncContextManager[Platform]:
        """The platform for operations that may change it. `before_write` is awaited right before each request that
        changes anything, and raises if the request must not leave."""


class HTTPAccess:
    """The platform at the account's base URL."""

    def open_reader(
        self, account: Account, *, on_wait: OnWait, on_retry: OnRetry
    ) -> AbstractAsyncContextManager[Reader]:
        from reconciler.api.platform import open_reader

        return open_reader(account, on_wait=on_wait, on_retry=on_retry)

    def open_platform(
        self, account: Account, *, on_wait: OnWait, on_retry: OnRetry, before_write: Callable[[], Awaitable[None]]
    ) -> AbstractAsyncContextManager[Platform]:
        from reconciler.api.platform import open_platform

        return open_platform(account, on_wait=on_wait, on_retry=on_retry, before_write=before_write)


def open_project_sinks(config: Config, stop: Stop, environ: Mapping[str, str]) -> Sinks:
    """Sinks that write files and run commands below the project directory, and deliver to Vault and GitHub with the
    credentials of the environment. A running command is killed soon after `stop` is set."""
    from functools import partial

    from reconciler.operations.sinks import RemoteSinks, RoutedSinks
    from reconciler.project.manifests.load import own_places
    from reconciler.project.secrets.sinks import ProjectSinks

    own = partial(own_places, config)
    return RoutedSinks(ProjectSinks(config.root, own, stop, environ), RemoteSinks(environ, stop))


def _machine_clock() -> Clock:
    from reconciler.api.clock import MachineClock

    return MachineClock()


def _machine_random() -> Random:
    from reconciler.api.clock import MachineRandom

    return MachineRandom()


@dataclass(frozen=True)
class Runtime:
    """The environment of an operation. The defaults are this machine and the platform over HTTP.

    environ         environment variables for manifests, settings and Git
    now             seconds since 1970
    clock           monotonic seconds and sleep, for retries and ownership checks
    random          intent ids and the jitter of retries
    platform        opens the platform of an account
    store           path or URL of the store instead of the project's; `memory:` keeps nothing
    store_scope     keeps the project's stack apart from stacks of the same name in the store
    requests_spent  requests of the last minute that others sent for the account: seconds ago, and their number
    open_sinks      opens the sinks of one-time secrets; None: those of an emulated platform, or those in the manifests
    observer        notified of requests and plans, for telemetry
    on_checkpoint   called before and after each durable step of an apply, for fault tests
    commit          of the project's files; None: Git is asked
    git_timeout     seconds after which the commit is left empty
    """

    environ: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)
    now: Callable[[], float] = time.time
    clock: Clock = field(default_factory=_machine_clock)
    random: Random = field(default_factory=_machine_random)
    platform: PlatformAccess = field(default_factory=HTTPAccess)
    store: str | None = None
    store_scope: str = ""
    requests_spent: tuple[tuple[float, int], ...] = ()
    open_sinks: OpenSinks | None = None
    observer: RunObserver | None = None
    on_checkpoint: OnCheckpoint | None = None
    commit: str | None = None
    git_timeout: float = 5.0

    def sinks(self, config: Config, stop: Stop) -> Sinks:
        """The sinks for one-time secrets of a run."""
        own = self.own_sinks
        return own(config, stop) if own is not None else open_project_sinks(config, stop, self.environ)

    @property
    def own_sinks(self) -> OpenSinks | None:
        """What opens sinks instead of those that the manifests name. An emulated platform has its own: its tokens are
        of no use in the places of real ones."""
        found: OpenSinks | None = self.open_sinks or getattr(self.platform, "open_sinks", None)
        return found
