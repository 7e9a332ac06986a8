"""What is shown before the calls of an apply: a user who is asked has seen the plan."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import Mock

import pytest
from msgspec.structs import replace

from reconciler.cli.applying import presenter
from reconciler.cli.applying.progress import EventLog
from reconciler.cli.terminal import signals
from reconciler.cli.terminal.options import Options
from reconciler.model.event import HealthChanged
from reconciler.model.health import Health, HealthRow, State, Wait
from reconciler.operations.reporting import CallsBegan, CallsEnded, OperationEvent, WaitBegan
from tests.harness.outcomes import run_row
from tests.harness.platform import Sandbox
from tests.harness.project import Project, resource

SHOP = resource("ReservedDomain", "shop", domain="shop.example.com")
SPARE = resource("ReservedDomain", "spare", domain="spare.example.com")
ROBOT = resource("BotUser", "robot", name="robot")
ASKING = {
    "apply --exclude */shop": "1 to create",
    "apply plan.json": "1 to create",
    "destroy --allow delete:BotUser=1": "1 to delete",
    "adopt ReservedDomain/shop": "1 to adopt",
}
"""Each command that asks, and what its plan says."""


def test_a_quiet_command_with_a_question_shows_the_plan_first(on_sandbox: Project, sandbox: Sandbox) -> None:
    on_sandbox.declare(ROBOT)
    assert on_sandbox("apply", "-y", "-q").code == 0
    sandbox.post("/reserved_domains", SHOP["spec"])
    on_sandbox.declare(ROBOT, SHOP, SPARE)
    on_sandbox("plan", "--out", "plan.json", "--exclude", "*/shop")
    sandbox.forget_log()
    for command, plan in ASKING.items():
        declined = run_row([*command.split(), "--quiet", "(no)"], on_sandbox)
        assert (declined.code, "Only 'yes' will be accepted" in declined.err) == (1, True), declined
        assert plan in declined.out, command
    assert sandbox.calls() == []


class _Events:
    """What a presenter does with the signals and the bar of an apply."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **options: Any) -> None:
        self.did: list[str] = []
        self.handler: Callable[[], object] = lambda: None
        monkeypatch.setattr(signals, "set_handler", self.catch)
        monkeypatch.setattr(signals, "cancel_on_signal", lambda: self.did.append("a signal cancels"))
        monkeypatch.setattr(signals, "exit_on_signal", lambda: self.did.append("a signal ends the process"))
        monkeypatch.setattr(presenter, "report_progress", self.show)
        self.presenter = presenter._Presenter(Mock(), Options(**options), ask=False)

    def catch(self, handler: Callable[[], object]) -> None:
        self.did.append("a handler is set")
        self.handler = handler

    @contextmanager
    def show(self, log: EventLog, options: Options, total: int) -> Iterator[None]:
        self.did.append(f"a bar of {total} is shown")
        yield
        self.did.append("the bar is erased")

    def tell(self, *events: OperationEvent) -> list[str]:
        """What these events do."""
        self.did.clear()
        for event in events:
            self.presenter(event)
        return list(self.did)


def test_the_bar_is_shown_and_signals_are_handled_during_the_calls_only(monkeypatch: pytest.MonkeyPatch) -> None:
    async def act() -> None:
        seen = _Events(monkeypatch)
        with seen.presenter.open:
            assert seen.tell(CallsBegan(3)) == ["a bar of 3 is shown", "a handler is set"]
            assert seen.tell(CallsEnded()) == ["the bar is erased", "a signal cancels"]
            assert seen.tell(CallsBegan(2, is_cleanup=True)) == ["a handler is set"]
            assert seen.tell(CallsEnded()) == ["a signal cancels"]

    asyncio.run(act())


def test_a_first_signal_starts_no_more_calls_and_a_second_one_cancels(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def act() -> list[str]:
        seen = _Events(monkeypatch)
        with seen.presenter.open:
            seen.tell(CallsBegan(3))
            assert not seen.presenter.stop.is_set()
            seen.handler()
            assert seen.presenter.stop.is_set()
            await asyncio.sleep(0)
            seen.did.clear()
            seen.handler()
            with pytest.raises(asyncio.CancelledError):
                await asyncio.sleep(0)
        return seen.did

    assert asyncio.run(act())[:1] == ["a signal ends the process"]
    assert capsys.readouterr().err == (
        "interrupted: waiting for running calls to finish, starting no others; interrupt again to exit now\n"
    )


@pytest.mark.parametrize(("options", "is_shown"), [({}, True), ({"quiet": True}, False), ({"events": "-"}, False)])
def test_a_signal_during_the_wait_for_health_ends_the_wait(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], options: dict[str, Any], is_shown: bool
) -> None:
    seen = _Events(monkeypatch, **options)
    assert seen.tell(WaitBegan(29.6)) == ["a handler is set"]
    assert not seen.presenter.stop.is_set()
    seen.handler()
    assert (seen.presenter.stop.is_set(), seen.did[1:]) == (True, ["a signal ends the process"])
    ill, well = (HealthRow("TLSEdge/a", "", Health(state, "x")) for state in (State.PROGRESSING, State.HEALTHY))
    other = replace(well, address="TLSEdge/b")
    seen.tell(HealthChanged(ill, Wait.WAITING), HealthChanged(other, Wait.READY), HealthChanged(well, Wait.READY))
    lines = [
        "waiting up to 30 s until what was changed is healthy",
        "waiting: TLSEdge/a: x",
        "healthy: TLSEdge/a",
    ]
    assert capsys.readouterr().err.splitlines() == (lines if is_shown else [])
