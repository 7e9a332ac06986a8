"""What agents may open with a credential: its access control list, and the names that the account reserved."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tests.access.gateway.messages import Answer, BindRequest

Account = Mapping[str, list[dict[str, Any]]]


def _refuse(reason: str, code: str, rows: Iterable[str] = ()) -> Answer:
    return Answer("refuse", reason, code=code, open_rows=frozenset(rows))


def may_bind(account: Account, bind: BindRequest) -> Answer:
    """Whether the credential exists, its owner is active, and its list covers what the agent opens."""
    credentials = (*account.get("TunnelCredential", ()), *account.get("SSHCredential", ()))
    credential = next((found for found in credentials if found["id"] == bind.credential), None)
    if credential is None:
        return _refuse("the credential does not exist", "107")
    bots = {bot["id"]: bot for bot in account.get("BotUser", ())}
    if not bots.get(credential.get("owner_id") or "", {}).get("active", True):
        return _refuse("the owner of the credential is not active", "636")
    acl = credential.get("acl") or []
    if not acl or "*" in acl or "bind:*" in acl:
        return Answer("pass", "the credential has no restrictions", served_by=bind.credential)
    rules = [rule.removeprefix("bind:") for rule in acl]
    if bind.labels:
        if all(any(_covers_label(rule, label) for rule in rules) for label in bind.labels):
            return Answer("pass", "the list covers the labels", open_rows=frozenset({"bind-labels"}))
        return _refuse("the list does not cover the labels", "399", {"bind-labels"})
    rules = [rule.lower() for rule in rules]
    if bind.scheme == "tcp":
        return _bind_address(rules, bind)
    if bind.host and any(_covers_host(rule, bind.host) for rule in rules):
        return Answer("pass", "the list covers the host", served_by=bind.credential)
    return _refuse("the list does not cover the host", "316")


def _bind_address(rules: list[str], bind: BindRequest) -> Answer:
    if not bind.host:
        return _refuse("a random address requires a credential without restrictions", "356")
    if f"{bind.host}:{bind.port}" in rules:
        return Answer("pass", "the list covers the address", served_by=bind.credential)
    if any(_covers_host(rule, bind.host) for rule in rules):
        return Answer("pass", "the list covers the host", open_rows=frozenset({"bind-host-of-address"}))
    return _refuse("the list does not cover the address", "308")


def _covers_host(rule: str, host: str) -> bool:
    """`x` covers x, and `*.x` each subdomain of x and the wildcard *.x itself, but not x."""
    return rule == host or (rule.startswith("*.") and host.endswith(rule[1:]))


def _covers_label(rule: str, label: tuple[str, str]) -> bool:
    key, separator, value = rule.partition("=")
    return bool(separator) and key in ("*", label[0]) and value in ("*", label[1])


def may_open(account: Account, bind: BindRequest) -> Answer:
    """`may_bind`, and whether the host or address is reserved by the account: a credential opens no other name."""
    answer = may_bind(account, bind)
    if answer.outcome != "pass" or bind.labels or not bind.host or bind.host.endswith(".internal"):
        return answer
    if bind.scheme == "tcp":
        addresses = {address["addr"] for address in account.get("ReservedAddress", ())}
        return answer if f"{bind.host}:{bind.port}" in addresses else _refuse("the address is not reserved", "320")
    held = {hostport.rpartition(":")[0] for edge in _edges(account) for hostport in edge.get("hostports") or ()}
    if bind.host in held:
        return _refuse("an edge serves the host", "381")
    domains = {domain["domain"] for domain in account.get("ReservedDomain", ())}
    below = any(domain.startswith("*.") and bind.host.endswith(domain[1:]) for domain in domains)
    if bind.host in domains or (below and not bind.host.startswith("*.")):
        return answer
    return _refuse("the host is not reserved", "321" if bind.host.startswith("*.") else "320")


def _edges(account: Account) -> Iterable[dict[str, Any]]:
    return (*account.get("HTTPSEdge", ()), *account.get("TLSEdge", ()))
