"""The query parameters of lists: page, filter, and for endpoints `id` and `url`.

Filters are available for the collections that the public service documents. `objects` reads the pages.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

from msgspec import Struct

from reconciler.sandbox.base.ids import is_id, is_ksuid
from reconciler.sandbox.operations.routes import Act, Operation
from reconciler.sandbox.wire import filters, refusal

LARGEST_PAGE = 100
FILTERED = frozenset(
    {
        "/endpoints",
        "/reserved_addrs",
        "/reserved_domains",
        "/tls_certificates",
        "/certificate_authorities",
        "/ip_policies",
        "/ip_policy_rules",
        "/agent_ingresses",
        "/tunnel_sessions",
        "/event_destinations",
        "/event_subscriptions",
        "/ip_restrictions",
        "/api_keys",
        "/ssh_credentials",
        "/credentials",
        "/service_users",
        "/ssh_certificate_authorities",
        "/vaults",
        "/vault_secrets",
    }
)
_REPEATABLE = {"/endpoints": ("id", "url")}

Keep = Callable[[Mapping[str, Any]], bool]


class Query(Struct, frozen=True):
    """A parsed query. `ids` and `urls` select objects; empty: all."""

    before: str | None = None
    limit: int = LARGEST_PAGE
    filter: str | None = None
    ids: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()

    @property
    def is_narrowed(self) -> bool:
        return bool(self.filter is not None or self.ids or self.urls)

    def next_query(self, before: str) -> str:
        """The query string of the next page: `before_id`, then the other parameters."""
        rest = [("before_id", before), ("limit", str(self.limit))]
        rest += [("filter", self.filter)] if self.filter is not None else []
        return urlencode(
            [*rest, *(("id", id_) for id_ in self.ids), *(("url", url) for url in self.urls)], quote_via=quote
        )

    def keep(self, known: Collection[str]) -> Keep:
        """The condition that selects objects by their response. `known` are the field names of the response."""
        conditions: list[Keep] = []
        if self.ids:
            conditions.append(lambda response: response["id"] in self.ids)
        if self.urls:
            conditions.append(lambda response: response["url"] in self.urls)
        if self.filter is not None:
            conditions.append(_filter(self.filter, known))
        return lambda response: all(condition(response) for condition in conditions)


_EVERYTHING = Query()


def _filter(text: str, known: Collection[str]) -> Keep:
    try:
        compiled = filters.compile_filter(text, known, datetime.now(UTC))
    except ValueError as error:
        raise refusal.FILTER(why=error) from error
    return partial(_evaluate, compiled)


def _evaluate(compiled: filters.Filter, response: Mapping[str, Any]) -> bool:
    # The type of an agent's endpoint is `ephemeral` in responses and `agent` in filters.
    document = {**response, "type": "agent"} if response.get("type") == "ephemeral" else response
    try:
        return compiled(document)
    except ValueError as error:
        raise refusal.FILTER(why=error) from error


def is_paged(operation: Operation) -> bool:
    """Whether a list is paged. Lists of objects without an id are always complete."""
    return bool(operation.kind.id_prefix)


def parameters(operation: Operation) -> tuple[str, ...]:
    """The query parameters of an operation."""
    if operation.act is not Act.LIST:
        return ()
    path = operation.path
    return ("before_id", "limit", *(("filter",) if path in FILTERED else ()), *_REPEATABLE.get(path, ()))


def repeatable(operation: Operation, name: str) -> bool:
    return operation.act is Act.LIST and name in _REPEATABLE.get(operation.path, ())


def read(text: str, operation: Operation) -> Query:
    if not text:
        return _EVERYTHING
    try:
        pairs = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=200)
    except ValueError as error:
        raise refusal.UNPARSABLE_QUERY() from error
    known, values = parameters(operation), dict[str, list[str]]()
    for name, value in pairs:
        if name not in known:
            raise refusal.UNKNOWN_PARAMETER(name=name, supported=", ".join(known) or "none")
        if name in values and not repeatable(operation, name):
            raise refusal.REPEATED_PARAMETER(name=name)
        values.setdefault(name, []).append(value)
    for identity in values.get("id", ()):
        check_id("id", identity, operation.kind.id_prefix)
    return Query(
        before=values.get("before_id", [None])[0],
        limit=_limit(values.get("limit", [None])[0]),
        filter=values.get("filter", [None])[0],
        ids=tuple(values.get("id", ())),
        urls=tuple(values.get("url", ())),
    )


def check_id(name: str, identity: str, prefix: str) -> None:
    if not is_ksuid(identity.rpartition("_")[2]):
        raise refusal.MALFORMED_ID(field=name, id=identity)
    if not is_id(identity, prefix):
        raise refusal.WRONG_ID(field=name, id=identity, wanted=prefix)


def _limit(text: str | None) -> int:
    if text is None:
        return LARGEST_PAGE
    if not (text.removeprefix("-").isdecimal() and text.isascii()):
        raise refusal.LIMIT_NO_NUMBER(value=text)
    if len(text) > 20 or not 1 <= int(text) <= LARGEST_PAGE:
        raise refusal.BAD_LIMIT(value=text)
    return int(text)
