"""Traffic policies as programs: what each action does to a request, and rules in their order."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping
from enum import Enum
from typing import Any, Final, NamedTuple, Protocol

from reconciler.access.conditions import PREFLIGHT, Certificate, Claim, Login, Method, Source, Token
from reconciler.access.networks import decide
from reconciler.access.programs import PASS, REFUSE, Builder, Program
from reconciler.model.access import read_list
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


Written = Mapping[str, str]
"""What the account itself writes into a request before a gate reads it: by header in lower case, or `body` or `url`.
The value is a digest of the action."""


class Surroundings(Protocol):
    """What a traffic policy refers to outside itself."""

    builder: Builder
    written: Written
    seen: Seen

    def admit_networks(
        self, policies: list[Any], allowed: list[Any], denied: list[Any], passed: Program, refused: Program
    ) -> Program: ...
    def admit_authorities(self, keys: list[Any], passed: Program) -> Program: ...
    def forward(self, url: str, binding: str, offline: Program, written: Written, seen: Seen) -> Program: ...
    def authority(self, text: Any) -> tuple[str, str] | None: ...
    def list_rules(self, policies: list[Any]) -> list[str]: ...
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
    phases, seen = [], around.seen
    for phase in ("on_tcp_connect", "inbound", *(("on_http_request",) if protocol == "http" else ())):
        phases.append((document.get(phase) or [], seen))
        for rule in _rules_of(document.get(phase)):
            seen = seen.after(rule, around)
    program = _compile_responses(document, seen, served, around)
    for rules, before in reversed(phases):
        program = _compile_phase(rules, before, program, around)
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


def _compile_phase(rules: Any, seen: Seen, served: Program, around: Surroundings) -> Program:
    if not isinstance(rules, list):
        return doubt("a phase that is not a list of rules", digest(rules), served, around)
    for rule in rules:
        _describe(rule, around)
    program, may_refuse = served, False
    for rule, before, written in reversed([*_find_seen(rules, seen, around)]):
        program = _compile_rule(rule, _Place(before, written, served, may_refuse), program, around)
        may_refuse = may_refuse or any(map(_may_refuse, _actions(rule)))
    return program


def _may_refuse(action: Any) -> bool:
    return _effect(action) not in (Effect.ANSWERS, Effect.REWRITES, Effect.NONE)


class Seen(NamedTuple):
    """What earlier actions left for expressions to see.

    request   a digest of their changes of the request
    finds     the actions whose results expressions read below `actions`, each with what they saw themselves
    """

    request: str = ""
    finds: tuple[Any, ...] = ()

    def by(self, expression: str, around: Surroundings) -> str:
        """A digest of the earlier actions that may change the value of an expression; empty if there are none."""
        if not (self.finds and reads_results(expression)):
            return self.request
        finds = [
            [request, when, [_name_contents(action, around) for action in actions]]
            for request, when, actions in self.finds
        ]
        return digest([self.request, finds])

    def after(self, rule: Any, around: Surroundings) -> Seen:
        """What is seen after a rule."""
        actions, when = _actions(rule), rule.get("expressions") if isinstance(rule, Mapping) else None
        changes = [action for action in actions if _effect(action) in (None, Effect.REWRITES)]
        finds = [action for action in actions if _effect(action) in _RESULTS]
        request = digest([self.by(str([changes, when]), around), when, changes]) if changes else self.request
        return Seen(request, (*self.finds, (request, when, finds)) if finds else self.finds)


class _Place(NamedTuple):
    """Where a rule or an action is.

    seen         what expressions see
    written      what was written before it
    end          the program behind its phase
    may_refuse   a later action of the phase may refuse a request
    """

    seen: Seen
    written: Written
    end: Program
    may_refuse: bool


def reads_results(expression: str) -> bool:
    """Whether an expression, or its digest, says that it reads what earlier actions found out."""
    return "actions" in expression or "digest" in expression


def _name_contents(action: Any, around: Surroundings) -> Any:
    """An action with what its references stand for in their place: ids change when an object is replaced."""
    if not isinstance(action, Mapping):
        return action
    config = dict(_map(action, "config"))
    if policies := read_list(config.get("ip_policies")):
        config["ip_policies"] = around.list_rules(policies)
    if authorities := read_list(config.get("mutual_tls_certificate_authorities")):
        found = [around.authority(text) for text in authorities]
        config["mutual_tls_certificate_authorities"] = [item[0] if item is not None else "" for item in found]
    return {**action, "config": config}


def _find_seen(rules: list[Any], seen: Seen, around: Surroundings) -> Iterator[tuple[Any, Seen, Written]]:
    """Each rule with what its expressions see, and with what was written before it."""
    written = around.written
    for rule in rules:
        yield rule, seen, written
        seen = seen.after(rule, around)
        for action in _actions(rule):
            written = _write(written, action, rule.get("expressions"))


def _write(written: Written, action: Any, expressions: Any = None) -> Written:
    """What is written after an action."""
    config = _map(action, "config") if isinstance(action, Mapping) else {}
    match action.get("type") if isinstance(action, Mapping) else None:
        case "add-headers":
            names = [str(name).lower() for name in _map(config, "headers")]
        case "request-body-find-replace":
            names = ["body"]
        case "url-rewrite":
            names = ["url"]
        case _:
            return written
    return {**written, **{name: digest([written.get(name), expressions, action]) for name in names}}


def doubt_written(
    gate: str, reads: Collection[str], passed: Program, program: Program, around: Surroundings, written: Written
) -> Program:
    """The program of a gate, unless the account itself writes what the gate reads, such as a password, for everyone.

    reads   headers in lower case, `body`, `url`; `*`: all
    """
    found = {name: value for name, value in written.items() if name in reads or "*" in reads}
    if not found or program is passed:
        return program
    around.say(f"unknown: {', '.join(sorted(found))} written before {gate}")
    what = Claim(f"what is written into {', '.join(sorted(found))} satisfies {gate}", digest(found), is_open=True)
    return around.builder.branch(what, passed, program)


def _compile_rule(rule: Any, place: _Place, rest: Program, around: Surroundings) -> Program:
    if not isinstance(rule, Mapping):
        return doubt("a rule that cannot be read", digest(rule), rest, around)
    steps, written = [], place.written
    for action in _actions(rule):
        steps.append((action, place._replace(written=written)))
        written = _write(written, action)
    program, may_refuse = rest, place.may_refuse
    for action, where in reversed(steps):
        program = _compile_action(action, where._replace(may_refuse=may_refuse), program, around)
        may_refuse = may_refuse or _may_refuse(action)
    expressions = rule.get("expressions") or []
    for expression in reversed(expressions if isinstance(expressions, list) else [expressions]):
        program = _test_expression(expression, place.seen, program, rest, around)
    return program


def _test_expression(expression: Any, seen: Seen, then: Program, rest: Program, around: Surroundings) -> Program:
    text = expression.strip() if isinstance(expression, str) else f"an expression {digest(expression)}"
    if text in ("true", "false"):
        return then if text == "true" else rest
    return around.builder.branch(Claim(text, seen.by(text, around)), then, rest)


def _actions(rule: Any) -> list[Any]:
    actions = rule.get("actions") if isinstance(rule, Mapping) else None
    return actions if isinstance(actions, list) else []


def _effect(action: Any) -> Effect | None:
    return ACTIONS.get(str(action.get("type"))) if isinstance(action, Mapping) else None


def _compile_action(action: Any, place: _Place, passed: Program, around: Surroundings) -> Program:
    effect = _effect(action)
    if effect in (Effect.NONE, Effect.REWRITES):
        return _call(action, passed, around)
    if effect is Effect.REFUSES:
        return REFUSE
    config = action.get("config") if isinstance(action, Mapping) else None
    config = config if isinstance(config, Mapping) else {}
    if effect is None or is_computed(config if effect is Effect.GATE else {}):
        name = action.get("type") if isinstance(action, Mapping) else None
        return doubt(f"the action {name}", digest(action), passed, around)
    kind = str(action["type"])
    if effect is Effect.ANSWERS:
        return _redirect(config, place, passed, around) if kind == "redirect" else PASS
    if effect is Effect.FORWARDS:
        offline = passed if config.get("on_error") == "continue" else REFUSE
        return around.forward(
            str(config.get("url")), str(config.get("binding") or "internal"), offline, place.written, place.seen
        )
    program = GATES[kind](config, passed, around)
    return doubt_written(kind, _list_read(kind, config), passed, program, around, place.written)


def _call(action: Action, passed: Program, around: Surroundings) -> Program:
    """The program of an action that decides nothing, unless it ends the request when a call fails."""
    if action.get("type") != "http-request" or _map(action, "config").get("on_error") != "halt":
        return passed
    return around.builder.branch(Claim("the call of http-request succeeds", digest(action), is_open=True), passed)


def _redirect(config: Action, place: _Place, passed: Program, around: Surroundings) -> Program:
    """The answer of a redirect. Whether later rules may still refuse the request is not documented."""
    ended: Program = PASS
    if passed is not PASS and (passed is not place.end or (place.may_refuse and passed is REFUSE)):
        ended = around.builder.branch(Claim("a redirect ends a policy", is_open=True), PASS, passed)
    pattern = config.get("from")
    if pattern is None:
        return ended
    return around.builder.branch(Claim(f"the URL matches {_plain(pattern)}", place.seen.request), ended, passed)


def _list_read(kind: str, config: Action) -> frozenset[str]:
    """The parts of a request by which a gate lets it through."""
    match kind:
        case "basic-auth":
            return frozenset({"authorization"})
        case "jwt-validation":
            tokens = [token for token in read_list(_map(config, "http").get("tokens")) if isinstance(token, Mapping)]
            return frozenset({"body", *(str(token.get("name")).lower() for token in tokens)})
        case "restrict-ips" | "terminate-tls":
            return frozenset()
        case "verify-webhook" | "webhook-validation":
            return frozenset({"*"})
    return frozenset({"cookie"})  # the session of a sign-in


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
    policies, allowed, denied = (read_list(config.get(name)) for name in ("ip_policies", "allow", "deny"))
    return around.admit_networks(policies, allowed, denied, passed, REFUSE)


def _basic_auth(config: Action, passed: Program, around: Surroundings) -> Program:
    if _is_off(config):
        return passed
    entries = [_credential_of(entry) for entry in read_list(config.get("credentials"))]
    if any(isinstance(entry, Sealed) for entry in entries):
        spellings = [sorted(entry.spellings) for entry in entries if isinstance(entry, Sealed)]
        return doubt("sealed credentials of basic-auth", digest(spellings), passed, around)
    known = [identify(entry, around) for entry in entries]
    if len(known) > _MAX_TOKENS:
        return doubt("a long list of basic-auth credentials", digest(known), passed, around)
    return around.builder.branch(Token("basic-auth", (frozenset(known),)), passed)


def _credential_of(entry: Any) -> Any:
    """A `user:password`, which some examples write as a map."""
    if not isinstance(entry, Mapping):
        return entry
    parts = [reveal_text(entry.get(name)) for name in ("username", "password")]
    return ":".join(part for part in parts if part is not None) if None not in parts else entry.get("password")


def _jwt(config: Action, passed: Program, around: Surroundings) -> Program:
    issuers = _values(config, "issuer")
    audiences = _values(config, "audience")
    jws = _map(config, "jws")
    algorithms = [str(name) for name in read_list(jws.get("allowed_algorithms"))]
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
    return _sign_in(
        Login(f"SAML {identify(config.get('idp_metadata'), around)} {digest(config)}"), config, passed, around
    )


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
    return around.builder.branch(sign(config, around), passed)


def sign(config: Action, around: Surroundings) -> Claim:
    """The request is signed with the secret of a webhook's provider."""
    return Claim(f"signed by {str(config.get('provider')).lower()}", identify(config.get("secret"), around))


