"""Makes the calls of pyngrok that speak with an agent, in one configuration version, and prints the result of each.

`driver.py VERSION PROGRAM FOLDER`: PROGRAM is the agent, FOLDER empty. Each line of the output is the name of a call
and its error, empty for none.
"""

from __future__ import annotations

import asyncio
import json
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from pyngrok import agent, aio, conf, exception, ngrok, process

VERSION, PROGRAM, FOLDER = sys.argv[1], sys.argv[2], Path(sys.argv[3])
IS_OLDER = VERSION == "2"
FILE = FOLDER / "ngrok.yml"
POLICY = {"on_http_request": [{"actions": [{"type": "deny", "config": {"status_code": 403}}]}]}
CONFIG = conf.PyngrokConfig(ngrok_path=PROGRAM, config_path=str(FILE), config_version=VERSION)
CALLS: list[Callable[[], None]] = []


def calls(function: Callable[[], None]) -> Callable[[], None]:
    """Lists a call for both configuration versions."""
    CALLS.append(function)
    return function


def calls_older(function: Callable[[], None]) -> Callable[[], None]:
    """Lists a call for configuration version 2 only."""
    if IS_OLDER:
        CALLS.append(function)
    return function


def main() -> None:
    definitions: dict[str, Any] = (
        {"tunnels": {"web": {"proto": "http", "addr": 8080}, "ssh": {"proto": "tcp", "addr": 22}}}
        if IS_OLDER
        else {
            "endpoints": [
                {"name": "web", "upstream": {"url": 8080}},
                {"name": "ssh", "url": "tcp://", "upstream": {"url": "localhost:22"}},
            ]
        }
    )
    FILE.write_text(yaml.safe_dump({"version": VERSION, **definitions}), encoding="utf-8")
    conf.set_default(CONFIG)
    try:
        for function in CALLS:
            error = ""
            try:
                function()
            except BaseException:  # noqa: BLE001 - the test reports it
                error = traceback.format_exc()
            print(json.dumps([function.__name__, error]), flush=True)
    finally:
        ngrok.kill()


def plant_request(name: str) -> None:
    """Stores a captured request, as if a visitor had sent it."""
    lines = [log.line for log in ngrok.get_ngrok_process().logs if "sandbox started" in log.line]
    url = f"{lines[0].rpartition('url=')[2]}/_sandbox/agent/requests"
    ngrok.api_request(url, "POST", {"tunnel_name": name})


def names() -> set[str]:
    return {str(tunnel.name) for tunnel in ngrok.get_tunnels()}


def disconnect_all() -> None:
    for tunnel in ngrok.get_tunnels():
        ngrok.disconnect(str(tunnel.public_url))


@calls
def get_ngrok_process() -> None:
    assert ngrok.get_ngrok_process().healthy()
    assert process.is_process_running(PROGRAM)
    assert ngrok.get_tunnels() == []


@calls
def connect_without_arguments() -> None:
    tunnel = ngrok.connect()
    assert tunnel.public_url.startswith("https://"), tunnel.data
    assert tunnel.upstream["url"] == "http://localhost:80", tunnel.data


@calls
def connect_http() -> None:
    tunnel = ngrok.connect("8000", metadata="m", name="first")
    assert (tunnel.name, tunnel.proto, tunnel.id is None) == ("first", "https", not IS_OLDER), tunnel.data
    assert tunnel.upstream["url"] == "http://localhost:8000", tunnel.data


@calls
def connect_tcp() -> None:
    tunnel = ngrok.connect("22", "tcp")
    assert tunnel.public_url.startswith("tcp://"), tunnel.data
    assert tunnel.upstream["url"].endswith("localhost:22"), tunnel.data


@calls
def connect_tls() -> None:
    tunnel = ngrok.connect("443", "tls")
    assert tunnel.public_url.startswith("tls://"), tunnel.data


@calls
def connect_files() -> None:
    assert ngrok.connect("file:///").upstream["url"] == "file:///"


@calls
def connect_with_a_traffic_policy() -> None:
    ngrok.connect("8001", traffic_policy=POLICY, inspect=False)


@calls
def connect_by_name() -> None:
    assert ngrok.connect(name="web").name == "web-api"
    assert "web-api" in names()


@calls
def connect_with_the_name_of_another() -> None:
    with pytest.raises(exception.PyngrokNgrokHTTPError) as error:
        ngrok.connect("8000", name="first")
    assert error.value.status_code == 400


@calls
def get_tunnels() -> None:
    assert {"first", "web-api"} <= names()
    assert all(tunnel.public_url and tunnel.uri for tunnel in ngrok.get_tunnels())


