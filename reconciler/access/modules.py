"""Modules of edges and routes as gates: which module lets which requests through."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from reconciler.access.conditions import OPTIONS, PREFLIGHT, Claim, Login, Method
from reconciler.access.policies import Surroundings, digest, doubt, doubt_written, identify, provider_name, sign
from reconciler.access.programs import REFUSE, Program
from reconciler.model.access import read_list

Module = Mapping[str, Any]


def gate_ip_restriction(module: Module, passed: Program, around: Surroundings) -> Program:
    return around.admit_networks(read_list(module.get("ip_policy_ids")), [], [], passed, REFUSE)


def gate_mutual_tls(module: Module, passed: Program, around: Surroundings) -> Program:
    return around.admit_authorities(read_list(module.get("certificate_authority_ids")), passed)


def gate_oauth(module: Module, passed: Program, around: Surroundings) -> Program:
    providers = module.get("provider")
    for name, provider in providers.items() if isinstance(providers, Mapping) else ():
        if isinstance(provider, Mapping):
            login = provider_name(name, provider.get("client_id"))
            return _sign_in(login, name, _list_admitted(provider), module, passed, around)
    return doubt("a sign-in without a provider", digest(module), passed, around)


def gate_oidc(module: Module, passed: Program, around: Surroundings) -> Program:
    issuer = str(module.get("issuer"))
    return _sign_in(provider_name(issuer, module.get("client_id")), issuer, {}, module, passed, around)


def gate_saml(module: Module, passed: Program, around: Surroundings) -> Program:
    name = f"SAML {identify(module.get('idp_metadata'), around)}"
    groups = {"group": read_list(module.get("authorized_groups"))}
    return _sign_in(name, "SAML", groups, module, passed, around)


def gate_webhook(module: Module, passed: Program, around: Surroundings) -> Program:
    around.say(f"signed by {module.get('provider')}")
    program = around.builder.branch(sign(module, around), passed)
    return doubt_written("webhook_verification", "*", passed, program, around, around.written)


_LISTS: Final = {
    "email_addresses": "email",
    "email_domains": "domain",
    "teams": "team",
    "organizations": "organization",
}


def _list_admitted(provider: Module) -> dict[str, list[str]]:
    return {attribute: read_list(provider.get(name)) for name, attribute in _LISTS.items()}


def _sign_in(
    login: str, word: str, admitted: Mapping[str, list[str]], module: Module, passed: Program, around: Surroundings
) -> Program:
    """A login with its allow lists. Whether one of several lists suffices is not documented consistently."""
    lists = {attribute: values for attribute, values in admitted.items() if values}
    people = frozenset((attribute, str(value)) for attribute, values in lists.items() for value in values)
    names = ", ".join(sorted(value for _, value in people))
    around.say(f"sign-in at {word}{f' ({names})' if names else ''}")
    program = passed
    if len(lists) > 1:
        either = Claim("one of several allow lists of a login suffices", digest(lists), is_open=True)
        program = around.builder.branch(either, passed)
    program = around.builder.branch(Login(login, people), program)
    program = doubt_written("sign-in", ("cookie",), passed, program, around, around.written)
    if module.get("options_passthrough") is True:
        around.say("except OPTIONS requests")
        program = around.builder.branch(Method(frozenset({OPTIONS, PREFLIGHT})), passed, program)
    return program


Gate = Callable[[Module, Program, Surroundings], Program]

MODULES: Final[Mapping[str, Gate | None]] = {
    "backend": None,  # what is behind the gates
    "circuit_breaker": None,
    "compression": None,
    "ip_restriction": gate_ip_restriction,
    "mutual_tls": gate_mutual_tls,
    "oauth": gate_oauth,
    "oidc": gate_oidc,
    "request_headers": None,
    "response_headers": None,
    "saml": gate_saml,
    "tls_termination": None,  # decides whether the other modules see the traffic
    "traffic_policy": None,  # a program of its own
    "user_agent_filter": None,  # clients choose their user agent
    "websocket_tcp_converter": None,
    "webhook_verification": gate_webhook,
}
"""Every module; None: no gate, for the given reason or because it does not reject requests."""


def is_enabled(module: Any) -> bool:
    return isinstance(module, Mapping) and module.get("enabled") is not False
