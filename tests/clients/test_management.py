"""The public service's clients for TypeScript and Java, each with every call that it has, on the sandbox.

`make test-clients` installs them; without it these tests are deselected.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.clients.full_objects import JAVA_BODIES, JAVA_MODULES, FullAccount
from tests.clients.management import CLIENTS, Call, Client, Driver, load_calls
from tests.harness.platform import Sandbox
from tests.sandbox.table import ROWS, prepare

pytestmark = [pytest.mark.clients, pytest.mark.usefixtures("over_socket")]

CALLS = load_calls()
OPERATIONS = {(row.method, row.path): row for row in ROWS}
# Faults of the clients, with any platform. The TypeScript client parses the empty body of a 204, then the message of
# that error. It sends the id by itself in place of a JSON body, and changes the keys of maps like field names, here ids
# of backends. The Java client sends a duration with decimals.
EMPTY_BODY = "SyntaxError: Unexpected token"
REFUSED = {
    "typescript tunnelSessions.restart": "ERR_NGROK_213",
    "typescript tunnelSessions.stop": "ERR_NGROK_213",
    "typescript backends.weightedBackends.create": "ERR_NGROK_6526",
    "java edgeModules.httpsEdgeRouteCircuitBreaker.replace": "tripped_duration must be an integer",
}


@pytest.fixture(scope="module")
def drivers() -> Iterator[Callable[[Client], Driver]]:
    """The program of a client, started once."""
    started: dict[Client, Driver] = {}

    def driver(client: Client) -> Driver:
        if client not in started:
            started[client] = Driver(client)
        return started[client]

    yield driver
    for running in started.values():
        running.__exit__()


@pytest.mark.parametrize("client", CLIENTS)
def test_the_list_has_all_calls_of_a_client(client: Client, drivers: Callable[[Client], Driver]) -> None:
    found = drivers(client).ask({})["result"]
    listed = {call.name: f"{call.method} {call.path}" for call in CALLS if call.client == client}
    assert found == (listed if client == "typescript" else sorted(listed))


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_a_call_succeeds(sandbox: Sandbox, drivers: Callable[[Client], Driver], call: Call) -> None:
    row = OPERATIONS[call.method, call.path]
    path, body = prepare(FullAccount(sandbox), row)
    if call.client == "java":
        body = JAVA_BODIES.get(path, body) if row.method == "POST" else body
        body = {**body, **JAVA_MODULES.get(path.rpartition("/")[2], {})} if row.method == "PUT" else body
    segments = zip(call.path.split("/"), path.split("/"), strict=True)
    parameters = {name.strip("{}"): value for name, value in segments if name.startswith("{")}
    asked = {"base": sandbox.base_url, "call": call.name, "parameters": parameters, "body": body or {}}
    before = len(sandbox.log())
    answer = drivers(call.client).ask(asked)
    [request] = sandbox.log()[before:]
    assert (request["method"], request["path"].partition("?")[0]) == (call.method, path)
    if str(call) in REFUSED:
        assert (request["status"], REFUSED[str(call)] in answer["error"]) == (400, True)
        return
    assert request["status"] == row.status, answer
    if row.shape:
        assert "error" not in answer
        assert_same(answer["result"], sandbox, path, call)
    elif call.client == "typescript":
        assert answer["error"].startswith(EMPTY_BODY)
    else:
        assert answer == {"result": None}


def assert_same(result: Any, sandbox: Sandbox, path: str, call: Call) -> None:
    """Checks that a client read what the platform has: an object, a module, or the objects of a page."""
    rename = camel if call.client == "typescript" else (lambda value: value)
    if isinstance(result, list):
        (page,) = (value for value in sandbox.get(path).values() if isinstance(value, list))
        expected: Any = page
    else:
        expected = sandbox.get(path) if call.method != "POST" else sandbox.get(object_path(result, sandbox))
    expected = rename(expected)
    assert difference(result, expected) == []


def object_path(result: dict[str, Any], sandbox: Sandbox) -> str:
    return str(result["uri"]).removeprefix(sandbox.base_url)


def camel(value: Any) -> Any:
    """A value as the TypeScript client returns it."""
    if isinstance(value, list):
        return [camel(item) for item in value]
    if isinstance(value, dict):
        keys = {name: re.sub(r"[-_](\w)", lambda found: found[1].upper(), name) for name in value}
        return {keys[name]: camel(inner) for name, inner in value.items()}
    return value


def difference(found: Any, expected: Any, where: str = "") -> list[str]:
    """Where a client's value differs from the platform's. Clients leave unset values out, and fields that they do not
    know; one-time secrets are in one answer only."""
    if isinstance(found, dict) and isinstance(expected, dict):
        both = found.keys() & expected.keys()
        return [line for name in sorted(both) for line in difference(found[name], expected[name], f"{where}.{name}")]
    if isinstance(found, list) and isinstance(expected, list) and len(found) == len(expected):
        pairs = enumerate(zip(found, expected, strict=True))
        return [line for index, pair in pairs for line in difference(*pair, f"{where}[{index}]")]
    same = found == expected or (not found and not expected) or expected is None
    return [] if same else [f"{where}: {found!r} is not {expected!r}"]
