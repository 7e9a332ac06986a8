"""Enters regions of an account: the program of a region, in words too, and the resources that decide about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any, Final, TypeVar, TypeVarTuple

from msgspec import Struct
from msgspec.structs import replace

from reconciler.access.account import (
    PARTS,
    Account,
    Resource,
    identify_authority,
    is_edge,
    is_redirected,
    is_served_by_children,
    role_of,
    split_url,
)
from reconciler.access.conditions import Certificate, Claim, Condition
from reconciler.access.modules import MODULES, is_enabled
from reconciler.access.networks import Networks
from reconciler.access.places import Door, Region
from reconciler.access.policies import Seen, Written, compile_policy, digest, is_computed, networks_of
from reconciler.access.programs import PASS, REFUSE, Program, conditions_of
from reconciler.model.access import Authority, Upstream, read_list

_MAX_CHAIN: Final = 8  # endpoints that forward to each other; the platform's limit is not documented
_CERTAIN_CHAIN: Final = 3
_MAX_FORWARDS: Final = 60  # actions that are followed for one entry point
_RESERVED: Final = ("/oauth2/", "/auth/")  # paths that login modules keep for themselves
_LOGINS: Final = ("oauth", "oidc", "saml")
NOT_DECLARED: Final = "not declared here: "
"""How the facts begin that an account with more objects than the known ones would decide."""
_GATES: Final = tuple((name, gate) for name, gate in MODULES.items() if gate is not None)


class EntryPoint(Struct, frozen=True):
    """One region of requests, and who gets through.

    gates     in words, in order; none: everyone
    uses      the names of the resources that decide about it
    program   who gets through, exactly
    """

    region: Region
    gates: tuple[object, ...]
    uses: frozenset[str]
    program: Program

    @property
    def admits(self) -> str:
        """Who gets through, in words."""
        if self.program is REFUSE:
            return "no one"
        if self.program is PASS:
            return "everyone"
        gates = [*dict.fromkeys(map(str, self.gates))]
        if gates and all(gate.startswith("except ") for gate in gates):
            gates[0] = f"everyone, {gates[0]}"
        return " · ".join(gates) or "some requests"


def enter(account: Account, region: Region, paths: Set[str] = frozenset()) -> EntryPoint:
    """Who gets through in a region. `paths`: those that both states mention."""
    return enter_path(account, region, region.example_path(paths) if region.path or region.below else "")


def enter_path(account: Account, region: Region, path: str) -> EntryPoint:
    """Who gets through at a path of a region."""
    return _enter_once(account, region, path, lambda compiler: compiler.compile(region, path))


def trace(account: Account, region: Region) -> tuple[EntryPoint, Mapping[Condition, tuple[str, ...]]]:
    """As `enter` and `enter_part`, with the names of the resources that each condition comes from."""
    compiler = _Compiler(Answers(account))
    compiler.origins = {}
    if region.door.binding == "account":
        program = compiler.guard(region.door.scheme, PASS)
    else:
        program = compiler.compile(region, region.path)
    entry = EntryPoint(region, tuple(compiler.words), frozenset(compiler.uses), program)
    return entry, compiler.origins


def enter_publicly(account: Account, region: Region, paths: Set[str]) -> EntryPoint | None:
    """Who gets through at the host and port of a region from everywhere, if it is not public itself. `paths` as of
    `enter`."""
    public = replace(region, door=replace(region.door, binding="public"))
    is_other = region.door.binding in ("internal", "kubernetes")
    return enter(account, public, paths) if is_other and account.has_way_in(public) else None


def enter_wildcard(account: Account, region: Region, paths: Set[str]) -> EntryPoint | None:
    """Who gets through at the wildcard that begins with the host of a region, which may serve this host too. `paths`
    as of `enter`."""
    return enter(account, region, paths) if f"*.{region.host}" in account.doors.get(region.door, {}) else None


def enter_part(account: Account, region: Region) -> EntryPoint:
    """Who may use a part of the account."""
    return _enter_once(account, region, "", lambda compiler: compiler.guard(region.door.scheme, PASS))


def _enter_once(account: Account, region: Region, path: str, compile_in: Callable[[_Compiler], Program]) -> EntryPoint:
    """The entry point; one of another state if this state answers everything that was asked for it in the same way."""
    known: list[tuple[Answers, EntryPoint]] = account.builder.compiled[region.door, region.host, path]
    for answers, entry in known:
        if answers.hold_in(account):
            return entry if entry.region == region else replace(entry, region=region)
    compiler = _Compiler(Answers(account))
    program = compile_in(compiler)
    entry = EntryPoint(region, tuple(compiler.words), frozenset(compiler.uses), program)
    known.append((compiler.answers, entry))
    return entry


T = TypeVar("T")
Args = TypeVarTuple("Args")


class Answers:
    """What a compilation asks a state of an account, with the answers. It learns of the state in no other way."""

    def __init__(self, account: Account) -> None:
        self.builder = account.builder
        self._account = account
        self._known: dict[tuple[Any, ...], Any] = {}
        self.count = 0

    def ask(self, question: Callable[[Account, *Args], T], *args: *Args) -> T:
        self.count += 1
        key = (question, *args)
        if key not in self._known:
            self._known[key] = question(self._account, *args)
        answer: T = self._known[key]
        return answer

    def hold_in(self, account: Account) -> bool:
        """Whether a state answers the same."""
        if account is not self._account:
            for (question, *args), answer in self._known.items():
                given = question(account, *args)
                if given is not answer and given != answer:
                    return False
        return True


class _Compiler:
    """Compiles one region, and notes what decides about it."""

    def __init__(self, answers: Answers) -> None:
        self.answers = answers
        self.builder = answers.builder
        self.words: list[object] = []
        self.uses: set[str] = set()
        self.written: Written = {}
        self.seen = Seen()
        self.origins: dict[Condition, tuple[str, ...]] | None = None
        self._chain: list[str] = []
        self._forwards = 0
        self._scheme = ""  # of the endpoint whose policy runs

    def say(self, text: object) -> None:
        """Notes a gate, in words."""
        self.words.append(text)

    def _trace(self, program: Program, *names: str) -> Program:
        """The program. If origins are wanted, what is new in it comes from the resources of these names."""
        if self.origins is not None:
            for condition in conditions_of(program):
                self.origins.setdefault(condition, names)
        return program

    # --- which object serves ------------------------------------------------------------------------------------------

    def compile(self, region: Region, path: str) -> Program:
        door = region.door
        self._scheme = door.scheme
        program = self._serve(door, region.host, path)
        if door.binding == "public":
            return self.guard("endpoints", program)
        if door.binding == "kubernetes" and self.answers.ask(Account.find_restriction, "endpoints") is not None:
            guarded = self.guard("endpoints", program)
            what = Claim("the restriction of endpoints applies to Kubernetes traffic", is_open=True)
            return self.builder.branch(what, guarded, program)
        return program

    def guard(self, part: str, program: Program) -> Program:
        """The program behind the account's restriction of a part, if it is enforced."""
        restriction = self.answers.ask(Account.find_restriction, part)
        if restriction is None:
            if self.answers.ask(Account.has_more) and part != "endpoints":
                what = Claim(f"{NOT_DECLARED}an IP restriction of {PARTS[part]}", is_open=True)
                return self.builder.branch(what, REFUSE, program)
            return self._doubt_unread(program, "IPRestriction")
        self.uses.add(restriction.name)
        policies = read_list(restriction.fields.get("ip_policy_ids"))
        return self._trace(self.admit_networks(policies, [], [], program, REFUSE), restriction.name)

    def _doubt_unread(self, program: Program, kind: str) -> Program:
        if (why := self.answers.ask(Account.why_unread, kind)) is None:
            return program
        what = Claim(f"not read: {kind}", why, is_open=True)
        return self.builder.branch(what, program, REFUSE)

    def _doubt_missing(self, what: str, does: str, context: str = "") -> Claim:
        """The claim about an object that is referred to and not among the resources."""
        text = f"{NOT_DECLARED}{what}" if self.answers.ask(Account.has_more) else f"{what} {does}"
        return Claim(text, context, is_open=True)

    def _serve(self, door: Door, host: str, path: str) -> Program:
        """What the objects that cover a host do, the most specific first."""
        serving = self.answers.ask(Account.list_serving, door, host)
        if not serving or serving[-1][0] != (wildcard := f"*.{host}"):
            return self._serve_by(serving, door, path)
        *covering, below = serving
        program = self._serve_by(covering, door, path)
        what = Claim(f"{wildcard} serves {host} itself", is_open=True)
        own = [level for level in covering if level[0] == host]
        return self.builder.branch(what, self._serve_by([*own, below, *covering[len(own) :]], door, path), program)

    def _serve_by(self, serving: Sequence[tuple[str, Sequence[Resource]]], door: Door, path: str) -> Program:
        program: Program = REFUSE
        for index, (pattern, resources) in reversed([*enumerate(serving)]):
            mine: Program = REFUSE
            for resource in resources:
                mine = self.builder.either(mine, self._enter(resource, door, path))
            rest = [resource for _, found in serving[index + 1 :] for resource in found]
            program = self._prefer(mine, program, resources, rest, pattern)
        return program

    def _prefer(
        self, mine: Program, others: Program, resources: Sequence[Resource], rest: Sequence[Resource], pattern: str
    ) -> Program:
        """The program of a pattern instead of that of less specific ones, whose objects are `rest`, as far as that is
        documented."""
        chosen = mine
        if others is not REFUSE and all(role_of(resource).from_agent for resource in resources):  # all may be offline
            chosen = self.builder.either(mine, others)
        if any(is_edge(one) != is_edge(other) for one in resources for other in rest):
            what = Claim("an edge and an endpoint share a host by the most specific name", pattern, is_open=True)
            chosen = self.builder.branch(what, chosen, others)
        if pattern.startswith("*.") and rest:
            what = Claim("the longest wildcard serves a host that two cover", pattern, is_open=True)
            chosen = self.builder.branch(what, chosen, others)
        return chosen

    def _enter(self, resource: Resource, door: Door, path: str) -> Program:
        self.uses.add(resource.name)
        return self._trace(self._compile(resource, door, path), resource.name)

    def _compile(self, resource: Resource, door: Door, path: str) -> Program:
        role = role_of(resource)
        if is_redirected(resource, door):
            return REFUSE
        if is_served_by_children(resource):
            return self._enter_routes(resource, path)
        protocol = "http" if door.scheme in ("http", "https") else "tcp"
        if role.policy or role.from_agent:
            served = PASS if role.from_agent else REFUSE
            return self._compile_policy(resource.fields.get(role.policy), protocol, served)
        if door.scheme == "tls" and resource.fields.get("tls_termination") is None:
            return self._pass_undocumented_termination(resource.fields)
        return self._pass_modules(resource.fields, protocol, ends_tls=not _passes_tls_on(resource.fields))

    def _pass_undocumented_termination(self, fields: Mapping[str, Any]) -> Program:
        """Of an edge that does not say where TLS ends: only a client certificate shows that it ends here."""
        ended = self._pass_modules(fields, "tcp")
        if is_enabled(fields.get("mutual_tls")):
            return ended
        passed_on = self._pass_modules(fields, "tcp", ends_tls=False)
        what = Claim("TLS is terminated at an edge that does not say where", is_open=True)
        return self.builder.branch(what, ended, passed_on)

    def _enter_routes(self, edge: Resource, path: str) -> Program:
        route, is_plain = self.answers.ask(Account.find_route, edge.key, path)
        if route is None:
            return self._doubt_unread(REFUSE, "HTTPSEdgeRoute")
        self.uses.add(route.name)
        program = self._trace(self._pass_modules(route.fields, "http"), route.name)
        if path.startswith(_RESERVED) and any(is_enabled(route.fields.get(name)) for name in _LOGINS):
            what = Claim("a path that logins reserve reaches the backend", is_open=True)
            program = self.builder.branch(what, program)
        if not is_plain:
            what = Claim("a path with escapes, empty segments or other case is compared as it is", is_open=True)
            others = self.builder.branch(Claim("another route lets it through", is_open=True), PASS)
            program = self.builder.branch(what, program, others)
        return self._pass_gates(edge.fields, program)

    # --- what an object does ------------------------------------------------------------------------------------------

    def _pass_modules(self, fields: Mapping[str, Any], protocol: str, *, ends_tls: bool = True) -> Program:
        """The program of an edge or a route: its modules, its traffic policy, and what is behind them.

        If the upstream ends TLS, an edge sees no more than addresses and the name of the host.
        """
        before, headers = (self.written, self.seen), fields.get("request_headers")
        self.written = {**self.written, **_list_written(fields)}
        program = self._pass_modules_and_policy(fields, protocol, ends_tls)
        if is_enabled(headers) and fields.get("traffic_policy") is not None:
            self.seen = Seen(digest(headers))
            changed = self._pass_modules_and_policy(fields, protocol, ends_tls)
            what = Claim("a traffic policy sees the headers that a module writes", is_open=True)
            program = self.builder.branch(what, changed, program)
        self.written, self.seen = before
        return program

    def _pass_modules_and_policy(self, fields: Mapping[str, Any], protocol: str, ends_tls: bool) -> Program:
        policy = fields.get("traffic_policy")
        document = policy.get("value") if isinstance(policy, Mapping) and is_enabled(policy) else None
        served = self._reach(fields.get("backend"))
        answers = self._compile_policy(document, protocol, served) if ends_tls else served
        program = self._pass_gates(fields, answers, only=None if ends_tls else ("ip_restriction",))
        if program is answers or document is None:
            return program
        alone = compile_policy(document, protocol, REFUSE, _Silent(self))
        if alone is REFUSE:
            return program
        what = Claim("a traffic policy answers before the modules of its route", is_open=True)
        return self.builder.branch(what, self.builder.either(program, alone), program)

    def _compile_policy(self, document: Any, protocol: str, served: Program) -> Program:
        """The program of a traffic policy. Entry points share that of a policy that refers to nothing outside it."""
        if document is None or self.seen.finds:
            return compile_policy(document, protocol, served, self)
        key = id(document), protocol, id(served), self.seen.request, tuple(sorted(self.written.items()))
        if (known := self.builder.policies.get(key)) is not None:
            _, program, words = known
            self.words += words
            return program
        asked, earlier = self.answers.count, len(self.words)
        program = compile_policy(document, protocol, served, self)
        if self.answers.count == asked:  # the document is kept, so that no other one has its id
            self.builder.policies[key] = document, program, tuple(self.words[earlier:])
        return program

    def _pass_gates(self, fields: Mapping[str, Any], program: Program, only: Sequence[str] | None = None) -> Program:
        for name, gate in _GATES:
            module = fields.get(name)
            if module is not None and is_enabled(module) and (only is None or name in only):
                program = gate(module, program, self)
        return program

    def _reach(self, module: Any, seen: frozenset[str] = frozenset()) -> Program:
        if not is_enabled(module):
            return REFUSE
        return self._reach_backend(str(module.get("backend_id")), seen)

    def _reach_backend(self, key: str, seen: frozenset[str]) -> Program:
        resource = self.answers.ask(Account.find_resource, key)
        if resource is None:
            return self.builder.branch(self._doubt_missing(f"the backend {key}", "can be reached"), PASS)
        self.uses.add(resource.name)
        role = resource.kind.access
        if not isinstance(role, Upstream):
            return PASS
        if not role.is_documented(resource.fields):
            return self.builder.branch(Claim("a tunnel group without labels reaches a tunnel", is_open=True), PASS)
        if role.children is None:
            return PASS
        if key in seen:
            return REFUSE
        program: Program = REFUSE
        for child, is_sure in role.children(resource.fields):
            reached = self._reach_backend(str(child), seen | {key})
            if not is_sure:
                what = Claim("a backend of weight 0 is reached", is_open=True)
                reached = self.builder.branch(what, reached)
            program = self.builder.either(program, reached)
        return program

    # --- what policies refer to ---------------------------------------------------------------------------------------

    def admit_networks(
        self, policies: list[Any], allowed: list[Any], denied: list[Any], passed: Program, refused: Program
    ) -> Program:
        """Continues with the addresses that an allow rule and no deny rule of the policies and lists matches."""
        allow, deny, missing = [*allowed], [*denied], []
        for key in map(str, policies):
            policy = self.answers.ask(Account.find_resource, key)
            if policy is None:
                missing.append(key)
            else:
                self.uses.add(policy.name)
            for rule in self.answers.ask(Account.list_rules, key):
                self.uses.add(rule.name)
                (allow if rule.fields.get("action") == "allow" else deny).append(rule.fields.get("cidr"))
        try:
            condition = networks_of(([str(text) for text in allow], [str(text) for text in deny]))
        except ValueError:
            what = Claim("networks that cannot be read", digest([allow, deny]), is_open=True)
            return self.builder.branch(what, passed, refused)
        self.say(_NetworksInWords(condition.networks))
        program = self.builder.branch(condition, passed, refused)
        if self._chain and program is not passed:
            seen = Claim("the target of forward-internal sees the address of the client", is_open=True)
            other = Claim("the target admits the address that it sees", digest(str(condition.networks)), is_open=True)
            program = self.builder.branch(seen, program, self.builder.branch(other, passed, refused))
        for key in missing:
            what = self._doubt_missing(f"the IP policy {key}", "exists")
            program = self.builder.branch(
                what, program, self.builder.branch(Claim(f"{key} admits", is_open=True), passed)
            )
        for kind in ("IPPolicy", "IPPolicyRule"):
            if (why := self.answers.ask(Account.why_unread, kind)) is not None:
                what = Claim(f"not read: {kind}", why, is_open=True)
                program = self.builder.branch(what, passed, refused)
        return program

    def admit_authorities(self, keys: list[Any], passed: Program) -> Program:
        found = [self.authority(key) for key in keys]
        known = [item for item in found if item is not None]
        names = tuple(sorted(name for _, name in known))
        self.say(f"client certificate ({', '.join(names)})" if names else "client certificate")
        program = self.builder.branch(Certificate(frozenset(key for key, _ in known), names), passed)
        if len(known) == len(found):
            return program
        words = (
            "a certificate authority"
            if self.answers.ask(Account.has_more)
            else "a certificate authority that does not exist"
        )
        what = self._doubt_missing(words, "admits clients", digest(keys))
        return self.builder.branch(what, passed, program)

    def list_rules(self, policies: list[Any]) -> list[str]:
        """The decision of each rule of IP policies, in order: what they are, whatever their ids."""
        rules = [rule.fields for key in policies for rule in self.answers.ask(Account.list_rules, str(key))]
        return sorted(f"{fields.get('action')} {fields.get('cidr')}" for fields in rules)

    def authority(self, text: Any) -> tuple[str, str] | None:
        """The digest of a certificate authority and its name, by its key or its certificate."""
        if isinstance(text, str) and "-----BEGIN" in text:
            return digest(text.strip()), "a certificate in the policy"
        resource = self.answers.ask(Account.find_resource, str(text))
        if resource is None or not isinstance(resource.kind.access, Authority):
            return None
        self.uses.add(resource.name)
        return identify_authority(resource), resource.name

    def forward(self, url: str, binding: str, offline: Program, written: Written, seen: Seen) -> Program:
        """The program of the internal endpoint with this URL. `offline`: what happens if there is none."""
        self.answers.count += 1  # what the policy forwards to, and through which chain, is outside it
        if is_computed(url):
            return self.builder.branch(Claim("forwards to an endpoint that lets it through", url, is_open=True), PASS)
        if url in self._chain:
            return REFUSE
        if (scheme := url.partition("://")[0]) != self._scheme:
            reached = self._forward(url, binding, offline, written, seen)
            what = Claim(f"forward-internal reaches {scheme} from {self._scheme}", is_open=True)
            return self.builder.branch(what, reached)
        return self._forward(url, binding, offline, written, seen)

    def _forward(self, url: str, binding: str, offline: Program, written: Written, seen: Seen) -> Program:
        self._forwards += 1
        if len(self._chain) >= _MAX_CHAIN or self._forwards > _MAX_FORWARDS:
            self.say("unknown: too many endpoints forward to each other")
            what = Claim("more endpoints forward to each other than are followed", is_open=True)
            return self.builder.branch(what, PASS)
        for door, host in split_url(url, (binding,)):
            serving = [level for level in self.answers.ask(Account.list_serving, door, host) if level[0] != f"*.{host}"]
            if not serving:
                if not self.answers.ask(Account.has_more):
                    return offline
                return self.builder.branch(self._doubt_missing(f"the endpoint {url}", ""), PASS, offline)
            self._chain.append(url)
            before = self.written, self.seen, self._scheme
            self.written, self.seen, self._scheme = written, seen, door.scheme
            program = self._serve(door, host, "")
            self.written, self.seen, self._scheme = before
            if len(self._chain) > _CERTAIN_CHAIN:
                what = Claim("a long chain of endpoints that forward to each other is followed", is_open=True)
                program = self.builder.branch(what, program)
            self._chain.pop()
            if all(role_of(resource).from_agent for _, found in serving for resource in found):
                return self.builder.either(program, offline) if offline is not REFUSE else program
            return program
        raise AssertionError("unreachable: there is one binding")


class _Silent(_Compiler):
    """Compiles without repeating words."""

    def __init__(self, parent: _Compiler) -> None:
        super().__init__(parent.answers)
        self.uses, self._scheme = parent.uses, parent._scheme
        self.written, self.seen = parent.written, parent.seen


def _list_written(fields: Mapping[str, Any]) -> Written:
    """The headers that a module adds to requests; in which order with the other modules is not documented."""
    module = fields.get("request_headers")
    added = module.get("add") if isinstance(module, Mapping) and is_enabled(module) else None
    return {str(name).lower(): digest(value) for name, value in added.items()} if isinstance(added, Mapping) else {}


def _passes_tls_on(fields: Mapping[str, Any]) -> bool:
    """Whether the upstream of an edge ends TLS."""
    termination = fields.get("tls_termination")
    return isinstance(termination, Mapping) and termination.get("terminate_at") == "upstream"


class _NetworksInWords(Struct, frozen=True):
    """A few networks and the number of the others. Converted to text only if it is shown."""

    networks: Networks

    def __str__(self) -> str:
        return self.networks.shorten()
