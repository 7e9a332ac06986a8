"""Traffic policies as programs: what each action does to a request, and rules in their order."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, Final, Protocol

from reconciler.access.conditions import PREFLIGHT, Certificate, Claim, Login, Method, Source, Token
from reconciler.access.networks import decide
from reconciler.access.programs import PASS, REFUSE, Builder, Program
from reconciler.model.value import Json, Sealed, Secret, canonical, reveal_text


class Effect(Enum):
    """What an action of a traffic policy means for access."""

    GATE = "lets some requests through"
    REFUSES = "ends every request"
    ANSWERS = "answers by itself"
    FORWARDS = "passes the request on to another endpoint"
    REWRITES = "changes what later actions read"
    NONE = "does not decide about access"


ACTIONS: Final[Mapping[str, Effect]] = {
    "add-headers": Effect.REWRITES,
    "ai-gateway": Effect.ANSWERS,
    "basic-auth": Effect.GATE,
    "circuit-breaker": Effect.NONE,
    "close-connection": Effect.REFUSES,
    "compress-response": Effect.NONE,
    "custom-response": Effect.ANSWERS,
    "deny": Effect.REFUSES,
    "forward-internal": Effect.FORWARDS,
    "http-request": Effect.REWRITES,
    "jwt-validation": Effect.GATE,
    "log": Effect.NONE,
    "oauth": Effect.GATE,
    "oidc": Effect.GATE,
    "openid-connect": Effect.GATE,
    "owasp-crs-request": Effect.NONE,
    "owasp-crs-response": Effect.NONE,
    "rate-limit": Effect.NONE,
    "redirect": Effect.ANSWERS,
    "remove-headers": Effect.REWRITES,
    "request-body-find-replace": Effect.REWRITES,
    "response-body-find-replace": Effect.NONE,
    "restrict-ips": Effect.GATE,
    "saml": Effect.GATE,
    "set-vars": Effect.REWRITES,
    "sse-find-replace": Effect.NONE,
    "terminate-tls": Effect.GATE,
    "url-rewrite": Effect.REWRITES,
    "user-agent-filter": Effect.NONE,
    "verify-webhook": Effect.GATE,
    "webhook-validation": Effect.GATE,
}
"""Every action of the catalogue of traffic policies, and old names."""

_RESULTS: Final = frozenset({Effect.GATE, Effect.FORWARDS})  # later expressions may read what these found out
_MAX_TOKENS: Final = 256  # combinations of values in one token gate


class Surroundings(Protocol):
    """What a traffic policy refers to outside itself."""

    builder: Builder

    def admit_networks(
        self, policies: list[Any], allowed: list[Any], denied: list[Any], passed: Program, refused: Program
    ) -> Program: ...
    def admit_authorities(self, keys: list[Any], passed: Program) -> Program: ...
    def forward(self, url: str, binding: str, offline: Program) -> Program: ...
    def authority(self, text: Any) -> tuple[str, str] | None: ...
    def say(self, text: object) -> None: ...


Action = Mapping[str, Any]


def compile_policy(document: Any, protocol: str, served: Program, around: Surroundings) -> Program:
    """The program of a traffic policy; `served` continues with the requests that no action ended.

    document   in canonical form; anything else than a map of phases is unknown
    protocol   `http` for http and https, else `tcp`
    """
    if document is None:
        return served
    if not isinstance(document, Mapping):
        return doubt("a traffic policy that cannot be read", digest(document), served, around)
    served = _compile_responses(document, served, around)
    phases = ("on_http_request", "inbound") if protocol == "http" else ()
    program = served
    for phase in (*phases, *(("on_tcp_connect",) if protocol == "http" else ("inbound", "on_tcp_connect"))):
        program = _compile_phase(document.get(phase) or [], program, around)
    unknown = {key: value for key, value in document.items() if key not in _PHASES}
    if unknown:
        program = doubt(f"the phase {min(map(str, unknown))}", digest(unknown), program, around)
    return program


_PHASES: Final = frozenset(
    "on_tcp_connect on_http_request on_http_response on_event_stream_message inbound outbound".split()  # noqa: SIM905
)


def doubt(what: str, context: str, program: Program, around: Surroundings) -> Program:
    """The program, if something lets the request through of which that is not known."""
    around.say(f"unknown: {what}")
    return around.builder.branch(Claim(f"{what} lets the request through", context, is_open=True), program, REFUSE)


def digest(value: Any) -> str:
    """A digest of a value for equality; texts of secrets do not count."""
    return hashlib.blake2b(canonical(_plain(value)), digest_size=8).hexdigest()


def _plain(value: Any) -> Json:
    match value:
        case Mapping():
            return {str(key): _plain(item) for key, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
        case Secret():
            return "(secret)"
        case str() | int() | float() | bool() | None:
            return value
    return str(value)


def _compile_phase(rules: Any, served: Program, around: Surroundings) -> Program:
    if not isinstance(rules, list):
        return doubt("a phase that is not a list of rules", digest(rules), served, around)
    contexts, context = [], hashlib.blake2b(digest_size=8)
    is_changed = False
    for rule in rules:
        contexts.append(context.hexdigest() if is_changed else "")
        if any(_changes_what_is_read(action) for action in _actions(rule)):
            context.update(digest(rule).encode())
            is_changed = True
    for rule in rules:
        _describe(rule, around)
    program = served
    for rule, before in zip(reversed(rules), reversed(contexts), strict=True):
        program = _compile_rule(rule, before, program, around)
    return program


def _changes_what_is_read(action: Any) -> bool:
    effect = _effect(action)
    return effect is None or effect is Effect.REWRITES or effect in _RESULTS


def _compile_rule(rule: Any, context: str, rest: Program, around: Surroundings) -> Program:
    if not isinstance(rule, Mapping):
        return doubt("a rule that cannot be read", digest(rule), rest, around)
    program, rewritten = rest, context
    for action in reversed(_actions(rule)):
        program = _compile_action(action, rewritten, program, around)
    expressions = rule.get("expressions") or []
    for expression in reversed(expressions if isinstance(expressions, list) else [expressions]):
        program = _test_expression(expression, context, program, rest, around)
    return program


def _test_expression(expression: Any, context: str, then: Program, rest: Program, around: Surroundings) -> Program:
    text = expression.strip() if isinstance(expression, str) else f"an expression {digest(expression)}"
    if text in ("true", "false"):
        return then if text == "true" else rest
    return around.builder.branch(Claim(text, context), then, rest)


def _actions(rule: Any) -> list[Any]:
    actions = rule.get("actions") if isinstance(rule, Mapping) else None
    return actions if isinstance(actions, list) else []


def _effect(action: Any) -> Effect | None:
    return ACTIONS.get(str(action.get("type"))) if isinstance(action, Mapping) else None


def _compile_action(action: Any, context: str, passed: Program, around: Surroundings) -> Program:
    effect = _effect(action)
    if effect in (Effect.NONE, Effect.REWRITES):
        return passed
    if effect is Effect.REFUSES:
        return REFUSE
    config = action.get("config") if isinstance(action, Mapping) else None
    config = config if isinstance(config, Mapping) else {}
    if effect is None or is_computed(config if effect is not Effect.ANSWERS else {}):
        name = action.get("type") if isinstance(action, Mapping) else None
        return doubt(f"the action {name}", digest(action), passed, around)
    kind = str(action["type"])
    if effect is Effect.ANSWERS:
        pattern = config.get("from") if kind == "redirect" else None
        if pattern is None:
            return PASS
        return around.builder.branch(Claim(f"the URL matches {_plain(pattern)}", context), PASS, passed)
    return GATES[kind](config, passed, around)


def is_computed(value: Any) -> bool:
    """Whether a value contains `${…}`, so that it is known only when the request arrives."""
    match value:
        case str():
            return "${" in value
        case Mapping():
            return any(is_computed(item) for item in value.values())
        case list() | tuple():
            return any(is_computed(item) for item in value)
    return False


# --- gates ------------------------------------------------------------------------------------------------------------


def _is_off(config: Action) -> bool:
    return config.get("enforce") is False


def _restrict_ips(config: Action, passed: Program, around: Surroundings) -> Program:
    if _is_off(config):
        return passed
    policies, allowed, denied = (list(config.get(name) or ()) for name in ("ip_policies", "allow", "deny"))
    return around.admit_networks(policies, allowed, denied, passed, REFUSE)


def _basic_auth(config: Action, passed: Program, around: Surroundings) -> Program:
    if _is_off(config):
        return passed
    entries = [_credential_of(entry) for entry in config.get("credentials") or ()]
    if any(isinstance(entry, Sealed) for entry in entries):
        spellings = [sorted(entry.spellings) for entry in entries if isinstance(entry, Sealed)]
        return doubt("sealed credentials of basic-auth", digest(spellings), passed, around)
    users = [_user_of(entry) for entry in entries]
    if len(users) > _MAX_TOKENS:
        return doubt("a long list of basic-auth credentials", digest(users), passed, around)
    return around.builder.branch(Token("basic-auth", (frozenset(users),)), passed)


def _user_of(entry: Any) -> str:
    """The user of a `user:password`; a change of the password alone admits no one else."""
    return (reveal_text(entry) or "").partition(":")[0]


def _credential_of(entry: Any) -> Any:
    return entry.get("username") if isinstance(entry, Mapping) else entry


def _jwt(config: Action, passed: Program, around: Surroundings) -> Program:
    issuers = _values(config, "issuer")
    audiences = _values(config, "audience")
    jws = _map(config, "jws")
    algorithms = [str(name) for name in jws.get("allowed_algorithms") or ()]
    keys = digest(jws.get("keys"))
    count = len(issuers) * max(len(audiences), 1) * len(algorithms)
    if not issuers or count > _MAX_TOKENS:
        return doubt("the action jwt-validation", digest(config), passed, around)
    scheme = f"JSON web token {digest(config.get('http'))}"
    accepted = (
        frozenset(issuers),
        frozenset(audiences) if audiences else None,
        frozenset(algorithms),
        frozenset({keys}),
    )
    return around.builder.branch(Token(scheme, accepted), passed)


def _map(config: Action, name: str) -> Action:
    part = config.get(name)
    return part if isinstance(part, Mapping) else {}


def _values(config: Action, name: str) -> list[str]:
    part = config.get(name)
    entries = part.get("allow_list") if isinstance(part, Mapping) else None
    return [
        str(entry.get("value") if isinstance(entry, Mapping) else entry)
        for entry in (entries if isinstance(entries, list) else [])
    ]


def _oauth(config: Action, passed: Program, around: Surroundings) -> Program:
    provider = provider_name(str(config.get("provider")), config.get("client_id"))
    return _sign_in(Login(provider), config, passed, around)


def _openid(config: Action, passed: Program, around: Surroundings) -> Program:
    provider = provider_name(str(config.get("issuer_url")), config.get("client_id"))
    return _sign_in(Login(provider), config, passed, around)


def _saml(config: Action, passed: Program, around: Surroundings) -> Program:
    return _sign_in(Login(f"SAML {digest(config)}"), config, passed, around)


def _sign_in(login: Login, config: Action, passed: Program, around: Surroundings) -> Program:
    program = around.builder.branch(login, passed)
    if config.get("allow_cors_preflight") is not True:
        return program
    plain = Claim("an OPTIONS request without CORS headers counts as a preflight", is_open=True)
    options = around.builder.branch(plain, passed, program)
    return around.builder.branch(
        Method(frozenset({PREFLIGHT})),
        passed,
        around.builder.branch(Method(frozenset({"OPTIONS"})), options, program),
    )


def provider_name(provider: str, client: Any) -> str:
    """The name of an identity provider; with an application of one's own, its client id belongs to it."""
    own = f" (application {client})" if isinstance(client, str) and client else ""
    return f"{provider}{own}"


