"""Words for kind files: whether edges, routes, endpoints and backends serve traffic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from reconciler.kinds.rules import canonical, traffic_policy
from reconciler.kinds.rules.health import text_at
from reconciler.languages import traffic_catalog
from reconciler.model.access import read_list, read_texts
from reconciler.model.health import AccountFacts, Actor, Body, Health, State, read_instant
from reconciler.model.value import Json, value_at

BACKENDS: Final = (
    "FailoverBackend",
    "WeightedBackend",
    "TunnelGroupBackend",
    "HTTPResponseBackend",
    "StaticBackend",
)
NEW: Final = 3600.0
"""How long an object may wait for its first agent before it is degraded, in seconds."""

CHOSEN: Final = "*"
"""Stands for an internal endpoint that a traffic policy chooses for each request."""

ANSWERS: Final = frozenset({"ai-gateway", "custom-response", "forward-internal", "redirect"})
"""The actions of a traffic policy that end a request with more than a refusal."""

_HEALTHY: Final = Health(State.HEALTHY)


# --- backends ---------------------------------------------------------------------------------------------------------


def check_tunnels(body: Body, facts: AccountFacts) -> Health:
    """The open tunnels of a tunnel-group backend. The platform may list them with the backend."""
    if read_list(body.get("tunnels")):
        return _HEALTHY
    labels = body.get("labels")
    wanted = {key: text for key, text in labels.items() if isinstance(text, str)} if isinstance(labels, dict) else {}
    if not wanted:
        return Health(State.UNKNOWN, "it has no labels, so its tunnels are not known")
    label, text = next(iter(wanted.items()))
    for tunnel in facts.list_where("Tunnel", ("labels", label), text):
        if wanted.items() <= _read_map(tunnel.get("labels")).items():
            return _HEALTHY
    if not facts.is_complete("Tunnel"):
        return Health(State.UNKNOWN, "the open tunnels could not be read")
    labels_text = ", ".join(f"{key}={text}" for key, text in sorted(wanted.items()))
    advice = f"start an agent that opens a tunnel with the labels {labels_text}"
    return wait_for_agent(body, facts, f"no tunnel with the labels {labels_text} is open", advice)


def check_children(children: Iterator[str], body: Body, facts: AccountFacts) -> Health:
    """The backends to which another backend passes traffic: one that serves is enough."""
    found = [facts.health_of(BACKENDS, child) for child in children]
    if not found:
        return Health(State.DEGRADED, "it has no backends", "add a backend", Actor.YOU)
    if any(health.state is State.HEALTHY for health in found):
        return _HEALTHY
    first = min(found, key=lambda health: (health.state is not State.UNKNOWN, health.actor is not Actor.AGENT))
    return _behind(body, facts, first, "none of its backends serves")


def wait_for_agent(body: Body, facts: AccountFacts, reason: str, advice: str) -> Health:
    """The health of what only an agent can serve: degraded, unless it was created a moment ago."""
    created = read_instant(body.get("created_at"))
    is_new = created is not None and facts.now < created + NEW
    return Health(State.PROGRESSING if is_new else State.DEGRADED, reason, advice, Actor.AGENT)


def _behind(body: Body, facts: AccountFacts, other: Health, reason: str) -> Health:
    """The health of an object that serves traffic through another one."""
    if other.state is State.HEALTHY:
        return _HEALTHY
    text = f"{reason}: {other.reason}"
    if other.state is State.UNKNOWN:
        return Health(State.UNKNOWN, text)
    if other.actor is Actor.AGENT:
        return wait_for_agent(body, facts, text, other.advice)
    return Health(other.state, text, other.advice, other.actor)


def _read_map(value: Json) -> Mapping[str, Json]:
    """The texts of a map."""
    return {key: item for key, item in value.items() if isinstance(item, str)} if isinstance(value, dict) else {}


# --- edges and routes -------------------------------------------------------------------------------------------------


def check_edge(body: Body, facts: AccountFacts) -> Health:
    """An edge with hosts, whose backend serves or whose traffic policy answers."""
    return _check_hosts(body) or check_modules(body, facts)


def check_edge_of_routes(body: Body, facts: AccountFacts) -> Health:
    """An edge with hosts, of whose routes at least one serves."""
    if (unserved := _check_hosts(body)) is not None:
        return unserved
    routes = facts.list_where("HTTPSEdgeRoute", ("edge_id",), text_at(body, "id"))
    found = [facts.health_of(["HTTPSEdgeRoute"], text_at(route, "id")) for route in routes]
    if any(health.state is State.HEALTHY for health in found):
        return _HEALTHY
    if not facts.is_complete("HTTPSEdgeRoute"):
        return Health(State.UNKNOWN, "its routes could not be read")
    if not found:
        return Health(State.DEGRADED, "it has no routes", "declare an HTTPSEdgeRoute with a backend", Actor.YOU)
    first = min(found, key=lambda health: (health.state is not State.UNKNOWN, health.actor is not Actor.AGENT))
    return _behind(body, facts, first, "none of its routes serves")


def _check_hosts(body: Body) -> Health | None:
    if read_texts(body.get("hostports")):
        return None
    return Health(State.DEGRADED, "it serves no host", "set hostports", Actor.YOU)


def check_modules(body: Body, facts: AccountFacts) -> Health:
    """An edge or a route whose backend serves, or whose traffic policy answers."""
    policy, backend = body.get("traffic_policy"), body.get("backend")
    forwards, answers = _check_policy(value_at(policy, ["value"]) if _is_enabled(policy) else None, body, facts)
    if forwards is not None:
        return forwards
    id = text_at(backend, "backend", "id") if _is_enabled(backend) else ""
    if id:
        return _behind(body, facts, facts.health_of(BACKENDS, id), "its backend does not serve")
    if answers is not None:
        return answers
    return Health(State.DEGRADED, "it has no backend that is enabled", "set backend", Actor.YOU)


def _is_enabled(module: Json) -> bool:
    return isinstance(module, dict) and module.get("enabled") is not False


# --- endpoints --------------------------------------------------------------------------------------------------------


def check_endpoint(body: Body, facts: AccountFacts) -> Health:
    """A cloud endpoint, whose traffic policy answers; something must forward to it if it is internal."""
    forwards, answers = _check_policy(body.get("traffic_policy"), body, facts)
    if forwards is not None:
        return forwards
    if answers is None:
        reason = "its traffic policy neither answers nor forwards"
        return Health(State.DEGRADED, reason, "add an action such as forward-internal", Actor.YOU)
    return _check_reach(body, facts) if answers.state is State.HEALTHY else answers


def check_agent(body: Body, facts: AccountFacts) -> Health:
    """A tunnel or an endpoint of an agent, which the platform shows while the agent is connected."""
    url = text_at(body, "public_url") or text_at(body, "url")
    sessions = [text_at(tunnel, "tunnel_session", "id") for tunnel in facts.list_where("Tunnel", ("public_url",), url)]
    if any(facts.find("TunnelSession", session) is not None for session in sessions if session):
        return _check_reach(body, facts)
    if not url or not facts.is_complete("Tunnel") or (sessions and not facts.is_complete("TunnelSession")):
        return Health(State.UNKNOWN, "the sessions of agents could not be read")
    return Health(State.DEGRADED, "its agent is not connected", "start the agent, or restart it", Actor.AGENT)


def check_operator(body: Body, facts: AccountFacts) -> Health:
    """A Kubernetes operator: a session with a credential of its owner is online."""
    principal = canonical.user(text_at(body, "principal", "id"))
    owned = facts.list_where("TunnelCredential", ("owner_id",), principal) if principal else ()
    for credential in owned:
        if facts.list_where("TunnelSession", ("credential", "id"), text_at(credential, "id")):
            return _HEALTHY
    lists = ("TunnelCredential", "TunnelSession")
    if not principal or not all(facts.is_complete(name) for name in lists):
        return Health(State.UNKNOWN, "the sessions of operators could not be read")
    return Health(State.DEGRADED, "it is not connected", "start the operator in its cluster", Actor.AGENT)


def _check_reach(body: Body, facts: AccountFacts) -> Health:
    """What a binding needs: something that forwards to an internal endpoint, an operator for one of Kubernetes."""
    url, bindings = canonical.url(text_at(body, "url")), read_texts(body.get("bindings"))
    if "kubernetes" in bindings:
        return _check_operators(body, facts)
    host = url.partition("://")[2].partition("/")[0].partition(":")[0]
    if not host.endswith(".internal") or {url, CHOSEN, *_wildcards(url)} & facts.forward_targets:
        return _HEALTHY
    if not facts.is_complete("Endpoint"):
        return Health(State.UNKNOWN, "whether an agent's endpoint forwards to it could not be read")
    return Health(State.DEGRADED, "nothing forwards to it", "forward to it with forward-internal", Actor.YOU)


def _check_operators(body: Body, facts: AccountFacts) -> Health:
    found = [facts.health_of(["KubernetesOperator"], id) for id in facts.list_ids("KubernetesOperator")]
    if any(health.state is State.HEALTHY for health in found):
        return _HEALTHY
    if not facts.is_complete("KubernetesOperator") or any(health.state is State.UNKNOWN for health in found):
        return Health(State.UNKNOWN, "the Kubernetes operators could not be read")
    return wait_for_agent(body, facts, "no Kubernetes operator is connected", "start the operator in its cluster")


# --- traffic policies -------------------------------------------------------------------------------------------------


def list_forwards(document: Json) -> Iterator[str]:
    """The internal URLs to which a traffic policy forwards, in canonical form."""
    for action in _list_actions(document):
        if action.get("type") == "forward-internal":
            url = text_at(action, "config", "url")
            yield CHOSEN if "${" in url else canonical.url(url)


def _check_policy(document: Json, body: Body, facts: AccountFacts) -> tuple[Health | None, Health | None]:
    """What is wrong where a traffic policy forwards to, and the health of its answers; None: nothing, and no answer."""
    missing = sorted({url for url in list_forwards(document) if url != CHOSEN and not _is_served(url, facts)})
    if missing:
        if not facts.is_complete("Endpoint"):
            return Health(State.UNKNOWN, f"whether {missing[0]} is online could not be read"), None
        reason, advice = f"it forwards to {missing[0]}, which no endpoint serves", f"open an endpoint for {missing[0]}"
        return wait_for_agent(body, facts, reason, advice), None
    types = {action.get("type") for action in _list_actions(document)}
    if any(isinstance(type, str) and type in ANSWERS for type in types):
        return None, _HEALTHY
    known = {*traffic_catalog.actions(), *traffic_catalog.OLD_ACTIONS}
    if any(type not in known for type in types if isinstance(type, str)):
        return None, Health(State.UNKNOWN, "it is not known whether its traffic policy answers")
    return None, None


def _is_served(url: str, facts: AccountFacts) -> bool:
    places = (("CloudEndpoint", "url"), ("AgentEndpoint", "url"), ("Endpoint", "url"), ("Endpoint", "public_url"))
    names = [name for found in (url, *_wildcards(url)) for name in _spellings(found)]
    return any(facts.list_where(kind, (field,), name) for kind, field in places for name in names)


def _spellings(url: str) -> tuple[str, ...]:
    """A URL in canonical form, and with its default port."""
    hostport = canonical.hostport_of_url(url)
    return (url,) if hostport is None else (url, f"{url.partition('://')[0]}://{hostport}")


def _wildcards(url: str) -> Iterator[str]:
    """The wildcards above the host of a URL, with its scheme and port."""
    scheme, _, rest = url.partition("://")
    labels = rest.split(".")
    for number in range(1, min(len(labels), 10)):
        yield f"{scheme}://*.{'.'.join(labels[number:])}"


def _list_actions(document: Json) -> Iterator[Mapping[str, Any]]:
    parsed = traffic_policy.parse(document) if isinstance(document, str) else document
    for rules in parsed.values() if isinstance(parsed, dict) else ():
        for rule in read_list(rules):
            for action in read_list(value_at(rule, ["actions"])):
                if isinstance(action, dict):
                    yield action