@calls
def refresh_metrics() -> None:
    tunnel = next(tunnel for tunnel in ngrok.get_tunnels() if tunnel.name == "first")
    tunnel.refresh_metrics()
    assert tunnel.metrics["http"]["count"] == 0
    assert tunnel.metrics["conns"]["gauge"] == 0


@calls
def api_request() -> None:
    tunnel = next(tunnel for tunnel in ngrok.get_tunnels() if tunnel.name == "first")
    assert ngrok.api_request(f"{tunnel.api_url}{tunnel.uri}")["name"] == "first"


@calls
def get_agent_status() -> None:
    status = agent.get_agent_status()
    assert (status.status, status.uri) == ("online", "/api/status")
    assert status.agent_version
    assert status.session["legs"][0]["region"]


@calls
def get_requests() -> None:
    assert agent.get_requests() == []
    plant_request("first")
    [request] = agent.get_requests()
    assert (request.tunnel_name, request.request["method"]) == ("first", "GET")
    assert len(agent.get_requests("first")) == 1
    assert agent.get_requests("other") == []


@calls
def get_request() -> None:
    [request] = agent.get_requests()
    assert agent.get_request(str(request.id)).data == request.data


@calls
def replay_request() -> None:
    [request] = agent.get_requests()
    agent.replay_request(str(request.id))
    assert len(agent.get_requests("first")) == 2
    agent.replay_request(str(request.id), "web-api")
    assert len(agent.get_requests("web-api")) == 1


@calls
def delete_requests() -> None:
    agent.delete_requests()
    assert agent.get_requests() == []


@calls
def disconnect() -> None:
    [url] = [str(tunnel.public_url) for tunnel in ngrok.get_tunnels() if tunnel.name == "first"]
    ngrok.disconnect(url)
    assert "first" not in names()


@calls
def connect_all() -> None:
    disconnect_all()
    assert {tunnel.name for tunnel in ngrok.connect_all()} == {"web-api", "ssh-api"}
    disconnect_all()


@calls
def connect_asynchronously() -> None:
    async def connect() -> None:
        tunnel = await aio.connect("8000")
        assert [found.public_url for found in await aio.get_tunnels()] == [tunnel.public_url]
        await aio.disconnect(str(tunnel.public_url))
        assert await aio.get_tunnels() == []

    asyncio.run(connect())


@calls_older
def connect_http_only() -> None:
    assert ngrok.connect("8000", schemes=["http"]).public_url.startswith("http://")


@calls_older
def connect_both_schemes() -> None:
    tunnel = ngrok.connect("8000", name="both", schemes=["http", "https"])
    assert tunnel.public_url.startswith("https://"), tunnel.data
    assert tunnel.public_url.replace("https:", "http:") in {found.public_url for found in ngrok.get_tunnels()}


@calls_older
def connect_with_older_options() -> None:
    ngrok.connect("8000", bind_tls=True, auth="user:password1")


@calls_older
def connect_with_modules() -> None:
    ngrok.connect(
        "8000",
        compression=True,
        circuit_breaker=0.5,
        host_header="rewrite",
        ip_restriction={"allow_cidrs": ["192.0.2.0/24"]},
        request_header={"add": ["x-from: agent"]},
        oauth={"provider": "google", "allow_domains": ["example.com"]},
    )


@calls
def connect_with_an_invalid_option() -> None:
    with pytest.raises(exception.PyngrokNgrokHTTPError) as error:
        ngrok.connect("8000", colour="red")
    assert error.value.status_code == 400


@calls
def kill() -> None:
    ngrok.kill()
    assert not process.is_process_running(PROGRAM)


@calls
def start_with_a_wrong_token() -> None:
    wrong = conf.PyngrokConfig(
        ngrok_path=PROGRAM, config_path=str(FILE), config_version=VERSION, auth_token="2aBcDeFgHiJk_wrong"
    )
    with pytest.raises(exception.PyngrokNgrokError) as error:
        ngrok.get_ngrok_process(wrong)
    assert "authtoken" in str(error.value.ngrok_error)


@calls
def set_auth_token() -> None:
    ngrok.set_auth_token("2aBcDeFgHiJk_t0ken")
    ngrok.set_api_key("2aBcDeFgHiJk_k3y")
    read = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    assert (read if IS_OLDER else read["agent"])["authtoken"] == "2aBcDeFgHiJk_t0ken"
    with pytest.raises(exception.PyngrokNgrokError):  # no credential has the token
        ngrok.get_ngrok_process()


@calls
def get_version() -> None:
    ngrok.kill()
    assert ngrok.get_version()[0].startswith("3.")
    assert "No update available" in ngrok.update()


if __name__ == "__main__":
    main()