def _webhook(config: Action, passed: Program, around: Surroundings) -> Program:
    if _is_off(config):
        return passed
    return around.builder.branch(signature(config.get("provider")), passed)


def signature(provider: Any) -> Claim:
    """The request is signed with the configured secret; another secret of the same provider admits no one else."""
    return Claim(f"signed by {str(provider).lower()}")


def _terminate_tls(config: Action, passed: Program, around: Surroundings) -> Program:
    authorities = config.get("mutual_tls_certificate_authorities") or []
    if config.get("mutual_tls_verification_strategy") in ("request", "require-any") or not authorities:
        return passed
    found = [around.authority(text) for text in authorities]
    if None in found:
        return doubt("the certificate authorities of terminate-tls", digest(config), passed, around)
    known = [item for item in found if item is not None]
    names = tuple(sorted(name for _, name in known))
    return around.builder.branch(Certificate(frozenset(key for key, _ in known), names), passed)


def _forward(config: Action, passed: Program, around: Surroundings) -> Program:
    offline = passed if config.get("on_error") == "continue" else REFUSE
    return around.forward(str(config.get("url")), str(config.get("binding") or "internal"), offline)


GATES: Final[Mapping[str, Callable[[Action, Program, Surroundings], Program]]] = {
    "basic-auth": _basic_auth,
    "forward-internal": _forward,
    "jwt-validation": _jwt,
    "oauth": _oauth,
    "oidc": _openid,
    "openid-connect": _openid,
    "restrict-ips": _restrict_ips,
    "saml": _saml,
    "terminate-tls": _terminate_tls,
    "verify-webhook": _webhook,
    "webhook-validation": _webhook,
}


