"""A pytest plugin: each worker of pytest-xdist sends only what is printed.

xdist sends six messages of each test, which Python encodes and decodes: a short test takes half as long again.
Left out are the start and the end of a test, each setup and teardown that passed in less time than `--durations` lists,
and the keywords of a test that passed.
"""

from __future__ import annotations

from typing import Any

import pytest


def pytest_sessionstart(session: pytest.Session) -> None:
    option = session.config.option
    if option.verbose <= 0 and option.xmlpath is None:  # a report in a file has each teardown
        for plugin in session.config.pluginmanager.get_plugins():
            if hasattr(plugin, "sendevent"):  # that of xdist, in a worker
                _shorten(plugin, 0.005 if option.durations_min is None else option.durations_min)


def _shorten(worker: Any, listed: float) -> None:
    """`listed`: the shortest time that `--durations` lists."""
    send = worker.sendevent

    def send_printed(name: str, **content: Any) -> None:
        if name == "testreport" and content["data"]["outcome"] == "passed":
            report = content["data"]
            if report["when"] == "call" or report["duration"] >= listed or report["sections"]:
                send(name, data={**report, "keywords": {}})
        elif name not in ("logstart", "logfinish"):
            send(name, **content)

    worker.sendevent = send_printed