def identify(value: Any, around: Surroundings) -> str:
    """A name for a text that may be secret, the same for equal texts in both states."""
    if isinstance(value, Sealed):
        return around.builder.name_secret(repr(sorted(value.spellings)))
    text = reveal_text(value)
    return around.builder.name_secret(text) if text is not None else digest(value)


def _terminate_tls(config: Action, passed: Program, around: Surroundings) -> Program:
    authorities = read_list(config.get("mutual_tls_certificate_authorities"))
    strategy = config.get("mutual_tls_verification_strategy")
    if strategy == "request" or not authorities:
        return passed
    found = [around.authority(text) for text in authorities]
    if None in found:
        return doubt("the certificate authorities of terminate-tls", digest(config), passed, around)
    known = [item for item in found if item is not None]
    names = tuple(sorted(name for _, name in known))
    program = around.builder.branch(Certificate(frozenset(key for key, _ in known), names), passed)
    if strategy != "require-any":
        return program
    return around.builder.branch(Claim("require-any admits every client", is_open=True), passed, program)


GATES: Final[Mapping[str, Callable[[Action, Program, Surroundings], Program]]] = {
    "basic-auth": _basic_auth,
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


def _compile_responses(document: Mapping[str, Any], seen: Seen, served: Program, around: Surroundings) -> Program:
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
    return around.builder.branch(what, _compile_phase(rules, seen, served, around), served)


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
    return Source(decide(*map(tuple, lists)))


def may_answer(document: Any) -> bool:
    """Whether a traffic policy has an action that answers, forwards, or is unknown."""
    if document is None or not isinstance(document, Mapping):
        return document is not None
    rules = [rule for phase in document.values() if isinstance(phase, list) for rule in phase]
    effects = {_effect(action) for rule in rules for action in _actions(rule)}
    return bool(effects & {None, Effect.ANSWERS, Effect.FORWARDS})