# --- responses --------------------------------------------------------------------------------------------------------


def _compile_responses(document: Mapping[str, Any], served: Program, around: Surroundings) -> Program:
    """The program behind a policy that restricts addresses in its responses: whether that protects is not known."""
    rules = [
        rule
        for phase in ("on_http_response", "outbound")
        for rule in _rules_of(document.get(phase))
        if any(isinstance(action, Mapping) and action.get("type") == "restrict-ips" for action in _actions(rule))
    ]
    if not rules or served is REFUSE:
        return served
    what = Claim("restrict-ips in a response protects the upstream", digest(rules), is_open=True)
    return around.builder.branch(what, _compile_phase(rules, served, around), served)


def _rules_of(phase: Any) -> list[Any]:
    return phase if isinstance(phase, list) else []


# --- words ------------------------------------------------------------------------------------------------------------


_DENIED: Final = "denied"


def _describe(rule: Any, around: Surroundings) -> None:
    expressions = rule.get("expressions") if isinstance(rule, Mapping) else None
    condition = " under conditions" if expressions else ""
    for action in _actions(rule):
        text = _word(action)
        if text:
            around.say(f"{'except' if text == _DENIED and condition else text}{condition}")


def _word(action: Any) -> str:
    effect = _effect(action)
    if effect is None or effect in (Effect.NONE, Effect.REWRITES):
        return ""
    config = _map(action, "config")
    if _is_off(config):
        return ""
    match action["type"]:
        case "basic-auth":
            return "password"
        case "jwt-validation":
            return "JSON web token"
        case "oauth":
            return f"sign-in at {config.get('provider')}"
        case "openid-connect" | "oidc":
            return f"sign-in at {config.get('issuer_url')}"
        case "saml":
            return "sign-in with SAML"
        case "verify-webhook" | "webhook-validation":
            return f"signed by {config.get('provider')}"
        case "terminate-tls":
            return "client certificate" if config.get("mutual_tls_certificate_authorities") else ""
        case "deny" | "close-connection":
            return _DENIED
        case "forward-internal":
            return f"forwarded to {_plain(config.get('url'))}"
    return ""


def networks_of(lists: tuple[list[str], list[str]]) -> Source:
    """The condition of allowed and denied networks. Raises ValueError if a text is no network."""
    return Source(decide(*lists))


def may_answer(document: Any) -> bool:
    """Whether a traffic policy has an action that answers, forwards, or is unknown."""
    if document is None or not isinstance(document, Mapping):
        return document is not None
    rules = [rule for phase in document.values() if isinstance(phase, list) for rule in phase]
    effects = {_effect(action) for rule in rules for action in _actions(rule)}
    return bool(effects & {None, Effect.ANSWERS, Effect.FORWARDS})
