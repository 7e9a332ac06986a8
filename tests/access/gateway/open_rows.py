"""Questions that no documentation answers, or that two sources answer differently, and the choice of the gateway."""

from __future__ import annotations

from typing import Final

OPEN_ROWS: Final = {
    # routing
    "host-in-another-form": "a Host with upper case, a trailing dot or a port: compared in its normal form",
    "server-name-differs": "https with a server name (SNI) other than the Host: the Host decides",
    "wildcard-itself": "whether *.x serves x: it does not",
    "several-wildcards": "of several wildcards that match, the one with the longer suffix wins",
    "wildcard-and-edge": "an edge and an endpoint on a host and on its wildcard: the more specific wins",
    "path-in-another-form": "escapes, empty and dot segments, case, query of a path: compared raw, without the query",
    "no-endpoint": "status of a host that nothing serves: 404 with 3200",
    "no-route": "answer of an edge without a route for the path: 404",
    "no-backend": "status of a route without a backend, or whose backend is gone: 503 with 724 or 6515",
    "empty-selector": "a tunnel group without labels: matches every tunnel",
    "weight-0": "a backend with the weight 0: gets nothing",
    "dynamic-target": "a target of forward-internal that is computed: any internal endpoint, so the answer is unknown",
    "forward-across-schemes": "forward-internal between http and https: the same protocol",
    "forward-chain": "the longest chain of forward-internal: three are certain",
    "address-behind-forward": "the client address that the target of forward-internal tests: that of the client",
    "internal-and-account": "account restriction `endpoints` and traffic from Kubernetes: no gate",
    # order
    "edge-termination": "a TLS edge without the module tls_termination: the edge terminates TLS",
    "module-order": "order of route modules and traffic policy: addresses, webhook, login, user agent, policy",
    "restrict-ips-in-response": "restrict-ips in on_http_response: runs after the upstream was reached",
    "redirect-ends": "whether redirect ends its phase: it does if the URL changes",
    "reserved-paths": "paths below /oauth2/ and /auth/ (login modules), /ngrok/ (actions): never reach the upstream",
    "preflight": "allow_cors_preflight and an OPTIONS request without CORS headers: no preflight, so the login applies",
    # addresses
    "mapped-address": "an IPv4-mapped address: an IPv6 address, not the IPv4 address in it",
    "no-address-list": "restrict-ips or ip_restriction without any list or policy: admits no address",
    "deleted-ip-policy": "a reference to a deleted IP policy: denies everything or has no effect, so unknown",
    "form-of-refusal": "status and code of a refused address: 403 with 3203, at the level of the account 3205",
    # identity
    "both-email-lists": "email_addresses and email_domains together: either suffices",
    "email-domain-suffix": "an e-mail domain that only ends in a listed one: refused",
    "teams-and-organizations": "teams and organizations together: either suffices",
    "memberships-and-emails": "lists of memberships beside lists of e-mails: both must admit",
    "many-memberships": "more than 200 memberships: all are compared",
    "no-authorities": "mutual TLS without an authority: the module admits no certificate, the action is no gate",
    "unverified-strategy": "the strategy require-any of terminate-tls: no gate",
    "expression-error": "an expression that fails at run time: the request is refused",
    "interpolated-setting": "a setting of a gate with ${}: unknown unless a later gate refuses",
    "halt-of-http-request": "http-request with on_error halt: its call succeeds",
    # credentials
    "bind-host-of-address": "bind:host and a tcp address of that host: covered, as any scheme is",
    "bind-labels": "rules for labels: each label must match a rule",
}
"""Each open question by its name, with the choice that the gateway makes."""

ADMITTING: Final = frozenset(
    {
        *("both-email-lists", "teams-and-organizations", "unverified-strategy", "halt-of-http-request"),
        *("restrict-ips-in-response", "empty-selector", "internal-and-account"),
        *("forward-across-schemes", "forward-chain"),
    }
)
"""Rows whose choice lets a request through that other readings refuse: they do not matter if it is refused later."""

FORM_ONLY: Final = frozenset({"no-endpoint", "no-route", "no-backend", "form-of-refusal"})
"""Rows whose readings all refuse and differ in status and code only."""
