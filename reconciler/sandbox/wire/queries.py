"""What the query string of a list asks for: which page, and which objects at all.

Filters are served on the collections that the public service filters, endpoints can be asked for by id and by url as
well. Knows nothing of how a page is read; see `objects`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

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


@dataclass(frozen=True)
class Query:
    """`id` and `url` name what is wanted; empty: no matter which."""

    before: str | None = None
    limit: int = LARGEST_PAGE
    filter: str | None = None
    ids: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()

    @property
    def is_narrowed(self) -> bool:
        return bool(self.filter is not None or self.ids or self.urls)

    def next_query(self, before: str) -> str:
        """The query string of the next page: the position first, then what else was asked for."""
        rest = [("before_id", before), ("limit", str(self.limit))]
        rest += [("filter", self.filter)] if self.filter is not None else []
        return urlencode(
            [*rest, *(("id", each) for each in self.ids), *(("url", url) for url in self.urls)], quote_via=quote
        )

    def keep(self, known: Collection[str]) -> Keep:
        """Whether an object, as it is shown, is asked for. `known` are the names of what is shown."""
        chosen: list[Keep] = []
        if self.ids:
            chosen.append(lambda shown: shown["id"] in self.ids)
        if self.urls:
            chosen.append(lambda shown: shown["url"] in self.urls)
        if self.filter is not None:
            chosen.append(_filter(self.filter, known))
        return lambda shown: all(each(shown) for each in chosen)


_EVERYTHING = Query()


def _filter(text: str, known: Collection[str]) -> Keep:
    try:
        compiled = filters.compile_filter(text, known, datetime.now(UTC))
    except ValueError as error:
        raise refusal.FILTER(why=error) from error
    return partial(_evaluate, compiled)


def _evaluate(compiled: filters.Filter, shown: Mapping[str, Any]) -> bool:
    # What an agent serves is called `ephemeral` where it is shown and `agent` where it is asked for.
    document = {**shown, "type": "agent"} if shown.get("type") == "ephemeral" else shown
    try:
        return compiled(document)
    except ValueError as error:
        raise refusal.FILTER(why=error) from error


def is_paged(operation: Operation) -> bool:
    """Whether a list comes in pages: objects without an id have nothing to go on after, and are always all shown."""
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
    known, given = parameters(operation), dict[str, list[str]]()
    for name, value in pairs:
        if name not in known:
            raise refusal.UNKNOWN_PARAMETER(name=name, supported=", ".join(known) or "none")
        if name in given and not repeatable(operation, name):
            raise refusal.REPEATED_PARAMETER(name=name)
        given.setdefault(name, []).append(value)
    for identity in given.get("id", ()):
        check_id("id", identity, operation.kind.id_prefix)
    return Query(
        before=given.get("before_id", [None])[0],
        limit=_limit(given.get("limit", [None])[0]),
        filter=given.get("filter", [None])[0],
        ids=tuple(given.get("id", ())),
        urls=tuple(given.get("url", ())),
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
