"""Small random manifests of each kind with special behavior, each a pure function of a few dice.

Dice stay where an edit does not roll them again, so that one manifest grows out of another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

from reconciler import kinds as registry
from reconciler.model.address import Address
from reconciler.model.kind import Kind
from reconciler.model.manifest import Declaration, Delivery, Ensure, Lifecycle, Manifest
from reconciler.model.problem import Position
from reconciler.model.value import Ref, Template

Slot = tuple[str, str]
Dice = tuple[int, ...]
HERE = Position("m.yaml", 1, 1)
ROLE = {"role": {"role_arn": "arn"}}

THEMES: tuple[tuple[Slot, ...], ...] = (
    (("BotUser", "a"), ("BotUser", "b"), ("TunnelCredential", "a"), ("TunnelCredential", "b"), ("SSHCredential", "a")),
    (("IPPolicy", "a"), ("IPPolicy", "b"), ("IPPolicyRule", "a"), ("IPPolicyRule", "b"), ("IPRestriction", "a")),
    (
        ("CertificateAuthority", "a"),
        ("CertificateAuthority", "b"),
        ("ReservedDomain", "a"),
        ("TLSEdge", "a"),
        ("TLSEdge", "b"),
    ),
    (("ReservedAddress", "a"), ("ReservedAddress", "b"), ("TCPEdge", "a"), ("TCPEdge", "b"), ("IPPolicy", "a")),
    (
        ("EventDestination", "a"),
        ("EventSubscription", "a"),
        ("EventSubscription", "b"),
        ("EventSource", "a"),
        ("EventSource", "b"),
    ),
    (
        ("TunnelGroupBackend", "a"),
        ("FailoverBackend", "a"),
        ("HTTPSEdge", "a"),
        ("HTTPSEdgeRoute", "a"),
        ("HTTPSEdgeRoute", "b"),
    ),
    (("ReservedDomain", "a"), ("ReservedDomain", "b"), ("CloudEndpoint", "a"), ("TLSEdge", "a"), ("HTTPSEdge", "a")),
    (("BotUser", "a"), ("BotUser", "b"), ("BotUser", "c"), ("TunnelCredential", "b")),
)


def kinds_of(theme: tuple[Slot, ...]) -> tuple[Kind, ...]:
    return tuple(registry.get(name) for name in sorted({name for name, _ in theme}))


def roll(random: Random) -> Dice:
    return tuple(random.randrange(12) for _ in range(6))


@dataclass
class Draft:
    """A manifest being built: later slots reference earlier ones. `home` makes the names of two stacks distinct."""

    stack: str
    home: str
    plain: bool = False
    declared: dict[Address, Declaration] = field(default_factory=dict)
    taken: set[Any] = field(default_factory=set)

    def ref(self, kind: str, die: int) -> Ref | None:
        addresses = [address for address in self.declared if address.kind == kind]
        return Ref(addresses[die % len(addresses)]) if addresses else None

    def take(self, claim: Any) -> bool:
        """Whether no other resource of this manifest has it."""
        free = claim not in self.taken
        self.taken.add(claim)
        return free


def manifest(
    stack: str, home: str, theme: tuple[Slot, ...], dice: dict[Slot, Dice], *, plain: bool = False
) -> Manifest:
    """`plain`: no `ensure: absent`, no protection, and no name of another stack."""
    draft = Draft(stack, home, plain)
    for slot in theme:
        _declare(draft, slot, dice[slot])
    return Manifest(stack, draft.declared)


def _declare(draft: Draft, slot: Slot, dice: Dice) -> None:
    kind, name = slot
    present, *rest = dice
    if present < 2:
        return
    spec = _SPECS[kind](draft, name, *rest[:3])
    if spec is None:
        return
    spec = {key: value for key, value in spec.items() if value is not None}
    if registry.get(kind).keeps_owner:
        spec["description"] = f"text {rest[3] % 3}" if rest[3] % 4 else ""
        spec["metadata"] = ("", '{"team":"a"}', "free text")[rest[3] % 3]
    address = Address(kind, name)
    deliver = {"token": Delivery("to_file", f"{draft.home}-{name}")} if kind == "TunnelCredential" else {}
    ensure = Ensure.ABSENT if rest[4] == 11 and not draft.plain else Ensure.PRESENT
    lifecycle = Lifecycle(protect=rest[4] in (8, 9) and not draft.plain)
    if ensure is Ensure.PRESENT or not _is_needed(kind):
        draft.declared[address] = Declaration(address, spec, HERE, ensure=ensure, lifecycle=lifecycle, deliver=deliver)


def _is_needed(kind: str) -> bool:
    """Whether others may reference it: not with `ensure: absent`."""
    return kind not in ("TunnelCredential", "SSHCredential", "IPPolicyRule", "IPRestriction", "TCPEdge", "EventSource")


def drop_missing(refs: Iterator[Ref | None]) -> list[Ref]:
    return list(dict.fromkeys(ref for ref in refs if ref is not None))


def _bot(draft: Draft, name: str, a: int, b: int, c: int) -> dict[str, Any] | None:
    called = f"{draft.home} {a % 3}"
    return {"name": called, "active": b > 3} if draft.take(called) else None


def _credential(draft: Draft, name: str, a: int, b: int, c: int) -> dict[str, Any] | None:
    # An owner that is no longer declared is unchanged: a step that drops an owner cannot drop its bot.
    owner = draft.ref("BotUser", b) if name == "b" else None
    spec = {"acl": [f"bind:{a % 3}.example.com"] if a % 3 else [], "owner_id": owner}
    return None if name == "b" and owner is None else spec


def _ssh(draft: Draft, name: str, a: int, b: int, c: int) -> dict[str, Any] | None:
    return {"public_key": f"ssh-ed25519 AAAA{draft.home}{a % 2}", "acl": ["*"] if b > 6 else []}


def _rule(draft: Draft, name: str, a: int, b: int, c: int) -> dict[str, Any] | None:
    policy, cidr = draft.ref("IPPolicy", a), f"10.0.{b % 2}.0/24"
    if policy is None or not draft.take((policy, cidr)):
        return None
    return {"ip_policy_id": policy, "cidr": cidr, "action": ("allow", "deny")[c % 2]}


def _restriction(draft: Draft, name: str, a: int, b: int, c: int) -> dict[str, Any] | None:
    policies = drop_missing(draft.ref("IPPolicy", die) for die in (a, b))
    # Those of the dashboard, and of the API while enforced, block a plan that leaves a policy without rules.
    sort = ("api", "agent")[c % 2] if draft.home == "ours" else "endpoints"
    return {"type": sort, "enforced": c > 5 and sort != "api", "ip_policy_ids": policies} if policies else None


def _authority(draft: Draft, name: str, a: int, b: int, c: int) -> dict[str, Any] | None:
    return {"ca_pem": f"PEM {a % 3}"}


def _domain(draft: Draft, name: str, a: int, b: int, c: int) -> dict[str, Any] | None:
    policy = {"private_key_type": ("rsa", "ecdsa")[b % 2]} if b > 6 else None
    home = "theirs" if c == 11 and not draft.plain else draft.home  # a trespass
    return {"domain": f"{name}.{home}.example.com", "certificate_management_policy": policy}


def _address(draft: Draft, name: str, a: int, b: int, c: int) -> dict[str, Any] | None:
    return {"region": ("us", "eu")[a % 2]}


def _hosts(draft: Draft, a: int, b: int) -> list[str]:
    domains = [address.name for address in draft.declared if address.kind == "ReservedDomain"]
    picked = [domains[a % len(domains)]] if domains and a > 2 else []
    picked += [domains[b % len(domains)]] if domains and b > 8 else []
    return [f"{name}.{draft.home}.example.com:443" for name in dict.fromkeys(picked) if draft.take(name)]


def _tls_edge(draft: Draft, name: str, a: int, b: int, c: int) -> dict[str, Any] | None:
    authorities = drop_missing(draft.ref("CertificateAuthority", die) for die in (b, c))
    return {
        "hostports": _hosts(draft, a, b),
        "mutual_tls": {"certificate_authority_ids": authorities} if authorities and c > 3 else None,
        "tls_termination": {"min_version": ("1.2", "1.3")[a % 2]} if b > 5 else None,
    }


def _tcp_edge(draft: Draft, name: str, a: int, b: int, c: int) -> dict[str, Any] | None:
    address, policy = draft.ref("ReservedAddress", a), draft.ref("IPPolicy", b)
    taken = address is not None and a > 2 and draft.take(address)
    return {
        "hostports": [Template((Ref(address.target, "addr"),))] if address is not None and taken else [],
        "ip_restriction": {"ip_policy_ids": [policy], "enabled": c > 3} if policy and b > 4 else None,
    }


def _destination(draft: Draft, name: str, a: int, b: int, c: int) -> dict[str, Any] | None:
    group = f"group {b % 2}"
    logs, stream = {"log_group_arn": group, "auth": ROLE}, {"stream_arn": group, "auth": ROLE}
    return {"format": "json", "target": {"logs": logs} if a % 2 else {"stream": stream}}


def _subscription(draft: Draft, name: str, a: int, b: int, c: int) -> dict[str, Any] | None:
    return {"destination_ids": drop_missing(iter([draft.ref("EventDestination", a)])) if b > 3 else []}


def _source(draft: Draft, name: str, a: int, b: int, c: int) -> dict[str, Any] | None:
    subscription, sort = draft.ref("EventSubscription", a), f"ip_policy_{('created', 'updated')[b % 2]}.v0"
    if subscription is None or not draft.take((subscription, sort)):
        return None
    return {"subscription_id": subscription, "type": sort}


def _group(draft: Draft, name: str, a: int, b: int, c: int) -> dict[str, Any] | None:
    return {"labels": {"app": f"{a % 3}"}}


def _failover(draft: Draft, name: str, a: int, b: int, c: int) -> dict[str, Any] | None:
    return {"backends": drop_missing(iter([draft.ref("TunnelGroupBackend", a)])) if b > 3 else []}


def _https_edge(draft: Draft, name: str, a: int, b: int, c: int) -> dict[str, Any] | None:
    return {"hostports": _hosts(draft, a, b), "tls_termination": {"min_version": "1.3"} if c > 6 else None}


def _route(draft: Draft, name: str, a: int, b: int, c: int) -> dict[str, Any] | None:
    edge, match = draft.ref("HTTPSEdge", a), f"/{a % 2}"
    if edge is None or not draft.take((edge, match)):
        return None
    backend = draft.ref("FailoverBackend", b) or draft.ref("TunnelGroupBackend", b)
    return {
        "edge_id": edge,
        "match_type": "path_prefix",
        "match": match,
        "backend": {"backend_id": backend} if backend and b > 4 else None,
    }


def _endpoint(draft: Draft, name: str, a: int, b: int, c: int) -> dict[str, Any] | None:
    domains = [address.name for address in draft.declared if address.kind == "ReservedDomain"]
    if not domains or not draft.take(name := domains[a % len(domains)]):
        return None
    host = f"{name}.{draft.home}.example.com"
    policy = {"on_http_request": [{"actions": [{"type": "deny", "config": {"status_code": 400 + c % 2}}]}]}
    return (
        {"url": f"{('https', 'tls')[b > 9]}://{host}", "traffic_policy": policy} if draft.take(("url", host)) else None
    )


_SPECS: dict[str, Callable[[Draft, str, int, int, int], dict[str, Any] | None]] = {
    "BotUser": _bot,
    "TunnelCredential": _credential,
    "SSHCredential": _ssh,
    "IPPolicy": lambda draft, name, a, b, c: {},
    "IPPolicyRule": _rule,
    "IPRestriction": _restriction,
    "CertificateAuthority": _authority,
    "ReservedDomain": _domain,
    "ReservedAddress": _address,
    "TLSEdge": _tls_edge,
    "TCPEdge": _tcp_edge,
    "EventDestination": _destination,
    "EventSubscription": _subscription,
    "EventSource": _source,
    "TunnelGroupBackend": _group,
    "FailoverBackend": _failover,
    "HTTPSEdge": _https_edge,
    "HTTPSEdgeRoute": _route,
    "CloudEndpoint": _endpoint,
}
