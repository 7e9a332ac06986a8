"""Random manifests over every kind, small enough to shrink and wide enough to meet."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import cache
from typing import Any

from hypothesis import strategies as st
from msgspec.structs import replace

from reconciler.model.address import Address
from reconciler.model.manifest import Declaration, Delivery, Lifecycle, Manifest
from reconciler.model.problem import Position
from reconciler.model.value import Ref, Secret, Template, Value, substitute
from tests.harness.tiers import is_quick

Spec = dict[str, Any]
_NAMES = ("a", "b", "c")
# Strategies are made once: to make and check one costs more than to draw from it.
_SOME_NAMES = st.lists(st.sampled_from(_NAMES), unique=True, max_size=2 if is_quick() else 3)
_TENTH = st.integers(0, 9)
_POOLS = st.sampled_from([(), ("x",), ("0", "x")])  # those beside the first: before it in order, and after it
VALUE = Secret("a value", "env:VALUE")
TEXT = st.sampled_from(["", "x", "second text", "Grüße"])
METADATA = st.sampled_from(["", "{}", '{"team": "a"}', "free text\nof two lines"])
POLICIES = st.sampled_from(
    [
        {"on_http_request": [{"actions": [{"type": "deny", "config": {"status_code": 403}}]}]},
        {"on_http_request": [{"actions": [{"type": "deny", "config": {"status_code": 404}}]}]},
        '{"on_http_request": [{"actions": [{"type": "deny", "config": {"status_code": 404}}]}]}',
    ]
)


@cache
def draw_some(addresses: tuple[Address, ...], least: int, most: int) -> st.SearchStrategy[list[Address]]:
    return st.lists(st.sampled_from(addresses), min_size=least, max_size=most, unique=True)


class Draft:
    """A manifest in the making: later kinds refer to what is there already."""

    def __init__(self, draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
        self._draw = draw
        self.declared: dict[Address, Declaration] = {}

    def draw(self, strategy: st.SearchStrategy[Any]) -> Any:
        return self._draw(strategy)

    def add(self, kind: str, name: str, spec: Spec, *, described: bool = True) -> None:
        address = Address(kind, name)
        if described:
            spec = {"description": self.draw(TEXT), "metadata": self.draw(METADATA), **spec}
        spec = {key: value for key, value in spec.items() if value is not None}
        deliver = {"token": Delivery("to_file", f"secrets/{name}")} if kind in ("APIKey", "TunnelCredential") else {}
        protect = self.draw(_TENTH) == 0
        self.declared[address] = Declaration(
            address, spec, Position("m.yaml", 1, 1), lifecycle=Lifecycle(protect=protect), deliver=deliver
        )

    def some(self, *kinds: str, least: int = 0, most: int = 2) -> list[Ref] | None:
        addresses = [address for address in self.declared if address.kind in kinds]
        if len(addresses) < max(least, 1):
            return None if least else []
        picked = self.draw(draw_some(tuple(addresses), least, most))
        return [Ref(address) for address in picked]

    def one(self, *kinds: str) -> Ref | None:
        found = self.some(*kinds, least=1, most=1)
        return found[0] if found else None

    def names(self) -> list[str]:
        return list(self.draw(_SOME_NAMES))

    def maybe(self, module: Spec | None) -> Spec | None:
        return module if module is not None and self.draw(st.booleans()) else None

    # modules

    def backend(self) -> Spec | None:
        target = self.one("FailoverBackend", "WeightedBackend", "TunnelGroupBackend", "HTTPResponseBackend")
        return self.maybe(None if target is None else {"backend_id": target})

    def restriction(self) -> Spec | None:
        policies = self.some("IPPolicy", least=1)
        return self.maybe(
            None if policies is None else {"ip_policy_ids": policies, "enabled": self.draw(st.booleans())}
        )

    def mutual_tls(self) -> Spec | None:
        authorities = self.some("CertificateAuthority", least=1)
        return self.maybe(None if authorities is None else {"certificate_authority_ids": authorities})

    def policy(self) -> Spec | None:
        return self.maybe({"value": self.draw(POLICIES)})


def rename_some(manifest: Manifest, name: str, formers: Mapping[Address, Collection[Address]]) -> Manifest:
    """The same resources, of which some bear the name now, and say what they were called before."""

    def address(old: Address) -> Address:
        return old._replace(name=name) if old in formers else old

    def follow_reference(ref: Ref) -> Value:
        return replace(ref, target=address(ref.target))

    declared = [
        replace(
            declaration,
            address=address(old),
            moved=tuple(formers.get(old, ())),
            spec={name: substitute(value, follow_reference) for name, value in declaration.spec.items()},
        )
        for old, declaration in manifest.declarations.items()
    ]
    return Manifest(manifest.stack, {declaration.address: declaration for declaration in declared})


@st.composite
def manifests(draw: Callable[[st.SearchStrategy[Any]], Any]) -> Manifest:
    """Up to three resources of each kind, in `make test` two, with references that exist and no problem in them."""
    draft = Draft(draw)
    for fill in (_access, _certificates, _backends, _domains, _edges, _events):
        fill(draft)
    return Manifest("laws", draft.declared)


def _access(draft: Draft) -> None:
    for name in draft.names():
        draft.add("BotUser", name, {"name": f"bot {name}", "active": draft.draw(st.booleans())}, described=False)
    for name in draft.names():
        draft.add("TunnelCredential", name, {"acl": draft.draw(ACLS), "owner_id": draft.one("BotUser")})
    for name in draft.names():
        draft.add("APIKey", name, {"owner_id": draft.one("BotUser")})
    for name in draft.names():
        draft.add("Vault", name, {"name": f"{name}/{draft.draw(st.integers(0, 1))}"})
    for name in draft.names()[:1]:  # digests of what is secret are dear on purpose
        vault = draft.one("Vault")
        if vault is not None:
            called = {"vault_name": draft.declared[vault.target].spec["name"]}
            where = called if draft.draw(st.booleans()) else {"vault_id": vault}
            draft.add(
                "Secret", name, {"name": draft.draw(st.sampled_from([name, f"other-{name}"])), "value": VALUE, **where}
            )
    for name in draft.names():
        key = f"ssh-ed25519 AAAA{name}{draft.draw(st.sampled_from('xy'))}"
        draft.add("SSHCredential", name, {"public_key": key, "owner_id": draft.one("BotUser")})
    for name in draft.names():
        draft.add("IPPolicy", name, {})
    for name in draft.names():
        policy = draft.one("IPPolicy")
        if policy is not None:
            cidr = f"10.{_NAMES.index(name)}.{draft.draw(st.integers(0, 1))}.0/24"
            action = draft.draw(st.sampled_from(["allow", "deny"]))
            draft.add("IPPolicyRule", name, {"ip_policy_id": policy, "cidr": cidr, "action": action})
    for name, sort in zip(draft.names(), ("dashboard", "api", "agent"), strict=False):
        policies = draft.some("IPPolicy", least=1)
        if policies is not None:
            draft.add(
                "IPRestriction",
                name,
                {"type": sort, "enforced": draft.draw(st.booleans()), "ip_policy_ids": policies},
            )


ACLS = st.sampled_from([None, [], ["*"], ["bind:*.a.example.com"], ["bind:b.example.com", "bind:*.a.example.com"]])


def _certificates(draft: Draft) -> None:
    for name in draft.names():
        draft.add("CertificateAuthority", name, {"ca_pem": f"PEM {name} {draft.draw(st.integers(0, 1))}"})
    for name in draft.names():
        draft.add(
            "SSHCertificateAuthority", name, {"private_key_type": draft.draw(st.sampled_from(["rsa", "ed25519"]))}
        )
    for name in draft.names():
        authority = draft.one("SSHCertificateAuthority")
        if authority is not None:
            key = f"ssh-ed25519 AAAA{name}"
            spec = {"ssh_certificate_authority_id": authority, "public_key": key, "principals": ["h"]}
            draft.add(draft.draw(st.sampled_from(["SSHHostCertificate", "SSHUserCertificate"])), name, spec)


def _backends(draft: Draft) -> None:
    for name in draft.names():
        draft.add("TunnelGroupBackend", name, {"labels": {"app": draft.draw(st.sampled_from("xy"))}})
    for name in draft.names():
        draft.add("HTTPResponseBackend", name, {"body": draft.draw(TEXT), "headers": {}, "status_code": 200})
    for name in draft.names():
        draft.add("StaticBackend", name, {"address": f"{name}.example.net:{draft.draw(st.integers(1, 2))}"})
    for name in draft.names():
        children = draft.some("TunnelGroupBackend", "StaticBackend") or []
        shares = [{"backend_id": child, "weight": draft.draw(st.integers(0, 2))} for child in children]
        draft.add("WeightedBackend", name, {"backends": shares})
    for name in draft.names():
        draft.add("FailoverBackend", name, {"backends": draft.some("TunnelGroupBackend", "HTTPResponseBackend")})


def _domains(draft: Draft) -> None:
    for name in draft.names():
        policy = draft.maybe({"private_key_type": draft.draw(st.sampled_from(["rsa", "ecdsa"]))})
        draft.add("ReservedDomain", name, {"domain": f"{name}.example.com", "certificate_management_policy": policy})
    for name in draft.names():
        draft.add("ReservedAddress", name, {"region": draft.draw(st.sampled_from(["us", "eu"]))})
    for name in draft.names():
        if Address("ReservedDomain", name) in draft.declared:
            spec = {"url": f"https://{name}.example.com", "traffic_policy": draft.draw(POLICIES)}
            pool = draft.draw(_POOLS)
            draft.add("CloudEndpoint", name, {**spec, "pooling_enabled": bool(pool)})
            for other in pool:
                draft.add("CloudEndpoint", f"{other}-of-{name}", {**spec, "pooling_enabled": True})


def _edges(draft: Draft) -> None:
    taken: set[Any] = {declaration.name for declaration in draft.declared if declaration.kind == "CloudEndpoint"}
    for name in draft.names():
        address = draft.one("ReservedAddress")
        hostports = [Template((Ref(address.target, "addr"),))] if address and address not in taken else []
        taken.add(address)
        modules = {
            "backend": draft.backend(),
            "ip_restriction": draft.restriction(),
            "traffic_policy": draft.policy(),
        }
        draft.add("TCPEdge", name, {"hostports": hostports, **modules})
    domains = [declaration.name for declaration in draft.declared if declaration.kind == "ReservedDomain"]
    for kind in ("TLSEdge", "HTTPSEdge"):
        for name in draft.names():
            free = [domain for domain in domains if domain not in taken]
            hosts = draft.draw(st.lists(st.sampled_from(free), unique=True, max_size=2)) if free else []
            taken.update(hosts)
            spec: Spec = {"hostports": [f"{host}.example.com:443" for host in hosts]}
            upstream = kind == "TLSEdge" and draft.draw(st.booleans())
            if upstream:
                spec["tls_termination"] = {"terminate_at": "upstream"}
            else:
                spec["mutual_tls"] = draft.mutual_tls()
                spec["tls_termination"] = draft.maybe({"min_version": draft.draw(st.sampled_from(["1.2", "1.3"]))})
            if kind == "TLSEdge":
                spec |= {"backend": draft.backend(), "ip_restriction": draft.restriction()}
            draft.add(kind, name, spec)
    for name in draft.names():
        edge = draft.one("HTTPSEdge")
        if edge is not None:
            modules = {
                "backend": draft.backend(),
                "ip_restriction": draft.restriction(),
                "traffic_policy": draft.policy(),
            }
            draft.add(
                "HTTPSEdgeRoute",
                name,
                {"edge_id": edge, "match_type": "path_prefix", "match": f"/{name}", **modules},
            )


def _events(draft: Draft) -> None:
    for name in draft.names():
        group = draft.draw(st.sampled_from(["g", "h"]))
        member = draft.draw(st.sampled_from(["logs", "stream"]))
        auth = {"role": {"role_arn": "arn:aws:iam::1:role/r"}}
        target = {"log_group_arn": group, "auth": auth} if member == "logs" else {"stream_arn": group, "auth": auth}
        draft.add("EventDestination", name, {"format": "json", "target": {member: target}})
    for name in draft.names():
        draft.add("EventSubscription", name, {"destination_ids": draft.some("EventDestination")})
    for name in draft.names():
        subscription = draft.one("EventSubscription")
        if subscription is not None:
            draft.add(
                "EventSource",
                name,
                {"subscription_id": subscription, "type": f"ip_policy_{name}.v0"},
                described=False,
            )
