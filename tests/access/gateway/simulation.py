"""One request through the steps of the platform: host, account restriction, TLS, route, modules, policy, backend."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import permutations
from typing import Any, NamedTuple

from tests.access.gateway import logins
from tests.access.gateway.actions import PolicyRun, is_signed
from tests.access.gateway.index import find_module, list_header_rewrites
from tests.access.gateway.messages import HTTP, Answer
from tests.access.gateway.policies import CONNECT, REQUEST, Program, compile_policy
from tests.access.gateway.servers import Key, Server, conflict, is_always_online, normal_host, patterns
from tests.access.gateway.state import Answers, Gate, State, Then, admit, refuse, unite

_ODD_PATH = re.compile(r"%|//|\?|/\.\.?(/|$)")


class Level(NamedTuple):
    """What the objects of one name of a host do. `is_certain`: less specific names serve nothing then.
    `edges`: whether they are edges."""

    name: str
    outcome: str
    is_certain: bool
    edges: frozenset[bool] = frozenset()


def join(levels: Iterable[Level]) -> str:
    """The outcome of names in this order: agents may be online or not, until something always is."""
    found: set[str] = set()
    for level in levels:
        found.add(level.outcome)
        if level.is_certain:
            break
    return "pass" if "pass" in found else "unknown" if "unknown" in found else "refuse"


def are_wildcards(one: Level, other: Level) -> bool:
    return one.name.startswith("*.") and other.name.startswith("*.")


def are_mixed(one: Level, other: Level) -> bool:
    """Whether one name is that of an edge, and the other one that of an endpoint."""
    return len(one.edges | other.edges) > 1


def orders(levels: list[Level], is_open: Callable[[Level, Level], bool]) -> Iterator[tuple[Level, ...]]:
    """The levels in each order that differs only between those whose order is open."""
    for order in permutations(range(len(levels))):
        swapped = [(one, other) for at, other in enumerate(order) for one in order[at + 1 :] if one < other]
        if all(is_open(levels[one], levels[other]) for one, other in swapped):
            yield tuple(levels[at] for at in order)


class Simulation(PolicyRun):
    """One request through the steps of the platform."""

    # --- host and port ------------------------------------------------------------------------------------------------

    def run(self) -> Answers:
        request, state = self.request, State()
        if request.scheme == "tls":
            if request.server_name is None:
                return [refuse(state, "the client sends no server name", code="3003")]
            host = request.server_name
        else:
            host = request.host
            if request.scheme == "https" and request.server_name != host:
                state = state.touch("server-name-differs")
        if host != normal_host(host):
            state = state.touch("host-in-another-form")
        key = (request.binding, request.scheme, request.port, normal_host(host))

        def offline(state: State) -> Answers:
            return [refuse(state.touch("no-endpoint"), "nothing serves the host", 404, "3200")]

        return self.find_host(key, state, offline)

    def find_host(self, key: Key, state: State, offline: Then) -> Answers:
        """What the most specific name of a host that is online answers. Agents may be online or not."""
        place, host = key[:3], key[3]
        names = [name for name in patterns(host) if (*place, name) in self.index.servers]
        levels = [self.index.servers[*place, name] for name in names]
        certain = next((at for at, level in enumerate(levels) if is_always_online(level)), None)
        state = self.touch_names(key, names, levels, state, offline)
        answers: Answers = []
        for level in levels if certain is None else levels[: certain + 1]:
            if code := conflict(level):
                return [*answers, refuse(state, "several objects serve the host", code=code)]
            answers += self.serve_level(level, state)
        return answers if certain is not None else answers + offline(state)

    def serve_level(self, level: list[Server], state: State) -> Answers:
        if code := conflict(level):
            return [refuse(state, "several objects serve the host", code=code)]
        return [answer for server in level for answer in self.serve(server, state)]

    def touch_names(self, key: Key, names: list[str], levels: list[list[Server]], state: State, offline: Then) -> State:
        """The open rows on which the choice among the names of a host rests, as far as it makes a difference."""
        own = self.index.servers.get((*key[:3], f"*.{key[3]}"), [])
        if len(levels) < 2 and not own:
            return state
        found = [self.try_level(name, level, state) for name, level in zip(names, levels, strict=True)]
        if not any(level.is_certain for level in found):
            found.append(Level("", unite(offline(state)).outcome, is_certain=True))
        chosen = join(found)
        if own:
            exact = sum(level.name == key[3] for level in found)
            more = [*found[:exact], self.try_level(f"*.{key[3]}", own, state), *found[exact:]]
            state = state if join(more) == chosen else state.touch("wildcard-itself")
        for row, is_open in (("several-wildcards", are_wildcards), ("wildcard-and-edge", are_mixed)):
            if any(join(order) != chosen for order in orders(found, is_open)):
                state = state.touch(row)
        return state

    def try_level(self, name: str, level: list[Server], state: State) -> Level:
        is_certain = is_always_online(level) or bool(conflict(level))
        edges = frozenset(server.is_edge for server in level)
        return Level(name, unite(self.serve_level(level, state)).outcome, is_certain, edges)

    def serve(self, server: Server, state: State) -> Answers:
        if server.sort == "https-edge" and server.scheme == "http":
            return [refuse(state, "the edge redirects plain http to https", by=server.id)]
        gate = self.restrict_account(server, state)
        if isinstance(gate, Answer):
            return [gate]
        if server.sort == "https-edge":
            gate = self.authenticate_tls(server, gate)
            return [gate] if isinstance(gate, Answer) else self.serve_route(server, gate)
        if server.sort in ("tls-edge", "tcp-edge"):
            return self.serve_connection(server, gate)
        if server.object.get("agent_tls_termination"):
            gate = replace(gate, doubt=gate.doubt or "the agent terminates TLS, and may require certificates")
        return self.run_policy(endpoint_program(server), server.id, gate, lambda state: [_fall_through(server, state)])

    # --- gates of the account and of edges ----------------------------------------------------------------------------

    def restrict_account(self, server: Server, state: State) -> Gate:
        restriction = self.index.restrictions.get("endpoints")
        if restriction is None:
            return state
        gate = self.index.restrict(restriction["ip_policies"], self.request.source, state)
        if server.binding != "public":  # what an endpoint forwards has passed the restriction, if it came from outside
            in_doubt = server.binding == "kubernetes" and gate != state
            return state.touch("internal-and-account") if in_doubt else state
        return gate if isinstance(gate, State) else replace(gate, code="3205", served_by=restriction["id"])

    def authenticate_tls(self, server: Server, state: State) -> Gate:
        module = find_module(server.object, "mutual_tls")
        if module is None:
            return state
        authorities = [found["id"] for found in module.get("certificate_authorities") or ()]
        if not authorities:
            state = state.touch("no-authorities")
        if self.request.certificate in authorities:
            return state
        return refuse(state, "no client certificate of a listed authority", code="bad_certificate", by=server.id)

    def restrict_module(self, holder: Mapping[str, Any], state: State) -> Gate:
        module = find_module(holder, "ip_restriction")
        if module is None:
            return state
        gate = self.index.restrict(module.get("ip_policies") or (), self.request.source, state)
        return gate if isinstance(gate, State) else replace(gate, served_by=holder["id"])

    def serve_connection(self, server: Server, state: State) -> Answers:
        """A TLS or TCP edge. If TLS is terminated upstream, the platform cannot apply mutual TLS and the policy."""
        edge = server.object
        if server.sort != "tls-edge":
            return self.pass_edge(server, state)
        termination = find_module(edge, "tls_termination")
        if termination is not None:
            return self.pass_edge(server, state, ends_tls=termination.get("terminate_at", "edge") == "edge")
        ended, passed_on = self.pass_edge(server, state), self.pass_edge(server, state, ends_tls=False)
        is_told = find_module(edge, "mutual_tls") is not None  # refused unless TLS ends at the edge
        if is_told or unite(ended).outcome == unite(passed_on).outcome:
            return ended
        return [replace(answer, open_rows=answer.open_rows | {"edge-termination"}) for answer in ended]

    def pass_edge(self, server: Server, state: State, *, ends_tls: bool = True) -> Answers:
        edge = server.object
        gate: Gate = self.authenticate_tls(server, state) if ends_tls else state
        if isinstance(gate, State):
            gate = self.restrict_module(edge, gate)
        module = find_module(edge, "traffic_policy") if ends_tls else None
        program = compile_policy(module["value"] if module else None, (CONNECT,))
        if isinstance(gate, Answer):
            rows = {"module-order"} if self.may_answer_first(program, edge, state) else set[str]()
            return [replace(gate, status=None, open_rows=gate.open_rows | rows)]
        return self.run_policy(program, server.id, gate, lambda state: self.serve_backend_module(edge, state))

    # --- routes -------------------------------------------------------------------------------------------------------

    def serve_route(self, server: Server, state: State) -> Answers:
        routes, (path, *query) = self.index.routes[server.id], self.request.path.split("?", 1)
        route = find_route(routes, path)
        if query or _ODD_PATH.search(path) or route is not find_route(routes, path, fold=str.lower):
            state = state.touch("path-in-another-form")
        if route is None:
            return [refuse(state.touch("no-route"), "no route matches the path", 404, by=server.id)]
        module = find_module(route, "traffic_policy")
        program = compile_policy(module["value"] if module else None, (REQUEST,))
        answers = self.run_route(program, route, state)
        if not (headers := list_header_rewrites(route)) or not program.steps:
            return answers
        own, other = unite(answers), unite(self.run_route(program, route, replace(state, rewrites=headers)))
        if own.outcome == other.outcome and other.open_outcome <= own.open_outcome:
            return answers
        return [replace(answer, open_rows=answer.open_rows | {"module-order"}) for answer in answers]

    def run_route(self, program: Program, route: Mapping[str, Any], state: State) -> Answers:
        """A request through the gates and the policy of a route."""
        for gate_of in (self.restrict_module, self.verify_module, self.login_module, self.filter_user_agents):
            gate = gate_of(route, state)
            if isinstance(gate, Answer):
                if self.may_answer_first(program, route, state):
                    gate = replace(gate, open_rows=gate.open_rows | {"module-order"})
                return [gate]
            state = gate
        return self.run_policy(program, route["id"], state, lambda state: self.serve_backend_module(route, state))

    def may_answer_first(self, program: Program, route: Mapping[str, Any], state: State) -> bool:
        """Whether the policy itself would answer a request that a module refuses, in another order of the two."""
        if not program.steps:
            return False
        answers = self.run_policy(program, route["id"], state, lambda state: [refuse(state, "no action answers")])
        return any(answer.outcome != "refuse" for answer in answers)

    def verify_module(self, route: Mapping[str, Any], state: State) -> Gate:
        module = find_module(route, "webhook_verification")
        if module is None or is_signed(self.request, module):
            return state
        return refuse(state, "the webhook provider did not sign the request", 403, "3204", route["id"])

    def login_module(self, route: Mapping[str, Any], state: State) -> Gate:
        for kind in ("oauth", "oidc", "saml"):
            module = find_module(route, kind)
            if module is None or (module.get("options_passthrough") and self.request.method == "OPTIONS"):
                continue
            if self.request.path.startswith(("/oauth2/", "/auth/")):
                return refuse(state.touch("reserved-paths"), "the path is reserved for logins", 302, by=route["id"])
            decision = logins.decide(kind, module, self.request.identity)
            for row in decision.rows:
                state = state.touch(row)
            if not decision.admits:
                status, code = (403, "3105") if decision.is_signed_in else (302, "")
                return refuse(state, decision.reason, status, code, route["id"])
        return state

    def filter_user_agents(self, route: Mapping[str, Any], state: State) -> Gate:
        """Refuses a user agent that a rule denies and no rule allows; one that is missing unless a rule allows it."""
        module = find_module(route, "user_agent_filter")
        if module is None:
            return state
        agent = self.request.header("user-agent")
        allowed = any(re.search(rule, agent or "") for rule in module.get("allow") or ())
        denied = any(re.search(rule, agent or "") for rule in module.get("deny") or ())
        if allowed or (agent is not None and not denied):
            return state
        return refuse(state, "the user agent is refused", 403, "3211", route["id"])

    # --- backends -----------------------------------------------------------------------------------------------------

    def serve_backend_module(self, holder: Mapping[str, Any], state: State) -> Answers:
        module = find_module(holder, "backend")
        if module is None or module.get("backend") is None:
            return [refuse(state.touch("no-backend"), "no backend", 503, "724", holder["id"])]
        return self.serve_backend(module["backend"]["id"], state, ())

    def serve_backend(self, identity: str, state: State, parents: tuple[str, ...]) -> Answers:
        backend = self.index.backends.get(identity)
        if backend is None or identity in parents:
            return [refuse(state.touch("no-backend"), "the backend does not exist", 503, "724", identity)]
        parents = (*parents, identity)
        if identity in self.index.groups:
            return self.serve_tunnel_group(backend, state)
        if isinstance(backend.get("backends"), Mapping):
            return self.serve_weighted(backend, state, parents)
        if "backends" in backend:
            answers = [answer for child in backend["backends"] for answer in self.serve_backend(child, state, parents)]
            return answers or [refuse(state.touch("no-backend"), "no backend", 503, "724", identity)]
        return [admit(state, "the backend answers", identity, backend.get("status_code"))]

    def serve_tunnel_group(self, backend: Mapping[str, Any], state: State) -> Answers:
        """Passes, since an agent may open a tunnel with the labels at any time; until then nothing answers."""
        if not backend.get("labels"):
            state = state.touch("empty-selector")
        answers = [admit(state, "reaches an agent with the labels", backend["id"])]
        if not backend.get("tunnels"):
            answers.append(refuse(state.touch("no-backend"), "no tunnel has the labels", 503, "6515", backend["id"]))
        return answers

    def serve_weighted(self, backend: Mapping[str, Any], state: State, parents: tuple[str, ...]) -> Answers:
        weights = backend["backends"]
        answers = [
            answer
            for child, weight in weights.items()
            if weight
            for answer in self.serve_backend(child, state, parents)
        ] or [refuse(state.touch("no-backend"), "no backend has a weight", 503, "724", backend["id"])]
        idle = [child for child, weight in weights.items() if not weight]
        if any(answer.outcome == "pass" for child in idle for answer in self.serve_backend(child, state, parents)):
            answers = [
                answer if answer.outcome == "pass" else replace(answer, open_rows=answer.open_rows | {"weight-0"})
                for answer in answers
            ]
        return answers


def endpoint_program(server: Server) -> Program:
    """The policy of an endpoint. on_tcp_connect does not run for http and https endpoints that are internal."""
    phases = (CONNECT,) if server.scheme not in HTTP else (CONNECT, REQUEST)
    return compile_policy(server.object.get("traffic_policy"), phases[1:] if is_internal_http(server) else phases)


def is_internal_http(server: Server) -> bool:
    return server.binding == "internal" and server.scheme in HTTP


def _fall_through(server: Server, state: State) -> Answer:
    """The answer to a request that no action of an endpoint's policy ends."""
    if server.sort == "cloud":
        return refuse(state, "no action answers", code="6029", by=server.id)
    return admit(state, "reaches the agent", server.id)


def find_route(
    routes: Iterable[Mapping[str, Any]], path: str, fold: Callable[[str], str] = str
) -> Mapping[str, Any] | None:
    """The route that serves a path: that with the equal path, else that with the longest prefix, as plain text."""
    path, best = fold(path), None
    for route in routes:
        match = fold(route["match"])
        if route["match_type"] == "exact_path" and match == path:
            return route
        if route["match_type"] == "path_prefix" and path.startswith(match):
            best = route if best is None or len(match) > len(best["match"]) else best
    return best
