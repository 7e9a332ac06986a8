"""The table of rules: what the sandbox refuses, a request that breaks the rule, the status and the public code.

Written from the platform's documentation. `code` is empty where none is known for the rule. `test_rules` sends every
request, and proves that no rule of the sandbox is missing here.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx

from tests.harness.platform import HEADERS, KEY
from tests.kinds import pems
from tests.sandbox.account import ATTACHED, BODIES, MODULES, POLICY, Account, template

NOBODY = "1aBcDeFgHiJkLmNoPqRsTuVwXyZ"  # a KSUID that no object has
BEARER = {"Authorization": f"Bearer {KEY}"}
JSON = {"Content-Type": "application/json"}
ROUTE = "/edges/https/{edge_id}/routes/{id}"


def _bomb(line: str) -> str:
    """Twenty lines of YAML, each with four times as much in it as the line before."""
    lines = (f"a{number}: &a{number} {line.format(f'a{number - 1}')}" for number in range(1, 21))
    return "\n".join(["a0: &a0 {x: 1, y: 2}", *lines])


# Texts that are no policy: each makes a YAML reader fail in another way, or would take it too long.
BAD_POLICIES = (
    "on_http_request: !!bool maybe",
    'on_http_request: !!int ""',
    "on_http_request: !!timestamp soon",
    "on_http_request: {actions: [{type: deny}]}",
    "[" * 100_000,
    "{a: " * 20_000,
    "- " * 30_000,
    "#" * 300_000,
    _bomb("[*{0}, *{0}, *{0}, *{0}]"),
    _bomb("{{<<: [*{0}, *{0}, *{0}, *{0}]}}"),
)

NO_FAULTS: tuple[dict[str, Any], ...] = (
    {"on": "GET"},
    {"then": "nothing"},
    {"status": 999},
    {"status": 100},
    {"headers": {"X": 5}},
    {"headers": {"X": "☃"}},
    {"headers": {"X": "a\r\nY: b"}},
    {"headers": {"X Y": "a"}},
    {"headers": None},
    {"chance": "x"},
    {"nth": "x"},
    {"times": -1},
    {"pace": "x"},
    {"delay": -1},
    {"seen": 3},
)
NO_BUDGETS: tuple[Any, ...] = (
    [1],
    {"limit": 0},
    {"limit": True},
    {"window": 0},
    {"creates": {"/api_keys": "x"}},
    {"a": 1},
)

Request = Callable[[Account], httpx.Response]


@dataclass(frozen=True)
class Row:
    rule: str
    status: int
    code: str
    request: Request


# --- requests ---------------------------------------------------------------------------------------------------------


def create(collection: str, change: Callable[[Account], dict[str, Any]] | None = None, **more: Any) -> Request:
    """POST of a valid body with a change in it."""

    def send(account: Account) -> httpx.Response:
        body = BODIES[collection](account) | (change(account) if change else {}) | more
        return account.sandbox.request("POST", collection, body)

    return send


def twice(collection: str, same: str, **more: Any) -> Request:
    """POST of a second object with the same unique value."""

    def send(account: Account) -> httpx.Response:
        made = account.make(collection)
        body = BODIES[template(collection)](account) | {same: made[same]} | more
        return account.sandbox.request("POST", collection, body)

    return send


def update(place: str, **change: Any) -> Request:
    return lambda account: account.sandbox.request("PATCH", account.place(place), change)


def put(place: str, module: str, **change: Any) -> Request:
    def send(account: Account) -> httpx.Response:
        path = account.place(place)
        return account.sandbox.request("PUT", f"{path}/{module}", MODULES[module](account) | change)

    return send


def delete_used(user: str, field: str, used: str) -> Request:
    """DELETE of an object that an object of the first collection references."""

    def send(account: Account) -> httpx.Response:
        value = account.make(user)[field]
        value = next(iter(value)) if isinstance(value, (list, dict)) and "id" not in value else value
        return account.sandbox.request("DELETE", f"{used}/{value['id'] if isinstance(value, dict) else value}")

    return send


def delete_in_module(place: str, module: str, field: str, used: str) -> Request:
    def send(account: Account) -> httpx.Response:
        found = account.sandbox.get(account.place(f"{place}/{module}"))[field]
        return account.sandbox.request("DELETE", f"{used}/{(found[0] if isinstance(found, list) else found)['id']}")

    return send


def _as_bot(method: str, place: str, body: Callable[[Account], dict[str, Any]] | None = None) -> Request:
    """A request with the API key of a bot."""

    def send(account: Account) -> httpx.Response:
        key = account.make("/api_keys", owner_id=account.id("/bot_users"))["token"]
        given = body(account) if body else None
        headers = {**HEADERS, "Authorization": f"Bearer {key}"}
        return account.sandbox.request(method, account.place(place), given, headers=headers)

    return send


def _inactive_key(account: Account) -> httpx.Response:
    bot = account.id("/bot_users")
    key = account.make("/api_keys", owner_id=bot)["token"]
    account.sandbox.patch(f"/bot_users/{bot}", {"active": False})
    return account.sandbox.request("GET", "/bot_users", headers={**HEADERS, "Authorization": f"Bearer {key}"})


def _foreign(path: str, **headers: str) -> Request:
    return lambda account: account.sandbox.request("GET", path, headers=headers)


def get(path: str) -> Request:
    return lambda account: account.sandbox.request("GET", path)


def bare(headers: dict[str, str]) -> Request:
    """A request with these headers only."""
    return lambda account: account.sandbox.request("GET", "/bot_users", headers=headers)


def post(content: bytes, headers: dict[str, str]) -> Request:
    return lambda account: account.sandbox.request(
        "POST", "/bot_users", content=content, headers={**HEADERS, **headers}
    )


def in_turn(*steps: Callable[[Account], Any]) -> Request:
    """The steps in order. Returns the response of the last."""

    def send(account: Account) -> httpx.Response:
        *before, last = steps
        for step in before:
            step(account)
        answer = last(account)
        assert isinstance(answer, httpx.Response)
        return answer

    return send


# --- requests in several steps ----------------------------------------------------------------------------------------


def _obtain_certificate(account: Account) -> str:
    """Has the platform obtain a certificate for a domain. Returns its address."""
    domain = account.make("/reserved_domains", certificate_management_policy={})["uri"]
    account.sandbox.get(domain)
    return str(account.sandbox.get(domain)["certificate"]["uri"])


def _detach_certificate(account: Account) -> httpx.Response:
    _obtain_certificate(account)
    [domain] = account.sandbox.get("/reserved_domains")["reserved_domains"]
    return account.sandbox.request("DELETE", f"{domain['uri']}/certificate")


def _clear_certificate(account: Account) -> httpx.Response:
    _obtain_certificate(account)
    [domain] = account.sandbox.get("/reserved_domains")["reserved_domains"]
    return account.sandbox.request("PATCH", domain["uri"], {"certificate_id": ""})


def _use_managed_certificate(account: Account) -> httpx.Response:
    certificate = _obtain_certificate(account).rpartition("/")[2]
    return create("/reserved_domains", certificate_id=certificate)(account)


def _both_certificates(account: Account) -> httpx.Response:
    both = {**ATTACHED["certificate"](account), **ATTACHED["certificate_management_policy"](account)}
    return account.sandbox.request("PATCH", account.place("/reserved_domains/{id}"), both)


def _on_planted(collection: str, method: str, below: str = "", **fields: Any) -> Request:
    prefixes = {"/endpoints": "ep_", "/reserved_domains": "rd_", "/bot_users": "bot_", "/edges/tcp": "edgtcp_"}
    identity = prefixes[collection] + NOBODY

    def send(account: Account) -> httpx.Response:
        account.sandbox.plant(collection, {"id": identity, **fields})
        body: dict[str, Any] | None = None if method == "DELETE" else {}
        return account.sandbox.request(method, f"{collection}/{identity}{below}", body)

    return send


def _plant(planted: dict[str, Any]) -> Request:
    return _control("POST", "objects", {"collection": "bot_users", "object": planted})


def _control(method: str, what: str, body: Any) -> Request:
    return lambda account: account.sandbox.request(method, f"/_sandbox/{what}", body)


def _join_pool(first: bool, second: bool) -> Request:
    def send(account: Account) -> httpx.Response:
        made = account.make("/endpoints", pooling_enabled=first)
        body = {"url": made["url"], "traffic_policy": POLICY, "pooling_enabled": second}
        return account.sandbox.request("POST", "/endpoints", body)

    return send


def _edge_on_endpoint(collection: str, **more: Any) -> Request:
    """An edge with the address of a cloud endpoint."""

    def send(account: Account) -> httpx.Response:
        url = account.make("/endpoints", **more)["url"]
        return account.sandbox.request("POST", collection, {"hostports": [f"{url.partition('://')[2]}:443"]})

    return send


def _endpoint_on_edge(collection: str, url: str) -> Request:
    def send(account: Account) -> httpx.Response:
        host, _, port = account.make(collection)["hostports"][0].rpartition(":")
        body = {"url": url.format(host=host, port=port), "traffic_policy": POLICY}
        return account.sandbox.request("POST", "/endpoints", body)

    return send


def _last_rule(account: Account) -> httpx.Response:
    rule = account.make("/ip_policy_rules")
    account.make("/ip_restrictions", type="dashboard", ip_policy_ids=[rule["ip_policy"]["id"]])
    return account.sandbox.request("DELETE", rule["uri"])


def _cycle(account: Account) -> httpx.Response:
    inner = account.id("/backends/failover")
    outer = account.id("/backends/failover", backends=[inner])
    return account.sandbox.request("PATCH", f"/backends/failover/{inner}", {"backends": [outer]})


def _cycle_of_weighted(account: Account) -> httpx.Response:
    inner = account.make("/backends/weighted")
    outer = account.make("/backends/failover", backends=[inner["id"]])
    return account.sandbox.request("PATCH", f"/backends/weighted/{inner['id']}", {"backends": {outer["id"]: 1}})


def _same_route(account: Account) -> httpx.Response:
    path = account.place("/edges/https/{id}") + "/routes"
    account.sandbox.post(path, {"match_type": "path_prefix", "match": "/"})
    return account.sandbox.request("POST", path, {"match_type": "path_prefix", "match": "/"})


def _foreign_route(account: Account) -> httpx.Response:
    """A route requested at another edge than its own."""
    route = account.place(ROUTE).rpartition("/")[2]
    return account.sandbox.request("GET", f"/edges/https/{account.id('/edges/https')}/routes/{route}")


def _same_rule(account: Account) -> httpx.Response:
    rule = {"ip_policy_id": account.id("/ip_policies"), "cidr": "2001:db8::/32"}
    account.sandbox.post("/ip_policy_rules", {**rule, "action": "allow"})
    return account.sandbox.request("POST", "/ip_policy_rules", {**rule, "cidr": "2001:DB8::/32", "action": "deny"})


def _same_source(account: Account) -> httpx.Response:
    path = account.place("/event_subscriptions/{id}/sources/{type}").rpartition("/")[0]
    return account.sandbox.request("POST", path, {"type": "ip_policy_created.v0"})


def _unknown_source(account: Account) -> httpx.Response:
    path = account.place("/event_subscriptions/{id}/sources/{type}").rpartition("/")[0]
    return account.sandbox.request("POST", path, {"type": "weather_changed.v0"})


def _address_on(collection: str) -> Request:
    return create(collection, lambda a: {"hostports": [a.make("/reserved_addrs")["addr"]]})


def _budget(**limits: Any) -> Callable[[Account], Any]:
    return lambda account: account.sandbox.request("PUT", "/_sandbox/budget", limits)


def _within_budget(*requests: Request, **limits: Any) -> Request:
    """The last of these requests while the budget has these limits, which are lifted afterwards."""

    def send(account: Account) -> httpx.Response:
        _budget(**limits)(account)
        try:
            return in_turn(*requests)(account)
        finally:
            _budget()(account)

    return send


def _metadata_encoded_as(name: str) -> str:
    """Metadata in an encoding of this name."""
    return f'<?xml version="1.0" encoding="{name}"?><EntityDescriptor/>'


def _basic(text: bytes) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(text).decode(), "Service-Version": "2"}


# --- the table --------------------------------------------------------------------------------------------------------

ROWS = [
    # The request itself.
    Row("NO_KEY", 401, "200", bare({"Service-Version": "2"})),
    Row("BAD_AUTHORIZATION", 401, "201", bare({"Authorization": "Digest x", "Service-Version": "2"})),
    Row("BAD_AUTHORIZATION", 401, "201", bare({"Authorization": "Basic =", "Service-Version": "2"})),
    Row("WRONG_KEY", 403, "203", bare({"Authorization": "Bearer wrong", "Service-Version": "2"})),
    Row("WRONG_KEY", 403, "203", bare(_basic(b"key:wrong"))),
    Row("NO_VERSION", 400, "218", bare(BEARER)),
    Row("BAD_VERSION", 400, "217", bare({**BEARER, "Service-Version": "1"})),
    Row("BAD_VERSION", 400, "217", bare({**BEARER, "Ngrok-Version": "two"})),
    Row("BAD_VERSION", 400, "217", bare({**BEARER, "Service-Version": "2", "Ngrok-Version": "3"})),
    Row("NO_SUCH_PATH", 404, "", get("/weather")),
    Row("NO_SUCH_PATH", 404, "", get("/edges")),
    Row("NOT_FOUND", 404, "", get(f"/bot_users/bot_{NOBODY}")),
    Row("NOT_FOUND", 404, "", lambda a: a.sandbox.request("GET", a.place("/edges/tls/{id}") + "/backend")),
    Row("NO_SUBSCRIPTION", 404, "5123", get(f"/event_subscriptions/esb_{NOBODY}/sources")),
    Row("MALFORMED_PATH_ID", 404, "222", get("/bot_users/nobody")),
    Row("MALFORMED_PATH_ID", 404, "222", get("/bot_users/bot_short")),
    Row("WRONG_PATH_ID", 404, "227", get(f"/bot_users/ipp_{NOBODY}")),
    Row("METHOD_NOT_ALLOWED", 405, "", lambda a: a.sandbox.request("PUT", "/bot_users", {})),
    Row("UNSUPPORTED_TYPE", 400, "210", post(b'{"name": "a"}', {"Content-Type": "text/plain"})),
    Row("KEY_OF_INACTIVE", 403, "", _inactive_key),
    Row("FOREIGN_HOST", 403, "", _foreign("/_sandbox/requests", Host="attacker.example.com")),
    Row("FOREIGN_HOST", 403, "", _foreign("/_sandbox/requests", Host="127.0.0.1.attacker.example.com:80")),
    Row("FOREIGN_HOST", 403, "", _foreign("/_sandbox/requests", Origin="https://attacker.example.com")),
    Row("FOREIGN_HOST", 403, "", _foreign("/_sandbox/requests", Origin="null")),
    Row("NO_TYPE", 400, "216", lambda a: a.sandbox.request("POST", "/_sandbox/faults", content=b"[]", headers={})),
    Row(
        "UNSUPPORTED_TYPE",
        400,
        "210",
        lambda a: a.sandbox.request(
            "POST", "/_sandbox/faults", content=b"a=b", headers={"Content-Type": "application/x-www-form-urlencoded"}
        ),
    ),
    Row("UNEXPECTED_BODY", 400, "211", lambda a: a.sandbox.request("GET", "/bot_users", {"name": "a"})),
    Row("UNEXPECTED_BODY", 400, "211", lambda a: a.sandbox.request("DELETE", a.place("/bot_users/{id}"), {"a": 1})),
    Row("TRUNCATED_BODY", 400, "212", post(b'{"name": "a"', JSON)),
    Row("TRUNCATED_BODY", 400, "212", post(b'{"name": "a', JSON)),
    Row("TRUNCATED_BODY", 400, "212", post(b"", JSON)),
    Row("UNPARSABLE_BODY", 400, "213", post(b"name=a", JSON)),
    Row("UNPARSABLE_BODY", 400, "213", post(b'["a"]', JSON)),
    Row("UNPARSABLE_BODY", 400, "213", post(b'{"name": NaN}', JSON)),
    Row("UNPARSABLE_BODY", 400, "213", post(b'{"name": "\\ud800"}', JSON)),
    Row("UNPARSABLE_BODY", 400, "213", post(b'{"name": "\xff"}', JSON)),
    Row("UNPARSABLE_BODY", 400, "213", post(b"[" * 100_000, JSON)),
    Row("TOO_LARGE", 413, "", post(b" " * (4 * 2**20) + b"{}", JSON)),
    Row("UNKNOWN_FIELD", 400, "214", post(b'{"name": "a", "colour": "red"}', JSON)),
    Row("UNKNOWN_FIELD", 400, "214", put(ROUTE, "backend", weight=3)),
    Row("UNKNOWN_FIELD", 400, "214", update("/bot_users/{id}", colour="red")),
    Row("UNKNOWN_FIELD", 400, "214", create("/endpoints", proto="https")),
    Row("OTHER_PARAMETER", 400, "214", update("/bot_users/{id}", id=f"bot_{NOBODY}")),
    Row("WRONG_TYPE", 400, "215", post(b'{"name": 1}', JSON)),
    Row("WRONG_TYPE", 400, "215", post(b'{"name": "a", "active": 1}', JSON)),
    Row("WRONG_TYPE", 400, "215", put(ROUTE, "saml", inactivity_timeout=-1)),
    Row("WRONG_TYPE", 400, "215", put(ROUTE, "saml", maximum_duration=2**32)),
    Row("NO_TYPE", 400, "216", post(b'{"name": "a"}', {})),
    Row("MALFORMED_ID", 400, "223", get("/bot_users?before_id=nobody")),
    Row("MALFORMED_ID", 400, "223", get("/endpoints?id=nobody")),
    Row("MALFORMED_ID", 400, "223", create("/reserved_domains", certificate_id="mine")),
    Row("MALFORMED_ID", 400, "223", create("/event_subscriptions", destination_ids=["mine"])),
    Row("MALFORMED_ID", 400, "223", create("/event_subscriptions", destination_ids=[""])),
    Row("WRONG_ID", 400, "227", get(f"/bot_users?before_id=ipp_{NOBODY}")),
    Row("WRONG_ID", 400, "227", create("/event_subscriptions", destination_ids=[f"ipp_{NOBODY}"])),
    Row("SEVERAL_WRONG_ID", 400, "243", create("/credentials", owner_id=f"ipp_{NOBODY}")),
    Row("UNPARSABLE_QUERY", 400, "230", get("/bot_users?limit=%ff")),
    Row("UNKNOWN_PARAMETER", 400, "231", get("/bot_users?page=2")),
    Row("UNKNOWN_PARAMETER", 400, "231", get("/edges/tls?filter=true")),
    Row("UNKNOWN_PARAMETER", 400, "231", get("/backends/failover?filter=true")),
    Row("UNKNOWN_PARAMETER", 400, "231", get("/reserved_domains?url=https://a.example.com")),
    Row("UNKNOWN_PARAMETER", 400, "231", lambda a: a.sandbox.request("GET", a.place("/bot_users/{id}") + "?limit=1")),
    Row("REPEATED_PARAMETER", 400, "232", get("/bot_users?limit=1&limit=1")),
    Row("REPEATED_PARAMETER", 400, "232", get("/endpoints?filter=true&filter=true")),
    Row("BAD_LIMIT", 400, "233", get("/bot_users?limit=0")),
    Row("BAD_LIMIT", 400, "233", get("/bot_users?limit=101")),
    Row("BAD_LIMIT", 400, "233", get("/bot_users?limit=-1")),
    Row("BAD_LIMIT", 400, "233", get(f"/bot_users?limit={'9' * 5000}")),
    Row("LIMIT_NO_NUMBER", 400, "244", get("/bot_users?limit=ten")),
    Row("LIMIT_NO_NUMBER", 400, "244", get("/bot_users?limit=")),
    Row("FILTER", 400, "250", get("/endpoints?filter=")),
    Row("FILTER", 400, "250", get("/endpoints?filter=obj.url %3D%3D")),
    Row("FILTER", 400, "250", get("/endpoints?filter=obj.colour == 'red'")),
    Row("FILTER", 400, "250", get("/endpoints?filter=size(obj.url)")),
    Row("FILTER", 400, "250", get("/reserved_domains?filter=obj.domain.startsWith('a')")),
    Row("FILTER", 400, "250", in_turn(lambda a: a.make("/ip_policies"), get("/ip_policies?filter=obj.metadata"))),
    Row("OVER_BUDGET", 429, "226", _within_budget(get("/bot_users"), get("/bot_users"), limit=1)),
    Row(
        "CREATES_OVER_BUDGET", 429, "432", _within_budget(create("/reserved_domains"), creates={"/reserved_domains": 0})
    ),
    Row("CREATES_OVER_BUDGET", 429, "509", _within_budget(create("/reserved_addrs"), creates={"/reserved_addrs": 0})),
    Row("CREATES_OVER_BUDGET", 429, "614", _within_budget(create("/api_keys"), creates={"/api_keys": 0})),
    Row("CREATES_OVER_BUDGET", 429, "7071", _within_budget(create("/edges/tls"), creates={"/edges/tls": 0})),
    # Rules that many kinds share.
    Row("REQUIRED", 400, "", create("/ip_policy_rules", action="")),
    Row("REQUIRED", 400, "", create("/edges/tls", backend={})),
    Row("ROUTE_MATCH_TYPE", 400, "7130", lambda a: _create_route(a, match_type="regex")),
    Row("ROUTE_MATCH_TYPE", 400, "7130", lambda a: _create_route(a, match_type="")),
    Row("ROUTE_MATCH_MISSING", 400, "7123", lambda a: _create_route(a, match="")),
    Row("TOO_LONG", 400, "100", create("/ip_policies", description="é" * 128)),
    Row("TOO_LONG", 400, "100", create("/ip_policies", metadata="é" * 2049)),
    Row("TOO_LONG", 400, "420", create("/reserved_domains", description="a" * 256)),
    Row("TOO_LONG", 400, "421", create("/reserved_domains", metadata="a" * 4097)),
    Row("TOO_LONG", 400, "504", create("/reserved_addrs", description="a" * 256)),
    Row("TOO_LONG", 400, "505", create("/reserved_addrs", metadata="a" * 4097)),
    Row("TOO_LONG", 400, "604", create("/credentials", description="a" * 256)),
    Row("TOO_LONG", 400, "605", create("/ssh_credentials", metadata="a" * 4097)),
    Row("TOO_LONG", 400, "1914", create("/tls_certificates", description="a" * 256)),
    Row("TOO_LONG", 400, "1915", create("/tls_certificates", metadata="a" * 4097)),
    Row("TOO_LONG", 400, "1916", create("/certificate_authorities", description="a" * 256)),
    Row("TOO_LONG", 400, "1917", create("/certificate_authorities", metadata="a" * 4097)),
    Row("TOO_LONG", 400, "1937", create("/ssh_certificate_authorities", description="a" * 256)),
    Row("TOO_LONG", 400, "1938", create("/ssh_certificate_authorities", metadata="a" * 4097)),
    Row("TOO_LONG", 400, "1945", create("/ssh_host_certificates", description="a" * 256)),
    Row("TOO_LONG", 400, "1946", create("/ssh_host_certificates", metadata="a" * 4097)),
    Row("TOO_LONG", 400, "1947", create("/ssh_user_certificates", description="a" * 256)),
    Row("TOO_LONG", 400, "1948", create("/ssh_user_certificates", metadata="a" * 4097)),
    Row("TOO_LONG", 400, "604", create("/api_keys", description="a" * 256)),
    Row("TOO_LONG", 400, "1421", create("/ip_policy_rules", description="a" * 256)),
    Row("TOO_LONG", 400, "18012", create("/endpoints", description="a" * 256)),
    Row("TOO_LONG", 400, "18013", create("/endpoints", metadata="a" * 4097)),
    Row("NOT_BY_PATCH", 400, "", update("/edges/tls/{id}", backend=None)),
    Row("NOT_BY_PATCH", 400, "", update("/reserved_domains/{id}", certificate_id=None)),
    Row("NO_SUCH_OBJECT", 400, "", create("/credentials", owner_id=f"bot_{NOBODY}")),
    Row("IN_USE", 400, "", lambda a: a.sandbox.request("DELETE", _certificate_in_use(a))),
    Row("RAW_READ_ONLY", 400, "", _on_planted("/bot_users", "PATCH")),
    Row("RAW_READ_ONLY", 400, "", _on_planted("/edges/tcp", "PUT", "/backend")),
    # What only the sandbox has.
    Row("RAW_DUPLICATE", 400, "", in_turn(*[_plant({"id": f"bot_{NOBODY}"})] * 2)),
    Row("WRONG_TYPE", 400, "215", _plant({"id": 5})),
    *(Row("CONTROL", 400, "", _control("POST", "faults", {"on": "* *"} | fault)) for fault in NO_FAULTS),
    Row("CONTROL", 400, "", _control("POST", "faults", [{"on": "* *"}, 5])),
    *(Row("CONTROL", 400, "", _control("PUT", "budget", budget)) for budget in NO_BUDGETS),
    Row("CONTROL", 400, "", _control("POST", "objects", {"collection": 5, "object": {}})),
    Row("CONTROL", 400, "", _control("POST", "objects", {"collection": "bot_users", "object": []})),
    # Endpoints.
    Row("ENDPOINT_REQUIRED", 400, "18015", create("/endpoints", traffic_policy="")),
    Row("ENDPOINT_REQUIRED", 400, "18015", create("/endpoints", url="")),
    Row("ENDPOINT_TYPE", 400, "248", create("/endpoints", type="edge")),
    Row("ENDPOINT_PORT", 400, "18003", create("/endpoints", url="tcp://nobody.example.com")),
    Row("ENDPOINT_URL", 400, "249", create("/endpoints", url="ftp://nobody.example.com")),
    Row("ENDPOINT_URL", 400, "249", create("/endpoints", url="https://a b")),
    Row("ENDPOINT_URL", 400, "249", create("/endpoints", url="nobody.example.com")),
    *(
        Row("ENDPOINT_URL", 400, "249", create("/endpoints", url=f"https://nobody.example.com{more}"))
        for more in ("/path", "?", "#", "#part", "?a=b", ":", ":0", ":99999")
    ),
    Row("TRAILING_SLASH", 400, "9038", create("/endpoints", url="https://nobody.example.com/")),
    Row("ENDPOINT_POLICY", 400, "18002", create("/endpoints", traffic_policy="on_http_request: 1")),
    *(Row("ENDPOINT_POLICY", 400, "18002", create("/endpoints", traffic_policy=text)) for text in BAD_POLICIES),
    Row("ENDPOINT_UNCHANGED", 400, "18004", update("/endpoints/{id}")),
    Row("ENDPOINT_SCHEME", 400, "18005", update("/endpoints/{id}", url="http://d1.example.com")),
    Row("ENDPOINT_UNRESERVED", 400, "18006", create("/endpoints", url="https://nobody.example.com")),
    Row("ENDPOINT_UNRESERVED", 400, "18006", create("/endpoints", url="tcp://1.tcp.sandbox.test:9")),
    Row("ENDPOINT_DUPLICATE", 400, "18009", twice("/endpoints", "url")),
    Row("ENDPOINT_DUPLICATE", 400, "18009", _endpoint_on_edge("/edges/https", "https://{host}")),
    Row("ENDPOINT_DUPLICATE", 400, "18009", _endpoint_on_edge("/edges/tls", "http://{host}:443")),
    Row("ENDPOINT_DUPLICATE", 400, "18009", _endpoint_on_edge("/edges/tcp", "tcp://{host}:{port}")),
    Row("POOLING_BESIDE_ONE", 400, "18016", _join_pool(False, True)),
    Row("NO_POOLING_BESIDE_POOL", 400, "18017", _join_pool(True, False)),
    Row("ENDPOINT_READ_ONLY", 400, "", _on_planted("/endpoints", "DELETE", type="ephemeral")),
    Row("ENDPOINT_READ_ONLY", 400, "", _on_planted("/endpoints", "PATCH", type="edge")),
    Row("BINDING_UNKNOWN", 400, "15005", create("/endpoints", bindings=["private"])),
    Row("BINDING_REPEATED", 400, "15006", create("/endpoints", bindings=["public", "public"])),
    Row("BINDING_INTERNAL", 400, "9029", create("/endpoints", bindings=["internal"])),
    Row("BINDING_INTERNAL", 400, "9029", create("/endpoints", url="https://api.internal", bindings=["public"])),
    Row("BINDING_KUBERNETES", 400, "18018", create("/endpoints", bindings=["kubernetes"])),
    Row("UNKNOWN_FIELD", 400, "214", update("/endpoints/{id}", type="cloud")),
    # Edges and their modules.
    Row("HOSTPORT_MALFORMED", 400, "7104", create("/edges/tls", hostports=["nobody.example.com"])),
    Row("HOSTPORT_PORT", 400, "7116", create("/edges/tls", hostports=["nobody.example.com:8443"])),
    Row("HOSTPORT_PORT", 400, "7116", create("/edges/https", hostports=["nobody.example.com:80"])),
    Row("HOSTPORT_DOMAIN", 400, "7117", create("/edges/tls", hostports=["nobody.example.com:443"])),
    Row("HOSTPORT_DOMAIN", 400, "7117", create("/edges/https", hostports=["nobody.example.com:443"])),
    Row("HOSTPORT_ADDRESS", 400, "7113", create("/edges/tcp", hostports=["1.tcp.sandbox.test:1"])),
    Row("HOSTPORT_OF_DOMAIN", 400, "7120", create("/edges/tcp", lambda a: {"hostports": [f"{a.domain()}:443"]})),
    Row("HTTPS_HOSTPORT_OF_ADDRESS", 400, "7121", _address_on("/edges/https")),
    Row("TLS_HOSTPORT_OF_ADDRESS", 400, "7133", _address_on("/edges/tls")),
    Row("HOSTPORT_TAKEN", 400, "7122", twice("/edges/tls", "hostports")),
    Row("HOSTPORT_TAKEN", 400, "7122", twice("/edges/tcp", "hostports")),
    Row("HOSTPORT_TAKEN", 400, "7122", _edge_on_endpoint("/edges/https", pooling_enabled=False)),
    Row("HOSTPORT_TAKEN", 400, "7122", _edge_on_endpoint("/edges/https", pooling_enabled=True)),
    Row("MODULE_WITHOUT_POLICIES", 400, "7025", put("/edges/tls/{id}", "ip_restriction", ip_policy_ids=[])),
    Row("TERMINATE_AT", 400, "224", create("/edges/tls", tls_termination={"terminate_at": "nowhere"})),
    Row("NO_TERMINATE_AT", 400, "7109", create("/edges/https", tls_termination={"terminate_at": "edge"})),
    Row("NO_TERMINATE_AT", 400, "7109", put("/edges/https/{id}", "tls_termination", terminate_at="edge")),
    Row("MIN_VERSION_UPSTREAM", 400, "7032", put("/edges/tls/{id}", "tls_termination", terminate_at="upstream")),
    Row("MIN_VERSION", 400, "219", put("/edges/tls/{id}", "tls_termination", min_version="0.9")),
    Row("MUTUAL_TLS_UPSTREAM", 400, "1694", lambda a: _upstream_beside(a, "mutual_tls")),
    Row("MODULES_UPSTREAM", 400, "7062", lambda a: _upstream_beside(a, "traffic_policy")),
    Row("NO_BACKEND", 400, "", create("/edges/tls", backend={"backend_id": f"bkdtg_{NOBODY}"})),
    Row("BACKEND_ID", 400, "242", create("/edges/tls", backend={"backend_id": "nothing"})),
    Row("BACKEND_ID", 400, "242", create("/edges/tls", backend={"backend_id": f"ipp_{NOBODY}"})),
    Row("NO_POLICY_OF_MODULE", 400, "7007", put(ROUTE, "ip_restriction", ip_policy_ids=[f"ipp_{NOBODY}"])),
    Row("POLICY_ID", 400, "229", put(ROUTE, "ip_restriction", ip_policy_ids=[f"ca_{NOBODY}"])),
    Row("POLICY_ID", 400, "229", create("/ip_restrictions", ip_policy_ids=["mine"])),
    Row("POLICY_ID", 400, "229", create("/ip_restrictions", ip_policy_ids=[""])),
    Row("POLICY_ID", 400, "229", create("/edges/tcp", ip_restriction={"ip_policy_ids": [""]})),
    Row("NO_AUTHORITY", 400, "1672", put("/edges/tls/{id}", "mutual_tls", certificate_authority_ids=[f"ca_{NOBODY}"])),
    Row("AUTHORITY_ID", 400, "228", put("/edges/https/{id}", "mutual_tls", certificate_authority_ids=["mine"])),
    Row("AUTHORITY_ID", 400, "228", create("/edges/tls", mutual_tls={"certificate_authority_ids": [""]})),
    Row(
        "AUTHORITY_IN_USE",
        400,
        "",
        delete_in_module("/edges/tls/{id}", "mutual_tls", "certificate_authorities", "/certificate_authorities"),
    ),
    Row("MODULE_POLICY", 400, "2200", create("/edges/tls", traffic_policy={"value": "[]"})),
    *(Row("MODULE_POLICY", 400, "2200", create("/edges/tls", traffic_policy={"value": text})) for text in BAD_POLICIES),
    Row("ROUTE_ELSEWHERE", 404, "7110", _foreign_route),
    Row("ROUTE_DUPLICATE", 400, "7126", _same_route),
    Row("ROUTE_MATCH", 400, "7131", lambda a: _create_route(a, match="pay")),
    Row("SAML_METADATA_MISSING", 400, "7091", put(ROUTE, "saml", idp_metadata="")),
    Row("SAML_METADATA", 400, "7083", put(ROUTE, "saml", idp_metadata="<html/>")),
    *(
        Row("SAML_METADATA", 400, "7083", put(ROUTE, "saml", idp_metadata=_metadata_encoded_as(name)))
        for name in ("foo", "base64")
    ),
    Row("SAML_METADATA", 400, "7083", put(ROUTE, "saml", idp_metadata='<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>')),
    Row("NAMEID_FORMAT", 400, "1693", put(ROUTE, "saml", nameid_format="initials")),
    Row("WEBHOOK_PROVIDER", 400, "7030", put(ROUTE, "webhook_verification", provider="nobody")),
    Row("WEBHOOK_SECRET", 400, "7027", put(ROUTE, "webhook_verification", secret="")),
    Row("WEBHOOK_NO_SECRET", 400, "7026", put(ROUTE, "webhook_verification", provider="sns")),
    # Credentials, keys, bots.
    Row("ACL_RULE", 400, "600", create("/credentials", acl=["listen:a.example.com"])),
    Row("ACL_RULE", 400, "600", create("/credentials", acl=["bind:a.*.example.com"])),
    *(
        Row("ACL_RULE", 400, "600", create("/ssh_credentials", acl=[f"bind:{what}"]))
        for what in ("", ".", "a.example.com:99999", "a.example.com:0", "a.example.com:", " a.example.com")
    ),
    Row("CREDENTIAL_UNCHANGED", 400, "606", update("/credentials/{id}")),
    Row("CREDENTIAL_UNCHANGED", 400, "606", update("/ssh_credentials/{id}")),
    Row("CREDENTIAL_UNCHANGED", 400, "606", update("/api_keys/{id}")),
    Row("UNKNOWN_FIELD", 400, "214", update("/credentials/{id}", owner_id="")),
    Row("SSH_KEY_DUPLICATE", 400, "609", twice("/ssh_credentials", "public_key")),
    Row("SSH_KEY_EMPTY", 400, "611", create("/ssh_credentials", public_key="")),
    Row("SSH_KEY_INVALID", 400, "612", create("/ssh_credentials", public_key="ssh-ed25519 AAAA")),
    Row("OWNER_BY_ADMIN", 400, "630", _as_bot("POST", "/credentials", lambda a: {"owner_id": a.id("/bot_users")})),
    Row("OWNER_BY_ADMIN", 400, "630", _as_bot("POST", "/api_keys", lambda a: {"owner_id": f"usr_{NOBODY}"})),
    Row("OWNER_INACTIVE", 400, "636", create("/credentials", lambda a: {"owner_id": a.id("/bot_users", active=False)})),
    Row("BOT_BY_ADMIN", 400, "4111", _as_bot("POST", "/bot_users", lambda a: {"name": "another"})),
    Row("BOT_BY_ADMIN", 400, "4111", _as_bot("PATCH", "/service_users/{id}", lambda a: {"name": "another"})),
    Row("BOT_BY_ADMIN", 400, "4111", _as_bot("DELETE", "/bot_users/{id}")),
    Row("BOT_NAME", 400, "4109", create("/bot_users", name="")),
    Row("BOT_DUPLICATE", 400, "4112", twice("/bot_users", "name")),
    Row("REPORTED_URL", 400, "", create("/abuse_reports", urls=["nowhere"])),
    Row("REPORTED_URL", 400, "", create("/abuse_reports", urls=["https://[x"])),
    Row("NOT_A_CHOICE", 400, "", create("/kubernetes_operators", enabled_features=["magic"])),
    Row("OPERATOR_REQUEST", 400, "", create("/kubernetes_operators", binding={"csr": "nothing"})),
    # IP restrictions and policies.
    Row("POLICY_UNCHANGED", 400, "1400", update("/ip_policies/{id}")),
    Row("POLICY_RULE_UNCHANGED", 400, "1401", update("/ip_policy_rules/{id}")),
    Row("UNKNOWN_FIELD", 400, "214", update("/ip_policy_rules/{id}", action="deny")),
    Row("UNKNOWN_FIELD", 400, "214", update("/ip_policy_rules/{id}", ip_policy_id=f"ipp_{NOBODY}")),
    Row("UNKNOWN_FIELD", 400, "214", update("/ip_restrictions/{id}", type="agent")),
    Row("CIDR_INVALID", 400, "1406", create("/ip_policy_rules", cidr="ten/24")),
    Row("CIDR_DUPLICATE", 400, "1408", _same_rule),
    Row("CIDR_HOST_BITS", 400, "1409", create("/ip_policy_rules", cidr="10.0.0.1/24")),
    Row("CIDR_MASK", 400, "1413", create("/ip_policy_rules", cidr="10.0.0.0")),
    Row("NO_POLICY", 400, "1414", create("/ip_policy_rules", ip_policy_id=f"ipp_{NOBODY}")),
    Row("POLICY_ID_OF_RULE", 400, "1414", create("/ip_policy_rules", ip_policy_id="mine")),
    Row("POLICY_IN_USE", 400, "1420", delete_used("/ip_restrictions", "ip_policies", "/ip_policies")),
    Row(
        "POLICY_IN_USE",
        400,
        "1420",
        delete_in_module("/edges/tls/{id}", "ip_restriction", "ip_policies", "/ip_policies"),
    ),
    Row("LAST_RULE", 400, "1419", _last_rule),
    Row("POLICY_ACTION", 400, "1422", create("/ip_policy_rules", action="maybe")),
    Row("POLICY_HAS_NO_ACTION", 400, "1423", create("/ip_policies", action="allow")),
    Row("POLICY_HAS_NO_ACTION", 400, "1423", update("/ip_policies/{id}", action="allow")),
    Row("NO_POLICY_OF_RESTRICTION", 400, "1801", create("/ip_restrictions", ip_policy_ids=[f"ipp_{NOBODY}"])),
    Row("RESTRICTION_DUPLICATE", 400, "1802", twice("/ip_restrictions", "type")),
    Row("RESTRICTION_TYPE", 400, "1803", create("/ip_restrictions", type="everything")),
    Row("RESTRICTION_EMPTY", 400, "1804", create("/ip_restrictions", ip_policy_ids=[])),
    Row("RESTRICTION_EMPTY", 400, "1804", update("/ip_restrictions/{id}", ip_policy_ids=[])),
    # Domains and addresses.
    Row("DOMAIN_NAME", 400, "449", create("/reserved_domains", domain="")),
    Row("DOMAIN_NAME", 400, "449", create("/reserved_domains", name="b.example.com")),
    Row("NOT_QUALIFIED", 400, "448", create("/reserved_domains", domain="localhost")),
    Row("WILDCARD", 400, "402", create("/reserved_domains", domain="a.*.example.com")),
    Row("WILDCARD_PART", 400, "403", create("/reserved_domains", domain="a*.example.com")),
    Row("WILDCARD_OF_ALL", 400, "416", create("/reserved_domains", domain="*.sandbox.test")),
    Row("DOMAIN_CHARACTER", 400, "406", create("/reserved_domains", domain="a!.example.com")),
    Row("DOMAIN_CHARACTER", 400, "406", create("/reserved_domains", domain="bücher.example.com")),
    Row("UNDERSCORE", 400, "438", create("/reserved_domains", domain="a_b.example.com")),
    Row("LABEL_TOO_LONG", 400, "513", create("/reserved_domains", domain=f"{'a' * 64}.example.com")),
    Row("DOMAIN_TOO_LONG", 400, "514", create("/reserved_domains", domain=".".join(["a" * 60] * 5))),
    Row("PUNYCODE", 400, "429", create("/reserved_domains", domain="xn--99999999999.example.com")),
    Row("REGION", 400, "400", create("/reserved_domains", region="mars")),
    Row("DOMAIN_DUPLICATE", 400, "413", twice("/reserved_domains", "domain")),
    Row("DOMAIN_UNCHANGED", 400, "422", update("/reserved_domains/{id}")),
    Row("UNKNOWN_FIELD", 400, "214", update("/reserved_domains/{id}", domain="b.example.com")),
    Row("UNKNOWN_FIELD", 400, "214", update("/reserved_domains/{id}", region="us")),
    Row("CERTIFICATE_TWICE", 400, "434", _both_certificates),
    Row("MANAGED_CERTIFICATE", 400, "436", _detach_certificate),
    Row("MANAGED_CERTIFICATE", 400, "436", _clear_certificate),
    Row("CERTIFICATE_NOT_UPLOADED", 400, "", _use_managed_certificate),
    Row("CERTIFICATE_MANAGED", 400, "1966", lambda a: a.sandbox.request("DELETE", _obtain_certificate(a))),
    Row(
        "POLICY_ON_OWN_DOMAIN",
        400,
        "439",
        create("/reserved_domains", domain="a.sandbox.test", certificate_management_policy={}),
    ),
    Row(
        "UPLOAD_ON_OWN_DOMAIN",
        400,
        "440",
        create("/reserved_domains", lambda a: {"domain": "a.sandbox.test", **ATTACHED["certificate"](a)}),
    ),
    Row("AUTHORITY", 400, "1908", create("/reserved_domains", certificate_management_policy={"authority": "me"})),
    Row("KEY_TYPE", 400, "1909", create("/agent_ingresses", certificate_management_policy={"private_key_type": "dsa"})),
    Row("NO_CERTIFICATE", 400, "1965", create("/reserved_domains", certificate_id=f"cert_{NOBODY}")),
    Row("DOMAIN_IN_USE", 400, "446", delete_used("/endpoints", "domain", "/reserved_domains")),
    Row("DOMAIN_IN_USE", 400, "446", lambda a: _delete_served(a, "/edges/tls")),
    Row("DOMAIN_IN_USE", 400, "446", lambda a: _delete_served(a, "/edges/https")),
    Row("DEV_DOMAIN", 400, "458", _on_planted("/reserved_domains", "DELETE", is_dev=True)),
    Row("ADDRESS_REGION", 400, "500", create("/reserved_addrs", region="mars")),
    Row("ADDRESS_UNCHANGED", 400, "506", update("/reserved_addrs/{id}")),
    Row("UNKNOWN_FIELD", 400, "214", update("/reserved_addrs/{id}", region="us")),
    Row("ADDRESS_IN_USE", 400, "", lambda a: _delete_served(a, "/edges/tcp")),
    Row("REQUIRED", 400, "", create("/agent_ingresses", domain="")),
    Row("INGRESS_OWN_DOMAIN", 400, "6705", create("/agent_ingresses", domain="agents.sandbox.test")),
    Row("INGRESS_WILDCARD", 400, "402", create("/agent_ingresses", domain="*.example.org")),
    Row("INGRESS_DUPLICATE", 400, "6706", twice("/agent_ingresses", "domain")),
    # Backends.
    Row("NO_CHILD", 400, "6501", create("/backends/failover", backends=[f"bkdtg_{NOBODY}"])),
    Row("CHILD_ID", 400, "6526", create("/backends/failover", backends=["mine"])),
    Row("CHILD_ID", 400, "6526", create("/backends/failover", backends=[""])),
    Row("CHILD_ID", 400, "6526", create("/backends/weighted", backends={"": 3})),
    Row("CHILD_KIND", 400, "6527", create("/backends/failover", backends=[f"ipp_{NOBODY}"])),
    Row("BACKEND_IN_USE", 400, "6502", delete_used("/backends/failover", "backends", "/backends/tunnel_group")),
    Row(
        "BACKEND_IN_USE",
        400,
        "6502",
        delete_in_module("/edges/tls/{id}", "backend", "backend", "/backends/tunnel_group"),
    ),
    Row("STATUS_CODE", 400, "6517", create("/backends/http_response", status_code=42)),
    Row("FAILOVER_CYCLE", 400, "", _cycle),
    Row("WEIGHTED_CYCLE", 400, "", _cycle_of_weighted),
    Row(
        "FAILOVER_NESTED",
        400,
        "6513",
        create("/backends/failover", lambda a: {"backends": [a.id("/backends/failover", backends=[])] * 11}),
    ),
    # Certificates and keys.
    Row("NO_KEY_PEM", 400, "1901", create("/tls_certificates", private_key_pem="")),
    Row("NO_CERTIFICATE_PEM", 400, "1922", create("/tls_certificates", certificate_pem="")),
    Row("CERTIFICATE_INVALID", 400, "1900", create("/tls_certificates", certificate_pem="mine")),
    Row("PRIVATE_KEY_INVALID", 400, "1903", create("/tls_certificates", private_key_pem="mine")),
    Row("ENCRYPTED_KEY", 400, "1902", create("/tls_certificates", private_key_pem=pems.private_key("leaf", b"pass"))),
    Row("KEY_MISMATCH", 400, "1923", create("/tls_certificates", private_key_pem=pems.private_key("other"))),
    Row("KEY_IS_CERTIFICATE", 400, "1924", create("/tls_certificates", private_key_pem=pems.certificate("leaf"))),
    Row("CERTIFICATE_IS_KEY", 400, "1925", create("/tls_certificates", certificate_pem=pems.private_key("leaf"))),
    Row(
        "CHAIN_ORDER",
        400,
        "1926",
        create("/tls_certificates", certificate_pem=pems.certificate("leaf") + pems.certificate("stranger", ca=True)),
    ),
    Row("UNKNOWN_FIELD", 400, "214", update("/certificate_authorities/{id}", ca_pem="")),
    Row("NO_CA_PEM", 400, "1919", create("/certificate_authorities", ca_pem="")),
    Row("NOT_PEM", 400, "1920", create("/certificate_authorities", ca_pem="no pem")),
    Row("NOT_AN_AUTHORITY", 400, "1913", create("/certificate_authorities", ca_pem=pems.certificate("leaf"))),
    Row(
        "SEVERAL_AUTHORITIES",
        400,
        "1912",
        create("/certificate_authorities", ca_pem=pems.certificate("root", ca=True) * 2),
    ),
    Row("AUTHORITY_SIZE", 400, "1921", create("/certificate_authorities", ca_pem=" " * 65537)),
    Row("KEY_SIZE", 400, "1939", create("/ssh_certificate_authorities", private_key_type="rsa", key_size=1024)),
    Row("KEY_SIZE_OF_RSA", 400, "1940", create("/ssh_certificate_authorities", key_size=1024)),
    Row(
        "KEY_SIZE_OF_RSA", 400, "1940", create("/ssh_certificate_authorities", private_key_type="ecdsa", key_size=2048)
    ),
    Row("CURVE", 400, "1941", create("/ssh_certificate_authorities", private_key_type="ecdsa", elliptic_curve="99")),
    Row("CURVE_OF_ECDSA", 400, "1942", create("/ssh_certificate_authorities", elliptic_curve="256")),
    Row("SSH_KEY_TYPE", 400, "1936", create("/ssh_certificate_authorities", private_key_type="dsa")),
    Row("SSH_AUTHORITY_MISSING", 400, "1951", create("/ssh_host_certificates", ssh_certificate_authority_id="")),
    Row(
        "NO_SSH_AUTHORITY",
        400,
        "1949",
        create("/ssh_host_certificates", ssh_certificate_authority_id=f"sshca_{NOBODY}"),
    ),
    Row("HOST_KEY_MISSING", 400, "1952", create("/ssh_host_certificates", public_key="")),
    Row("HOST_KEY_INVALID", 400, "1934", create("/ssh_host_certificates", public_key="mine")),
    Row("BAD_TIMESTAMP", 400, "241", create("/ssh_host_certificates", valid_until="yesterday")),
    Row("NOT_A_DURATION", 400, "1963", create("/ssh_host_certificates", valid_until="2001-01-01T00:00:00Z")),
    Row("NOT_A_DURATION", 400, "1963", create("/ssh_host_certificates", valid_after="2999-01-01T00:00:00Z")),
    Row("PRINCIPALS", 400, "", create("/ssh_host_certificates", principals=[f"h{n}" for n in range(257)])),
    Row(
        "SSH_AUTHORITY_IN_USE",
        400,
        "1964",
        delete_used("/ssh_host_certificates", "ssh_certificate_authority_id", "/ssh_certificate_authorities"),
    ),
    # Events.
    Row("EVENT_TYPE", 400, "238", create("/event_subscriptions", sources=[{"type": "weather_changed.v0"}])),
    Row("EVENT_TYPE", 400, "238", _unknown_source),
    Row("NO_SOURCE", 404, "5125", lambda a: get(f"{a.place('/event_subscriptions/{id}')}/sources/vault_created.v0")(a)),
    Row("EVENT_TYPE_MISSING", 400, "238", create("/event_subscriptions", sources=[{"type": ""}])),
    Row("SOURCE_DUPLICATE", 400, "5127", create("/event_subscriptions", sources=[{"type": "vault_created.v0"}] * 2)),
    Row("SOURCE_DUPLICATE", 400, "5127", _same_source),
    Row("NO_DESTINATION", 400, "5103", create("/event_subscriptions", destination_ids=[f"ed_{NOBODY}"])),
    Row("DESTINATION_IN_USE", 400, "5112", delete_used("/event_subscriptions", "destinations", "/event_destinations")),
    Row("FORMAT", 400, "235", create("/event_destinations", format="xml")),
    Row("TARGET_MISSING", 400, "5100", create("/event_destinations", target={})),
    Row(
        "TARGET_COUNT",
        400,
        "5115",
        create("/event_destinations", target={"metrics": {"api_key": "k"}, "ingestion": {}}),
    ),
    Row("TARGET_FIXED", 400, "5108", update("/event_destinations/{id}", target={"ingestion": {}})),
    Row("AUTH_MISSING", 400, "5106", create("/event_destinations", target={"logs": {"log_group_arn": "arn:x"}})),
    Row(
        "AUTH_EMPTY",
        400,
        "5107",
        create("/event_destinations", target={"logs": {"log_group_arn": "arn:x", "auth": {}}}),
    ),
    Row(
        "AUTH_COUNT",
        400,
        "5116",
        create(
            "/event_destinations",
            target={"logs": {"log_group_arn": "arn:x", "auth": {"role": {"role_arn": "arn:r"}, "creds": {}}}},
        ),
    ),
    Row(
        "ARN",
        400,
        "5120",
        create(
            "/event_destinations",
            target={"logs": {"log_group_arn": "mine", "auth": {"role": {"role_arn": "arn:r"}}}},
        ),
    ),
    Row(
        "ROLE_ARN",
        400,
        "5104",
        create(
            "/event_destinations",
            target={"logs": {"log_group_arn": "arn:x", "auth": {"role": {"role_arn": "mine"}}}},
        ),
    ),
]


def _create_route(account: Account, **change: Any) -> httpx.Response:
    path = account.place("/edges/https/{id}") + "/routes"
    return account.sandbox.request("POST", path, BODIES["/edges/https/{}/routes"](account) | change)


def _upstream_beside(account: Account, module: str) -> httpx.Response:
    path = account.place(f"/edges/tls/{{id}}/{module}").rpartition("/")[0]
    return account.sandbox.request("PUT", f"{path}/tls_termination", {"terminate_at": "upstream"})


def _certificate_in_use(account: Account) -> str:
    domain = account.place("/reserved_domains/{id}/certificate").rpartition("/")[0]
    return str(account.sandbox.get(domain)["certificate"]["uri"])


def _delete_served(account: Account, collection: str) -> httpx.Response:
    account.make(collection)
    used, key = ("/reserved_addrs",) * 2 if collection == "/edges/tcp" else ("/reserved_domains",) * 2
    [served] = account.sandbox.get(used)[key.strip("/")]
    return account.sandbox.request("DELETE", served["uri"])
