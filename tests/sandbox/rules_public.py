"""The table of rules, continued: the kinds and modules that are not in the specification; see `rules`."""

from __future__ import annotations

import httpx

from tests.sandbox.account import Account
from tests.sandbox.rules import NOBODY, ROUTE, Row, create, delete_used, put, twice


def _second_login(account: Account) -> httpx.Response:
    route = account.place(f"{ROUTE}/saml").rpartition("/")[0]
    return account.sandbox.request("PUT", f"{route}/oidc", account.module("oidc"))


def _login_on_another_route(account: Account) -> httpx.Response:
    routes = account.place(f"{ROUTE}/oauth").rpartition("/")[0].rpartition("/")[0]
    body = {"match_type": "path_prefix", "match": "/other", "oidc": account.module("oidc")}
    return account.sandbox.request("POST", routes, body)


def _rename_to_existing(account: Account) -> httpx.Response:
    first, second = account.make("/vaults"), account.make("/vaults")
    return account.sandbox.request("PATCH", f"/vaults/{second['id']}", {"name": first["name"]})


def _same_secret(account: Account) -> httpx.Response:
    made = account.make("/vault_secrets")
    body = {"vault_name": made["vault_name"], "name": made["name"], "value": "another"}
    return account.sandbox.request("POST", "/vault_secrets", body)


def _application(account: Account, **application: object) -> httpx.Response:
    provider = {"provider": {"github": application}}
    return account.sandbox.request("PUT", f"{account.place(ROUTE)}/oauth", provider)


ROWS = [
    # Backends.
    Row("STATIC_ADDRESS", 400, "6505", create("/backends/static", address="nowhere")),
    *(
        Row("STATIC_ADDRESS", 400, "6505", create("/backends/static", address=address))
        for address in ("", "[2001:db8::1]")
    ),
    *(
        Row("STATIC_INVALID", 400, "6506", create("/backends/static", address=address))
        for address in ("[2001:db8::1]:0", "[origin.example.com]:80", "origin.example.com:http")
    ),
    Row("STATIC_HOST", 400, "6507", create("/backends/static", address=":443")),
    Row(
        "WEIGHT", 400, "6512", create("/backends/weighted", lambda a: {"backends": {a.id("/backends/static"): 10_001}})
    ),
    Row("WEIGHT", 400, "6512", create("/backends/weighted", lambda a: {"backends": {a.id("/backends/static"): -1}})),
    Row("NO_CHILD", 400, "6501", create("/backends/weighted", backends={f"bkdsc_{NOBODY}": 1})),
    Row("BACKEND_IN_USE", 400, "6502", delete_used("/backends/weighted", "backends", "/backends/tunnel_group")),
    # Modules of routes.
    Row("LOGIN_COUNT", 400, "7079", _second_login),
    Row("LOGIN_ON_EDGE", 400, "7155", _login_on_another_route),
    Row("OIDC_ISSUER", 400, "7088", put(ROUTE, "oidc", issuer="")),
    Row("OIDC_CLIENT", 400, "7089", put(ROUTE, "oidc", client_id="")),
    Row("OIDC_SECRET", 400, "7090", put(ROUTE, "oidc", client_secret=None)),
    Row("OAUTH_NO_PROVIDER", 400, "7037", put(ROUTE, "oauth", provider={})),
    Row("OAUTH_PROVIDERS", 400, "7036", put(ROUTE, "oauth", provider={"google": {}, "github": {}})),
    Row("OAUTH_CLIENT", 400, "7033", lambda a: _application(a, client_id="app")),
    Row("OAUTH_CLIENT", 400, "7033", lambda a: _application(a, client_secret="s")),
    Row("OAUTH_SCOPES", 400, "7034", lambda a: _application(a, scopes=["email"])),
    Row("BREAKER_TRIPPED", 400, "7016", put(ROUTE, "circuit_breaker", tripped_duration=0)),
    Row("BREAKER_WINDOW", 400, "7017", put(ROUTE, "circuit_breaker", rolling_window=0)),
    Row("BREAKER_BUCKETS", 400, "7018", put(ROUTE, "circuit_breaker", num_buckets=129)),
    Row("BREAKER_THRESHOLD", 400, "7011", put(ROUTE, "circuit_breaker", error_threshold_percentage=1.5)),
    # SSH user certificates.
    Row("NO_USER_DURATION", 400, "1962", create("/ssh_user_certificates", valid_until="2001-01-01T00:00:00Z")),
    Row("NO_USER_DURATION", 400, "1962", create("/ssh_user_certificates", valid_after="2999-01-01T00:00:00Z")),
    Row("PRINCIPALS", 400, "", create("/ssh_user_certificates", principals=[f"u{n}" for n in range(257)])),
    Row(
        "NO_SSH_AUTHORITY",
        400,
        "1949",
        create("/ssh_user_certificates", ssh_certificate_authority_id=f"sshca_{NOBODY}"),
    ),
    Row(
        "SSH_AUTHORITY_IN_USE",
        400,
        "1964",
        delete_used("/ssh_user_certificates", "ssh_certificate_authority_id", "/ssh_certificate_authorities"),
    ),
    # Vaults.
    Row("VAULT_NAME", 400, "23000", create("/vaults", name="no spaces")),
    Row("VAULT_NAME", 400, "23000", create("/vaults", name="")),
    Row("VAULT_DUPLICATE", 400, "23004", twice("/vaults", "name")),
    Row("VAULT_DUPLICATE", 400, "23004", _rename_to_existing),
    Row("VAULT_NOT_EMPTY", 400, "23003", delete_used("/vault_secrets", "vault", "/vaults")),
    Row("NO_VAULT", 400, "", create("/vault_secrets", vault_id=f"vault_{NOBODY}")),
    Row("NO_VAULT", 400, "", create("/vault_secrets", vault_id=None, vault_name="nowhere")),
    Row("REQUIRED", 400, "", create("/vault_secrets", vault_id=None)),
    Row("SECRET_NAME", 400, "24000", create("/vault_secrets", name="no spaces")),
    Row("SECRET_VALUE", 400, "24003", create("/vault_secrets", value="")),
    Row("SECRET_DUPLICATE", 400, "24005", _same_secret),
    # Service users.
    Row("BOT_DUPLICATE", 400, "4112", twice("/service_users", "name")),
    Row("WRONG_PATH_ID", 404, "227", lambda a: a.sandbox.request("GET", f"/service_users/{a.id('/bot_users')}")),
    Row("WRONG_PATH_ID", 404, "227", lambda a: a.sandbox.request("GET", f"/service_users/ipp_{NOBODY}")),
]
