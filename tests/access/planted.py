"""Faults that we plant in the analysis of access, as data: each makes it miss a way in, or report one that is none."""

from __future__ import annotations

from tests.simulation.planted import Bug

ACCOUNT, COMPARE, ENTERING = "access/account.py", "access/compare.py", "access/entering.py"
MODULES, NETWORKS, PLACES = "access/modules.py", "access/networks.py", "access/places.py"
POLICIES, PROGRAMS, SEARCH = "access/policies.py", "access/programs.py", "access/search.py"
TUNNEL = "kinds/catalog/agent_tunnel.py"


def _fault(name: str, file: str, old: str, new: str) -> Bug:
    return Bug(f"access: {name}", file, ((old, new),), "access")


FAULTS: tuple[Bug, ...] = (
    # --- addresses ----------------------------------------------------------------------------------------------------
    _fault(
        "deny rules count for nothing",
        NETWORKS,
        "parse_networks(allowed) - parse_networks(denied)",
        "parse_networks(allowed)",
    ),
    _fault("a complement has the first address of a range", NETWORKS, "yield start, first - 1", "yield start, first"),
    _fault("an intersection loses single addresses", NETWORKS, "if first <= last:", "if first < last:"),
    _fault(
        "allow and deny are confused",
        ENTERING,
        'rule.fields.get("action") == "allow"',
        'rule.fields.get("action") != "allow"',
    ),
    _fault(
        "an address between two networks is in both",
        NETWORKS,
        "first <= joined[-1][1] + 1",
        "first <= joined[-1][1] + 2",
    ),
    _fault("IPv6 networks are IPv4 networks", NETWORKS, "offset = 0 if network.version == 4 else _V4", "offset = 0"),
    # --- restrictions of the account ----------------------------------------------------------------------------------
    _fault(
        "endpoints are not restricted",
        ENTERING,
        'if door.binding == "public":\n            return self.guard("endpoints", program)',
        'if door.binding == "public":\n            return program',
    ),
    _fault("a restriction that is not enforced counts", ACCOUNT, 'if fields.get("enforced") is True:', "if True:"),
    _fault(
        "parts of the account are compared backwards",
        COMPARE,
        "yield region, enter_part(before, region), enter_part(after, region)",
        "yield region, enter_part(after, region), enter_part(before, region)",
    ),
    # --- which object serves ------------------------------------------------------------------------------------------
    _fault("exact routes serve nothing", ACCOUNT, "exact := self._exact.get(path)", "exact := self._exact.get('')"),
    _fault(
        "the shortest prefix serves",
        ACCOUNT,
        "for prefix in self._prefixes}, reverse=True)",
        "for prefix in self._prefixes})",
    ),
    _fault(
        "the least specific host serves", ENTERING, "in reversed([*enumerate(serving)]):", "in [*enumerate(serving)]:"
    ),
    _fault(
        "agents are always online",
        ENTERING,
        "            chosen = self.builder.either(mine, others)\n",
        "            chosen = mine\n",
    ),
    _fault(
        "a wildcard is looked up by its own name only",
        PLACES,
        'rest = host.removeprefix("*.")',
        "rest = host if host[0] != '*' else ''",
    ),
    _fault("exact paths are no regions", PLACES, "        if path:\n            yield path, False\n", ""),
    _fault(
        "what serves nothing is a way in",
        ACCOUNT,
        "is_served = any(self._is_served(found, region.door) for found in self._list_covering(*key))",
        "is_served = True",
    ),
    _fault(
        "one member of a pool counts",
        ENTERING,
        "mine = self.builder.either(mine, self._enter(resource, door, path))",
        "mine = self._enter(resource, door, path)",
    ),
    _fault("http tunnels are at https", TUNNEL, 'if isinstance(url, str) and "://" in url:', "if not url:"),
    # --- what is behind -----------------------------------------------------------------------------------------------
    _fault(
        "a disabled backend is reached",
        ENTERING,
        "        if not is_enabled(module):\n            return REFUSE\n        return self._reach_backend",
        "        if not is_enabled(module):\n            return PASS\n        return self._reach_backend",
    ),
    _fault(
        "whom a tunnel group without labels reaches is certain",
        ENTERING,
        "if not role.is_documented(resource.fields):",
        "if False:",
    ),
    _fault(
        "an HTTPS edge serves plain http",
        ACCOUNT,
        'return is_served_by_children(resource) and door.scheme == "http"',
        "return False",
    ),
    _fault("a redirect ends a policy for certain", POLICIES, "place.may_refuse and passed is REFUSE", "False"),
    _fault("children of a backend are in doubt", ENTERING, "if not is_sure:", "if is_sure:"),
    _fault(
        "a circle of endpoints answers",
        ENTERING,
        "        if url in self._chain:\n            return REFUSE\n",
        "        if url in self._chain:\n            return PASS\n",
    ),
    _fault(
        "an endpoint that does not exist answers",
        ENTERING,
        "                    return offline\n                return self.builder",
        "                    return PASS\n                return self.builder",
    ),
    # --- modules ------------------------------------------------------------------------------------------------------
    _fault(
        "gates of an edge do not hold for its routes",
        ENTERING,
        "return self._pass_gates(edge.fields, program)",
        "return program",
    ),
    _fault(
        "only address gates count",
        ENTERING,
        'only=None if ends_tls else ("ip_restriction",)',
        'only=("ip_restriction",)',
    ),
    _fault(
        "disabled modules count",
        MODULES,
        'isinstance(module, Mapping) and module.get("enabled") is not False',
        "isinstance(module, Mapping)",
    ),
    _fault(
        "certificates are not required",
        MODULES,
        'return around.admit_authorities(read_list(module.get("certificate_authority_ids")), passed)',
        "return passed",
    ),
    _fault(
        "signatures are not required",
        MODULES,
        "program = around.builder.branch(sign(module, around), passed)",
        "program = passed",
    ),
    _fault("logins let OPTIONS requests through", MODULES, 'if module.get("options_passthrough") is True:', "if True:"),
    _fault(
        "all issuers are one issuer",
        MODULES,
        'provider_name(issuer, module.get("client_id"))',
        'provider_name("", module.get("client_id"))',
    ),
    _fault(
        "groups of SAML do not count",
        MODULES,
        'groups = {"group": read_list(module.get("authorized_groups"))}',
        'groups: dict[str, list[str]] = {"group": []}',
    ),
    _fault("domains of addresses do not count", MODULES, '    "email_domains": "domain",\n', ""),
    _fault("teams do not count", MODULES, '    "teams": "team",\n', ""),
    _fault(
        "several allow lists must all admit",
        MODULES,
        "        program = around.builder.branch(either, passed)\n",
        "",
    ),
    # --- traffic policies ---------------------------------------------------------------------------------------------
    _fault(
        "deny lets through",
        POLICIES,
        "if effect is Effect.REFUSES:\n        return REFUSE",
        "if effect is Effect.REFUSES:\n        return passed",
    ),
    _fault(
        "answers are no answers",
        POLICIES,
        'if kind == "redirect" else PASS\n',
        'if kind == "redirect" else passed\n',
    ),
    _fault("passwords admit no one", POLICIES, "(frozenset(known),)", "(frozenset(),)"),
    _fault(
        "rules at the connection do not count",
        POLICIES,
        'for phase in ("on_tcp_connect", "inbound",',
        'for phase in ("inbound",',
    ),
    _fault(
        "rules run from the last to the first",
        POLICIES,
        "reversed([*_find_seen(rules, seen, around)])",
        "[*_find_seen(rules, seen, around)]",
    ),
    _fault(
        "the first expression decides",
        POLICIES,
        "in reversed(expressions if isinstance(expressions, list) else [expressions]):",
        "in (expressions if isinstance(expressions, list) else [expressions])[:1]:",
    ),
    _fault("gates that are not enforced count", POLICIES, 'return config.get("enforce") is False', "return False"),
    _fault(
        "a target that is offline ends a policy",
        POLICIES,
        'offline = passed if config.get("on_error") == "continue" else REFUSE',
        "offline = REFUSE",
    ),
    _fault(
        "a target that is offline is skipped",
        POLICIES,
        'offline = passed if config.get("on_error") == "continue" else REFUSE',
        "offline = passed",
    ),
    _fault(
        "all issuers of openid-connect are one issuer",
        POLICIES,
        'provider_name(str(config.get("issuer_url")), config.get("client_id"))',
        'provider_name("", config.get("client_id"))',
    ),
    _fault("applications of a provider are one application", POLICIES, 'return f"{provider}{own}"', "return provider"),
    _fault("issuers of tokens do not count", POLICIES, "        frozenset(issuers),\n", "        None,\n"),
    _fault("audiences of tokens do not count", POLICIES, "frozenset(audiences) if audiences else None,", "None,"),
    _fault("key sets of tokens do not count", POLICIES, 'keys = digest(jws.get("keys"))', 'keys = ""'),
    _fault("all secrets of webhooks are equal", POLICIES, 'identify(config.get("secret"), around))', '"")'),
    _fault(
        "certificates that are only requested are required",
        POLICIES,
        'if strategy == "request" or not authorities:',
        "if not authorities:",
    ),
    # --- comparing ----------------------------------------------------------------------------------------------------
    _fault(
        "what was compiled for one state serves for the other",
        ENTERING,
        "if given is not answer and given != answer:",
        "if False:",
    ),
    _fault(
        "what was closed before is not searched",
        SEARCH,
        "if one is other or one is PASS or other is REFUSE:",
        "if one is other or one is PASS or other is REFUSE or one is REFUSE:",
    ),
    _fault(
        "addresses outside are searched inside",
        SEARCH,
        "self._with(source=self.source - networks),",
        "self._with(source=self.source & networks),",
    ),
    _fault(
        "conditions hold when they do not",
        SEARCH,
        "ways = [(holds, node.then), (fails, node.otherwise)]",
        "ways = [(holds, node.otherwise), (fails, node.then)]",
    ),
    _fault(
        "gains and losses are confused",
        COMPARE,
        "(gained := self._find_gained(old, new))",
        "(gained := self._find_gained(new, old))",
    ),
    _fault(
        "what holds for IPv4-mapped addresses is certain",
        SEARCH,
        "requests = [request] if plain is None else [request, replace(request, source=plain)]",
        "requests = [request]",
    ),
    _fault(
        "a gate without addresses lets through",
        PROGRAMS,
        "            if not condition.networks:\n                return otherwise\n",
        "            if not condition.networks:\n                return then\n",
    ),
    _fault(
        "an unrestricted credential opens nothing",
        COMPARE,
        "(covered - labels if rules else None,)",
        "(covered - labels,)",
    ),
)
