"""Clients that start an agent and use its API, each with every such call that it has, on the sandbox's agent.

`make test-clients` installs them; without it these tests are deselected.
"""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from functools import cache

import pytest

from tests.clients.management import HERE, install_folder

pytestmark = pytest.mark.clients

PYNGROK = tuple(
    """
    get_ngrok_process connect_without_arguments connect_http connect_tcp connect_tls connect_files
    connect_with_a_traffic_policy connect_by_name connect_with_the_name_of_another get_tunnels refresh_metrics
    api_request get_agent_status get_requests get_request replay_request delete_requests disconnect connect_all
    connect_asynchronously connect_with_an_invalid_option kill start_with_a_wrong_token set_auth_token get_version
    """.split()  # noqa: SIM905 - a paragraph is easier to read
)
OLDER = ("connect_http_only", "connect_both_schemes", "connect_with_older_options", "connect_with_modules")
NODE = tuple(
    """
    connect connectPort connectTcp connectTls connectHttpOnly connectByName connectWithModules connectLabelled
    statusChange listTunnels startTunnel startTunnelTwice startTunnelInvalid startTunnelBothSchemes tunnelDetail
    listRequests requestDetail replayRequest replayRequestUnknown deleteAllRequests stopTunnel disconnect disconnectAll
    kill getVersion upgradeConfig authtoken
    """.split()  # noqa: SIM905 - as above
)
CALLS = {"pyngrok 3": PYNGROK, "pyngrok 2": (*PYNGROK, *OLDER), "ngrok": NODE}
Results = Callable[[str], dict[str, str]]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """The error of each call of a client, empty for none; the client runs once."""

    @cache
    def run(client: str) -> dict[str, str]:
        folder = tmp_path_factory.mktemp("client")
        program = folder / "ngrok"
        program.write_text(f'#!/bin/sh\nexec {sys.executable} {HERE / "agent_program.py"} "$@"\n', encoding="utf-8")
        program.chmod(program.stat().st_mode | stat.S_IEXEC)
        if client == "ngrok":
            command = ["node", str(HERE / "node/agent.mjs"), f"{install_folder()}/node/", str(folder)]
        else:
            version = client.rpartition(" ")[2]
            command = [sys.executable, str(HERE / "pyngrok/driver.py"), version, str(program), str(folder)]
        environ = {**os.environ, "PYTHONPATH": f"{install_folder()}/pyngrok", "HOME": str(folder)}
        done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        return dict(json.loads(line) for line in done.stdout.splitlines())

    return run


@pytest.mark.parametrize("client", CALLS)
def test_the_program_of_a_client_runs_the_listed_calls(results: Results, client: str) -> None:
    assert sorted(results(client)) == sorted(CALLS[client])


@pytest.mark.parametrize(("client", "call"), [(client, call) for client, calls in CALLS.items() for call in calls])
def test_a_call_of_an_agent_client_succeeds(results: Results, client: str, call: str) -> None:
    error = results(client)[call]
    assert not error, error
